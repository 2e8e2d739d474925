"""Does the advice hold? What `riffle plan` ranks first, against everything measured.

    riffle data fetch mnist
    python3 bench/advice.py --jobs 2
    python3 bench/advice.py --race --only 2,6,9

Twelve settings of model, cluster, rate and data, none of them used to fit what a step is worth
(bench/effective_step.py). In each, every candidate of the plan trains with `riffle converge` on the
programs of that model on that cluster, and `riffle simulate`'s step gives the seconds; the time to
accuracy is that until the mean of all workers has a certain loss on samples never trained on, mean
over the three losses of effective_step.py. Exact strategies have one curve, that of bsp; powersgd
compresses the network's own matrices, not the model's. The first of the plan must be within 10 % of
the least time. Exit code 1 where one is not.

--race has `riffle race` measure the steps of those that could win (the first three of the plan, the
three best by converge and simulate, the fastest step) and takes those times instead. It needs what
the lab needs, and a machine with little else to do.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from statistics import mean

from effective_step import RIFFLE, steps_to, targets_of

ROOT = Path(__file__).resolve().parents[1]
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


@dataclass
class Contender:
    spec: str
    steps: float  # to accuracy
    step: float  # seconds

    @property
    def seconds(self):
        return self.steps * self.step


def curves(setting, specs, seed):
    """Training results by spec."""
    trace, cluster, rate, split, data, layers = setting
    words = ["converge", "--learning-rate", str(rate), "--split", split, "--data", data]
    words += ["--layers", layers, "--seed", str(seed), "--test", "--steps", "160", "--every", "2"]
    own = [spec for spec in specs if spec.startswith("powersgd")]
    modelled = ["--trace", trace, "--cluster", cluster, *options(specs - set(own))]
    results = ask(*words, *modelled, "--format", "json")["results"]
    if own:
        workers = ["--workers", str(results[0]["workers"]), *options(own)]
        results += ask(*words, *workers, "--format", "json")["results"]
    return {each["strategy"]: each for each in results}


def options(specs):
    return [word for spec in sorted(specs) for word in ("--strategy", spec)]


def steps_of(setting, specs, seed):
    """Steps to each target by spec; of the run's length and half where it never gets there."""
    results = curves(setting, {"bsp", *specs}, seed)
    late = 1.5 * results["bsp"]["steps"][-1]
    targets = targets_of(results["bsp"])
    return {
        spec: mean(steps_to(each, target) or late for target in targets)
        for spec, each in results.items()
    }


def measure(setting, seeds):
    """All candidates, as the plan ranks them."""
    candidates = plan(setting)
    specs = {each["spec"] for each in candidates if not each["exact"]}
    runs = [steps_of(setting, specs, seed) for seed in range(seeds)]

    def contender(candidate):
        name = "bsp" if candidate["exact"] else candidate["spec"]
        steps = mean(run[name] for run in runs)
        return Contender(candidate["spec"], steps, candidate["iteration_seconds"])

    return [contender(each) for each in candidates]


def hasty(contenders):
    """Who would be chosen by the time of a step alone."""
    return min(contenders, key=lambda each: each.step)


def race(setting, contenders):
    """The same with steps as the lab measured them, of those that could win."""
    trace, cluster, *_ = setting
    best = sorted(contenders, key=lambda each: each.seconds)[:3]
    chosen = [*contenders[:3], *best, hasty(contenders)]
    wanted = [each for each in contenders if each in chosen]
    with tempfile.TemporaryDirectory() as folder:
        words = [word for each in wanted for word in ("--strategy", each.spec)]
        command = [str(ROOT / "riffle"), "race", "--trace", trace, "--cluster", cluster, *words]
        if any(each.spec.startswith("powersgd") for each in wanted):
            command += ["--shrink", "1"]  # its factors do not shrink with the model
        subprocess.run([*command, "--output", folder], stdout=sys.stderr, check=True, timeout=3000)
        results = json.loads((Path(folder) / "race.json").read_text())["results"]
    for each in results:
        if each["failed"]:
            sys.exit(f"{trace}, {cluster}: {each['contender']}: {each['failed']}")
    measured = {each["contender"]: each["seconds_per_step"] for each in results}
    for each in wanted:
        print(
            f"  {each.spec}: {each.step * 1e3:.0f} ms simulated, "
            f"{measured[each.spec] * 1e3:.0f} ms raced, {each.steps:.1f} steps",
            file=sys.stderr,
        )
    return [Contender(each.spec, each.steps, measured[each.spec]) for each in wanted]


def row(setting, contenders):
    """A line of the table, and by how much the plan's first is behind the best."""
    trace, cluster, rate, split, data, _ = setting
    first, best = contenders[0], min(contenders, key=lambda each: each.seconds)
    behind = first.seconds / best.seconds - 1
    cells = [
        f"{trace}, {cluster}, rate {rate}, {split}, {data}",
        f"`{first.spec}` | {first.seconds:.1f} s",
        f"`{best.spec}` | {best.seconds:.1f} s",
        f"{behind:.1%} | {hasty(contenders).seconds / best.seconds - 1:.1%}",
    ]
    return f"| {' | '.join(cells)} |", behind


def chosen_settings(text):
    return [SETTINGS[int(each) - 1] for each in text.split(",")] if text else SETTINGS


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--jobs", type=int, default=1, help="settings side by side")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--only", default="", help="settings by number, 1 to 12: 2,6,12")
    parser.add_argument("--race", action="store_true", help="have the lab measure the steps")
    given = parser.parse_args()
    head = ["setting", "first of the plan", "to accuracy", "best measured", "to accuracy", "behind"]
    print(f"| {' | '.join(head)} | the fastest step, behind |\n|{'---|' * 7}", flush=True)
    behind = []
    settings = chosen_settings(given.only)
    with ThreadPoolExecutor(given.jobs) as pool:
        found = pool.map(lambda setting: measure(setting, given.seeds), settings)
        if given.race:  # with the machine to itself
            found = list(found)
        for setting, contenders in zip(settings, found, strict=True):
            line, late = row(setting, race(setting, contenders) if given.race else contenders)
            behind.append(late)
            print(line, flush=True)
    good = sum(each <= 0.1 for each in behind)
    print(f"\n{good} of {len(behind)} within 10 %, worst {max(behind):.1%}")
    return 0 if good == len(behind) else 1


if __name__ == "__main__":
    sys.exit(main())
