# ruff: noqa: E501 -- the page is prose
"""DaSGD hides 100 % of the communication."""

from dataclasses import replace

from riffle.reproduce.cases import Race
from riffle.reproduce.claim import Bar, Bars, Claim, exposed_share
from riffle.reproduce.models import Model

ONE, TWO = "dasgd:tau=4,delay=1", "dasgd:tau=4,delay=2"
PUBLISHED = "dasgd:tau=4,delay=1,merge=mix"
STEADY = Race(
    "steady",
    "flat:16,latency=1.2ms,bandwidth=10Gbps",
    ("bsp", "local-sgd:tau=4", ONE, TWO, PUBLISHED),
    Model("resnet50"),
    steps=16,
)
HALVED = replace(
    STEADY,
    name="the links halve",
    contenders=(ONE, TWO),
    steps=32,
    events="at=4s,link=worker*,bandwidth=5Gbps",
)

LONGER = "an average takes as long as bsp's exposed time, more than a step computes: no delay of one step can hide it"

CLAIM = Claim(
    name="dasgd-hidden",
    title="DaSGD hides 100 % of the communication",
    paper="DaSGD, arXiv:2006.00441",
    sentence="... which parallelizes SGD and forward/back propagations to hide 100% of the communication "
    "overhead.",
    setting="16 workers, 1.2 ms one way, 10 Gbps; ResNet-50, batch 64, 227 ms of compute; by the cost model an "
    "average of the weights takes 163 ms, less than a step. Then all links fall to half in mid-run, and it takes "
    "longer than a step.",
    baseline="`bsp`, and `local-sgd` with the same period, which waits for its averages.",
    differs="The paper's evaluation is a model (PALEO); this is measured.",
    limits="Exposed is what a worker waits, and copying a snapshot and merging it count as well. The delay is "
    "given: a session does not raise it while it trains, so after the halving `delay=1` stalls and `delay=2`, "
    "chosen for the slower link, does not.",
    cases=(STEADY, HALVED),
    quick=(replace(STEADY, contenders=("bsp", ONE), steps=4),),
    bars=(
        Bar("exposed with delay=2", exposed_share("steady", TWO), 1, "%", at_most=True),
        Bar("exposed with delay=1", exposed_share("steady", ONE), 1, "%", at_most=True, why=LONGER),
        Bar(
            "exposed with the published merge, delay=1",
            exposed_share("steady", PUBLISHED),
            1,
            "%",
            at_most=True,
            why=LONGER,
        ),
        Bar(
            "exposed while the links halve, delay=2",
            exposed_share("the links halve", TWO),
            1,
            "%",
            True,
        ),
    ),
    charts=(
        Bars("steady", "ResNet-50 on 16 workers, 10 Gbps: exposed of a step", "exposed"),
        Bars("steady", "ResNet-50 on 16 workers, 10 Gbps: time of a step"),
    ),
)
