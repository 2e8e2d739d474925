"""The command `riffle lab`: hosts, environment, events, refusals, and nothing left behind."""

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import uuid
from pathlib import Path

RIFFLE = os.environ.get("RIFFLE_COMMAND", "riffle")
WORKER = os.environ.get("RIFFLE_WORKER", "riffle-worker")
FLAT = "flat:3,latency=2ms,bandwidth=100Mbps"


def lab(*arguments, **options):
    return subprocess.run(
        [RIFFLE, "lab", *arguments], capture_output=True, text=True, timeout=100, **options
    )


def left_of(marker, namespaces):
    """Processes that have the marker in their environment, and namespaces that anybody holds."""
    left = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if marker.encode() in (process / "environ").read_bytes():
                left.append((process / "cmdline").read_text())
            held = {os.readlink(process / "ns/net")}
            held |= {os.readlink(fd) for fd in (process / "fd").iterdir()}
            left += held & namespaces
        except OSError:
            continue
    return left


class Lab(unittest.TestCase):
    def setUp(self):
        tried = lab("flat:1,latency=1ms,bandwidth=1Mbps", "--", "true")
        if "no lab here" in tried.stderr:
            self.skipTest(tried.stderr)

    def test_workers_get_torchruns_environment_and_a_host_each(self):
        shown = "RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE MASTER_ADDR MASTER_PORT"
        script = f'for n in {shown}; do eval "echo $n=\\$$n"; done; hostname'
        script += "; grep -c . /proc/net/route; ls /sys/class/net | tr '\\n' ' '"
        done = lab(FLAT, "--ranks-per-host", "2", "--", "sh", "-c", script)
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = sorted(done.stdout.splitlines())
        for rank in range(6):
            for text in [
                f"RANK={rank}",
                "WORLD_SIZE=6",
                f"LOCAL_RANK={rank % 2}",
                "LOCAL_WORLD_SIZE=2",
                "MASTER_ADDR=198.18.0.1",
                "MASTER_PORT=29500",
                f"lab{rank // 2}",
                "2",  # a head line and the way to the other hosts: no route out
            ]:
                self.assertIn(f"[{rank}] {text}", lines)
            self.assertTrue(any(f"[{rank}] eth0 lo" in line for line in lines), lines)

    def test_stats_count_what_crossed_the_switch(self):
        # A million bytes from host 0 to host 1.
        script = """
import os, socket, time
rank = int(os.environ["RANK"])
if rank == 1:
    connection = socket.create_server(("198.18.0.2", 5000)).accept()[0]
    count = 0
    while got := len(connection.recv(65536)):
        count += got
    print(count)
while rank == 0:
    try:
        socket.create_connection(("198.18.0.2", 5000)).sendall(bytes(1_000_000))
        break
    except ConnectionRefusedError:
        time.sleep(0.1)
"""
        done = lab(FLAT, "--stats", "--format", "json", "--", sys.executable, "-c", script)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("[1] 1000000", done.stdout)
        links = json.loads(done.stdout[done.stdout.index("{") :])["links"]
        carried = {each["link"]: each["bytes"] for each in links}
        for link in ["worker0 up", "worker1 down"]:
            # Pings of the calibration are some hundred bytes.
            self.assertTrue(1_000_000 <= carried[link] <= 1_010_000, carried)
        self.assertLess(carried["worker2 up"], 1000)

    def test_events_change_the_network_while_it_runs(self):
        script = """[ $RANK = 0 ] || exit 0
        reach() { ping -c 1 -W 1 198.18.0.2 > /dev/null; }
        until reach; do :; done; echo reached before
        while reach; do sleep 0.1; done; echo cut
        until reach; do :; done; echo reached after"""
        if subprocess.run(["sh", "-c", "command -v ping"], capture_output=True).returncode:
            self.skipTest("there is no ping")
        events = "at=4s,link=worker1,cut at=8s,link=worker1,repair"
        done = lab(FLAT, "--events", events, "--", "sh", "-c", script)
        self.assertEqual(done.returncode, 0, done.stderr)
        expected = [f"[0] {text}" for text in ["reached before", "cut", "reached after"]]
        self.assertEqual(done.stdout.splitlines(), expected)

    def test_the_first_failure_ends_all(self):
        begin = time.monotonic()
        done = lab(FLAT, "--", "sh", "-c", "[ $RANK = 1 ] && exit 7; sleep 60")
        self.assertEqual(done.returncode, 7)
        self.assertIn("rank 1 ended with exit code 7", done.stderr)
        self.assertLess(time.monotonic() - begin, 30)

    def test_what_cannot_be_honoured_is_refused_with_what_would_work(self):
        spec = "flat:16,latency=50us,bandwidth=10Gbps"
        done = lab(spec, "--", "true")
        self.assertEqual(done.returncode, 2)
        named = re.search(r"--dilate (\S+) would work", done.stderr)
        self.assertTrue(named, done.stderr)
        self.assertEqual(lab(spec, "--dilate", named[1], "--", "true").returncode, 0)

    def test_bad_input_is_one_line(self):
        for arguments in [
            ("fit:4,a=1ms,b=1ns", "--", "true"),
            (FLAT,),
            (FLAT, "--check", "--", "true"),
            (FLAT, "--events", "at=1s,link=rack0,cut", "--", "true"),
            (FLAT, "--events", "at=1s,link=worker0,loss=2", "--", "true"),
            (FLAT, "--", "/no/such/command"),
        ]:
            done = lab(*arguments)
            self.assertEqual(done.returncode, 2, (arguments, done.stderr))
            self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)

    def test_nothing_is_left_after_kill_9(self):
        marker = f"LAB_TEST={uuid.uuid4().hex}"
        namespaces = set()
        for _ in range(5):
            with tempfile.TemporaryDirectory() as folder:
                note = f"readlink /proc/self/ns/net > {folder}/new.$RANK"
                script = f"{note}; mv {folder}/new.$RANK {folder}/$RANK; sleep 1000 & sleep 1000"
                started = subprocess.Popen(
                    ["env", marker, RIFFLE, "lab", FLAT, "--", "sh", "-c", script]
                )
                deadline = time.monotonic() + 60
                while {"0", "1", "2"} - set(os.listdir(folder)):
                    self.assertLess(time.monotonic(), deadline)
                    time.sleep(0.01)
                namespaces |= {file.read_text().strip() for file in Path(folder).iterdir()}
                os.kill(started.pid, signal.SIGKILL)
                started.wait()
        self.assertGreaterEqual(len(namespaces), 3)  # numbers are used again
        deadline = time.monotonic() + 30
        while left := left_of(marker, namespaces):
            self.assertLess(time.monotonic(), deadline, left)
            time.sleep(0.1)

    def test_emulated_workers_take_at_least_their_time(self):
        trace = {
            "riffle": "trace", "version": 1, "model": "tiny", "dtype": "f32", "batch": 1,
            "layers": [
                {"name": f"layer{i}", "elements": 50_000, "forward": 0.002, "backward": 0.004}
                for i in range(4)
            ],
        }  # fmt: skip
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "tiny.json"
            file.write_text(json.dumps(trace))
            worker = [WORKER, "--trace", file, "--steps", "4", "--warmup", "1"]
            done = lab(
                "flat:3,latency=2ms,bandwidth=100Mbps,slow=1*2", "--dilate", "2", "--shrink", "5",
                "--", *worker, "--strategy", "wfbp", "--strategy", "dasgd",
            )  # fmt: skip
        self.assertEqual(done.returncode, 0, done.stderr)
        results = [json.loads(line[4:]) for line in done.stdout.splitlines()]
        self.assertEqual([each["strategy"] for each in results], ["wfbp", "dasgd"])
        # All wait for the slow one, which takes 48 ms.
        self.assertGreaterEqual(results[0]["seconds_per_step"], 0.048)

    def test_check_measures_every_pair(self):
        done = lab("flat:2,latency=2ms,bandwidth=20Mbps", "--check", "--format", "json")
        self.assertEqual(done.returncode, 0, done.stderr)
        results = json.loads(done.stdout)["results"]
        self.assertEqual([each["what"] for each in results], ["ping", "throughput"])
        self.assertGreater(results[0]["measured"], 0.0039)  # a busy machine only adds
        self.assertLess(results[1]["measured"], 20e6 / 8 * 1.02)


if __name__ == "__main__":
    unittest.main()
