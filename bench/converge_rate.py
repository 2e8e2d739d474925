"""O(1/sqrt(K)): the mean squared gradient over K steps at a learning rate of c/sqrt(K).

    python3 bench/converge_rate.py

16 virtual workers, K = 100 to 10 000, two decades, on the quadratic (convex) and on a small network
on synthetic data (not convex). What is averaged is the squared norm of the gradient of the whole
objective at the mean of the workers, over 100 points of each run and three seeds. The slope of its
logarithm over that of K must be -0.5 +- 0.1; exit code 1 otherwise. A few minutes on one core.
"""

import json
import math
import subprocess
import sys
from pathlib import Path
from statistics import mean

RIFFLE = Path(__file__).resolve().parents[1] / "build/release/bin/riffle"
RULES = ["bsp", "dasgd", "dasgd:merge=mix", "sesgd", "sesgd:schedule=random", "ds-sync"]
COUNTS = [100, 316, 1000, 3162, 10000]
# Options and the rate at K = 100.
PROBLEMS = {
    "quadratic": (["--layers", "32", "--condition", "10", "--noise", "2"], 0.5),
    "network": (["--data", "synthetic", "--layers", "16-8-4", "--batch", "4"], 0.3),
}


def squares(problem, steps, seed):
    """The mean squared gradient norm, by rule."""
    options, rate = PROBLEMS[problem]
    command = [str(RIFFLE), "converge", "--problem", problem, "--workers", "16", "--thorough"]
    command += [*options, "--steps", str(steps), "--momentum", "0", "--seed", str(seed)]
    command += ["--learning-rate", str(rate * math.sqrt(COUNTS[0] / steps)), "--format", "json"]
    command += ["--every", str(max(1, steps // 100))]
    for rule in RULES:
        command += ["--strategy", rule]
    answer = subprocess.run(command, capture_output=True, check=True, timeout=3000)
    results = json.loads(answer.stdout)["results"]
    return {each["strategy"]: mean(each["gradient_norm_squared"]) for each in results}


def slope(values):
    """Of a straight line through the logarithms."""
    x = [math.log(count) for count in COUNTS]
    y = [math.log(value) for value in values]
    across = sum((a - mean(x)) * (b - mean(y)) for a, b in zip(x, y, strict=True))
    return across / sum((a - mean(x)) ** 2 for a in x)


def main():
    good = True
    counts = " | ".join(f"K = {count}" for count in COUNTS)
    print(f"| problem | rule | {counts} | slope |\n|{'---|' * (len(COUNTS) + 3)}")
    for problem in PROBLEMS:
        runs = [[squares(problem, count, seed) for seed in range(3)] for count in COUNTS]
        for rule in RULES:
            values = [mean(run[rule] for run in at) for at in runs]
            found = slope(values)
            fine = abs(found + 0.5) <= 0.1
            good &= fine
            cells = " | ".join(f"{value:.3g}" for value in values)
            mark = "" if fine else " **missed**"
            print(f"| {problem} | `{rule}` | {cells} | {found:.2f}{mark} |")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
