"""What a step is worth: fits the formula of src/plan/effective_step.cpp on `riffle converge`.

    riffle data fetch digits
    python3 bench/effective_step.py

The worth of a step is how many steps synchronous SGD needs to reach a loss, over how many the
strategy needs: 16 virtual workers, 784-64-10 on digits, batch 32, SGD with momentum 0.9 at rates of
0.1 and 0.05, two seeds, iid and Dirichlet 0.3, targets of 0.4 and 0.25. The formula is

    worth = traits.effective_step / (1 + rate * (a * noise_gain + b * uneven * drift_gain))

with the gains that theory has of the programs (momentum 0.9) and uneven = 1 / (1 + 10 * alpha) for
Dirichlet shares with parameter alpha, 0 for iid. Prints a, b and the worst cells.
"""

import json
import subprocess
import sys
from pathlib import Path
from statistics import mean

RIFFLE = Path(__file__).resolve().parents[1] / "build/release/bin/riffle"
RULES = [
    "sesgd",
    "sesgd:group=2",
    "sesgd:order=combine-then-adapt",
    "sesgd:schedule=random",
    "gossip",
    "ds-sync:pattern=bottleneck,delay=0",
    "ds-sync:pattern=bottleneck,delay=2",
    "local-sgd:tau=2",
    "local-sgd:tau=4",
    "local-sgd:tau=8",
    "local-sgd:tau=16",
    "dasgd:tau=2,delay=1",
    "dasgd:tau=4,delay=1",
    "dasgd:tau=4,delay=2",
    "dasgd:tau=4,delay=4",
]
UNEVEN = {"iid": 0.0, "dirichlet:0.3": 1 / (1 + 10 * 0.3)}


def curves(split, rate, seed):
    command = [str(RIFFLE), "converge", "--workers", "16", "--format", "json", "--every", "1"]
    command += ["--steps", "200", "--split", split, "--seed", str(seed), "--data", "digits"]
    command += ["--learning-rate", str(rate)]
    for rule in ["bsp", *RULES]:
        command += ["--strategy", rule]
    answer = subprocess.run(command, capture_output=True, check=True, timeout=3000)
    return {each["strategy"]: each for each in json.loads(answer.stdout)["results"]}


def steps_to(curve, target, window=9):
    """The first step at which the mean of the last losses is at or below the target."""
    loss = curve["loss"]
    for i in range(window, len(loss)):
        if mean(loss[i - window : i]) <= target:
            return i
    return None


def measure():
    """Rows of (rule, rate, uneven, theory, worth)."""
    rows = []
    for split, uneven in UNEVEN.items():
        for rate in (0.1, 0.05):
            runs = [curves(split, rate, seed) for seed in range(2)]
            for rule in RULES:
                worths = []
                for run in runs:
                    for target in (0.4, 0.25):
                        base, own = steps_to(run["bsp"], target), steps_to(run[rule], target)
                        if base and own:
                            worths.append(base / own)
                if worths:
                    rows.append((rule, rate, uneven, runs[0][rule]["theory"], mean(worths)))
    return rows


def fit(rows):
    """Least squares of 1/worth - 1 = rate * (a * noise + b * uneven * drift)."""
    aa = ab = bb = ay = by = 0.0
    for _, rate, uneven, theory, worth in rows:
        x, z = rate * theory["noise_gain"], rate * uneven * theory["drift_gain"]
        y = 1 / worth - 1
        aa, ab, bb, ay, by = aa + x * x, ab + x * z, bb + z * z, ay + x * y, by + z * y
    determinant = aa * bb - ab * ab
    return (ay * bb - by * ab) / determinant, (aa * by - ab * ay) / determinant


def main():
    rows = measure()
    a, b = fit(rows)
    print(f"a = {a:.3f}, b = {b:.3f}\n\n| rule | rate | uneven | worth | formula |")
    print("|---|---|---|---|---|")
    errors = []
    for rule, rate, uneven, theory, worth in rows:
        gains = a * theory["noise_gain"] + b * uneven * theory["drift_gain"]
        formula = 1 / (1 + rate * gains)
        errors.append(abs(formula / worth - 1))
        print(f"| `{rule}` | {rate} | {uneven:.2f} | {worth:.2f} | {formula:.2f} |")
    print(f"\nmean error {mean(errors):.1%}, worst {max(errors):.1%}")


if __name__ == "__main__":
    sys.exit(main())
