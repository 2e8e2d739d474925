"""What a step is worth: fits the formula of src/plan/worth.cpp on `riffle converge`.

    riffle data fetch mnist
    python3 bench/effective_step.py --jobs 2

The worth of a step is how many steps synchronous SGD needs until the mean of all workers has a
certain loss on samples never trained on, over how many the strategy needs. Losses are 85, 92 and
97 % of the way from ln 10 to the least that synchronous SGD reaches in the run. 64-32-10 on
synthetic data with 8, 16 and 32 workers, 784-64-10 on digits with 16; batch 32, SGD with momentum
0.9 at rates of 0.1 and 0.05, iid, Dirichlet 1 and 0.3. The formula is

    worth = traits.effective_step / (1 + a * (rate * noise_gain)^2 + b * uneven * drift_gain)

with the gains that theory has of the programs and uneven = 1 / (1 + 10 * alpha) for Dirichlet
shares with parameter alpha, 0 for iid. The settings of bench/advice.py are none of these. Prints a,
b, every rule's mean beside the formula's, and what traits.effective_step of diloco makes the mean
of its formula that of what was measured: src/strategies/diloco.cpp has that as a constant.
"""

import argparse
import json
import math
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path
from statistics import mean

RIFFLE = Path(__file__).resolve().parents[1] / "build/release/bin/riffle"
RULES = [
    "sesgd",
    "sesgd:group=2",
    "sesgd:schedule=random",
    "sesgd:order=combine-then-adapt",
    "gossip",
    "gossip:order=combine-then-adapt",
    "ds-sync:pattern=bottleneck,delay=0",
    "ds-sync:pattern=bottleneck,delay=2",
    "ds-sync:pattern=bottleneck,delay=0,order=combine-then-adapt",
    "local-sgd:tau=2",
    "local-sgd:tau=4",
    "local-sgd:tau=8",
    "local-sgd:tau=16",
    "dasgd:tau=2,delay=1",
    "dasgd:tau=4,delay=1",
    "dasgd:tau=4,delay=2",
    "dasgd:tau=4,delay=4",
    "dasgd:tau=8,delay=4",
]
OTHERS = [
    "diloco",
    "diloco:tau=50",
    "diloco:fragments=4,overlap=2",
    "slowmo:tau=4",
    "slowmo",
    "slowmo:tau=48",
    "noloco:tau=20",
    "noloco",
    "powersgd",
    "asp",
    "ssp:staleness=1",
    "ssp",
]
SYNTHETIC = product(["synthetic"], [8, 16, 32], ["iid", "dirichlet:1", "dirichlet:0.3"], [0, 1])
DIGITS = product(["digits"], [16], ["iid", "dirichlet:0.3"], [0])
SHARES = (0.85, 0.92, 0.97)


def curves(case, rate):
    data, workers, split, seed = case
    size = ["--layers", "64-32-10", "--steps", "160", "--every", "4"]
    if data == "digits":
        size = ["--layers", "784-64-10", "--steps", "120", "--every", "8"]
    command = [str(RIFFLE), "converge", "--workers", str(workers), "--format", "json", "--test"]
    command += ["--split", split, "--seed", str(seed), "--data", data, *size]
    command += ["--learning-rate", str(rate)]
    for rule in ["bsp", *RULES, *OTHERS]:
        command += ["--strategy", rule]
    answer = subprocess.run(command, stdout=subprocess.PIPE, check=True, timeout=3000)
    return {each["strategy"]: each for each in json.loads(answer.stdout)["results"]}


def steps_to(curve, target):
    """Where the curve first crosses the target, between its points; None where it never does."""
    before = (0, math.log(10))
    for step, loss in zip(curve["steps"], curve["test_loss"], strict=True):
        if loss <= target:
            return before[0] + (step - before[0]) * (before[1] - target) / (before[1] - loss)
        before = (step, loss)
    return None


def targets_of(base):
    least = min(base["test_loss"])
    return [math.log(10) - share * (math.log(10) - least) for share in SHARES]


def worth(base, own):
    """Of a step, mean over the targets. One never reached counts as reached after 1.5 runs."""
    late = 1.5 * base["steps"][-1]
    return mean(steps_to(base, each) / (steps_to(own, each) or late) for each in targets_of(base))


def measure(jobs):
    """Rows of (rule, rate, uneven, theory, worth, data)."""
    cases = list(product([*SYNTHETIC, *DIGITS], [0.1, 0.05]))
    with ThreadPoolExecutor(jobs) as pool:
        runs = list(pool.map(lambda case: curves(*case), cases))
    rows = []
    for (case, rate), run in zip(cases, runs, strict=True):
        data, split = case[0], case[2]
        uneven = 0 if split == "iid" else 1 / (1 + 10 * float(split.split(":")[1]))
        for rule in [*RULES, *OTHERS]:
            found = worth(run["bsp"], run[rule])
            rows.append((rule, rate, uneven, run[rule]["theory"], found, data))
    return rows


def features(row):
    _, rate, uneven, theory, *_ = row
    return (rate * theory["noise_gain"]) ** 2, uneven * theory["drift_gain"]


def fit(rows):
    """Least squares of 1/worth - 1 on the two features."""
    aa = ab = bb = ay = by = 0.0
    for row in rows:
        x, z = features(row)
        y = 1 / row[4] - 1
        aa, ab, bb, ay, by = aa + x * x, ab + x * z, bb + z * z, ay + x * y, by + z * y
    determinant = aa * bb - ab * ab
    return (ay * bb - by * ab) / determinant, (aa * by - ab * ay) / determinant


def formula(row, a, b):
    x, z = features(row)
    return 1 / (1 + a * x + b * z)


def error(rows, a, b):
    return mean((formula(row, a, b) / row[4] - 1) ** 2 for row in rows) ** 0.5


def print_fitted(rows, a, b):
    parts = sorted({row[2] for row in rows})
    head = " | ".join(f"uneven {each:.2f}" for each in parts)
    print(f"| rule | {head} |\n|---|{'---|' * len(parts)}")
    for rule in RULES:
        cells = []
        for uneven in parts:
            those = [row for row in rows if row[0] == rule and row[2] == uneven]
            found = mean(row[4] for row in those)
            cells.append(f"{found:.2f} ({mean(formula(row, a, b) for row in those):.2f})")
        print(f"| `{rule}` | {' | '.join(cells)} |")


def print_others(rows, a, b):
    """A mean over kinds of data, and of a strategy over what was measured of it."""
    kinds = sorted({row[5] for row in rows})
    print(f"\n| rule | {' | '.join(kinds)} | mean |\n|{'---|' * (len(kinds) + 2)}")
    means = {}
    for rule in OTHERS:
        traits = []
        for kind in kinds:
            those = [row for row in rows if row[0] == rule and row[5] == kind]
            expected = mean(formula(row, a, b) for row in those)
            traits.append(mean(row[4] for row in those) / expected)
        means.setdefault(rule.split(":")[0], []).append(mean(traits))
        print(f"| `{rule}` | {' | '.join(f'{each:.2f}' for each in [*traits, mean(traits)])} |")
    print("\ntraits.effective_step: ", end="")
    print(", ".join(f"{name} {mean(of):.2f}" for name, of in means.items()))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--jobs", type=int, default=1, help="runs side by side")
    measured = measure(parser.parse_args().jobs)
    rows = [row for row in measured if row[0] in RULES]
    a, b = fit(rows)
    print(f"a = {a:.4f}, b = {b:.4f}; error {error(rows, a, b):.1%} rms", end="")
    for kind in sorted({row[5] for row in rows}):
        print(f", {kind} {error([row for row in rows if row[5] == kind], a, b):.1%}", end="")
    print("\n")
    print_fitted(rows, a, b)
    print_others([row for row in measured if row[0] in OTHERS], a, b)
    return 0


if __name__ == "__main__":
    sys.exit(main())
