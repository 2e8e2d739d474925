"""The commands `riffle race` and `riffle compare`: a small race with emulated compute, what is kept
of it when it goes wrong, and refusals."""

import json
import os
import signal
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

RIFFLE = os.environ.get("RIFFLE_COMMAND", "riffle")
FLAT = "flat:4,latency=5ms,bandwidth=100Mbps"
LAYERS = [
    {"name": f"layer{i}", "elements": 5000, "forward": 0.004, "backward": 0.008} for i in range(4)
]
TRACE = {"riffle": "trace", "version": 1, "model": "tiny", "dtype": "f32", "batch": 1}


def run(*arguments):
    return subprocess.run(
        [RIFFLE, *arguments], capture_output=True, text=True, timeout=100, stdin=subprocess.DEVNULL
    )


class Race(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.trace = self.folder / "tiny.json"
        self.trace.write_text(json.dumps(TRACE | {"layers": LAYERS}))

    def needs_lab(self):
        tried = run("lab", "flat:1,latency=1ms,bandwidth=1Mbps", "--", "true")
        if "no lab here" in tried.stderr:
            self.skipTest(tried.stderr)

    def arguments(self, *strategies, steps=6):
        words = ["race", "--trace", str(self.trace), "--cluster", FLAT, "--steps", str(steps)]
        for strategy in strategies:
            words += ["--strategy", strategy]
        return [*words, "--output", str(self.folder / "out")]

    def start(self, *strategies, steps):
        process = subprocess.Popen(
            [RIFFLE, *self.arguments(*strategies, steps=steps)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.addCleanup(process.kill)
        return process

    def wait_for_steps(self, contender, steps=3):
        """Until its rank 1 has reported some."""
        lines = self.folder / "out" / "ranks" / contender / "rank1.jsonl"
        deadline = time.monotonic() + 60
        while not lines.exists() or lines.read_text().count("\n") < steps:
            self.assertLess(time.monotonic(), deadline, "no steps")
            time.sleep(0.05)

    def results(self):
        race = json.loads((self.folder / "out" / "race.json").read_text())
        return race, {result["contender"]: result for result in race["results"]}

    def test_three_strategies_are_ranked_beside_their_predictions(self):
        self.needs_lab()
        names = ["wfbp", "bsp", "sesgd:group=2"]
        done = run(*self.arguments(*names), "--format", "json")
        self.assertEqual(done.returncode, 0, done.stderr)
        race, results = self.results()
        self.assertEqual(json.loads(done.stdout), race)
        self.assertEqual(list(results), names)
        self.assertEqual(sorted(r["rank"] for r in results.values()), [1, 2, 3])
        self.assertEqual(race["workers"], 4)
        for name, result in results.items():
            self.assertIsNone(result["failed"])
            self.assertIsNone(result["accuracy"])
            self.assertEqual(result["steps"], 6)
            # A step computes for 48 ms and exchanges something.
            self.assertGreater(result["seconds_per_step"], 0.048)
            self.assertGreater(result["predicted_seconds_per_step"], 0.048)
            self.assertEqual({e["rank"] for e in result["timeline"]["events"]}, {0, 1, 2, 3})
            self.assertTrue((self.folder / "out" / result["timeline_file"]).exists(), name)
        self.assertEqual(results["sesgd:group=2"]["groups"][0], [[0, 1], [2, 3]])
        self.assertEqual(results["wfbp"]["speedup"], 1)
        file = str(self.folder / "out" / "race.json")
        same = json.loads(run("compare", file, file, "--format", "json").stdout)
        self.assertEqual([each["ratio"] for each in same["contenders"]], [1, 1, 1])

    def test_a_killed_worker_fails_its_contender_and_no_other(self):
        self.needs_lab()
        process = self.start("wfbp", "bsp", steps=40)
        self.wait_for_steps("wfbp")
        order = f"RIFFLE_RACE={self.folder / 'out' / 'ranks' / 'wfbp' / 'order.json'}"
        os.kill(pid_with(order, "RANK=2"), signal.SIGKILL)
        out, err = process.communicate(timeout=100)
        self.assertEqual(process.returncode, 0, err)
        race, results = self.results()
        self.assertIn("rank 2 was killed by SIGKILL", results["wfbp"]["failed"])
        self.assertIn("wfbp failed: rank 2", out)
        self.assertIsNone(results["wfbp"]["rank"])
        self.assertIsNone(results["bsp"]["failed"])
        self.assertEqual(results["bsp"]["steps"], 40)
        self.assertFalse(race["interrupted"])

    def test_an_interrupt_keeps_what_is_there_and_resume_goes_on(self):
        self.needs_lab()
        process = self.start("bsp", "wfbp", steps=20)
        self.wait_for_steps("wfbp")
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=100)
        self.assertEqual(process.returncode, 130, err)
        race, results = self.results()
        self.assertTrue(race["interrupted"])
        self.assertEqual(results["bsp"]["steps"], 20)
        self.assertIn("interrupted", results["wfbp"]["failed"])
        before = results["bsp"]
        done = run(*self.arguments("bsp", "wfbp", steps=20), "--resume")
        self.assertEqual(done.returncode, 0, done.stderr)
        race, results = self.results()
        self.assertFalse(race["interrupted"])
        self.assertIsNone(results["wfbp"]["failed"])
        self.assertEqual(results["bsp"]["seconds_per_step"], before["seconds_per_step"])

    def test_a_contender_that_cannot_be_started_is_reported(self):
        self.needs_lab()
        environment = os.environ | {"RIFFLE_PYTHON": "/bin/false"}
        done = subprocess.run(
            [RIFFLE, *self.arguments("torch-ddp", "bsp")],
            capture_output=True,
            text=True,
            timeout=100,
            env=environment,
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        _, results = self.results()
        self.assertIn("cannot be started", results["torch-ddp"]["failed"])
        self.assertIsNone(results["bsp"]["failed"])

    def test_wrong_words_are_refused_in_one_line(self):
        for words, told in [
            (["--strategy", "wfpb"], "wfbp"),
            (["--strategy", "wfbp", "--strategy", "wfbp"], "twice"),
            (["--trace", "resnet50", "--task", "digits"], "not both"),
            (["--trace", "resnet50", "--target", "0.9"], "--task"),
            (["--task", "digits", "--shrink", "4"], "--shrink"),
            (["--dilate", "0.5"], "--dilate"),
            (["--cluster", "flat:1,latency=1ms,bandwidth=1Mbps"], "two workers"),
            (["--cluster", "flat:4,latency=1ms"], "bandwidth"),
            (["--events", "at=1s,link=rack9,cut"], "rack9"),
            (["--steps", "4", "--epochs", "1"], "--epochs"),
        ]:
            done = run("race", *words, "--output", str(self.folder / "out"))
            self.assertEqual(done.returncode, 2, (words, done.stderr))
            self.assertIn(told, done.stderr)
            self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        self.assertFalse((self.folder / "out").exists())

    def test_compare_refuses_what_is_no_race(self):
        other = self.folder / "other.json"
        for text in ["{", "[]", '{"riffle": "plan", "version": 1}']:
            other.write_text(text)
            done = run("compare", str(other), str(other))
            self.assertEqual(done.returncode, 2)
            self.assertIn("other.json", done.stderr)
            self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        self.assertEqual(run("compare", "absent.json", str(other)).returncode, 2)


def pid_with(*variables):
    """Of the process that has them in its environment and is a worker."""
    for process in Path("/proc").glob("[0-9]*"):
        try:
            environment = (process / "environ").read_bytes().split(b"\0")
        except OSError:
            continue
        if all(variable.encode() in environment for variable in variables):
            return int(process.name)
    raise AssertionError(f"no process has {variables}")


if __name__ == "__main__":
    unittest.main()
