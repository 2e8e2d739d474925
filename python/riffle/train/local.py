"""Workers on this host: started by `riffle launch` (torchrun where that is not installed), watched
here. Their events come on standard output; signals go to the launcher, once each."""

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from riffle.command import program
from riffle.train.checkpoint import write_whole
from riffle.train.events import PIPE_VARIABLE, Event, Sink
from riffle.train.options import Options, as_arguments
from riffle.train.worker import timeline_part

GRACE = "30s"  # to write a checkpoint after Ctrl-C


def _launcher(workers: int) -> list[str]:
    command = os.environ.get("RIFFLE_COMMAND") or program() or shutil.which("riffle")
    if command:
        return [command, "launch", f"--workers={workers}", f"--grace={GRACE}", "--"]
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--no-python"]
    return [*torchrun, f"--nproc-per-node={workers}"]


def _environment(workers: int) -> dict[str, str]:
    threads = max(1, (os.cpu_count() or 1) // workers)
    return {"OMP_NUM_THREADS": str(threads), **os.environ, PIPE_VARIABLE: "1"}


def _start(options: Options) -> subprocess.Popen[str]:
    workers = options.settings.workers
    program = [sys.executable, "-m", "riffle.train", *as_arguments(options)]
    return subprocess.Popen(
        [*(_launcher(workers) if workers > 1 else []), *program],
        env=_environment(workers),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,  # Ctrl-C reaches it through us, so exactly once
    )


def _event_in(line: str) -> Event | None:
    """The launcher puts the rank before each line."""
    start = line.find('{"event":')
    if start < 0:
        return None
    try:
        return json.loads(line[start:])
    except ValueError:
        return None


def run(options: Options, screen: Sink) -> tuple[int, dict[str, Any] | None]:
    """The exit code and the event of the end, where it was reached."""
    process = _start(options)

    def forward(number: int, _: object) -> None:
        process.send_signal(number)

    before = {n: signal.signal(n, forward) for n in (signal.SIGINT, signal.SIGTERM)}
    end = None
    try:
        assert process.stdout is not None
        for line in process.stdout:
            event = _event_in(line)
            if event is None:
                print(line, end="", file=sys.stderr)
                continue
            screen(event)
            if event["event"] == "end":
                end = event
        code = process.wait()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if options.timeline is not None:
        _join_timelines(options.timeline, options.settings.workers)
    return (128 - code if code < 0 else code), end


def _join_timelines(path: str, workers: int) -> None:
    """One file for all ranks, of those that got that far."""
    joined: dict[str, Any] | None = None
    for rank in range(workers):
        part = Path(timeline_part(path, rank))
        if not part.exists():
            continue
        document = json.loads(part.read_text())
        part.unlink()
        if joined is None:
            joined = document
        else:
            joined["traceEvents"] += document["traceEvents"]
    if joined is not None:
        write_whole(Path(path), json.dumps(joined).encode())
