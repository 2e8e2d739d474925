"""The wheel: built from the tree, installed elsewhere, used without the tree."""

import json
import os
import subprocess
import sys
import tempfile
import unittest
import zipfile
from pathlib import Path

import torch

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = """
import riffle, torch
model = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.ReLU(), torch.nn.Linear(256, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
with riffle.sync(model, optimizer):
    for _ in range(10):
        optimizer.zero_grad()
        model(torch.rand(32, 64)).sum().backward()
        optimizer.step()
"""


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
            self.assertIn("riffle_autoload/__init__.py", names)
            place = Path(folder) / "site"
            run(sys.executable, "-m", "pip", "install", "--no-deps", "--target", place, wheel)
            # torch as it is here, riffle and its command from the wheel alone.
            here = Path(torch.__file__).parents[1]
            environment = {"PYTHONPATH": f"{place}:{here}", "PATH": "/usr/bin:/bin"}
            task = ["digits", "--model=mlp", "--data=synthetic", "-n", "2", "--steps=20"]
            out = run(sys.executable, "-m", "riffle.train", *task, environment=environment)
            self.assertEqual(out.splitlines()[1].split()[0], "2")
            self.use_the_command(place / "bin", Path(folder), environment)

    def use_the_command(self, scripts, folder, environment):
        """As a person would, after pip install."""
        command = scripts / "riffle"
        for verb in ("plan", "profile", "lab", "launch", "train"):
            self.assertIn(f"riffle {verb}", run(command, verb, "--help", environment=environment))
        script, trace = folder / "script.py", folder / "trace.json"
        script.write_text(SCRIPT)
        run(
            command,
            "profile",
            "--output",
            trace,
            "--",
            command,
            "launch",
            "-n",
            "2",
            "--",
            sys.executable,
            script,
            environment=environment,
        )
        plan = folder / "plan.json"
        cluster = "flat:2,latency=1ms,bandwidth=1Gbps"
        best = json.loads(
            run(
                command,
                "plan",
                "--trace",
                trace,
                "--cluster",
                cluster,
                "--plan-file",
                plan,
                "--format",
                "json",
                environment=environment,
            )
        )["candidates"]
        self.assertEqual(json.loads(plan.read_text())["candidates"], best)
        out = run(
            command,
            "train",
            "digits",
            "--model=mlp",
            "--data=synthetic",
            "-n",
            "2",
            "--steps=20",
            "--plan",
            plan,
            environment=environment,
        )
        exact = next(each["spec"] for each in best if each["exact"])
        self.assertEqual(out.splitlines()[1].split()[:2], ["2", exact])


if __name__ == "__main__":
    unittest.main()
