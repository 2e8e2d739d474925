"""Accuracy of every rule against bsp on real workers: docs/accuracy.md is its output.

    PYTHONPATH=build/release/python .venv/bin/python bench/accuracy.py > docs/accuracy.md

About a quarter of an hour on two idle cores. With --results FILE what was measured is kept there,
so that a run that was cut off goes on where it was.

MLP 784-64-10 on MNIST, batch 32 per worker, 3 epochs, SGD with momentum 0.9 at the rate tuned for
bsp (0.1) and at half of it, paired seeds: the same model and the same batches for every rule. The
accuracy is that of the exact average of all workers at the end, the difference is to bsp in points;
the consensus distance is that before the average; per-step rules must keep it at or below 0.05.
`alone` is the control without communication, which must fail both. The same rules with a CNN of two
convolutions beside it, at the rate 0.05, where nothing but the distance is promised.
"""

import argparse
import json
import sys
from functools import partial
from pathlib import Path
from statistics import mean

import torch

import riffle
from riffle.data import fetch
from riffle.data.sets import MNIST
from riffle.tasks.digits import cnn, mlp, read_idx

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "python"))
from processes import run

# Rule, and the least mean difference allowed at each rate; None where nothing is promised.
RULES = [
    ("bsp", None, None),
    ("sesgd", -0.5, -0.3),
    ("sesgd:order=combine-then-adapt", -0.5, -0.3),
    ("sesgd:schedule=random", -0.5, -0.3),
    ("ds-sync", -0.5, -0.3),
    ("ds-sync:order=combine-then-adapt", -0.5, -0.3),
    ("ds-sync:pattern=bottleneck,delay=0", -0.5, -0.3),
    ("gossip", -0.5, -0.3),
    ("local-sgd:tau=8", None, -0.5),
    ("dasgd:tau=4,delay=1", None, -0.5),
    ("dasgd:tau=4,delay=2", None, -0.5),
    ("dasgd:tau=4,delay=4", None, -0.7),
    ("alone", None, None),
]
PER_STEP = {rule for rule, full, _ in RULES if full is not None}
# Model, its rates, and which of a rule's bounds holds at each.
MODELS = {"mlp": (mlp, [(0.1, 0), (0.05, 1)]), "cnn": (cnn, [(0.05, None)])}
BATCH, EPOCHS = 32, 3


@riffle.register
class Alone(riffle.Strategy):
    """no communication: the control that must fail"""

    name = "alone"

    def program(self, step, world, buckets):
        return riffle.schedule.Program(
            [
                riffle.schedule.Exchange(
                    bucket.id,
                    [rank],
                    payload="weight",
                    start="step_done",
                    due=riffle.schedule.before_forward(),
                )
                for bucket in buckets
                for rank in world.ranks
            ]
        )

    def traits(self, world):
        return riffle.schedule.Traits(mixed="weight")


def load():
    files = fetch(MNIST)

    def part(kind):
        images = read_idx(files[f"{kind}-images-idx3-ubyte"]).float() / 255
        labels = read_idx(files[f"{kind}-labels-idx1-ubyte"]).long()
        return (images.unsqueeze(1) - 0.1307) / 0.3081, labels

    return part("train"), part("t10k")


def cluster_for(rule, workers):
    if "bottleneck" in rule:
        return f"racks:2x{workers // 2},inner=20us/10Gbps,outer=200us/1Gbps"
    return f"flat:{workers},latency=20us,bandwidth=10Gbps"


def train(engine, data, make, rule, rate, seed, steps):
    """Accuracy in percent, and consensus distance."""
    (x, y), (test_x, test_y) = data
    torch.manual_seed(seed)
    model = make()
    optimizer = torch.optim.SGD(model.parameters(), lr=rate, momentum=0.9)
    per_epoch = len(x) // (BATCH * engine.size)
    random = torch.Generator().manual_seed(seed)
    cluster = cluster_for(rule, engine.size)
    with riffle.sync(model, optimizer, rule, engine=engine, cluster=cluster) as session:
        for step in range(steps):
            if step % per_epoch == 0:
                order = torch.randperm(len(x), generator=random)
            first = (step % per_epoch * engine.size + engine.rank) * BATCH
            mine = order[first : first + BATCH]
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(x[mine]), y[mine]).backward()
            optimizer.step()
        spread = session.consensus_distance()
    if engine.rank > 0:
        return None
    with torch.no_grad():
        right = (model(test_x).argmax(1) == test_y).double().mean()
    return 100 * float(right), spread


def row(rule, rate, bound, found, base):
    """A line of the table, and whether its bar holds."""
    difference = mean(a - b for (a, _), (b, _) in zip(found, base, strict=True))
    spread = mean(s for _, s in found)
    fine = (bound is None or difference >= bound) and (rule not in PER_STEP or spread <= 0.05)
    if rule == "alone":
        fine = difference < -0.5 and spread > 0.05  # it must fail both
    promised = "" if bound is None else f"{bound:+.1f}"
    cells = [f"`{rule}`", f"{rate}", f"{mean(a for a, _ in found):.2f}", f"{difference:+.2f}"]
    cells += [promised, f"{spread:.3f}", "" if fine else "**missed**"]
    return "| " + " | ".join(cells) + " |", fine


class Results:
    """What was measured, by case: kept in a file of JSON lines where one is named."""

    def __init__(self, path):
        self._path = path and Path(path)
        self._known = {}
        if self._path and self._path.exists():
            lines = map(json.loads, self._path.read_text().splitlines())
            self._known = {tuple(line["case"]): line["found"] for line in lines}

    def get(self, case, measure):
        if case not in self._known:
            self._known[case] = measure()
            if self._path:
                with self._path.open("a") as file:
                    print(json.dumps({"case": case, "found": self._known[case]}), file=file)
        return self._known[case]


def table(data, name, rate, which, given, steps, results):
    """Prints a line for each rule; whether all bars hold."""
    base, good = [], True
    for rule, *bounds in RULES:
        found = []
        for seed in range(given.seeds):
            case = (name, rule, rate, seed, given.workers, steps)
            found.append(results.get(case, partial(measured, data, *case)))
        base = base or found
        line, fine = row(rule, rate, None if which is None else bounds[which], found, base)
        good &= fine
        print(line, flush=True)
    return good


def measured(data, name, rule, rate, seed, workers, steps):
    make = MODELS[name][0]
    return run(workers, train, data, make, rule, rate, seed, steps, seconds=3000)[0]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--models", default="mlp,cnn")
    parser.add_argument("--results", metavar="FILE")
    parser.add_argument("--steps", type=int, default=None, help="default: three epochs")
    given = parser.parse_args()
    data, results = load(), Results(given.results)
    steps = given.steps or EPOCHS * len(data[0][0]) // (BATCH * given.workers)
    print("# Accuracy\n\n" + __doc__.split("\n\n", 3)[3].strip() + "\n")
    print(f"{given.workers} workers, {given.seeds} seeds, {steps} steps.\n")
    good = True
    for name in given.models.split(","):
        print(
            f"## {name}\n\n| rule | rate | accuracy % | to bsp | promised | consensus distance | |"
        )
        print("|---|---|---|---|---|---|---|", flush=True)
        for rate, which in MODELS[name][1]:
            good &= table(data, name, rate, which, given, steps, results)
        print(flush=True)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
