"""Does the advice hold? What `riffle plan` ranks first, against everything measured.

    riffle data fetch digits
    python3 bench/advice.py --jobs 2

Twelve settings of model, cluster, rate and data, none of them used to fit what a step is worth
(bench/effective_step.py). In each, every candidate of the plan trains with `riffle converge` on the
programs of that model on that cluster, and `riffle simulate`'s step gives the seconds; the time to
accuracy is that until the mean of all workers has a certain loss on samples never trained on, mean
over the three losses of effective_step.py. Exact strategies have one curve, that of bsp. The first
of the plan must be within 10 % of the least time. Exit code 1 where one is not.
"""

import argparse
import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from statistics import mean

from effective_step import RIFFLE, steps_to, targets_of

RACKS = "racks:{},inner=20us/10Gbps,outer={}"
FLAT = "flat:{},latency={},bandwidth={}"
# Trace, cluster, learning rate, split, data, layers.
SETTINGS = [
    ("resnet50", FLAT.format(12, "50us", "1Gbps"), 0.1, "iid", "synthetic", "48-24-10"),
    ("resnet50", FLAT.format(12, "1ms", "1Gbps"), 0.07, "dirichlet:0.5", "synthetic", "48-24-10"),
    ("vgg16", FLAT.format(6, "100us", "10Gbps"), 0.08, "dirichlet:0.2", "synthetic", "96-32-10"),
    ("vgg16", RACKS.format("3x4", "500us/1Gbps"), 0.07, "iid", "synthetic", "48-24-10"),
    (
        "bert-base",
        RACKS.format("4x5", "200us/2Gbps"),
        0.05,
        "dirichlet:0.1",
        "synthetic",
        "64-32-10",
    ),
    ("bert-base", FLAT.format(10, "5ms", "10Gbps"), 0.08, "dirichlet:2", "synthetic", "48-24-10"),
    (
        "googlenet",
        FLAT.format(20, "200us", "5Gbps"),
        0.06,
        "dirichlet:0.5",
        "synthetic",
        "80-16-10",
    ),
    (
        "googlenet",
        RACKS.format("2x6", "2ms/500Mbps"),
        0.08,
        "dirichlet:0.2",
        "synthetic",
        "48-24-10",
    ),
    ("gpt2", FLAT.format(9, "2ms", "1Gbps"), 0.12, "iid", "synthetic", "96-32-10"),
    ("gpt2", FLAT.format(25, "1ms", "10Gbps"), 0.06, "dirichlet:1.5", "synthetic", "48-24-10"),
    ("resnet50", RACKS.format("3x4", "1ms/1Gbps"), 0.08, "dirichlet:0.5", "digits", "784-32-10"),
    ("vgg16", FLAT.format(12, "20ms", "2Gbps"), 0.06, "iid", "digits", "784-32-10"),
]


def ask(*words):
    answer = subprocess.run([str(RIFFLE), *words], stdout=subprocess.PIPE, check=True, timeout=3000)
    return json.loads(answer.stdout)


def plan(setting):
    trace, cluster, rate, split, _, _ = setting
    words = ["plan", "--trace", trace, "--cluster", cluster, "--format", "json"]
    return ask(*words, "--learning-rate", str(rate), "--split", split)["candidates"]


def steps_of(setting, specs, seed):
    """Steps to each target by spec; of the run's length and half where it never gets there."""
    trace, cluster, rate, split, data, layers = setting
    words = ["converge", "--trace", trace, "--cluster", cluster, "--learning-rate", str(rate)]
    words += ["--split", split, "--data", data, "--layers", layers, "--seed", str(seed), "--test"]
    words += ["--steps", "160", "--every", "4" if data == "synthetic" else "8", "--format", "json"]
    for spec in ["bsp", *specs]:
        words += ["--strategy", spec]
    results = {each["strategy"]: each for each in ask(*words)["results"]}
    late = 1.5 * results["bsp"]["steps"][-1]
    targets = targets_of(results["bsp"])
    return {
        spec: mean(steps_to(each, target) or late for target in targets)
        for spec, each in results.items()
    }


def judge(setting, seeds):
    """The plan's first and the best measured, each with its seconds to accuracy."""
    candidates = plan(setting)
    specs = [each["spec"] for each in candidates if not each["exact"]]
    runs = [steps_of(setting, specs, seed) for seed in range(seeds)]

    def seconds(candidate):
        name = "bsp" if candidate["exact"] else candidate["spec"]
        return candidate["iteration_seconds"] * mean(run[name] for run in runs)

    best = min(candidates, key=seconds)
    first = candidates[0]
    hasty = min(candidates, key=lambda each: each["iteration_seconds"])
    return first["spec"], seconds(first), best["spec"], seconds(best), seconds(hasty)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--jobs", type=int, default=1, help="settings side by side")
    parser.add_argument("--seeds", type=int, default=2)
    given = parser.parse_args()
    print(
        "| setting | first of the plan | to accuracy | best measured | to accuracy | behind |",
        end="",
    )
    print(" the fastest step, behind |\n|---|---|---|---|---|---|---|", flush=True)
    behind = []
    with ThreadPoolExecutor(given.jobs) as pool:
        found = pool.map(lambda setting: judge(setting, given.seeds), SETTINGS)
        for (trace, cluster, rate, split, data, _), row in zip(SETTINGS, found, strict=True):
            first, time, best, least, hasty = row
            behind.append(time / least - 1)
            print(
                f"| {trace}, {cluster}, rate {rate}, {split}, {data} | `{first}` | {time:.1f} s ",
                end="",
            )
            print(
                f"| `{best}` | {least:.1f} s | {behind[-1]:.1%} | {hasty / least - 1:.1%} |",
                flush=True,
            )
    good = sum(each <= 0.1 for each in behind)
    print(f"\n{good} of {len(behind)} within 10 %, worst {max(behind):.1%}")
    return 0 if good == len(behind) else 1


if __name__ == "__main__":
    sys.exit(main())
