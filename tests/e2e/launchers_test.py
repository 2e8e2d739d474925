"""Real torchrun and mpirun, where they are installed, on one host and on two."""

import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

MEET = os.environ["RIFFLE_MEET"]
ROOT = Path(__file__).resolve().parents[2]
LIMIT = 60  # seconds; a test that waits so long has failed

sys.path.insert(0, str(ROOT / "bench"))
from network_allreduce import Hosts, mpirun_options  # noqa: E402


def python_with_torch():
    """An interpreter that has torch, or none."""
    for python in [ROOT / ".venv/bin/python", shutil.which("python3")]:
        command = [python, "-c", "import torch"]
        if python and subprocess.run(command, capture_output=True).returncode == 0:
            return str(python)
    return None


class Launchers(unittest.TestCase):
    def setUp(self):
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory()))

    def run_all(self, commands):
        """Runs them side by side; their output together, when all have ended well."""
        processes = [
            subprocess.Popen(each, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            for each in commands
        ]
        outputs = [process.communicate(timeout=LIMIT)[0] for process in processes]
        for process, output in zip(processes, outputs, strict=True):
            self.assertEqual(process.returncode, 0, output)
        return "".join(outputs)

    def expect_sums(self, output, size, engine, hosts, times=1):
        for rank in range(size):
            total = size * (size + 1) // 2
            line = f"rank {rank} has the sum {total} over {engine} on {hosts} hosts"
            self.assertEqual(output.splitlines().count(line), times, output)

    def need_mpirun(self):
        if not shutil.which("mpirun") or "Open MPI" not in subprocess.getoutput("mpirun --version"):
            self.skipTest("Open MPI's mpirun is not installed")
        root = ["--allow-run-as-root"] if os.geteuid() == 0 else []
        return ["mpirun", *root, "--oversubscribe"]

    def need_torchrun(self):
        python = python_with_torch()
        if not python:
            self.skipTest("there is no torch")
        return [python, "-m", "torch.distributed.run", "--no-python"]

    def need_hosts(self):
        if os.geteuid() != 0:
            self.skipTest("hosts of these tests need root")
        command = Path(MEET).parent / "riffle"
        return self.enterContext(Hosts(2, self.folder, "1ms", "1Gbps", command=command))

    def test_mpirun_on_one_host(self):
        output = self.run_all([[*self.need_mpirun(), "-n", "3", MEET]])
        for rank in range(3):
            self.assertRegex(
                output,
                rf"openmpi job \d+: rank {rank} of 3, local rank {rank} of 3, store 127\.0\.0\.1:",
            )
        self.assertNotIn("no secret token", output)
        self.expect_sums(output, 3, "shm", 1)

    def test_mpirun_on_two_hosts(self):
        command = self.need_mpirun()
        hosts = self.need_hosts()
        command += [*mpirun_options(hosts, self.folder), "--host", "198.18.0.1:2,198.18.0.2:2"]
        command += ["-x", "RIFFLE_STORE=198.18.0.1:29000", "-x", "RIFFLE_TOKEN=secret"]
        command += ["-n", "4", MEET]
        output = self.run_all([[*hosts.inside(0), *command]])
        self.expect_sums(output, 4, "tcp", 2)

    def test_torchrun_on_one_host(self):
        command = [*self.need_torchrun(), "--standalone", "--nproc-per-node", "3", MEET]
        output = self.run_all([command])
        self.expect_sums(output, 3, "shm", 1)

    def test_torchrun_on_two_hosts(self):
        command = self.need_torchrun()
        hosts = self.need_hosts()
        command += ["--nnodes", "2", "--nproc-per-node", "2", "--master-addr", "198.18.0.1"]
        command += ["--master-port", "29500"]
        output = self.run_all(
            [*hosts.inside(host), *command, "--node-rank", str(host), MEET] for host in range(2)
        )
        self.expect_sums(output, 4, "tcp", 2)

    def test_launched_engine_alone_and_on_one_host(self):
        self.expect_sums(self.run_all([[MEET, "launched"]]), 1, "shm", 1, times=3)
        command = [*self.need_torchrun(), "--standalone", "--nproc-per-node", "3", MEET]
        self.expect_sums(self.run_all([[*command, "launched"]]), 3, "shm", 1, times=3)

    def test_launched_engine_on_two_hosts(self):
        command = self.need_torchrun()
        hosts = self.need_hosts()
        command += ["--nnodes", "2", "--nproc-per-node", "2", "--master-addr", "198.18.0.1"]
        command += ["--master-port", "29500"]
        output = self.run_all(
            [*hosts.inside(host), *command, "--node-rank", str(host), MEET, "launched"]
            for host in range(2)
        )
        self.expect_sums(output, 4, "tcp", 2, times=3)


if __name__ == "__main__":
    unittest.main()
