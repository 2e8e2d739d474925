#!/usr/bin/env python3
"""auto beside every exact strategy: 6 clusters x 2 traces in the lab.

    bench/auto.py [--only racks-wide/resnet50] [--steps 8] [--rounds 2] [--resume FILE]

A cell is a cluster and a trace. Every exact strategy that the planner knows runs with the network
and the times given to it; those within a tenth of the fastest of them run again, in turns with
`auto`, which is told nothing: it measures network and times, plans, and changes. Its steps count
from a few after its last change on. Ratio: auto's step over that of the best exact strategy,
medians over rounds. Compute is emulated and bytes are shrunk (riffle lab --shrink).
--resume keeps what was measured in FILE, and goes on where it was cut off.
Needs what the lab needs, and a machine with little else to do; `./riffle build` first.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BIN = Path(os.environ.get("RIFFLE_BIN", ROOT / "build/release/bin"))

# Workers and links; what is divided by --shrink keeps the lab within a small machine.
CLUSTERS = {
    "flat-four": ("flat:4,latency=3ms,bandwidth=3Gbps", 60),
    "flat-far": ("flat:4,latency=15ms,bandwidth=6Gbps", 100),
    "flat-narrow": ("flat:6,latency=2ms,bandwidth=1500Mbps", 40),
    "flat-slow-host": ("flat:4,latency=2ms,bandwidth=4Gbps,slow=2*1.6", 80),
    "racks-wide": ("racks:2x2,inner=1ms/6Gbps,outer=4ms/6Gbps", 80),
    "racks-narrow": ("racks:2x3,inner=1ms/6Gbps,outer=3ms/2Gbps", 80),
}
TRACES = ["resnet50", "googlenet"]
WARM_UP = 3
SETTLE = 2  # steps after auto's last change that do not count
CLOSE = 1.1  # strategies within so much of the fastest run again


def exact_strategies(trace, cluster):
    done = subprocess.run(
        [BIN / "riffle", "plan", "--trace", trace, "--cluster", cluster, "--format", "json"],
        capture_output=True,
        text=True,
    )
    if done.returncode:
        sys.exit(done.stderr)
    candidates = json.loads(done.stdout)["candidates"]
    return {each["spec"]: each["iteration_seconds"] for each in candidates if each["exact"]}


def run(name, trace, strategies, steps, *more):
    """What rank 0 printed, by strategy."""
    cluster, shrink = CLUSTERS[name]
    words = [word for each in strategies for word in ("--strategy", each)]
    command = [BIN / "riffle", "lab", cluster, "--shrink", str(shrink), "--", BIN / "riffle-worker"]
    command += ["--trace", trace, "--steps", str(steps), "--warmup", str(WARM_UP), *words, *more]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    lines = [
        json.loads(line[line.index("{") :]) for line in done.stdout.splitlines() if "{" in line
    ]
    if done.returncode or len(lines) != len(strategies):
        sys.exit(f"{name}, {trace}: {done.stderr[-2000:]}")
    return {each["strategy"]: each for each in lines}, "processors set" in done.stderr


def steady(result):
    """auto's step after its last change, and how many steps that rests on."""
    ended = result["steps_ended"]
    last = max([each["at"] for each in result["sensed"]], default=0)
    after = [at for at in ended if at > last][SETTLE:]
    if len(after) < 4:
        return None, 0
    return (after[-1] - after[0]) / (len(after) - 1), len(after) - 1


def measure(name, trace, arguments):
    predicted = exact_strategies(trace, CLUSTERS[name][0])
    first, busy = run(name, trace, list(predicted), max(arguments.steps // 2, 2))
    times = {spec: each["seconds_per_step"] for spec, each in first.items()}
    fastest = min(times.values())
    close = [spec for spec in times if times[spec] <= CLOSE * fastest]
    rounds = {spec: [] for spec in close}
    auto = []
    for i in range(arguments.rounds):
        found, slow = run(name, trace, close[:: 1 if i % 2 == 0 else -1], arguments.steps)
        busy = busy or slow
        for spec, each in found.items():
            rounds[spec].append(each["seconds_per_step"])
        found, slow = run(name, trace, ["auto"], arguments.steps + 20, "--sense")
        busy = busy or slow
        step, count = steady(found["auto"])
        auto.append({"step": step, "steps": count, "ran": found["auto"]["ran"],
                     "lines": [each["line"] for each in found["auto"]["sensed"]]})  # fmt: skip
    finals = {spec: statistics.median(each) for spec, each in rounds.items()}
    best = min(finals, key=finals.get)
    planned = [each["step"] for each in auto if each["step"]]
    step = statistics.median(planned) if planned else None
    return {"cluster": CLUSTERS[name][0], "trace": trace, "first": times, "rounds": rounds,
            "best": best, "best_seconds": finals[best], "auto": auto, "auto_seconds": step,
            "ratio": step / finals[best] if step else None, "predicted": predicted,
            "processors_set_the_pace": busy}  # fmt: skip


def show(cell, row):
    ratio = "not planned" if row["ratio"] is None else f"{row['ratio']:.3f}"
    ran = ", ".join(sorted({each["ran"] for each in row["auto"]}))
    print(
        f"{cell:26} best {row['best']:22} {1e3 * row['best_seconds']:7.1f} ms   auto "
        f"{1e3 * (row['auto_seconds'] or 0):7.1f} ms  {ratio}  ran {ran}"
        f"{'  (processors set the pace)' if row['processors_set_the_pace'] else ''}",
        flush=True,
    )


def keep(file, results):
    if not file:
        return
    partial = Path(f"{file}.new")
    partial.write_text(json.dumps({"results": results}, indent=1))
    partial.replace(file)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    cells = [f"{name}/{trace}" for name in CLUSTERS for trace in TRACES]
    parser.add_argument("--only", action="append", metavar="CELL", help=", ".join(cells))
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--resume", metavar="FILE")
    parser.add_argument("--format", choices=["table", "json"], default="table")
    arguments = parser.parse_args()
    for cell in arguments.only or []:
        if cell not in cells:
            parser.error(f"there is no cell {cell}; known: {', '.join(cells)}")
    results = {}
    if arguments.resume and Path(arguments.resume).exists():
        results = json.loads(Path(arguments.resume).read_text())["results"]
    for cell in arguments.only or cells:
        if cell not in results:
            results[cell] = measure(*cell.split("/"), arguments)
            keep(arguments.resume, results)
        if arguments.format == "table":
            show(cell, results[cell])
    if arguments.format == "json":
        print(json.dumps({"results": results}, indent=1))
        return
    ratios = [each["ratio"] for each in results.values() if each["ratio"]]
    within = sum(ratio <= 1.05 for ratio in ratios)
    print(f"{within} of {len(results)} cells within 5 % of the best exact strategy")


if __name__ == "__main__":
    main()
