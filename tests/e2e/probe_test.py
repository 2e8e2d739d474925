"""The command `riffle probe`: what it finds in the lab, what it writes, what it refuses.

Bounds are wide, because other tests run beside; bench/probe_accuracy.py has the narrow ones.
"""

import json
import os
import subprocess
import tempfile
import unittest
from pathlib import Path

RIFFLE = os.environ.get("RIFFLE_COMMAND", "riffle")
LATENCY = 0.25
RATE = 0.35


def run(*arguments):
    environment = {k: v for k, v in os.environ.items() if k not in ("RANK", "WORLD_SIZE")}
    return subprocess.run(
        [RIFFLE, *arguments], capture_output=True, text=True, timeout=110, env=environment
    )


class Probe(unittest.TestCase):
    def probe(self, spec, *options):
        """The document of `probe --format json`, and the cluster file it wrote."""
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "cluster.json"
            done = run("lab", spec, *options, "--", RIFFLE, "probe", "--format", "json",
                       "--output", str(file))  # fmt: skip
            if "no lab here" in done.stderr:
                self.skipTest(done.stderr)
            self.assertEqual(done.returncode, 0, done.stderr)
            text = "\n".join(
                line[4:] for line in done.stdout.splitlines() if line.startswith("[0] ")
            )
            document = json.loads(text[text.index("{") :])
            cluster = json.loads(file.read_text())
            self.assertEqual(document["cluster"], cluster)
            planned = run("simulate", "--cluster", str(file), "--strategy", "bsp")
            self.assertEqual(planned.returncode, 0, planned.stderr)
            return document, cluster

    def assert_near(self, value, expected, share):
        self.assertLess(abs(value / expected - 1), share, f"{value}, not {expected}")

    def test_flat(self):
        document, cluster = self.probe("flat:3,latency=5ms,bandwidth=50Mbps")
        self.assertEqual(len(cluster["domains"]), 1)
        for worker in cluster["workers"]:
            self.assert_near(worker["latency"], 0.005, LATENCY)
            self.assert_near(worker["bandwidth"], 50e6 / 8, RATE)
        self.assertEqual(len(document["pairs"]), 6)
        self.assertEqual([host["interface"]["mtu"] for host in document["hosts"]], [1500] * 3)
        self.assertLess(document["fit"]["latency_worst"], LATENCY)

    def test_racks(self):
        _, cluster = self.probe("racks:2x2,inner=4ms/40Mbps,outer=8ms/20Mbps")
        self.assertEqual([worker["domain"] for worker in cluster["workers"]], [1, 1, 2, 2])
        for worker in cluster["workers"]:
            self.assert_near(worker["latency"], 0.004, LATENCY)
            self.assert_near(worker["bandwidth"], 40e6 / 8, RATE)
        for rack in cluster["domains"][1:]:
            self.assert_near(rack["latency"], 0.008, LATENCY)
            self.assert_near(rack["bandwidth"], 20e6 / 8, RATE)

    def test_sites(self):
        _, cluster = self.probe("sites:2x2x2,inner=4ms/30Mbps,outer=4ms/20Mbps,wan=20ms/15Mbps")
        names = [domain["name"] for domain in cluster["domains"]]
        self.assertEqual(names, ["root", "site0", "site0/rack0", "site0/rack1",
                                 "site1", "site1/rack0", "site1/rack1"])  # fmt: skip
        self.assert_near(cluster["domains"][1]["latency"], 0.020, LATENCY)
        self.assert_near(cluster["domains"][1]["bandwidth"], 15e6 / 8, RATE)
        self.assert_near(cluster["domains"][2]["latency"], 0.004, 2 * LATENCY)

    def test_hosts_of_two_ranks_in_a_stretched_lab(self):
        document, cluster = self.probe(
            "flat:2,latency=1ms,bandwidth=100Mbps", "--ranks-per-host", "2", "--dilate", "5"
        )
        self.assertEqual(document["dilate"], 5)
        self.assertEqual([host["ranks"] for host in document["hosts"]], [[0, 1], [2, 3]])
        for domain in cluster["domains"][1:]:
            self.assert_near(domain["latency"], 0.001, LATENCY)
            self.assert_near(domain["bandwidth"], 100e6 / 8, RATE)

    def test_one_host_has_no_network(self):
        done = run("launch", "-n", "2", "--", RIFFLE, "probe")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("[0] 2 ranks on 1 host", done.stdout)
        self.assertIn("cluster   flat:2,", done.stdout)

    def test_alone_it_says_how_to_start_it(self):
        done = run("probe")
        self.assertEqual(done.returncode, 2)
        self.assertEqual(len(done.stderr.splitlines()), 1)
        for way in ("torchrun", "mpirun", "srun", "riffle launch", "riffle lab"):
            self.assertIn(way, done.stderr)


if __name__ == "__main__":
    unittest.main()
