"""The two-line example under the launchers people use, and alone."""

import os
import re
import subprocess
import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "python" / "digits.py"
TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node"]


def run(*command, **environment):
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("OMPI_", "PMI_", "SLURM_"))}
    done = subprocess.run(
        command, env=clean | environment, capture_output=True, text=True, timeout=200, check=False
    )
    if done.returncode:
        raise AssertionError(f"{command}: {done.stdout}\n{done.stderr}")
    return done.stdout


class Launch(unittest.TestCase):
    def accuracy(self, text, workers):
        found = re.search(r"(\d+) workers: accuracy ([\d.]+)%", text)
        self.assertTrue(found, text)
        self.assertEqual(int(found[1]), workers)
        self.assertGreater(float(found[2]), 95)

    def test_alone(self):
        self.accuracy(run(sys.executable, EXAMPLE), 1)

    def test_torchrun(self):
        out = run(*TORCHRUN, "4", EXAMPLE, "--strategy", "sesgd", "--steps", "60")
        self.accuracy(out, 4)

    def test_riffle_launch(self):
        command = [os.environ["RIFFLE_COMMAND"], "launch", "-n", "2", "--", sys.executable]
        self.accuracy(run(*command, EXAMPLE, "--strategy", "dear", "--steps", "100"), 2)


if __name__ == "__main__":
    unittest.main()
