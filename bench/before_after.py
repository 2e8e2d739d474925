#!/usr/bin/env python3
"""Is this tree slower than another one? .venv/bin/python bench/before_after.py OTHER_TREE

Both trees must be built (build/release). Their own bench/ddp_speed.py takes turns; of each
contender its speed over torch DDP of the same run counts, so that what else the machine does hits
both alike. Printed: the median over the rounds of this tree's over the other's (above 1: faster
now), and the least and the most.
"""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from statistics import median

HERE = Path(__file__).resolve().parents[1]


def speeds(tree, words):
    """By workers, model and contender: how often faster than torch DDP."""
    environment = os.environ | {
        "PYTHONPATH": str(tree / "build/release/python"),
        "OMP_NUM_THREADS": "1",
    }
    command = [sys.executable, "-W", "ignore", str(tree / "bench/ddp_speed.py"), *words]
    answer = subprocess.run(
        [*command, "--format", "json"], env=environment, capture_output=True, text=True
    )
    if answer.returncode != 0:
        sys.exit(f"{tree}: {answer.stderr.strip()}")
    return {
        (row["workers"], row["model"], row["contender"]): row["speedup"]
        for row in json.loads(answer.stdout)["results"]
        if row["contender"] != "torch-ddp"
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("other", type=Path, help="a tree that was built, of the state before")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--workers", default="2")
    parser.add_argument("--models", default="cnn,gpt")
    parser.add_argument("--strategies", default="mg-wfbp,dear,sesgd")
    parser.add_argument("--turns", default="3")
    given = parser.parse_args()
    words = ["--workers", given.workers, "--models", given.models, "--turns", given.turns]
    words += ["--strategies", given.strategies]
    ratios = {}
    for _ in range(given.rounds):
        before, now = speeds(given.other.resolve(), words), speeds(HERE, words)
        for key, value in now.items():
            ratios.setdefault(key, []).append(value / before[key])
    print(
        f"{'workers':>7}  {'model':8}{'contender':12}{'now over before':>16}{'least':>8}{'most':>8}"
    )
    for (workers, model, name), found in ratios.items():
        print(
            f"{workers:7}  {model:8}{name:12}{median(found):15.2f}x"
            f"{min(found):8.2f}{max(found):8.2f}"
        )


if __name__ == "__main__":
    main()
