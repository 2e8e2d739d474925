"""Unmodified DistributedDataParallel on Gloo and on riffle, in turns: `riffle bench ddp`.

On this host with real models, and in a lab with a model of ten layers of 64 KB that sleeps 60 ms a
step. Exposed is what a step takes longer than one of the same model that exchanges nothing.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

from riffle._core import UsageError
from riffle.bench import CONTENDERS
from riffle.bench.models import MODELS
from riffle.command import program
from riffle.train.checkpoint import write_whole
from riffle.train.events import say

LAYERS = 10
LAYER = {"elements": 16384, "forward": 0.002, "backward": 0.004}
CLUSTER = "flat:16,latency=2.5ms,bandwidth=1Gbps"
DEADLINE = 900  # seconds of one cell

Row = dict[str, Any]


def riffle() -> str:
    """The command, for `launch` and `lab`."""
    found = os.environ.get("RIFFLE_COMMAND") or program()
    if found is None:
        raise UsageError("RIFFLE_COMMAND must name the command: this riffle is not installed")
    return found


def write_trace(path: Path) -> None:
    """Ten layers of 64 KB, 60 ms."""
    layers = [{"name": f"layer{i}", **LAYER} for i in range(LAYERS)]
    head = {"riffle": "trace", "version": 1, "model": "ten", "dtype": "f32", "batch": 32}
    path.write_text(json.dumps(head | {"layers": layers}))


def run_workers(start: list[str], model: str, turns: int, steps: int) -> list[dict[str, Any]]:
    """What every worker measured."""
    with tempfile.TemporaryDirectory() as folder:
        worker = [sys.executable, "-W", "ignore", "-m", "riffle.bench.ddp_worker", folder]
        worker += ["--model", model, "--turns", str(turns), "--steps", str(steps)]
        done = subprocess.run([riffle(), *start, "--", *worker], stdout=2, timeout=DEADLINE)
        if done.returncode:
            raise RuntimeError(f"riffle {' '.join(start)} ended with exit code {done.returncode}")
        return [json.loads(path.read_text()) for path in Path(folder).glob("rank*.json")]


def rows_of(answers: list[dict[str, Any]], dilate: float, **cell: Any) -> list[Row]:
    """A row per contender: medians over turns, of the slowest worker of each, in true time."""
    turns = range(len(answers[0][CONTENDERS[0]]))
    slowest = {
        name: [max(worker[name][turn] for worker in answers) / dilate for turn in turns]
        for name in CONTENDERS
    }
    alone = median(slowest["alone"])
    rows = []
    for name, times in slowest.items():
        ratios = [a / b for a, b in zip(slowest["gloo"], times, strict=True)]
        row = {"contender": name, "seconds_per_step": median(times), "turns": len(times)}
        row["exposed_communication_seconds"] = median(times) - alone
        row["speedup"] = median(ratios)
        row["least_speedup"], row["most_speedup"] = min(ratios), max(ratios)
        rows.append(cell | row)
    return rows


def measured(given: argparse.Namespace) -> Iterator[list[Row]]:
    """Cell by cell."""
    for workers in given.workers:
        for model in given.models:
            say(f"{workers} workers on this host, {model}")
            start = ["launch", "-n", str(workers)]
            answers = run_workers(start, model, given.turns, given.steps)
            yield rows_of(answers, 1, cluster=None, workers=workers, model=model)
    if given.cluster == "none":
        return
    say(f"in a lab of {given.cluster}, {given.dilate:g} times slower than true time")
    with tempfile.TemporaryDirectory() as folder:
        write_trace(Path(folder) / "ten.json")
        start = ["lab", given.cluster, "--dilate", f"{given.dilate:g}"]
        answers = run_workers(start, f"{folder}/ten.json", given.lab_turns, given.lab_steps)
    yield rows_of(
        answers, given.dilate, cluster=given.cluster, workers=len(answers), model="ten layers"
    )


def line(row: Row) -> str:
    """Of the table."""
    where = "lab" if row["cluster"] else "host"
    milliseconds = (1e3 * row[k] for k in ("seconds_per_step", "exposed_communication_seconds"))
    step, exposed = (f"{each:9.2f}" for each in milliseconds)
    text = f"{where:5}{row['workers']:>7}  {row['model']:11}{row['contender']:9}{step}{exposed}"
    if row["contender"] == "riffle":
        text += f"{row['speedup']:7.2f}x"
        text += f" ({row['least_speedup']:.2f} to {row['most_speedup']:.2f})"
    return text


HEAD = f"{'':5}{'workers':>7}  {'model':11}{'':9}{'ms/step':>9}{'exposed':>9}{'Gloo over it':>14}"


def numbers(text: str) -> list[int]:
    """Of --workers."""
    found = [word for word in text.split(",") if word]
    if not all(word.isascii() and word.isdigit() and int(word) >= 2 for word in found):
        raise UsageError(f"--workers {text}: must be numbers of 2 or more, or nothing")
    return [int(word) for word in found]


def names(text: str) -> list[str]:
    """Of --models."""
    found = text.split(",")
    for name in found:
        if name not in MODELS:
            raise UsageError(f"--models: no model '{name}'; known: {', '.join(MODELS)}")
    return found


def positive(text: str) -> int:
    """A number of turns or steps."""
    if not (text.isascii() and text.isdigit() and int(text) > 0):
        raise argparse.ArgumentTypeError(f"{text}: must be a whole number, 1 or more")
    return int(text)


def arguments(words: list[str]) -> argparse.Namespace:
    """As given, checked."""
    parser = argparse.ArgumentParser(
        prog="riffle bench ddp",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="Example: riffle bench ddp --workers 2 --models gpt --cluster none",
    )
    parser.add_argument("--workers", default="2,4", help="on this host; empty: none [2,4]")
    parser.add_argument("--models", default=",".join(MODELS), help="on this host [%(default)s]")
    parser.add_argument("--turns", type=positive, default=9, help="of each contender [9]")
    parser.add_argument("--steps", type=positive, default=10, help="of a turn [10]")
    parser.add_argument("--cluster", default=CLUSTER, help=f"of the lab, or none [{CLUSTER}]")
    parser.add_argument("--dilate", type=float, default=8, help="time in the lab [8]")
    parser.add_argument("--lab-turns", type=positive, default=5, help="in the lab [5]")
    parser.add_argument("--lab-steps", type=positive, default=4, help="of a turn there [4]")
    parser.add_argument("--format", choices=["table", "json"], default="table")
    parser.add_argument("--output", type=Path, help="a file; standard output otherwise")
    given = parser.parse_args(words)
    given.workers, given.models = numbers(given.workers), names(given.models)
    return given


def write(cells: Iterator[list[Row]], form: str, output: Path | None) -> None:
    """A table appears as it is measured, where it is not for a file."""
    is_live = form == "table" and output is None
    rows, lines = [], [HEAD]
    for cell in cells:
        rows += cell
        lines += [line(row) for row in cell]
        if is_live:
            print("\n".join(lines), flush=True)
            lines = []
    text = json.dumps({"results": rows}, indent=1) if form == "json" else "\n".join(lines)
    if output is not None:
        write_whole(output, f"{text}\n".encode())
    elif not is_live:
        print(text)


def main(words: list[str]) -> int:
    """The exit code."""
    try:
        given = arguments(words)
        say("Gloo runs under SCHED_BATCH, which makes it faster on shared cores")
        write(measured(given), given.format, given.output)
    except UsageError as error:
        say(str(error))
        return 2
    except (OSError, RuntimeError, subprocess.TimeoutExpired) as error:
        say(str(error))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
