#!/usr/bin/env python3
"""Collectives between hosts against raw sockets that send the same bytes in the same order.

    bench/wire.py [--hosts 2,4,8] [--latency 0.5ms,2.5ms,20ms] [--bandwidth 50Mbps,200Mbps,500Mbps]
        [--sizes 1MB,16MB] [--algorithms ring,...] [--repeats 3] [--stock-buffers] [--format json]

Each network is a lab of its own (dilated where the lab asks for it); in it both contenders run in
turns. The ratio is raw over ours of the medians: 1 is as fast as the wire, more is faster than
rounds that wait for each other. --stock-buffers gives the hosts' kernels the TCP buffers that Linux
comes with. Needs what the lab needs.
"""

import argparse
import json
import re
import statistics
import subprocess
import sys
from pathlib import Path

BIN = Path(__file__).resolve().parent.parent / "build/release/bin"
STOCK = 'sysctl -qw net.ipv4.tcp_rmem="4096 131072 6291456" net.ipv4.tcp_wmem="4096 16384 4194304"'


def command(spec, dilate, arguments):
    worker = [str(BIN / "wire_worker"), "--repeats", str(arguments.repeats)]
    for name in arguments.algorithms.split(","):
        worker += ["--algorithm", name]
    for size in arguments.sizes.split(","):
        worker += ["--size", size]
    if arguments.stock_buffers:
        worker = ["sh", "-c", f'{STOCK}; exec "$@"', "worker", *worker]
    return [str(BIN / "riffle"), "lab", spec, "--dilate", dilate, "--", *worker]


def run(spec, arguments):
    """Lines of rank 0, and the dilation, which is 1 or what the lab's refusal names."""
    dilate = "1"
    for _ in range(2):
        done = subprocess.run(command(spec, dilate, arguments), capture_output=True, text=True)
        named = re.search(r"--dilate (\S+) would work", done.stderr)
        if not done.returncode:
            lines = [line[line.index("{") :] for line in done.stdout.splitlines() if "{" in line]
            return float(dilate), [json.loads(line) for line in lines]
        if not named:
            break
        dilate = named.group(1)
    sys.exit(f"{spec}: {done.stderr}{done.stdout}")


def rows(arguments):
    for hosts in arguments.hosts.split(","):
        for latency in arguments.latency.split(","):
            for bandwidth in arguments.bandwidth.split(","):
                spec = f"flat:{hosts},latency={latency},bandwidth={bandwidth}"
                dilate, results = run(spec, arguments)
                for each in results:
                    raw = statistics.median(each["raw"]) / dilate
                    ours = statistics.median(each["riffle"]) / dilate
                    spread = (max(each["riffle"]) - min(each["riffle"])) / dilate / ours
                    yield {
                        "hosts": int(hosts),
                        "latency": latency,
                        "bandwidth": bandwidth,
                        "dilate": dilate,
                        "algorithm": each["algorithm"],
                        "bytes": each["bytes"],
                        "raw_seconds": raw,
                        "riffle_seconds": ours,
                        "spread": spread,
                        "ratio": raw / ours,
                    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--hosts", default="2,4,8")
    parser.add_argument("--latency", default="0.5ms,2.5ms,20ms")
    parser.add_argument("--bandwidth", default="50Mbps,200Mbps,500Mbps")
    parser.add_argument("--sizes", default="1MB,16MB")
    parser.add_argument(
        "--algorithms", default="ring,halving-doubling,recursive-doubling,direct,shift"
    )
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--stock-buffers", action="store_true")
    parser.add_argument("--format", choices=["table", "json"], default="table")
    arguments = parser.parse_args()
    found = []
    head = ("hosts", "latency", "rate", "dilate", "algorithm", "bytes", "raw ms", "riffle ms")
    if arguments.format == "table":
        print("{:>5} {:>7} {:>8} {:>6}  {:18} {:>9} {:>9} {:>9}  ratio  spread".format(*head))
    for row in rows(arguments):
        found.append(row)
        if arguments.format == "table":
            print(
                f"{row['hosts']:5} {row['latency']:>7} {row['bandwidth']:>8} {row['dilate']:6g}  "
                f"{row['algorithm']:18} {row['bytes']:9} {1e3 * row['raw_seconds']:9.1f} "
                f"{1e3 * row['riffle_seconds']:9.1f}  {row['ratio']:5.2f}  {row['spread']:5.0%}",
                flush=True,
            )
    if arguments.format == "json":
        print(json.dumps({"results": found}, indent=1))
        return
    ratios = sorted(row["ratio"] for row in found)
    below = sum(ratio < 0.9 for ratio in ratios)
    print(
        f"{len(ratios)} cells: least {ratios[0]:.2f}, median {statistics.median(ratios):.2f}, "
        f"{below} below 0.9"
    )


if __name__ == "__main__":
    main()
