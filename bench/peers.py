#!/usr/bin/env python3
"""Other libraries against our counterparts on one emulated network: bench/peers.py [--rounds 3]

    bench/peers.py --folder FOLDER --rounds 1     # again, later: adds a round to those in FOLDER
    bench/peers.py --only decent-dp               # the pairs whose peer begins so

Ten layers of 256 KB, 60 ms of emulated compute, 8 workers, 2.5 ms one way, 200 Mbps. A round is one
`riffle race` in which each peer is followed by ours. Printed: medians over rounds of milliseconds
per step with their spread, and the peer's over ours, round by round: above 1 ours is faster.
Needs what the lab needs; peers are installed on first use (docs/peers.md).
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
CLUSTER = "flat:8,latency=2.5ms,bandwidth=200Mbps"
LAYERS = 10
LAYER = {"elements": 65536, "forward": 0.002, "backward": 0.004}
STEPS = 24  # whole periods of all

PAIRS = {
    "decent-dp:topology=one-peer-exp": "gossip:order=combine-then-adapt",
    "decent-dp:topology=alternating-exp-ring": "ds-sync:delay=0,order=combine-then-adapt",
    "decent-dp:topology=complete": "dasgd:tau=1,delay=1",
    "decent-dp:topology=ring": "sesgd:group=2,order=combine-then-adapt",
    "torch-ddp": "mg-wfbp",
    "torch-localsgd:tau=4": "local-sgd:tau=4",
    "torch-ddp:hook=fp16": "mg-wfbp:wire=f16",
    "torchft-diloco:tau=8": "diloco:tau=8",
}


def write_trace(path):
    layers = [{"name": f"layer{i}", **LAYER} for i in range(LAYERS)]
    head = {"riffle": "trace", "version": 1, "model": "ten", "dtype": "f32", "batch": 32}
    path.write_text(json.dumps(head | {"layers": layers}))


def run_round(folder, pairs, steps):
    """Leaves race.json in a new folder below."""
    write_trace(folder / "trace.json")
    output = tempfile.mkdtemp(prefix="round-", dir=folder)
    command = [ROOT / "build/release/bin/riffle", "race", "--cluster", CLUSTER]
    command += ["--trace", folder / "trace.json", "--steps", str(steps), "--output", output]
    for peer, ours in pairs.items():
        command += ["--strategy", peer, "--strategy", ours]
    environment = os.environ | {
        "PYTHONPATH": str(ROOT / "build/release/python"),
        "RIFFLE_PYTHON": str(ROOT / ".venv/bin/python"),
    }
    done = subprocess.run(command, env=environment, stdout=subprocess.DEVNULL)
    if done.returncode:
        sys.exit(f"riffle race ended with exit code {done.returncode}")


def results_of(folder):
    """Of each round: seconds per step by contender; those that failed, with their reason."""
    rounds, failed = [], {}
    for path in sorted(folder.glob("round-*/race.json")):
        race = json.loads(path.read_text())
        failed |= {r["contender"]: r["failed"] for r in race["results"] if r.get("failed")}
        good = [r for r in race["results"] if not r.get("failed")]
        rounds.append({r["contender"]: r["seconds_per_step"] for r in good})
    return rounds, failed


def cell(values):
    """Median, least and most, in milliseconds."""
    low, middle, high = (1e3 * f(values) for f in (min, statistics.median, max))
    return f"{middle:6.0f} ({low:.0f} to {high:.0f})"


def report(rounds, failed, pairs):
    print(f"{'peer':42}{'ms a step':>20}  {'ours':52}{'ms a step':>20}  peer over ours")
    for peer, ours in pairs.items():
        both = [each for each in rounds if peer in each and ours in each]
        if not both:
            why = failed.get(peer) or failed.get(ours) or "did not run"
            print(f"{peer:42}  {why}")
            continue
        ratios = [each[peer] / each[ours] for each in both]
        print(
            f"{peer:42}{cell([each[peer] for each in both]):>20}"
            f"  {ours:52}{cell([each[ours] for each in both]):>20}"
            f"  {statistics.median(ratios):.2f}x ({min(ratios):.2f} to {max(ratios):.2f})"
        )


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--only", default="", help="pairs whose peer begins so")
    parser.add_argument("--folder", type=Path, help="keeps the races; a temporary one otherwise")
    given = parser.parse_args()
    pairs = {peer: ours for peer, ours in PAIRS.items() if peer.startswith(given.only)}
    if not pairs:
        parser.error(f"--only {given.only}: no pair begins so; known: {', '.join(PAIRS)}")
    with tempfile.TemporaryDirectory() as temporary:
        folder = given.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        for _ in range(given.rounds):
            run_round(folder.resolve(), pairs, given.steps)
        report(*results_of(folder), pairs)


if __name__ == "__main__":
    main()
