#!/usr/bin/env python3
"""Is this tree slower than another one? .venv/bin/python bench/before_after.py OTHER_TREE

Both trees must be built (build/release). A bench of each takes turns with the other's, and gives
speeds (larger is faster) by name: `ddp`, bench/ddp_speed.py, over torch DDP of the same run;
`allreduce`, riffle bench allreduce, over Gloo of the same run; `world-one`, bench/world_one.py, a
step with riffle.sync over a plain one. So what else the machine does hits both alike. Printed: the
median over the rounds of this tree's over the other's (above 1: faster now), the least, the most.
"""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from statistics import median

HERE = Path(__file__).resolve().parents[1]


def results_of(tree, command):
    """What a bench of a tree prints as JSON."""
    environment = os.environ | {
        "PYTHONPATH": str(tree / "build/release/python"),
        "OMP_NUM_THREADS": "1",
    }
    answer = subprocess.run(
        [*map(str, command), "--format", "json"], env=environment, capture_output=True, text=True
    )
    if answer.returncode != 0:
        sys.exit(f"{tree}: {answer.stderr.strip()}")
    return json.loads(answer.stdout)["results"]


def ddp(tree, given):
    words = ["--workers", given.workers, "--models", given.models, "--turns", given.turns]
    words += ["--strategies", given.strategies]
    script = tree / "bench/ddp_speed.py"
    return {
        f"{row['workers']} workers, {row['model']}, {row['contender']}": row["speedup"]
        for row in results_of(tree, [sys.executable, "-W", "ignore", script, *words])
        if row["contender"] != "torch-ddp"
    }


def allreduce(tree, given):
    words = ["--workers", given.workers, "--against", "gloo", "--python", sys.executable]
    rows = results_of(tree, [tree / "build/release/bin/riffle", "bench", "allreduce", *words])
    peer = {
        (row["workers"], row["bytes"]): row["p50_seconds"]
        for row in rows
        if row["contender"] == "gloo"
    }
    return {
        f"{row['workers']} workers, {row['bytes']} bytes, {row['contender']}": (
            peer[row["workers"], row["bytes"]] / row["p50_seconds"]
        )
        for row in rows
        if row["contender"] != "gloo"
    }


def world_one(tree, _):
    rows = results_of(tree, [sys.executable, "-W", "ignore", tree / "bench/world_one.py"])
    times = {row["loop"]: row["seconds_per_step"] for row in rows}
    return {"one worker": times["plain"] / times["riffle"]}


BENCHES = {"ddp": ddp, "allreduce": allreduce, "world-one": world_one}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("other", type=Path, help="a tree that was built, of the state before")
    parser.add_argument("--bench", choices=BENCHES, default="ddp")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--workers", default="2")
    parser.add_argument("--models", default="cnn,gpt", help="of ddp")
    parser.add_argument("--strategies", default="mg-wfbp,dear,sesgd", help="of ddp")
    parser.add_argument("--turns", default="3", help="of ddp")
    given = parser.parse_args()
    speeds = BENCHES[given.bench]
    ratios = {}
    for _ in range(given.rounds):
        before, now = speeds(given.other.resolve(), given), speeds(HERE, given)
        for key, value in now.items():
            ratios.setdefault(key, []).append(value / before[key])
    print(f"{'':40}{'now over before':>16}{'least':>8}{'most':>8}")
    for name, found in ratios.items():
        print(f"{name:40}{median(found):15.2f}x{min(found):8.2f}{max(found):8.2f}")


if __name__ == "__main__":
    main()
