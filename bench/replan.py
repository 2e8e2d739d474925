#!/usr/bin/env python3
"""Planned again: an uplink that falls to a quarter in mid-run and comes back, in the lab.

    bench/replan.py [--only rate] [--strategy mg-wfbp] [--trace googlenet] [--minutes 10]

    rate    the uplink's bandwidth falls to a quarter (bandwidth=)
    load    others' traffic takes three quarters of it (load=)
    noise   a constant network with jitter and wavering traffic, for --minutes: alarms that were
            wrong

For rate and load each strategy runs once while it senses, and once more with its schedule fixed
from the start for the network as it is before, and as it is after the fall (riffle-worker plans for
the cluster it is given; here a lab of the fallen network): the best fixed schedule for the new
network. Step times are medians, in seconds of the true cluster. Reaction: from the event to the
line that tells of the change.
Needs what the lab needs; `./riffle build` first.
"""

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BIN = ROOT / "build/release/bin"
RIFFLE = os.environ.get("RIFFLE_COMMAND", str(BIN / "riffle"))
WORKER = os.environ.get("RIFFLE_WORKER", str(BIN / "riffle-worker"))
INNER = "1ms/8Gbps"
OUTER = "2ms"
UPLINK = 4000  # Mbps
SETTLE = 1.0  # after a change, seconds that count as neither


def cluster(rate):
    return f"racks:2x4,inner={INNER},outer={OUTER}/{rate}Mbps"


def run(rate, arguments, strategy, steps, *more, events=""):
    """One lab; what its worker 0 printed."""
    command = [RIFFLE, "lab", cluster(rate), "--shrink", str(arguments.shrink)]
    if events:
        command += ["--events", events]
    command += ["--", WORKER, "--trace", arguments.trace, "--strategy", strategy]
    command += ["--steps", str(steps), *more]
    done = subprocess.run(command, capture_output=True, text=True, timeout=1200)
    lines = [line for line in done.stdout.splitlines() if "seconds_per_step" in line]
    if done.returncode != 0 or not lines:
        sys.exit(f"{' '.join(command)}\n{done.stderr[-2000:]}")
    slow = "processors" in done.stderr
    return json.loads(re.sub(r"^\[\d+\] ", "", lines[-1])), slow


def median_step(ended, begin, end):
    inside = [t for t in ended if begin <= t <= end]
    times = [b - a for a, b in zip(inside, inside[1:], strict=False)]
    return statistics.median(times) if len(times) > 2 else float("nan")


def longest_step(ended, begin, end):
    return max(
        (b - a for a, b in zip(ended, ended[1:], strict=False) if begin <= b <= end), default=0
    )


def changes(result):
    """When the schedule changed, and what the line says."""
    return [(s["at"], s["line"]) for s in result["sensed"] if "; now " in s["line"]]


def uplink_falls(kind, arguments, strategy):
    fall, back = arguments.fall, arguments.back
    low = UPLINK // 4
    down, up = {
        "rate": (f"bandwidth={low}Mbps", f"bandwidth={UPLINK}Mbps"),
        "load": (f"load={UPLINK - low}Mbps", "load=0"),
    }[kind]
    events = f"at={fall}s,link=rack1,{down} at={back}s,link=rack1,{up}"
    result, slow = run(UPLINK, arguments, strategy, arguments.steps, "--sense", events=events)
    ended = result["steps_ended"]
    told = changes(result)
    fell = next((at for at, _ in told if fall < at < back), None)
    rose = next((at for at, _ in told if at > back), None)
    fixed = {}
    for name, rate in [("before", UPLINK), ("after", low)]:
        fixed[name] = run(rate, arguments, strategy, arguments.fixed_steps)[0]["seconds_per_step"]
    during = median_step(ended, (fell or fall) + SETTLE, back)
    print(f"{kind}, {strategy}:{' (the lab says that processors set the pace)' if slow else ''}")
    for what, when, since in [("falls", fell, fall), ("is back", rose, back)]:
        reaction = "not noticed" if when is None else f"regrouped after {when - since:.1f} s"
        print(f"  uplink {what} at {since} s: {reaction}")
    for at, line in told:
        print(f"    {at:.1f} s, {line}")
    early = [line for at, line in told if at < fall]
    print(f"  wrong changes before the fall: {len(early)}")
    print(
        f"  step: before {median_step(ended, 5, fall):.3f}, fallen and not noticed "
        f"{median_step(ended, fall + SETTLE / 2, fell or back):.3f}, planned again {during:.3f}, "
        f"after {median_step(ended, (rose or back) + SETTLE, ended[-1]):.3f}"
    )
    print(
        f"  fixed schedules: {fixed['before']:.3f} on the network before, {fixed['after']:.3f} on "
        f"the fallen one; planned again / best fixed {during / fixed['after']:.2f}"
    )
    print(f"  longest step {longest_step(ended, 5, ended[-1]):.3f}", flush=True)


def noise(arguments, strategy):
    end = arguments.minutes * 60
    events = "at=0s,link=worker*,jitter=1ms"
    for i in range(int(end // 4)):
        load = (200, 600, 0, 400, 800)[i % 5]
        events += f" at={4 * i + 1}s,link=rack*,load={f'{load}Mbps' if load else 0}"
    result, slow = run(
        UPLINK, arguments, strategy, int(end / arguments.step_time), "--sense", events=events
    )
    lines = [
        s for s in result["sensed"] if "sensing:" not in s["line"] and "auto " not in s["line"]
    ]
    lasted = result["steps_ended"][-1] - result["steps_ended"][0]
    print(
        f"noise, {strategy}: {len(lines)} alarms in {lasted / 60:.1f} minutes"
        f"{' (the lab says that processors set the pace)' if slow else ''}"
    )
    for each in lines:
        print(f"    {each['at']:.1f} s, {each['line']}", flush=True)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--only", choices=["rate", "load", "noise"], action="append")
    parser.add_argument("--strategy", action="append")
    parser.add_argument("--trace", default="googlenet")
    parser.add_argument("--shrink", type=int, default=80)
    parser.add_argument("--fall", type=int, default=30, help="seconds")
    parser.add_argument("--back", type=int, default=60, help="seconds")
    parser.add_argument("--steps", type=int, default=150, help="while it senses")
    parser.add_argument("--fixed-steps", type=int, default=20)
    parser.add_argument("--minutes", type=float, default=10, help="of the constant network")
    parser.add_argument("--step-time", type=float, default=0.5, help="seconds, to fill the minutes")
    arguments = parser.parse_args()
    kinds = arguments.only or ["rate", "load", "noise"]
    strategies = arguments.strategy or ["ds-sync:pattern=bottleneck", "mg-wfbp", "auto"]
    for kind in kinds:
        for strategy in strategies:
            if kind == "noise":
                noise(arguments, strategy)
            else:
                uplink_falls(kind, arguments, strategy)


if __name__ == "__main__":
    main()
