"""`riffle train` and `riffle data` as a person runs them."""

import contextlib
import io
import json
import os
import signal
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from riffle.train.__main__ import main
from riffle.train.screen import Screen

DIGITS = ["digits", "--model", "mlp", "--data", "synthetic", "--seed", "3"]


def command(*words):
    return [sys.executable, "-m", "riffle.train", *map(str, words)]


def run(*words, environment=None, seconds=200):
    return subprocess.run(
        command(*words),
        env={**os.environ, **(environment or {})},
        capture_output=True,
        text=True,
        timeout=seconds,
    )


def processes_of(marker):
    """Live processes whose command line holds a marker."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if marker.encode() in path.read_bytes():
                found.append(path.parent.name)
        except OSError:
            continue
    return found


class Terminal(io.StringIO):
    def isatty(self):
        return True


class Train(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def test_two_workers_learn_and_tell(self):
        log, timeline = self.folder / "log", self.folder / "timeline.json"
        places = ["--log", log, "--timeline", timeline]
        answer = run(
            *DIGITS, "-n", 2, "--steps", 121, "--strategy", "local-sgd", *places, "--compare"
        )
        self.assertEqual(answer.returncode, 0, answer.stderr)
        table = answer.stdout.splitlines()
        self.assertEqual(table[0].split()[:2], ["workers", "strategy"])
        self.assertEqual([line.split()[0] for line in table[1:3]], ["2", "1"])
        self.assertRegex(table[3], "2 workers against one, .*x the speed, accuracy .* points")
        self.assertNotIn("\x1b", answer.stderr)  # no terminal
        events = [json.loads(line) for line in log.read_text().splitlines()]
        self.assertEqual(events[0]["event"], "start")
        self.assertEqual(events[0]["strategy"].split(":")[0], "local-sgd")
        self.assertGreater(events[-1]["accuracy"], 0.8)
        self.assertGreater(events[-1]["consensus_distance"], 0)
        ranks = {event["pid"] for event in json.loads(timeline.read_text())["traceEvents"]}
        self.assertEqual(ranks, {0, 1})
        self.assertEqual(list(self.folder.glob("*.rank-*")), [])

    def test_it_is_judged_as_often_as_asked(self):
        log = self.folder / "log"
        answer = run(*DIGITS, "-n", 2, "--steps", 10, "--evaluate-every", 3, "--log", log)
        self.assertEqual(answer.returncode, 0, answer.stderr)
        events = [json.loads(line) for line in log.read_text().splitlines()]
        judged = [event["step"] for event in events if event["event"] == "evaluation"]
        self.assertEqual(judged, [3, 6, 9, 10])
        self.refused([*DIGITS, "--evaluate-every", "0"], "--evaluate-every")

    def test_weights_are_averaged_over_steps(self):
        log, saved = self.folder / "log", self.folder / "saved"
        words = ["images", "--data", "synthetic", "-n", 2, "--steps", 8, "--batch", 4]
        answer = run(*words, "--swa", "0.5", "--log", log, "--checkpoint", saved)
        self.assertEqual(answer.returncode, 0, answer.stderr)
        self.assertIn("average over 4 steps: test loss", answer.stderr)
        events = [json.loads(line) for line in log.read_text().splitlines()]
        rates = [e["learning_rate"] for e in events if e["event"] == "progress" and e["step"] > 4]
        self.assertEqual(len(set(rates)), 1)
        shown = answer.stdout.splitlines()[1].split("  ")[-1].strip()
        self.assertEqual(shown, f"{100 * events[-1]['swa_accuracy']:.2f} %")
        self.assertTrue((saved / "swa.pt").is_file())
        self.refused(["--resume", str(saved), "--swa", "0.3"], "swa was 0.5, not 0.3")

    def refused(self, words, expected):
        with contextlib.redirect_stderr(io.StringIO()) as stream:
            self.assertEqual(main(words), 2)
        self.assertIn(expected, stream.getvalue())
        self.assertEqual(len(stream.getvalue().strip().splitlines()), 1)

    def interrupted(self, number):
        checkpoint = self.folder / "saved"
        words = [*DIGITS, "-n", 2, "--steps", 100_000, "--checkpoint", checkpoint]
        with subprocess.Popen(
            command(*words), stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True
        ) as process:
            for line in process.stderr:
                if line.startswith("step "):
                    break
            process.send_signal(number)
            rest = process.stderr.read()
            process.wait(timeout=100)
        self.assertIn(f"in {checkpoint}", rest)
        self.assertNotEqual(process.returncode, 0)
        self.assertEqual(processes_of(str(checkpoint)), [])
        return checkpoint

    def test_ctrl_c_saves_and_leaves_nobody_behind(self):
        checkpoint = self.interrupted(signal.SIGINT)
        step = json.loads((checkpoint / "latest.json").read_text())["step"]
        self.assertGreater(step, 0)
        # It goes on from there, by itself knowing what it was; another number is refused.
        self.refused(["--resume", str(checkpoint), "-n", "3"], "workers was 2, not 3; resuming")
        self.refused(["--resume", str(checkpoint), "--strategy", "dear"], "was auto, not dear")
        with subprocess.Popen(
            command("--resume", checkpoint), stderr=subprocess.PIPE, text=True
        ) as process:
            text = ""
            for line in process.stderr:
                text += line
                if line.startswith("step "):
                    break
            process.send_signal(signal.SIGTERM)
            process.stderr.read()
        self.assertIn(f"from step {step}", text)
        self.assertGreater(json.loads((checkpoint / "latest.json").read_text())["step"], step)

    def test_without_a_network_data_is_generated_and_said_so(self):
        npm = self.folder / "npm"
        npm.write_text("#!/bin/sh\necho npm error network is unreachable >&2\nexit 1\n")
        npm.chmod(0o755)
        environment = {
            "PATH": f"{self.folder}:{os.environ['PATH']}",
            "RIFFLE_DATA": str(self.folder / "cache"),
        }
        answer = run("--model", "mlp", "-n", 1, "--steps", 2, environment=environment)
        self.assertEqual(answer.returncode, 0, answer.stderr)
        self.assertIn("network is unreachable; going on with --data synthetic", answer.stderr)
        self.assertIn("generated glyphs", answer.stderr)

    def test_bad_usage_is_one_line(self):
        for words, expected in [
            (["nonsense"], "no task 'nonsense'; known: digits, chars, clicks, images"),
            (["--model", "x"], "no model 'x' of digits; known: cnn, mlp"),
            (["--strategy", "x"], "x"),
            (["--workers", "0"], "--workers 0: must be more than 0"),
            (["--epochs", "1", "--steps", "3"], "give one"),
            (["--swa", "2"], "--swa 2.0: is a share of all steps"),
            (["clicks", "--data", "/x"], "clicks are generated"),
            (["--resume", "/nowhere"], "/nowhere/latest.json: is missing"),
        ]:
            with self.subTest(words=words):
                self.refused(words, expected)

    def test_a_terminal_gets_a_live_line(self):
        progress = {"event": "progress", "step": 5, "steps": 10, "loss": 0.5}
        progress |= {"steps_per_second": 9.0, "exposed_communication_seconds": 0.00125}
        with contextlib.redirect_stderr(Terminal()) as stream:
            screen = Screen()
            screen(progress)
            screen({"event": "evaluation", "step": 5, "loss": 0.4, "accuracy": 0.975})
            screen(progress)
        lines = stream.getvalue().split("\r\x1b[K")[1:]
        self.assertEqual(len(lines), 3)
        self.assertTrue(lines[0].startswith("[##########..........]  50%  step 5/10  loss 0.5000"))
        self.assertEqual(lines[1], "step 5  test loss 0.4000  accuracy 97.50 %\n")
        self.assertNotIn("\n", lines[2])  # the next one will replace it

    def test_as_a_worker_of_torchrun(self):
        torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
        words = [*torchrun, "--nproc-per-node=2", *command()[1:], *DIGITS, "--steps=30"]
        answer = subprocess.run(words, capture_output=True, text=True, timeout=200)
        self.assertEqual(answer.returncode, 0, answer.stderr)
        rows = [line.split() for line in answer.stdout.splitlines() if line[:1].isdigit()]
        self.assertEqual([row[0] for row in rows], ["2"])  # rank 0 alone prints


if __name__ == "__main__":
    unittest.main()
