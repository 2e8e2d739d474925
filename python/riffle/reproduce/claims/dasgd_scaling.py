# ruff: noqa: E501 -- the page is prose
"""DaSGD: linear scale-up."""

from dataclasses import replace

from riffle.reproduce.cases import Race, Sweep
from riffle.reproduce.claim import Bar, Claim, Lines, Run
from riffle.reproduce.claims.dasgd_hidden import ONE
from riffle.reproduce.models import Model

MODEL = Model("resnet50", 0.227)
LAB = tuple(
    Race(
        f"{n} workers",
        f"flat:{n},latency=1.2ms,bandwidth=10Gbps",
        (ONE,),
        MODEL,
        steps=16,
    )
    for n in (2, 4, 8, 16)
)
COUNTS = (2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048)
SIMULATED = Sweep(
    "simulated",
    tuple(f"flat:{n},latency=50us,bandwidth=10Gbps" for n in COUNTS),
    ("bsp:algorithm=ring", "local-sgd:tau=4", ONE),
    MODEL,
)


def lost(case: str):
    """Throughput of a worker against one alone, in percent less."""
    assert MODEL.compute is not None
    return lambda run: 100 * (1 - MODEL.compute / run.get(case, ONE))


def most_lost(run: Run) -> float:
    """Of all worker counts."""
    points = run.get("simulated", ONE, "points")
    return max(100 * (1 - point["speedup"] / point["workers"]) for point in points)


CLAIM = Claim(
    name="dasgd-scaling",
    title="DaSGD: linear scale-up",
    paper="DaSGD, arXiv:2006.00441",
    sentence="The performance evaluation demonstrates it enables a linear performance scale-up with the "
    "cluster size.",
    setting="ResNet-50 with 227 ms of compute, 10 Gbps: 2 to 16 workers in the lab (1.2 ms one way), 2 to 2048 "
    "simulated (50 us).",
    baseline="one worker alone, which takes what computing takes.",
    differs="The paper's evaluation is a model (PALEO) up to 256 workers; up to 16 this is measured.",
    limits="Scale-up is linear while an average takes no longer than the delay allows. Measured steps contain the "
    "copy and the merge of the weights, and workers that share two cores oversleep.",
    cases=(*LAB, SIMULATED),
    quick=(
        replace(LAB[1], steps=4),
        replace(SIMULATED, clusters=SIMULATED.clusters[:7], contenders=(ONE,)),
    ),
    bars=(
        *(Bar(f"{c.name}: lost of one worker's speed", lost(c.name), 2, "%", True) for c in LAB),
        Bar("2 to 2048 simulated: most lost", most_lost, 2, "%", at_most=True),
    ),
    charts=(Lines("simulated", "ResNet-50 on 10 GbE, simulated", efficiency=True),),
)
