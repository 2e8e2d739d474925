"""Other libraries as contenders: listed, prepared in their own environments, run on two workers."""

import contextlib
import dataclasses
import io
import json
import os
import socket
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import torch

import riffle
from riffle import UsageError
from riffle.peers import PEERS, environments, peer_of
from riffle.peers.__main__ import main
from riffle.peers.race import read_race
from riffle.peers.work import Emulated, Training

WORKERS = 2
LAYERS = [riffle.Layer(f"layer{i}", 1024, 0.002, 0.004) for i in range(3)]
COMPUTE = 3 * (0.002 + 0.004)


def called(*arguments):
    """Exit code, standard output and standard error of `python -m riffle.peers`."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(list(arguments))
    return code, out.getvalue(), err.getvalue()


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class InFolder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)


class Peers(InFolder):
    """Nothing is downloaded here."""

    def setUp(self):
        super().setUp()
        patch = mock.patch.dict(os.environ, {"RIFFLE_PEERS": str(self.root)})
        patch.start()
        self.addCleanup(patch.stop)

    def test_they_are_listed_with_pinned_packages_and_no_torch(self):
        code, out, _ = called("--list")
        listed = {peer["name"]: peer for peer in json.loads(out)["peers"]}
        self.assertEqual(code, 0)
        self.assertEqual(
            set(listed), {"torch-ddp", "torch-localsgd", "decent-dp", "torchft-diloco"}
        )
        self.assertEqual(listed["torch-ddp"]["options"][0]["values"], ["none", "fp16", "powersgd"])
        self.assertIn("decent-dp==0.2.3", listed["decent-dp"]["packages"])
        for peer in listed.values():
            for package in peer["packages"]:
                self.assertRegex(package, r"^[\w-]+==[\w.]+$")
                self.assertNotEqual(package.split("==")[0], "torch")

    def test_what_is_not_known_is_answered_with_what_is(self):
        for spec, message in {
            "nobody": "no peer 'nobody'; known: torch-ddp, torch-localsgd, decent-dp, torchft",
            "torch-ddp:bucket=3": "torch-ddp: no option 'bucket'; known: hook",
            "torch-ddp:hook=fp8": "torch-ddp: hook=fp8; known: none, fp16, powersgd",
            "torch-localsgd:tau=0": "torch-localsgd: tau=0: must be a whole number, 1 or more",
            "decent-dp:topology=star": "topology=star; known: complete, ring, one-peer-exp, alt",
        }.items():
            code, out, err = called("--prepare", spec)
            self.assertEqual((code, out, err.count("\n")), (2, "", 1), spec)
            self.assertIn(message, err)

    def test_periods_are_those_of_the_exchanges(self):
        for spec, period in {
            "torch-ddp:hook=fp16": 1,
            "torch-localsgd:tau=6": 6,
            "decent-dp": 1,
            "decent-dp:topology=ring": 2,
            "decent-dp:topology=one-peer-exp": 3,
            "decent-dp:topology=alternating-exp-ring": 4,
            "torchft-diloco": 20,
        }.items():
            peer, options = peer_of(spec)
            self.assertEqual(peer.period(options, 8), period, spec)

    def test_torchs_own_need_no_environment(self):
        code, out, _ = called("--prepare", "torch-localsgd:tau=3")
        told = json.loads(out)
        self.assertEqual(code, 0)
        self.assertEqual(told["python"], sys.executable)
        self.assertEqual(told["versions"], {"torch": torch.__version__})
        self.assertIn("every 3 steps", told["how"])
        self.assertIn("SCHED_BATCH", told["how"])
        self.assertEqual(list(self.root.iterdir()), [])

    def test_what_cannot_be_installed_is_said_in_one_line_and_leaves_nothing(self):
        impossible = dataclasses.replace(
            PEERS["decent-dp"], packages=lambda _: ("riffle-has-no-such-package==9.9",)
        )
        offline = mock.patch.dict(os.environ, {"PIP_NO_INDEX": "1", "PIP_CONFIG_FILE": os.devnull})
        with offline, mock.patch.dict(PEERS, {"decent-dp": impossible}):
            code, out, err = called("--prepare", "decent-dp")
        self.assertEqual((code, out), (1, ""))
        last = err.splitlines()[-1]
        self.assertRegex(last, "decent-dp could not be installed: .*riffle-has-no-such-package")
        self.assertEqual([path.name for path in self.root.iterdir()], [".lock"])

    def test_what_cannot_be_started_is_said_in_one_line_and_leaves_nothing(self):
        peer = dataclasses.replace(PEERS["decent-dp"], modules=("riffle.no_such_module",))
        with (
            mock.patch.object(environments, "_install"),
            self.assertRaisesRegex(environments.NotAvailable, "could not be started: .*no_such_mo"),
        ):
            environments.prepare(peer, peer.parse(""))
        self.assertEqual([path.name for path in self.root.iterdir()], [".lock"])

    def test_an_environment_is_made_once_and_sees_our_torch(self):
        peer = dataclasses.replace(PEERS["decent-dp"], modules=())
        with mock.patch.object(environments, "_install") as install:
            pythons = [environments.prepare(peer, peer.parse(""))[0] for _ in range(2)]
        self.assertEqual(install.call_count, 1)
        self.assertEqual(pythons[0], pythons[1])
        self.assertTrue(pythons[0].startswith(str(self.root)))
        found = subprocess.run(
            [pythons[0], "-c", "import torch, riffle; print(torch.__file__, riffle.__file__)"],
            env={k: v for k, v in os.environ.items() if k != "PYTHONPATH"},
            capture_output=True,
            text=True,
            check=True,
        )
        self.assertEqual(found.stdout.split(), [torch.__file__, riffle.__file__])

    def test_races_that_make_no_sense_are_refused(self):
        good = {"contender": "torch-ddp", "folder": ".", "trace": "resnet50", "steps": 3}
        path = self.root / "race.json"
        for change, message in (
            ({"task": "digits"}, "needs a trace or a task, one of them"),
            ({"trace": None}, "needs a trace or a task, one of them"),
            ({"steps": None}, "a race with a trace needs steps"),
            ({"steps": -1}, "steps is -1"),
            ({"trace": None, "task": "digits", "batch": "many"}, "batch is 'many'"),
        ):
            path.write_text(json.dumps(good | change))
            with self.assertRaisesRegex(UsageError, message):
                read_race(str(path))
        path.write_text("{")
        with self.assertRaisesRegex(UsageError, "is no JSON object"):
            read_race(str(path))
        with self.assertRaisesRegex(UsageError, "cannot be read"):
            read_race(str(self.root / "none.json"))


class PeerRaces(InFolder):
    """Two real workers on loopback, no lab."""

    def race(self, contender, **more):
        """The lines of each rank."""
        (self.root / "trace.json").write_text(riffle.Trace(LAYERS, "three").to_json())
        folder = Path(tempfile.mkdtemp(dir=self.root))
        content = {"contender": contender, "folder": str(folder), "seed": 3, "warmup": 2, **more}
        (folder / "race.json").write_text(json.dumps(content))
        for rank, (code, err) in enumerate(self.workers(contender, folder / "race.json")):
            self.assertEqual(code, 0, f"rank {rank}: {err}")
        return [
            [json.loads(line) for line in (folder / f"rank{rank}.jsonl").read_text().splitlines()]
            for rank in range(WORKERS)
        ]

    def workers(self, contender, path):
        peer, options = peer_of(contender)
        python = sys.executable
        if packages := peer.packages(options):
            place = environments.place_of(peer, packages)
            if not place.exists():
                self.skipTest(f"{contender} is not installed: python -m riffle.peers --prepare it")
            python = environments.prepare(peer, options)[0]
        common = {
            "RIFFLE_RACE": str(path),
            "WORLD_SIZE": str(WORKERS),
            "LOCAL_WORLD_SIZE": "1",
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(free_port()),
            "GLOO_SOCKET_IFNAME": "lo",
            "OMP_NUM_THREADS": "1",
        }
        started = [
            subprocess.Popen(
                [python, "-W", "ignore", "-m", "riffle.peers.worker"],
                env=os.environ | common | {"RANK": str(rank), "GROUP_RANK": str(rank)},
                stderr=subprocess.PIPE,
                text=True,
            )
            for rank in range(WORKERS)
        ]
        try:
            return [(one.communicate(timeout=120)[1], one.returncode)[::-1] for one in started]
        finally:
            for one in started:
                one.kill()

    def check_trace(self, contender, steps):
        for lines in self.race(contender, trace=str(self.root / "trace.json"), steps=steps):
            *counted, end = lines
            self.assertEqual([line["step"] for line in counted], list(range(1, steps + 1)))
            self.assertEqual((end["end"], end["steps"]), ("steps", steps))
            self.assertIsNone(end["timeline"])
            self.assertEqual(end["seconds"], counted[-1]["seconds"])
            before = 0.0
            for line in counted:
                self.assertGreaterEqual(line["seconds"] - before, 0.99 * COMPUTE)
                self.assertAlmostEqual(
                    line["exposed"], max(0.0, line["seconds"] - before - COMPUTE), places=9
                )
                self.assertNotIn("loss", line)
                before = line["seconds"]

    def check_task(self, contender, steps=20):
        first, other = self.race(
            contender, task="digits", data="synthetic", steps=steps, evaluate=8, target=2.0
        )
        evaluated = [line for line in first if "evaluated" in line]
        self.assertEqual([line["evaluated"] for line in evaluated], [8, 16, 20])
        self.assertFalse([line for line in other if "evaluated" in line])
        self.assertGreater(evaluated[-1]["accuracy"], 0.3)  # of ten classes
        at = {line["step"]: line["seconds"] for line in first if "step" in line}
        for line in evaluated:
            self.assertEqual(line["seconds"], at[line["evaluated"]])
        losses = [line["loss"] for line in first if "step" in line]
        self.assertEqual(len(losses), steps)
        self.assertLess(losses[-1], losses[0])
        self.assertEqual(first[-1]["end"], "steps")

    def test_torch_ddp(self):
        self.check_trace("torch-ddp", 5)
        self.check_task("torch-ddp:hook=fp16")

    def test_torch_localsgd(self):
        self.check_trace("torch-localsgd:tau=3", 6)
        self.check_task("torch-localsgd")

    def test_a_target_ends_all_ranks_at_the_same_step(self):
        answers = self.race(
            "torch-ddp", task="digits", data="synthetic", steps=50, evaluate=4, target=0.0
        )
        for lines in answers:
            self.assertEqual((lines[-1]["end"], lines[-1]["steps"]), ("target", 4))

    def test_powersgd(self):
        self.check_trace("torch-ddp:hook=powersgd", 5)
        self.check_task("torch-ddp:hook=powersgd")

    def test_decent_dp(self):
        self.check_trace("decent-dp:topology=one-peer-exp", 5)
        self.check_task("decent-dp")

    def test_torchft(self):
        self.check_trace("torchft-diloco:tau=2", 4)
        self.check_task("torchft-diloco:tau=5")

    def test_a_failure_is_one_line(self):
        path = self.root / "race.json"
        content = {"contender": "torch-ddp:hook=9", "folder": str(self.root), "task": "digits"}
        path.write_text(json.dumps(content))
        for code, err in self.workers("torch-ddp", path):
            self.assertEqual(code, 2)
            self.assertEqual(err, "riffle: torch-ddp: hook=9; known: none, fp16, powersgd\n")


class PeerWork(InFolder):
    """What is trained is what `riffle train` trains."""

    def read(self, **more):
        path = self.root / "race.json"
        path.write_text(json.dumps({"contender": "torch-ddp", "folder": ".", **more}))
        return read_race(str(path))

    def test_the_first_weights_and_the_batches_are_those_of_riffle_train(self):
        from riffle.tasks import task_named
        from riffle.train.batches import Batches

        race = self.read(task="digits", data="synthetic", seed=5, batch=16, epochs=0.5)
        work = Training(race, rank=1, size=4)
        task = task_named("digits")
        torch.manual_seed(5)
        model = task.models["cnn"]()
        for found, expected in zip(work.module.parameters(), model.parameters(), strict=True):
            self.assertTrue(torch.equal(found, expected))
        batches = Batches(task.load("synthetic", 5).train, 16, 1, 4, 5)
        self.assertTrue(
            torch.equal(work.loss(work.module, 3), task.loss(model, batches.at(3)).detach())
        )
        self.assertEqual(work.steps, round(0.5 * batches.per_epoch))

    def test_an_update_takes_its_share_of_the_traces_time(self):
        trace = self.root / "trace.json"
        trace.write_text(riffle.Trace(LAYERS, "three", optimizer_step=0.03).to_json())
        work = Emulated(self.read(trace=str(trace), steps=1))
        taken = []
        with mock.patch.object(work._device, "take", taken.append):
            work.optimizer(work.module).step()
            work.optimizer(next(work.module.children())).step()
        self.assertAlmostEqual(taken[0], 0.03)
        self.assertAlmostEqual(taken[1], 0.01)
        self.assertAlmostEqual(work.compute_seconds(), COMPUTE + 0.03)


if __name__ == "__main__":
    unittest.main()
