"""Every strategy trains between the hosts of a lab as it does on one host."""

import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import torch

RIFFLE = os.environ.get("RIFFLE_COMMAND", "riffle")
WORKER = Path(__file__).with_name("lab_worker.py")
CLUSTER = "racks:2x2,inner=1ms/200Mbps,outer=2ms/100Mbps"
HOSTS = 4


def strategies():
    listed = subprocess.run(
        [RIFFLE, "strategies", "--format", "json"], check=True, capture_output=True, text=True
    )
    for each in json.loads(listed.stdout)["strategies"]:
        # A delay must not depend on measured times.
        yield "ds-sync:pattern=bottleneck,delay=1" if each["name"] == "ds-sync" else each["name"]


def train(launcher, names):
    with tempfile.TemporaryDirectory() as folder:
        command = [*launcher, "--", sys.executable, WORKER, folder, CLUSTER, *names]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
        if done.returncode:
            raise AssertionError(done.stdout + done.stderr)
        return [torch.load(Path(folder) / f"{rank}.pt") for rank in range(HOSTS)]


class Lab(unittest.TestCase):
    def setUp(self):
        tried = subprocess.run(
            [RIFFLE, "lab", CLUSTER, "--", "true"], capture_output=True, text=True, check=False
        )
        if "no lab here" in tried.stderr:
            self.skipTest(tried.stderr)

    def test_every_strategy_gives_the_weights_of_one_host(self):
        names = list(strategies())
        far = train([RIFFLE, "lab", CLUSTER], names)
        near = train([RIFFLE, "launch", "-n", str(HOSTS)], names)
        for rank in range(HOSTS):
            for name in names:
                expected, found = near[rank][name], far[rank][name]
                distance = (found - expected).norm() / expected.norm()
                self.assertLess(distance, 1e-10, f"{name} on rank {rank}")


if __name__ == "__main__":
    unittest.main()
