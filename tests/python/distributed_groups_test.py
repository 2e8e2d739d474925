"""The backend "riffle": groups, stores, elastic restarts, its name known on import of torch."""

import os
import subprocess
import sys
import tempfile
import textwrap
import tomllib
import unittest
from pathlib import Path

import torch  # noqa: F401  the test is skipped where there is none
from distributed_scripts import run

ROOT = Path(__file__).resolve().parents[2]


def ended(*words: object, seconds: float = 200, **env: str) -> str:
    """What a command printed."""
    done = subprocess.run(
        [str(word) for word in words],
        env={**os.environ, **env},
        capture_output=True,
        text=True,
        timeout=seconds,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def torchrun(script: Path, *options: object, python: str = sys.executable) -> str:
    """Of two workers."""
    port = 29000 + os.getpid() % 900
    words = [python, "-W", "ignore", "-m", "torch.distributed.run", "--nproc-per-node", 2]
    return ended(*words, "--master-port", port, *options, script)


class DistributedGroups(unittest.TestCase):
    def test_groups(self):
        run("""
        mine, all_of_them = dist.new_subgroups(group_size=1)
        t = torch.ones(2)
        dist.all_reduce(t, group=mine)
        assert (t == 1).all() and len(all_of_them) == size
        # By names that only the members know of each other.
        if rank != 1:
            pair = dist.new_group([2, 0], use_local_synchronization=True)
            t = torch.full((3000,), rank + 1.0)
            dist.all_reduce(t, group=pair)
            assert (t == 4).all()
        # As split_group does where torch lets it, which needs an accelerator.
        part = dist.group.WORLD.split_group([0, 2] if rank != 1 else [1], group_name="part")
        t = torch.full((3000,), rank + 1.0)
        part.allreduce([t]).wait()
        assert (t == (2 if rank == 1 else 4)).all()
        part.shutdown()
        # What waits when a group is aborted ends with an error, what runs at its timeout.
        group = dist.new_group([0, 1], timeout=timedelta(seconds=1))
        if rank == 0:
            works = [dist.all_reduce(torch.ones(9), group=group, async_op=True) for _ in range(3)]
            group._get_backend(torch.device("cpu")).abort()
            works.append(dist.all_reduce(torch.ones(9), group=group, async_op=True))
            errors = []
            for work in works:
                try:
                    work.wait()
                except dist.DistBackendError as error:
                    errors.append(str(error))
            assert len(errors) == 4 and "aborted" in errors[3], errors
        dist.group.WORLD.monitored_barrier(timedelta(seconds=50))
        """)

    def test_file_store(self):
        with tempfile.TemporaryDirectory() as folder:
            run(
                f"""
                dist.destroy_process_group()  # and once more, over a file
                store = dist.FileStore("{folder}/store", size)
                dist.init_process_group("cpu:riffle", store=store, rank=rank, world_size=size)
                t = torch.ones(3)
                dist.all_reduce(t)
                assert (t == size).all()
                """,
                workers=2,
            )

    def test_torchrun_starts_it_again(self):
        with tempfile.TemporaryDirectory() as folder:
            script = Path(folder) / "script.py"
            script.write_text(
                textwrap.dedent("""
                import os, torch, torch.distributed as dist
                import riffle.distributed
                dist.init_process_group("riffle")
                attempt = int(os.environ["TORCHELASTIC_RESTART_COUNT"])
                for step in range(20):
                    t = torch.ones(1000)
                    dist.all_reduce(t)
                    assert (t == 2).all()
                    if attempt == 0 and step == 10 and dist.get_rank() == 1:
                        os._exit(7)
                if dist.get_rank() == 0:
                    print("attempt", attempt, "sum", t[0].item())
                dist.destroy_process_group()
                """)
            )
            self.assertIn("attempt 1 sum 2.0", torchrun(script, "--max-restarts", 1))

    def test_torch_knows_the_name(self):
        """As pip installs it: an entry point that `import torch` runs."""
        points = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]
        with tempfile.TemporaryDirectory() as folder:
            info = Path(folder) / "riffle-0.dist-info"
            info.mkdir()
            (info / "METADATA").write_text("Metadata-Version: 2.1\nName: riffle\nVersion: 0\n")
            (info / "entry_points.txt").write_text(
                "\n".join(
                    f"[{group}]\n" + "\n".join(f"{name} = {value}" for name, value in names.items())
                    for group, names in points.items()
                )
            )
            script = Path(folder) / "script.py"
            script.write_text(
                textwrap.dedent("""
                import sys, torch, torch.distributed as dist
                assert "riffle" not in sys.modules
                assert dist.Backend.default_device_backend_map["cpu"] == "gloo"
                dist.init_process_group("riffle", store=dist.HashStore(), rank=0, world_size=1)
                dist.all_reduce(torch.ones(2))
                print(dist.get_backend())
                """)
            )
            # What was built comes before the sources, which have no modules.
            path = os.pathsep.join([folder, os.environ["PYTHONPATH"], str(ROOT / "python")])
            out = ended(sys.executable, "-W", "ignore", script, PYTHONPATH=path)
            self.assertIn("riffle", out)


class DistributedFrameworks(unittest.TestCase):
    """RIFFLE_FRAMEWORKS names a Python that has what tests/python/frameworks.txt lists."""

    def example(self, name: str) -> None:
        python = os.environ.get("RIFFLE_FRAMEWORKS")
        if not python:
            self.skipTest("RIFFLE_FRAMEWORKS names no Python that has lightning and accelerate")
        out = torchrun(ROOT / "examples" / "python" / f"{name}_backend.py", python=python)
        self.assertRegex(out, r"loss 0\.0\d* on 2 workers, riffle")

    def test_lightning(self):
        self.example("lightning")

    def test_accelerate(self):
        self.example("accelerate")


if __name__ == "__main__":
    unittest.main()
