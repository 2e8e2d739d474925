# ruff: noqa: E501 -- the page is prose
"""No accuracy is lost."""

from dataclasses import replace

from riffle.reproduce.cases import Training
from riffle.reproduce.claim import Bar, Bars, Claim, Run

RULES = (
    "bsp",
    "mg-wfbp",
    "dear",
    "sesgd",
    "sesgd:order=combine-then-adapt",
    "sesgd:schedule=random",
    "ds-sync",
    "ds-sync:pattern=bottleneck,delay=0",
    "ds-sync:pattern=bottleneck,delay=3",
    "gossip",
    "local-sgd:tau=8",
    "dasgd:tau=4,delay=1",
    "dasgd:tau=4,delay=2",
)
ALONE = "local-sgd:tau=100000"
FULL = Training("rate 0.1", "digits", (*RULES, ALONE), model="mlp", rate=0.1, epochs=3)
HALF = replace(FULL, name="rate 0.05", rate=0.05)


def points(case: str, rule: str):
    """To bsp with the same seed, in points."""
    return lambda run: 100 * (run.get(case, rule, "metric") - run.get(case, "bsp", "metric"))


def least(case: str, *rules: str):
    """The worst of several rules."""

    def value(run: Run) -> float:
        return min(points(case, rule)(run) for rule in rules)

    return value


def bars() -> list[Bar]:
    found = []
    for rule in ("sesgd", "ds-sync", "ds-sync:pattern=bottleneck,delay=0"):
        for case, bound in ((FULL, -0.5), (HALF, -0.3)):
            found.append(Bar(f"{rule}, {case.name}", points(case.name, rule), bound, "points"))
    for rule in ("dasgd:tau=4,delay=1", "dasgd:tau=4,delay=2"):
        found.append(Bar(f"{rule}, {HALF.name}", points(HALF.name, rule), -0.5, "points"))
    exact = least(FULL.name, "mg-wfbp", "dear")
    found.append(Bar("exact ones (mg-wfbp, dear), rate 0.1", exact, -0.3, "points"))
    alone = points(FULL.name, ALONE)
    found.append(Bar("control without communication must lose", alone, -2, "points", at_most=True))
    return found


CLAIM = Claim(
    name="no-accuracy-loss",
    title="SESGD, DS-Sync, DaSGD: no accuracy is lost",
    paper="arXiv:2007.00433, 2007.03298, 2006.00441",
    sentence="... without losing model accuracy (SESGD); while maintaining the same accuracy "
    "(DS-Sync); its convergence rate O(1/sqrt(K)), the same as SGD (DaSGD).",
    setting="MNIST, MLP 784-64-10, 16 workers with real compute, batch 64 each, 3 epochs, SGD with "
    "momentum 0.9 at the constant rate tuned for bsp (0.1) and at half of it; a repeat is a seed: the "
    "same weights and the same batches for every rule. Judged is the exact average of all workers.",
    baseline="`bsp` with the same seed.",
    differs="The papers train on CIFAR, ImageNet, SQuAD and Criteo for many epochs; two cores cannot. "
    "The control trains without communication and must lose, or the measure would prove nothing.",
    limits="Noise between seeds is about 0.2 points. Delays cost accuracy at the full rate.",
    cases=(FULL, HALF),
    quick=(
        replace(FULL, contenders=("bsp", "sesgd", "ds-sync", ALONE), epochs=None, steps=80),
        replace(HALF, contenders=("bsp", "dasgd:tau=4,delay=1"), epochs=None, steps=80),
    ),
    bars=tuple(bars()),
    charts=tuple(
        Bars(
            case.name,
            f"Accuracy against bsp, {case.name}",
            "metric",
            100,
            "points",
            against="bsp",
            bound=bound,
            without=(ALONE,),
        )
        for case, bound in ((FULL, -0.5), (HALF, -0.3))
    ),
)
