"""The wheel: built from the tree, installed elsewhere, used without the tree or the command."""

import os
import subprocess
import sys
import tempfile
import unittest
import zipfile
from pathlib import Path

import torch

ROOT = Path(__file__).resolve().parents[2]


def run(*words, environment=None):
    clean = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "RIFFLE_COMMAND")}
    done = subprocess.run(
        [str(word) for word in words],
        env=clean | (environment or {}),
        cwd="/",
        capture_output=True,
        text=True,
        timeout=1000,
    )
    if done.returncode:
        raise AssertionError(f"{words}: {done.stdout}\n{done.stderr}")
    return done.stdout


class Package(unittest.TestCase):
    def test_wheel(self):
        with tempfile.TemporaryDirectory() as folder:
            run(sys.executable, "-m", "pip", "wheel", ROOT, "--no-deps", "--wheel-dir", folder)
            wheel = next(Path(folder).glob("riffle-*.whl"))
            names = zipfile.ZipFile(wheel).namelist()
            for name in ("py.typed", "_core.pyi", "train/__main__.py", "tasks/digits.py"):
                self.assertIn(f"riffle/{name}", names)
            place = Path(folder) / "site"
            run(sys.executable, "-m", "pip", "install", "--no-deps", "--target", place, wheel)
            # torch as it is here, riffle from the wheel alone, workers by torchrun.
            here = Path(torch.__file__).parents[1]
            environment = {"PYTHONPATH": f"{place}:{here}", "PATH": "/usr/bin:/bin"}
            task = ["digits", "--model=mlp", "--data=synthetic", "-n", "2", "--steps=20"]
            out = run(sys.executable, "-m", "riffle.train", *task, environment=environment)
            self.assertEqual(out.splitlines()[1].split()[:2], ["2", "mg-wfbp"])


if __name__ == "__main__":
    unittest.main()
