"""Every example runs on several workers and learns; the C++ one as a project of its own.

Four workers where the strategy makes groups: fewer would be one group.
"""

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ["RIFFLE_COMMAND"]).resolve().parents[1]


def run(*command, seconds=250):
    done = subprocess.run(
        [str(word) for word in command], capture_output=True, text=True, timeout=seconds
    )
    if done.returncode:
        raise AssertionError(f"{command}: {done.stdout}\n{done.stderr}")
    return done.stdout


def launch(*command, workers=4):
    started = [os.environ["RIFFLE_COMMAND"], "launch", "-n", workers, "--", *command]
    return run(*started, seconds=125 * workers)


def example(name, workers=4):
    script = ROOT / "examples" / "python" / f"{name}.py"
    return launch(sys.executable, script, workers=workers)


class Example(unittest.TestCase):
    def figure(self, pattern, text):
        found = re.search(pattern, text)
        self.assertTrue(found, text)
        return float(found[1])


class Examples(Example):
    def test_deepfm(self):
        out = example("deepfm")
        auc, best = (self.figure(p, out) for p in (r"AUC ([\d.]+)", r"own is ([\d.]+)"))
        self.assertGreater(auc, best - 0.06)
        self.assertLess(auc, best + 0.01)

    def test_bert(self):
        self.assertGreater(self.figure(r"2 workers: ([\d.]+)%", example("bert", 2)), 90)

    def test_custom_strategy(self):
        out = example("custom_strategy")
        self.assertIn("proved for 8 workers: True", out)
        self.assertLess(self.figure(r"off by ([\d.]+)", out), 0.05)

    def test_backend_of_torch_distributed(self):
        for name in ("ddp_backend", "fsdp_backend"):
            script = ROOT / "examples" / "python" / f"{name}.py"
            torchrun = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", 2]
            out = run(*torchrun, "--master-port", 29000 + os.getpid() % 900, script)
            self.assertLess(self.figure(r"loss ([\d.]+) on 2 workers", out), 0.5)

    @unittest.skipUnless((BUILD / "bin/libtorch_example").exists(), "built without torch")
    def test_libtorch(self):
        out = launch(BUILD / "bin/libtorch_example", "sesgd")
        self.assertGreater(self.figure(r"4 workers: accuracy ([\d.]+)%", out), 95)

    def test_installed_cpp_package(self):
        with tempfile.TemporaryDirectory() as folder:
            prefix, build = Path(folder) / "prefix", Path(folder) / "build"
            install = ["cmake", "--install", BUILD, "--prefix", prefix]
            run(*install, "--component", "development")
            # Nothing of the source tree may be needed: the project is copied away.
            shutil.copytree(ROOT / "examples" / "cpp", Path(folder) / "project")
            configure = ["cmake", "-S", Path(folder) / "project", "-B", build, "-G", "Ninja"]
            run(*configure, f"-DCMAKE_PREFIX_PATH={prefix}")
            run("cmake", "--build", build)
            for strategy in ("bsp", "sesgd", "ds-sync", "dasgd", "dear"):
                self.assertIn(f"4 workers, {strategy}", launch(build / "regression", strategy))
            targets = next(prefix.rglob("riffle-targets.cmake")).read_text()
            self.assertNotIn(str(ROOT), targets)

    @unittest.skipUnless((BUILD / "bin/libtorch_example").exists(), "built without torch")
    def test_installed_torch_package(self):
        with tempfile.TemporaryDirectory() as folder:
            prefix, build = Path(folder) / "prefix", Path(folder) / "build"
            run("cmake", "--install", BUILD, "--prefix", prefix, "--component", "development")
            shutil.copytree(ROOT / "examples" / "libtorch", Path(folder) / "project")
            configure = ["cmake", "-S", Path(folder) / "project", "-B", build, "-G", "Ninja"]
            torch = importlib.util.find_spec("torch").submodule_search_locations[0]
            run(*configure, f"-DCMAKE_PREFIX_PATH={prefix}", f"-DRIFFLE_TORCH={torch}")
            run("cmake", "--build", build)
            out = launch(build / "libtorch_example", "wfbp")
            self.assertGreater(self.figure(r"4 workers: accuracy ([\d.]+)%", out), 95)
            targets = next(prefix.rglob("riffle-torch-targets.cmake")).read_text()
            self.assertNotIn(str(ROOT), targets)
            self.assertNotIn(torch, targets)


class ExamplesLong(Example):
    def test_gpt(self):
        self.assertLess(self.figure(r"2 workers .*perplexity ([\d.]+)", example("gpt", 2)), 8)

    def test_wide_resnet(self):
        self.assertGreater(
            self.figure(r"4 workers .*accuracy ([\d.]+)%", example("wide_resnet")), 60
        )


if __name__ == "__main__":
    unittest.main()
