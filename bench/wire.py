#!/usr/bin/env python3
"""Collectives between hosts against raw sockets that send the same bytes in the same order.

    bench/wire.py [--hosts 8,4,2] [--latency 2.5ms,20ms,0.5ms] [--bandwidth 200Mbps,500Mbps,50Mbps]
        [--sizes 1MB,16MB] [--algorithms ring,...] [--stock-buffers] [--resume FILE [--minutes 8]]

Each network is a lab of its own (dilated where the lab asks for it); in it both contenders run in
turns. The ratio is raw over ours of the medians: 1 is as fast as the wire, more is faster than
rounds that wait for each other. --stock-buffers gives the hosts' kernels the TCP buffers that Linux
comes with. --resume keeps every finished cell in FILE and skips those that are there; --minutes
begins no lab that would not be over by then. Needs what the lab needs.
"""

import argparse
import itertools
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BIN = Path(os.environ.get("RIFFLE_BIN", ROOT / "build/release/bin"))
STOCK = 'sysctl -qw net.ipv4.tcp_rmem="4096 131072 6291456" net.ipv4.tcp_wmem="4096 16384 4194304"'
UNITS = {"MB": 1e6, "KB": 1e3, "Mbps": 1e6 / 8, "Gbps": 1e9 / 8, "ms": 1e-3}
HEAD = (
    "hosts latency     rate dilate  algorithm              bytes    raw ms riffle ms  ratio  spread"
)


def value(text):
    number, unit = re.fullmatch(r"([\d.]+)(\w+)", text).groups()
    return float(number) * UNITS[unit]


class Results:
    """Finished cells, in a file where one was named: it is whole at any time."""

    def __init__(self, file):
        self.file = Path(file) if file else None
        there = self.file is not None and self.file.exists()
        self.rows = json.loads(self.file.read_text())["results"] if there else []

    def find(self, lab, name, size):
        key = (*lab, name, int(value(size)))
        return next((row for row in self.rows if key_of(row) == key), None)

    def add(self, row):
        self.rows.append(row)
        if self.file is None:
            return
        folder = self.file.resolve().parent
        with tempfile.NamedTemporaryFile("w", dir=folder, delete=False) as text:
            json.dump({"results": self.rows}, text, indent=1)
        os.replace(text.name, self.file)


def key_of(row):
    where = (row["hosts"], row["latency"], row["bandwidth"], row["stock_buffers"])
    return (*where, row["algorithm"], row["bytes"])


def command(lab, cells, dilate, arguments):
    hosts, latency, bandwidth, stock = lab
    worker = [str(BIN / "wire_worker"), "--repeats", str(arguments.repeats)]
    worker += ["--seconds", str(arguments.seconds), "--warmups", str(arguments.warmups)]
    for name, size in cells:
        worker += ["--cell", f"{name}:{size}"]
    if stock:
        worker = ["sh", "-c", f'{STOCK}; exec "$@"', "worker", *worker]
    spec = f"flat:{hosts},latency={latency},bandwidth={bandwidth}"
    return [str(BIN / "riffle"), "lab", spec, "--dilate", dilate, "--", *worker]


def run(lab, cells, arguments):
    """Rank 0's results as they come, with the dilation: 1, or what the lab's refusal names."""
    dilate = "1"
    for _ in range(2):
        errors = tempfile.TemporaryFile("w+")
        with subprocess.Popen(
            command(lab, cells, dilate, arguments), stdout=subprocess.PIPE, stderr=errors, text=True
        ) as running:
            for line in running.stdout:
                if "{" in line:
                    yield float(dilate), json.loads(line[line.index("{") :])
        errors.seek(0)
        said = errors.read()
        if not running.returncode:
            return
        named = re.search(r"--dilate (\S+) would work", said)
        if not named:
            break
        dilate = named.group(1)
    sys.exit(f"{lab}: {said}")


def row_of(lab, dilate, each):
    raw, ours = (statistics.median(each[name]) / dilate for name in ("raw", "riffle"))
    hosts, latency, bandwidth, stock = lab
    return {
        "hosts": hosts,
        "latency": latency,
        "bandwidth": bandwidth,
        "stock_buffers": stock,
        "dilate": dilate,
        "algorithm": each["algorithm"],
        "bytes": each["bytes"],
        "raw_seconds": raw,
        "riffle_seconds": ours,
        "calls": len(each["riffle"]),
        "spread": (max(each["riffle"]) - min(each["riffle"])) / dilate / ours,
        "ratio": raw / ours,
    }


def show(row):
    print(
        f"{row['hosts']:5} {row['latency']:>7} {row['bandwidth']:>8} {row['dilate']:6g}  "
        f"{row['algorithm']:18} {row['bytes']:9} {1e3 * row['raw_seconds']:9.1f} "
        f"{1e3 * row['riffle_seconds']:9.1f}  {row['ratio']:5.2f}  {row['spread']:5.0%}",
        flush=True,
    )


def expected(lab, cells, arguments):
    """About how many seconds a lab will take: calls of some vectors and latencies."""
    hosts, latency, bandwidth, _ = lab
    dilate = max(1, (0.4 + 0.05 * hosts) * 1e-3 / value(latency))
    total = 3.0
    for _name, size in cells:
        pair = 2 * dilate * (1.8 * value(size) / value(bandwidth) + 10 * value(latency))
        total += max(2 * pair, min((arguments.repeats + 1) * pair, arguments.seconds + pair))
    return total


def measure(labs, results, arguments):
    begun = time.monotonic()
    left = {lab: [c for c in cells if not results.find(lab, *c)] for lab, cells in labs.items()}
    left = {lab: cells for lab, cells in left.items() if cells}
    for done, (lab, cells) in enumerate(left.items()):
        rest = sum(expected(*each, arguments) for each in list(left.items())[done:])
        print(
            f"lab {done + 1} of {len(left)}, about {rest / 60:.0f} min left",
            file=sys.stderr,
            flush=True,
        )
        over = time.monotonic() - begun + expected(lab, cells, arguments)
        if arguments.minutes and over > 60 * arguments.minutes:
            print("time is up; the same command goes on", file=sys.stderr)
            return
        for dilate, each in run(lab, cells, arguments):
            results.add(row_of(lab, dilate, each))
            if arguments.format == "table":
                show(results.rows[-1])


def options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--hosts", default="8,4,2")
    parser.add_argument("--latency", default="2.5ms,20ms,0.5ms")
    parser.add_argument("--bandwidth", default="200Mbps,500Mbps,50Mbps")
    parser.add_argument("--sizes", default="1MB,16MB")
    parser.add_argument(
        "--algorithms", default="ring,halving-doubling,recursive-doubling,direct,two-level,shift"
    )
    parser.add_argument("--repeats", type=int, default=5, help="of a cell, at most")
    parser.add_argument("--warmups", type=int, default=1, help="calls before those that count")
    parser.add_argument(
        "--seconds", type=float, default=2, help="of a cell, after two calls of each contender"
    )
    parser.add_argument("--stock-buffers", action="store_true")
    parser.add_argument("--resume", metavar="FILE", help="keep cells here, skip those it has")
    parser.add_argument("--minutes", type=float, help="stop before a lab that would not fit")
    parser.add_argument("--format", choices=["table", "json"], default="table")
    return parser.parse_args()


def main():
    arguments = options()
    every = itertools.product(
        arguments.bandwidth.split(","), arguments.latency.split(","), arguments.hosts.split(",")
    )
    cells = list(itertools.product(arguments.algorithms.split(","), arguments.sizes.split(",")))
    labs = {
        (int(hosts), latency, bandwidth, arguments.stock_buffers): cells
        for bandwidth, latency, hosts in every
    }
    results = Results(arguments.resume)
    if arguments.format == "table":
        print(HEAD)
    measure(labs, results, arguments)
    found = [results.find(lab, *cell) for lab, cells in labs.items() for cell in cells]
    rows = [row for row in found if row]
    if arguments.format == "json":
        print(json.dumps({"results": rows}, indent=1))
        return
    ratios = sorted(row["ratio"] for row in rows)
    if not ratios:
        return
    print(
        f"{len(ratios)} of {len(found)} cells: least {ratios[0]:.2f}, "
        f"median {statistics.median(ratios):.2f}, {sum(r < 0.9 for r in ratios)} below 0.9"
    )
    for row in rows:
        if row["ratio"] < 0.9:
            show(row)


if __name__ == "__main__":
    main()
