"""riffle launch with real processes."""

import contextlib
import os
import pty
import re
import signal
import subprocess
import time
import unittest
from pathlib import Path

RIFFLE = os.environ["RIFFLE_COMMAND"]
MEET = os.environ["RIFFLE_MEET"]
LIMIT = 60  # seconds; a test that waits so long has failed


def launch(workers, script, *options, **how):
    """The launcher running a shell script, in a process group of its own as from a terminal."""
    how = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True} | how
    command = [RIFFLE, "launch", "-n", str(workers), *options, "--", "sh", "-c", script]
    return subprocess.Popen(command, process_group=0, **how)


def run(workers, script, *options):
    """Exit code, lines of standard output, lines of standard error."""
    with launch(workers, script, *options) as launcher:
        output, error = launcher.communicate(timeout=LIMIT)
    return launcher.returncode, output.splitlines(), error.splitlines()


def alive(pid):
    """Whether a process runs; one that has ended and waits to be reaped does not."""
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
    return False


def eventually(condition):
    deadline = time.monotonic() + LIMIT
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.01)
    return condition()


# A worker with a child, a grandchild in a session of its own, and both outliving a polite signal.
FAMILY = """
trap '' TERM
sh -c 'trap "" TERM; echo pid $$; sleep 1000 & echo pid $!; wait' &
setsid sh -c 'echo pid $$; exec sleep 1000' &
echo pid $$
wait; wait
"""


def read_pids(launcher, count):
    """The processes of a family, as they report."""
    pids = []
    while len(pids) < count:
        line = launcher.stdout.readline()
        assert line, "the launcher ended early"
        pids += [int(pid) for pid in re.findall(r"pid (\d+)", line)]
    return pids


class Launch(unittest.TestCase):
    maxDiff = None

    def assert_gone(self, pids):
        self.assertTrue(eventually(lambda: not any(map(alive, pids))), f"left of {pids}")

    def test_workers_meet_at_the_store(self):
        with subprocess.Popen(
            [RIFFLE, "launch", "-n", "3", "--", MEET], stdout=subprocess.PIPE, text=True
        ) as launcher:
            output, _ = launcher.communicate(timeout=LIMIT)
        self.assertEqual(launcher.returncode, 0, output)
        lines = output.splitlines()
        for rank in range(3):
            self.assertIn(f"[{rank}] rank {rank} met 3", lines)
            self.assertRegex(
                output,
                rf"\[{rank}\] riffle job riffle-\d+: rank {rank} of 3, local rank {rank} of 3, "
                r"store 127\.0\.0\.1:\d+\n",
            )

    def test_lines_stay_whole_and_in_order(self):
        # Each line is written in pieces, in turn with all the others.
        script = 'for i in $(seq 50); do printf "a$i "; printf "%0300d" 0; echo " z$i"; done'
        code, output, error = run(4, script)
        self.assertEqual((code, error), (0, []))
        for rank in range(4):
            mine = [line for line in output if line.startswith(f"[{rank}] ")]
            self.assertEqual(mine, [f"[{rank}] a{i} {'0' * 300} z{i}" for i in range(1, 51)])
        self.assertEqual(len(output), 200)

    def test_streams_stay_apart_and_unfinished_lines_are_shown(self):
        code, output, error = run(1, "echo out; echo err >&2; printf 'no end'")
        self.assertEqual((code, output, error), (0, ["[0] out", "[0] no end"], ["[0] err"]))

    def test_first_failure_ends_all_and_is_shown_last(self):
        script = "echo ready; if [ $RANK = 2 ]; then echo boom >&2; exit 7; fi; sleep 1000"
        code, _, error = run(4, script)
        self.assertEqual(code, 7)
        self.assertEqual(
            error,
            [
                "[2] boom",
                "riffle: rank 2 ended with exit code 7; the others were ended. "
                "Its last lines on standard error:",
                "  boom",
            ],
        )

    def test_a_signal_is_named(self):
        code, _, error = run(2, "[ $RANK = 1 ] && kill -SEGV $$; sleep 1000")
        self.assertEqual(code, 128 + signal.SIGSEGV)
        self.assertEqual(
            error[-1],
            "riffle: rank 1 was killed by SIGSEGV (Segmentation fault); the others were ended",
        )

    def test_success_of_one_ends_nobody(self):
        code, output, _ = run(2, "[ $RANK = 0 ] && exit 0; sleep 0.3; echo still here")
        self.assertEqual((code, output), (0, ["[1] still here"]))

    def test_workers_may_end_in_their_own_way_within_the_grace(self):
        script = """
trap 'echo saved; exit 0' TERM
echo ready
[ $RANK = 1 ] && { sleep 0.3; exit 3; }
while :; do sleep 0.05; done"""
        code, output, _ = run(2, script)
        self.assertEqual((code, output[-1]), (3, "[0] saved"))

    def test_stubborn_workers_are_killed_after_the_grace(self):
        script = "[ $RANK = 1 ] && { sleep 0.5; exit 3; }" + FAMILY
        with launch(2, script, "--grace", "200ms") as launcher:
            pids = read_pids(launcher, 4)
            launcher.communicate(timeout=LIMIT)
        self.assert_gone(pids)
        self.assertEqual(launcher.returncode, 3)

    def test_interrupt_leaves_nothing_behind(self):
        with launch(3, FAMILY, "--grace", "200ms") as launcher:
            pids = read_pids(launcher, 12)
            os.killpg(launcher.pid, signal.SIGINT)
            _, error = launcher.communicate(timeout=LIMIT)
        self.assert_gone(pids)
        self.assertEqual(launcher.returncode, 128 + signal.SIGINT)
        self.assertEqual(error.splitlines()[-1], "riffle: ended by SIGINT")

    def test_a_second_interrupt_does_not_wait(self):
        with launch(2, FAMILY, "--grace", "1000s") as launcher:
            pids = read_pids(launcher, 8)
            os.killpg(launcher.pid, signal.SIGINT)
            time.sleep(0.2)
            os.killpg(launcher.pid, signal.SIGINT)
            launcher.communicate(timeout=LIMIT)
        self.assert_gone(pids)
        self.assertEqual(launcher.returncode, 128 + signal.SIGINT)

    def test_killing_the_launcher_leaves_nothing_behind(self):
        with launch(3, FAMILY) as launcher:
            pids = read_pids(launcher, 12)
            launcher.kill()
            self.assert_gone(pids)

    def test_killing_its_inner_process_leaves_nothing_behind(self):
        with launch(2, FAMILY) as launcher:
            pids = read_pids(launcher, 8)
            children = Path(f"/proc/{launcher.pid}/task/{launcher.pid}/children")
            os.kill(int(children.read_text()), signal.SIGKILL)
            _, error = launcher.communicate(timeout=LIMIT)
        self.assert_gone(pids)
        self.assertEqual(launcher.returncode, 128 + signal.SIGKILL)
        self.assertIn("the launcher was killed by signal 9", error)

    def test_what_workers_leave_behind_ends_with_them(self):
        code, output, _ = run(2, "setsid sleep 1000 & echo pid $!")
        self.assertEqual(code, 0)
        self.assert_gone([int(line.split()[-1]) for line in output])

    def test_sixty_four_workers(self):
        code, output, _ = run(64, "echo $RANK $LOCAL_RANK $WORLD_SIZE $LOCAL_WORLD_SIZE")
        self.assertEqual(code, 0)
        self.assertEqual(sorted(output), [f"[{r:>2}] {r} {r} 64 64" for r in range(64)])

    def test_a_reader_that_has_gone_ends_all(self):
        with launch(2, "trap '' PIPE; echo pid $$; while :; do echo y; done") as launcher:
            pids = read_pids(launcher, 2)
            launcher.stdout.close()
            self.assertEqual(launcher.wait(timeout=LIMIT), 128 + signal.SIGPIPE)
            self.assertEqual(launcher.stderr.read(), "")
        self.assert_gone(pids)

    def test_a_reader_that_sleeps_holds_up_no_interrupt(self):
        with launch(2, "echo pid $$; while :; do echo yyyyyyyyyyyyyyyyyyyyyyy; done") as launcher:
            pids = read_pids(launcher, 2)
            time.sleep(0.5)  # all pipes are full now
            os.killpg(launcher.pid, signal.SIGINT)
            self.assert_gone(pids)
            os.killpg(launcher.pid, signal.SIGINT)  # and nobody waits for the reader
            self.assertEqual(launcher.wait(timeout=LIMIT), 128 + signal.SIGINT)
            launcher.stdout.close()

    def test_colours_only_on_a_terminal(self):
        outer, inner = pty.openpty()
        with launch(1, "echo hello", stdout=inner, stderr=inner, text=False) as launcher:
            launcher.wait(timeout=LIMIT)
        os.close(inner)
        self.assertIn("\x1b[31m[0] \x1b[0mhello", os.read(outer, 4096).decode())
        os.close(outer)
        self.assertEqual(run(1, "echo hello")[1], ["[0] hello"])

    def test_bad_usage(self):
        for arguments, message in [
            (["-n", "2", "--", "/no/such/command"], "cannot run '/no/such/command': No such file"),
            (["-n", "0", "--", "true"], "--workers: Value 0 not in range 1 to 1024"),
            (["-n", "2"], "command is required"),
            (["--", "true"], "--workers is required"),
            (["-n", "2", "--grace", "3", "--", "true"], "--grace: '3' has no unit"),
        ]:
            with self.subTest(arguments):
                done = subprocess.run(
                    [RIFFLE, "launch", *arguments], capture_output=True, text=True, timeout=LIMIT
                )
                self.assertEqual((done.returncode, done.stdout), (2, ""))
                self.assertIn("riffle: " + message, done.stderr)
                self.assertEqual(done.stderr.count("\n"), 1)

    def test_help_shows_an_example(self):
        done = subprocess.run(
            [RIFFLE, "launch", "--help"], capture_output=True, text=True, timeout=LIMIT
        )
        self.assertEqual(done.returncode, 0)
        self.assertIn("Example: riffle launch -n 4 -- python3 train.py", done.stdout)


if __name__ == "__main__":
    unittest.main()
