"""Strategies ranked by consensus distance: the table of docs/converge.md.

    python3 bench/consensus_table.py

The two-layer network 64-32-10 on synthetic data, batch 8, 300 steps at rate 0.05 with momentum 0.9,
iid and Dirichlet 0.3, on 16, 64 and 256 virtual workers in racks of sqrt(N). A cell is the
consensus distance, mean over the second half of the run, and behind it the accuracy of the exact
average of all workers less that of bsp, in points. The smallest distance of iid data on 64 workers
first.
"""

import json
import subprocess
import sys
from pathlib import Path
from statistics import mean

RIFFLE = Path(__file__).resolve().parents[1] / "build/release/bin/riffle"
RULES = [
    "ds-sync:pattern=grid",
    "ds-sync:pattern=bottleneck,delay=0",
    "ds-sync:pattern=bottleneck,delay=2",
    "sesgd:schedule=digits",
    "sesgd:group=2",
    "sesgd:schedule=random",
    "sesgd:order=combine-then-adapt",
    "gossip",
    "local-sgd:tau=4",
    "local-sgd:tau=8",
    "dasgd:tau=4,delay=1",
    "dasgd:tau=4,delay=4",
    "dasgd:tau=4,delay=1,merge=mix",
    "diloco:tau=20",
]


def cells(workers, split):
    """Distance and difference to bsp, by rule."""
    command = [str(RIFFLE), "converge", "--workers", str(workers), "--split", split]
    command += ["--data", "synthetic", "--layers", "64-32-10", "--batch", "8", "--steps", "300"]
    command += ["--learning-rate", "0.05", "--every", "1", "--format", "json"]
    for rule in ["bsp", *RULES]:
        command += ["--strategy", rule]
    answer = subprocess.run(command, capture_output=True, check=True, timeout=3000)
    results = {each["strategy"]: each for each in json.loads(answer.stdout)["results"]}
    found = {}
    for rule in RULES:
        distances = results[rule]["consensus_distance"]
        distance = mean(distances[len(distances) // 2 :])
        found[rule] = (distance, 100 * (results[rule]["accuracy"] - results["bsp"]["accuracy"]))
    return found


def main():
    columns = [(n, split) for split in ("iid", "dirichlet:0.3") for n in (16, 64, 256)]
    found = {column: cells(*column) for column in columns}
    head = " | ".join(f"{split}, N = {n}" for n, split in columns)
    print(f"| rule | {head} |\n|{'---|' * (len(columns) + 1)}")
    for rule in sorted(RULES, key=lambda each: found[64, "iid"][each][0]):
        row = (f"{found[c][rule][0]:.4f} ({found[c][rule][1]:+.1f})" for c in columns)
        print(f"| `{rule}` | {' | '.join(row)} |")


if __name__ == "__main__":
    sys.exit(main())
