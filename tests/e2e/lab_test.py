"""The command `riffle lab`: hosts, environment, events, refusals, and nothing left behind."""

import json
import os
import re
import shutil
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
KILLS = int(os.environ.get("LAB_TEST_KILLS", "5"))


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


def round_trip(output):
    """The shortest of a ping, in milliseconds: a busy machine only adds."""
    return float(re.search(r"rtt min/avg/max/mdev = ([\d.]+)", output)[1])


def ping_from_0_to(host, count=10):
    return ["sh", "-c", f"[ $RANK != 0 ] || ping -q -c {count} -i 0.1 -W 2 198.18.0.{host + 1}"]


HAS_PING = subprocess.run(["sh", "-c", "command -v ping"], capture_output=True).returncode == 0


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

    @unittest.skipUnless(HAS_PING, "there is no ping")
    def test_events_change_the_network_while_it_runs(self):
        script = """[ $RANK = 0 ] || exit 0
        reach() { ping -c 1 -W 1 198.18.0.2 > /dev/null; }
        until reach; do :; done; echo reached before
        while reach; do sleep 0.1; done; echo cut
        until reach; do :; done; echo reached after"""
        events = "at=4s,link=worker1,cut at=8s,link=worker1,repair"
        done = lab(FLAT, "--events", events, "--", "sh", "-c", script)
        self.assertEqual(done.returncode, 0, done.stderr)
        expected = [f"[0] {text}" for text in ["reached before", "cut", "reached after"]]
        self.assertEqual(done.stdout.splitlines(), expected)

    @unittest.skipUnless(HAS_PING, "there is no ping")
    def test_events_of_one_moment_come_in_order_and_are_dilated(self):
        events = "at=0s,link=worker*,cut at=0s,link=worker*,repair at=0s,link=worker0,latency=40ms"
        events += " at=0s,link=worker0,latency=10ms at=0s,link=worker*,jitter=1ms,loss=5%"
        events += " at=0s,link=worker2,load=50Mbps at=0s,link=worker1,bandwidth=10Mbps"
        done = lab(FLAT, "--dilate", "2", "--events", events, "--", *ping_from_0_to(1))
        self.assertEqual(done.returncode, 0, done.stderr)
        # (10 ms + 2 ms) / 2 one way, there and back, twice as slow; not those of the 40 ms.
        self.assertTrue(24 <= round_trip(done.stdout) < 84, done.stdout)

    @unittest.skipUnless(HAS_PING, "there is no ping")
    def test_a_pair_may_be_slower_one_way(self):
        shown = lab(FLAT, "--", "sh", "-c", "[ $RANK != 0 ] || echo $RIFFLE_LAB_CLUSTER").stdout
        cluster = json.loads(shown.removeprefix("[0] "))
        cluster["pairs"] = [
            {"from": 0, "to": 1, "latency": 0.030, "bandwidth": 1e6},
            {"from": 1, "to": 0, "latency": 0.004, "bandwidth": 1e7},
        ]
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "cluster.json"
            file.write_text(json.dumps(cluster))
            for host, expected in ((1, 34), (2, 4)):
                done = lab(str(file), "--", *ping_from_0_to(host))
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertTrue(expected <= round_trip(done.stdout) < expected + 20, done.stdout)

    def test_an_interrupt_ends_all(self):
        with tempfile.TemporaryDirectory() as folder:
            script = f"touch {folder}/$RANK; exec sleep 1000"
            command = [RIFFLE, "lab", FLAT, "--", "sh", "-c", script]
            started = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
            deadline = time.monotonic() + 60
            while len(os.listdir(folder)) < 3:
                self.assertLess(time.monotonic(), deadline)
                time.sleep(0.01)
            started.send_signal(signal.SIGINT)
            said = started.communicate(timeout=30)[1]
        self.assertEqual(started.returncode, 130, said)
        self.assertIn("SIGINT", said)

    def test_a_check_ends_when_it_is_told_to(self):
        # A check of all pairs at this rate takes minutes.
        command = [RIFFLE, "lab", "flat:6,latency=5ms,bandwidth=1Mbps", "--check"]
        for number, code in ((signal.SIGTERM, 143), (signal.SIGINT, 130), (signal.SIGKILL, -9)):
            marker = f"LAB_TEST={uuid.uuid4().hex}"
            started = subprocess.Popen(["env", marker, *command], stderr=subprocess.PIPE, text=True)
            self.assertIn("moving a packet takes", started.stderr.readline())  # it has begun
            started.send_signal(number)
            self.assertEqual(started.wait(timeout=30), code)
            started.stderr.close()
            deadline = time.monotonic() + 20
            while left := left_of(marker, set()):
                self.assertLess(time.monotonic(), deadline, left)
                time.sleep(0.1)

    def test_a_lab_whose_switch_has_ended_ends(self):
        command = [RIFFLE, "lab", FLAT, "--", "sh", "-c", "echo here; exec sleep 1000"]
        started = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        started.stdout.readline()
        inner = Path(f"/proc/{started.pid}/task/{started.pid}/children").read_text().split()
        switch = Path(f"/proc/{inner[0]}/task/{inner[0]}/children").read_text().split()[0]
        self.assertEqual(Path(f"/proc/{switch}/comm").read_text().strip(), "lab-switch")
        os.kill(int(switch), signal.SIGKILL)
        said = started.communicate(timeout=30)[1]
        self.assertEqual(started.returncode, 1, said)
        self.assertIn("the lab's switch has ended", said)

    def test_a_command_gets_its_words_as_they_are(self):
        words = ["[a,b]", "{}", "", "%%", "--", "--stats", "[]"]
        show = "import sys; print(sys.argv[1:])"
        for verb in (["lab", "flat:1,latency=1ms,bandwidth=1Mbps"], ["launch", "-n", "1"]):
            command = [RIFFLE, *verb, "--", sys.executable, "-c", show, *words]
            done = subprocess.run(command, capture_output=True, text=True, timeout=100)
            self.assertEqual(done.stdout, f"[0] {words}\n", done.stderr)

    def test_events_may_be_many_and_late(self):
        lines = [f"at={i}ms,link=worker0,latency=2ms" for i in range(9000)]
        lines += ["at=10000000000s,link=worker*,cut", "at=0s,worker=1,slow=3"]
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "events"
            file.write_text("\n".join(lines))
            show = 'echo "$RIFFLE_LAB_EVENTS"'
            if HAS_PING:
                show += "; [ $RANK = 0 ] || ping -c 3 -W 5 198.18.0.1 > /dev/null"
            done = lab(FLAT, "--events", file, "--", "sh", "-c", show)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("[2] at=0s,worker=1,slow=3 \n", done.stdout)

    def test_many_hosts_need_more_files_than_a_shell_allows_at_first(self):
        spec = "flat:24,latency=20ms,bandwidth=1Mbps"
        script = f'ulimit -S -n 64; exec "{RIFFLE}" lab {spec} --ranks-per-host 2 -- true'
        done = subprocess.run(["sh", "-c", script], capture_output=True, text=True, timeout=100)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_a_user_without_privileges_has_labs_too(self):
        if os.geteuid() != 0:
            self.skipTest("needs root to become somebody else")
        # A folder of binaries that everybody may enter, and a device for all.
        with tempfile.TemporaryDirectory() as folder:
            os.chmod(folder, 0o755)
            shutil.copy(shutil.which(RIFFLE), folder)
            device = f"mknod {folder}/tun c 10 200 && chmod 666 {folder}/tun"
            device += f" && mount --bind {folder}/tun /dev/net/tun"
            user = "exec setpriv --reuid=65534 --regid=65534 --clear-groups"
            lab_ = f"{folder}/riffle lab {FLAT} -- sh -c 'id -u; hostname'"
            script = f"{device} || exit 77; cd /; {user} {lab_}"
            done = subprocess.run(
                ["unshare", "-m", "sh", "-c", script], capture_output=True, text=True, timeout=100
            )
        if done.returncode == 77 or "no user namespace" in done.stderr:
            self.skipTest(done.stderr)
        self.assertEqual(done.returncode, 0, done.stderr)
        expected = [f"[{rank}] {text}" for rank in range(3) for text in ("65534", f"lab{rank}")]
        self.assertEqual(sorted(done.stdout.splitlines()), sorted(expected))

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
            (FLAT, "--check", "--stats"),
            (FLAT, "--check", "--ranks-per-host", "2"),
            ("flat:1,latency=1ms,bandwidth=1Mbps", "--check"),
            ("flat:2,latency=0ms,bandwidth=1Mbps", "--", "true"),
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
        for _ in range(KILLS):
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

    def train(self, spec, *arguments):
        """What riffle-worker prints for a model of four layers, and what the lab says."""
        trace = {
            "riffle": "trace", "version": 1, "model": "tiny", "dtype": "f32", "batch": 1,
            "layers": [
                {"name": f"layer{i}", "elements": 50_000, "forward": 0.002, "backward": 0.004}
                for i in range(4)
            ],
        }  # fmt: skip
        strategies, options = arguments[0], arguments[1:]
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "tiny.json"
            file.write_text(json.dumps(trace))
            worker = [WORKER, "--trace", file, "--steps", "4", "--warmup", "1"]
            worker += [word for name in strategies for word in ("--strategy", name)]
            done = lab(spec, *options, "--", *worker)
        self.assertEqual(done.returncode, 0, done.stderr)
        return [json.loads(line[4:]) for line in done.stdout.splitlines()], done.stderr

    def test_emulated_workers_take_at_least_their_time(self):
        slow = "flat:3,latency=2ms,bandwidth=100Mbps,slow=1*2"
        results, _ = self.train(slow, ["wfbp", "dasgd"], "--dilate", "2", "--shrink", "5")
        self.assertEqual([each["strategy"] for each in results], ["wfbp", "dasgd"])
        # All wait for the slow one, which takes 48 ms.
        self.assertGreaterEqual(results[0]["seconds_per_step"], 0.048)

    def test_size_thresholds_shrink_along(self):
        strategies = ["ddp:bucket=400KB,first=200KB", "dear:bucket=400KB"]
        true, quiet = self.train(FLAT, strategies)
        shrunk, said = self.train(FLAT, strategies, "--shrink", "20")
        self.assertEqual([each["buckets"] for each in true], [3, 2])
        self.assertEqual([each["buckets"] for each in shrunk], [3, 2])
        self.assertIn("every size threshold shrinks along", said)
        self.assertNotIn("threshold", quiet)

    def test_check_measures_every_pair(self):
        done = lab("flat:2,latency=2ms,bandwidth=20Mbps", "--check", "--format", "json")
        self.assertEqual(done.returncode, 0, done.stderr)
        results = json.loads(done.stdout)["results"]
        self.assertEqual([each["what"] for each in results], ["ping", "throughput"])
        self.assertGreater(results[0]["measured"], 0.0039)  # a busy machine only adds
        self.assertLess(results[1]["measured"], 20e6 / 8 * 1.02)


if __name__ == "__main__":
    unittest.main()
