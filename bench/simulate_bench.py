#!/usr/bin/env python3
"""Whole-process times of the simulator: ResNet-50, one period, racks of 32 on an irregular cluster.

Bars: 2048 workers in 1 s, 10 000 in 10 s and 1 GB, from 256 to 2048 at most 12 times as long;
wfbp on 256 workers 1000 times faster than SMPI, which took 176 s. `--runs` takes the best of so
many, which is what a busy machine disturbs least.

Beside the times: what was simulated. Messages are those of the program; events are what the
simulator handled (messages of workers that move in step are one); rate changes are how often flows
between two racks were given another bandwidth, which max-min sharing asks for at every start and
end of a flow on a shared link. us/event is wall time over events.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import time

LINKS = "inner=20us/10Gbps,outer=200us/10Gbps,jitter=5%,straggle=1%*3"
STRATEGIES = ["wfbp", "mg-wfbp", "sesgd", "ds-sync:pattern=bottleneck"]
RACKS = {256: 8, 2048: 64, 10016: 313}
SECONDS = {2048: 1.0, 10016: 10.0}
GROWTH = 12
SMPI_SECONDS = 176.0


def run_once(command):
    """Wall seconds, processor seconds and peak kilobytes of one process."""
    before = time.perf_counter()
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    wall = time.perf_counter() - before
    if status != 0:
        sys.exit(f"failed: {' '.join(command)}")
    return wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss


def measure(riffle, workers, strategy, runs):
    command = [
        riffle,
        "simulate",
        "--trace",
        "resnet50",
        "--strategy",
        strategy,
        "--cluster",
        f"racks:{RACKS[workers]}x32,{LINKS}",
        "--warmup",
        "0",
        "--steps",
        "1",
    ]
    results = [run_once(command) for _ in range(runs)]
    return tuple(min(values) for values in zip(*results, strict=True)), work_of(command)


def work_of(command):
    """Messages a step, events and rate changes of the simulation."""
    done = subprocess.run(
        [*command, "--format", "json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        check=True,
    )
    result = json.loads(done.stdout)
    messages = result["messages_per_worker"] * result["workers"]
    return messages, result["simulator_events"], result["simulator_rate_changes"]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--riffle", default="build/release/bin/riffle")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--largest", type=int, default=10016, choices=sorted(RACKS))
    arguments = parser.parse_args()
    print(
        f"{'strategy':<26} {'workers':>7} {'wall s':>7} {'cpu s':>7} {'MB':>4}"
        f" {'messages/step':>13} {'events':>8} {'rates':>8} {'us/event':>8}  bar"
    )
    missed = 0
    for strategy in STRATEGIES:
        walls = {}
        for workers in RACKS:
            if workers > arguments.largest:
                continue
            times, work = measure(arguments.riffle, workers, strategy, arguments.runs)
            wall, cpu, kilobytes = times
            messages, events, rates = work
            walls[workers] = wall
            bars = []
            if workers in SECONDS:
                bars.append((f"{SECONDS[workers]:g} s", wall <= SECONDS[workers]))
            if workers == 2048:
                growth = wall / walls[256]
                bars.append((f"growth {growth:.1f} of {GROWTH}", growth <= GROWTH))
            if workers == 256 and strategy == "wfbp":
                bars.append((f"{SMPI_SECONDS / wall:.0f}x SMPI", wall * 1000 <= SMPI_SECONDS))
            bars.append(("1 GB", kilobytes <= 1_000_000))
            missed += sum(1 for _, held in bars if not held)
            text = ", ".join(f"{name} {'held' if held else 'MISSED'}" for name, held in bars)
            figures = f"{wall:>7.3f} {cpu:>7.3f} {kilobytes / 1000:>4.0f}"
            did = f"{messages:>13.0f} {events:>8} {rates:>8} {wall / events * 1e6:>8.2f}"
            print(f"{strategy:<26} {workers:>7} {figures} {did}  {text}", flush=True)
    print(f"{missed} missed" if missed else "all held")
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1000
    print(f"largest process {peak:.0f} MB")


if __name__ == "__main__":
    main()
