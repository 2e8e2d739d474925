#!/usr/bin/env python3
"""Members in step: a step's time in the lab beside what `riffle simulate` predicts.

    bench/in_step.py [--only flat,racks,slow] [--rounds 2] [--strategies "wfbp gossip"] [--dilate K]
        [--format json]

Eight hosts, 2.5 ms one way, 200 Mbps; ten layers of 256 KB that take 60 ms together to compute
(emulated). Every round runs all strategies one after the other in a lab; the median over rounds is
compared with the prediction. Needs what the lab needs, and a machine with little else to do.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BIN = Path(os.environ.get("RIFFLE_BIN", ROOT / "build/release/bin"))

CLUSTERS = {
    "flat": "flat:8,latency=2.5ms,bandwidth=200Mbps",
    "racks": "racks:2x4,inner=2.5ms/200Mbps,outer=2.5ms/400Mbps",
    "slow": "flat:8,latency=2.5ms,bandwidth=200Mbps,slow=3*2.0",
}
STRATEGIES = [
    "bsp",
    "single",
    "wfbp",
    "ddp",
    "hierarchical",
    "mg-wfbp",
    "dear",
    "asc-wfbp",
    "local-sgd",
    "dasgd",
    "diloco:tau=8",
    "gossip",
    "gossip:order=combine-then-adapt",
    "sesgd",
    "sesgd:order=combine-then-adapt",
    "sesgd:group=2,order=combine-then-adapt",
    "ds-sync",
    "ds-sync:order=combine-then-adapt",
]
STEPS = 24  # a multiple of every period above
WARM_UP = 8


def model():
    layer = {"elements": 65536, "forward": 0.002, "backward": 0.004}
    layers = [{"name": f"layer{i}", **layer} for i in range(10)]
    return {"riffle": "trace", "version": 1, "model": "ten", "dtype": "f32", "batch": 1,
            "source": "made up", "layers": layers}  # fmt: skip


def predicted(trace, cluster, strategies):
    words = [word for each in strategies for word in ("--strategy", each)]
    done = subprocess.run(
        [BIN / "riffle", "simulate", "--trace", trace, "--cluster", cluster, "--format", "json",
         "--warmup", str(WARM_UP), "--steps", str(STEPS), *words],
        capture_output=True, text=True,
    )  # fmt: skip
    if done.returncode:
        sys.exit(f"{cluster}: {done.stderr}")
    found = json.loads(done.stdout)
    found = found if isinstance(found, list) else found.get("results", [found])
    return {name: each["iteration_seconds"] for name, each in zip(strategies, found, strict=True)}


def measured(trace, cluster, strategies, dilate):
    words = [word for each in strategies for word in ("--strategy", each)]
    done = subprocess.run(
        [BIN / "riffle", "lab", cluster, "--dilate", str(dilate), "--", BIN / "riffle-worker",
         "--trace", trace, "--steps", str(STEPS), "--warmup", str(WARM_UP), *words],
        capture_output=True, text=True,
    )  # fmt: skip
    if done.returncode:
        sys.exit(f"{cluster}: {done.stderr}{done.stdout}")
    lines = [
        json.loads(line[line.index("{") :]) for line in done.stdout.splitlines() if "{" in line
    ]
    return {each["strategy"]: each["seconds_per_step"] for each in lines}


def summary(name, rows):
    errors = [abs(row["error"]) for row in rows]
    print(f"{name}: median error {statistics.median(errors):.1%}, worst {max(errors):.1%}")


def show(name, rows):
    print(f"\n{name}: {CLUSTERS[name]}")
    print(f"{'strategy':42} measured  {'rounds':20} predicted  error")
    for row in rows:
        rounds = " ".join(f"{1e3 * each:.0f}" for each in row["rounds"])
        print(
            f"{row['strategy']:42} {1e3 * row['measured']:8.1f}  {rounds:20} "
            f"{1e3 * row['predicted']:9.1f} {row['error']:+6.1%}",
            flush=True,
        )
    summary(name, rows)


def measure(name, trace, arguments, strategies):
    expected = predicted(trace, CLUSTERS[name], strategies)
    rounds = []
    for i in range(arguments.rounds):
        about = sum(expected.values()) * (STEPS + WARM_UP) * arguments.dilate
        print(f"{name}: round {i + 1} of {arguments.rounds}, about {about:.0f} s", file=sys.stderr)
        order = strategies if i % 2 == 0 else strategies[::-1]
        rounds.append(measured(trace, CLUSTERS[name], order, arguments.dilate))
    rows = []
    for each in strategies:
        seen = [found[each] for found in rounds]
        middle = statistics.median(seen)
        error = middle / expected[each] - 1
        rows.append({"strategy": each, "measured": middle, "rounds": seen,
                     "predicted": expected[each], "error": error})  # fmt: skip
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default=",".join(CLUSTERS), help="of flat, racks, slow")
    parser.add_argument("--strategies", help="specs, separated by blanks; default: all")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--dilate", type=float, default=1)
    parser.add_argument("--format", choices=["table", "json"], default="table")
    arguments = parser.parse_args()
    strategies = arguments.strategies.split() if arguments.strategies else STRATEGIES
    results = {}
    with tempfile.NamedTemporaryFile("w", suffix=".json") as trace:
        json.dump(model(), trace)
        trace.flush()
        for name in arguments.only.split(","):
            if name not in CLUSTERS:
                sys.exit(f"there is no cluster {name}; known: {', '.join(CLUSTERS)}")
            results[name] = measure(name, trace.name, arguments, strategies)
            if arguments.format == "table":
                show(name, results[name])
    if arguments.format == "json":
        print(json.dumps({"results": results}, indent=1))
    elif len(results) > 1:
        summary("all", [row for rows in results.values() for row in rows])


if __name__ == "__main__":
    main()
