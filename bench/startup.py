#!/usr/bin/env python3
"""What ./riffle adds to the start of the program: `bench/startup.py [VERB ARGS...]` (--help).

Script and program run in turns, so that a busy machine slows both alike.
"""

import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RUNS = 100


def milliseconds(command: list[str]) -> float:
    start = time.perf_counter()
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    return (time.perf_counter() - start) * 1e3


def row(name: str, values: list[float]) -> str:
    low, middle, high = statistics.quantiles(values, n=10)[0::4]
    return f"{name:<12} {middle:8.1f} {low:8.1f} {high:8.1f}"


def main(arguments: list[str]) -> None:
    script = str(ROOT / "riffle")
    program = str(ROOT / "build" / os.environ.get("RIFFLE_PRESET", "release") / "bin" / "riffle")
    milliseconds([script, *arguments])  # builds when needed, warms caches
    pairs = [
        (milliseconds([program, *arguments]), milliseconds([script, *arguments]))
        for _ in range(RUNS)
    ]
    print(f"riffle {' '.join(arguments)}, {RUNS} runs each, in turns, ms")
    print(f"{'':<12} {'median':>8} {'p10':>8} {'p90':>8}")
    print(row("program", [alone for alone, _ in pairs]))
    print(row("./riffle", [scripted for _, scripted in pairs]))
    print(row("script adds", [scripted - alone for alone, scripted in pairs]))


if __name__ == "__main__":
    main(sys.argv[1:] or ["--help"])
