#!/usr/bin/env python3
"""How right `riffle probe` is: what it finds in the lab against the cluster that the lab emulates.

    bench/probe_accuracy.py [--only racks] [--format json]

Every case is a lab of its own. Latency is compared over all pairs of hosts, bandwidth link by link
(hosts' links and uplinks); the worst difference of each counts. Racks and sites must be found as
they are. Needs what the lab needs, and a machine with nothing else to do.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RIFFLE = os.environ.get("RIFFLE_COMMAND", str(ROOT / "build/release/bin/riffle"))

# Name, cluster, ranks per host, dilation.
CASES = [
    ("flat", "flat:4,latency=2ms,bandwidth=200Mbps", 1, 1),
    ("flat", "flat:8,latency=5ms,bandwidth=50Mbps", 1, 1),
    ("flat", "flat:4,latency=0.5ms,bandwidth=500Mbps", 1, 4),
    ("flat", "flat:3,latency=20ms,bandwidth=100Mbps", 1, 1),
    ("racks", "racks:2x4,inner=1ms/100Mbps,outer=4ms/50Mbps", 1, 1),
    ("racks", "racks:2x4,inner=2ms/100Mbps,outer=0s/100Mbps", 1, 1),
    ("sites", "sites:2x2x2,inner=1ms/100Mbps,outer=1ms/80Mbps,wan=5ms/50Mbps", 1, 1),
    ("ranks", "flat:4,latency=2ms,bandwidth=200Mbps", 2, 1),
    ("ranks", "racks:2x2,inner=2ms/100Mbps,outer=3ms/80Mbps", 2, 1),
    ("slow", {"worker": 2, "latency": 0.006, "bandwidth": 30e6 / 8}, 1, 1),
]
SLOW_IN = "flat:6,latency=2ms,bandwidth=100Mbps"


def tree_of(cluster):
    """Links as the file has them: domains, and the link of each worker."""
    return cluster["domains"], cluster["workers"]


def latency(cluster, a, b):
    domains, workers = tree_of(cluster)
    total = workers[a]["latency"] + workers[b]["latency"]
    one, other = workers[a]["domain"], workers[b]["domain"]
    while one != other:
        deeper = max(one, other)
        total += domains[deeper]["latency"]
        one, other = (
            (domains[one]["parent"], other) if one == deeper else (one, domains[other]["parent"])
        )
    return total / 2


def host_bandwidth(cluster, worker, several):
    """Of a host's link; where it has several workers, that is the uplink of their domain."""
    domains, workers = tree_of(cluster)
    return (domains[workers[worker]["domain"]] if several else workers[worker])["bandwidth"]


def uplinks(cluster, ranks_per_host):
    """By the hosts below each: what its uplink carries. Hosts' own links are left out."""
    domains, workers = tree_of(cluster)
    below = {d: set() for d in range(1, len(domains))}
    for rank, worker in enumerate(workers):
        domain = worker["domain"]
        while domain > 0:
            below[domain].add(rank // ranks_per_host)
            domain = domains[domain]["parent"]
    return {
        tuple(sorted(hosts)): domains[d]["bandwidth"]
        for d, hosts in below.items()
        if not domains[d]["name"].startswith("host")
    }


def true_cluster(case, folder):
    """A file with the cluster to emulate, and what it holds."""
    spec = SLOW_IN if isinstance(case, dict) else case
    shown = subprocess.run(
        [RIFFLE, "lab", spec, "--force", "--", "sh", "-c", 'echo "$RIFFLE_LAB_CLUSTER"'],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    lines = [line[4:] for line in shown.stdout.splitlines() if line.startswith("[0] ")]
    cluster = json.loads("\n".join(lines))
    if isinstance(case, dict):
        link = {key: case[key] for key in ("latency", "bandwidth")}
        cluster["workers"][case["worker"]].update(link)
    file = Path(folder) / "true.json"
    file.write_text(json.dumps(cluster))
    return file, cluster


def probe(case, ranks_per_host, dilate):
    with tempfile.TemporaryDirectory() as folder:
        file, true = true_cluster(case, folder)
        found = Path(folder) / "found.json"
        done = subprocess.run(
            [RIFFLE, "lab", file, "--dilate", str(dilate), "--ranks-per-host", str(ranks_per_host),
             "--", RIFFLE, "probe", "--output", found],
            capture_output=True, text=True,
        )  # fmt: skip
        if done.returncode:
            sys.exit(f"{case}: {done.stderr}{done.stdout}")
        return true, json.loads(found.read_text()), "set the pace" in done.stderr


def measure(name, case, ranks_per_host, dilate):
    true, found, busy = probe(case, ranks_per_host, dilate)
    hosts = range(len(true["workers"]))
    latencies = [
        latency(found, a * ranks_per_host, b * ranks_per_host) / latency(true, a, b) - 1
        for a in hosts
        for b in hosts
        if a < b
    ]
    rates = [
        host_bandwidth(found, a * ranks_per_host, ranks_per_host > 1)
        / true["workers"][a]["bandwidth"]
        - 1
        for a in hosts
    ]
    expected, seen = uplinks(true, 1), uplinks(found, ranks_per_host)
    shared = [seen[key] / expected[key] - 1 for key in expected if key in seen]
    return {
        "case": name,
        "cluster": case if isinstance(case, str) else f"{SLOW_IN}, worker {case['worker']} slow",
        "ranks_per_host": ranks_per_host,
        "dilate": dilate,
        "latency_worst": max(latencies, key=abs),
        "bandwidth_worst": max(rates, key=abs),
        "uplink_worst": max(shared, key=abs) if shared else None,
        "levels_found": set(expected) == set(seen),
        "processors_limited": busy,
    }


def show(result):
    uplink = result["uplink_worst"]
    print(
        f"{result['cluster']:68} x{result['dilate']} {result['ranks_per_host']} per host"
        f"  latency {100 * result['latency_worst']:+6.1f} %"
        f"  link {100 * result['bandwidth_worst']:+6.1f} %"
        + (f"  uplink {100 * uplink:+6.1f} %" if uplink is not None else " " * 17)
        + ("  levels found" if result["levels_found"] else "  LEVELS MISSED")
        + ("  (processors busy)" if result["processors_limited"] else ""),
        flush=True,
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", choices=sorted({case[0] for case in CASES}))
    parser.add_argument("--format", choices=["table", "json"], default="table")
    arguments = parser.parse_args()
    results = []
    for case in CASES:
        if arguments.only not in (None, case[0]):
            continue
        results.append(measure(*case))
        if arguments.format == "table":
            show(results[-1])
    if arguments.format == "json":
        print(json.dumps({"results": results}, indent=1))


if __name__ == "__main__":
    main()
