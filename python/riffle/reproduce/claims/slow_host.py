# ruff: noqa: E501 -- the page is prose
"""One slow host: the time to the same accuracy."""

from dataclasses import replace

from riffle.reproduce.cases import Race, Training
from riffle.reproduce.claim import Bar, Bars, Claim, Run
from riffle.reproduce.models import Model

DS_SYNC = "ds-sync:pattern=bottleneck"
STREAMING = "diloco:fragments=4,overlap=2"
RULES = ("bsp", "asp", "ssp", DS_SYNC, "dasgd", "powersgd:rank=1", STREAMING)
HOOK = "torch-ddp:hook=powersgd"
DDP = {"torch-ddp": "bsp", HOOK: "powersgd:rank=1"}  # and who trains alike
SLOW = 5
RACE = Race(
    "time of a step",
    f"racks:4x4,inner=500us/1Gbps,outer=2ms/40Mbps,slow={SLOW}*2",
    (*RULES, *DDP),
    Model("mlp-digits"),
    steps=24,
)
TRAINING = Training(
    "digits",
    "digits",
    RULES,
    model="mlp",
    rate=0.05,
    steps=400,
    cluster=RACE.cluster,
    evaluate_every=20,
    slow=SLOW,
)
TARGET = 0.94


def steps_to_target(run: Run, contender: str) -> float:
    """Between two evaluations, by a straight line. LookupError where it never came."""
    before = (0, 0.1)
    for step, accuracy in run.get(TRAINING.name, DDP.get(contender, contender), "curve"):
        if accuracy >= TARGET:
            share = (TARGET - before[1]) / (accuracy - before[1])
            return before[0] + share * (step - before[0])
        before = (step, accuracy)
    raise LookupError(f"{contender} does not reach {TARGET}")


def seconds(contender: str):
    """To the target."""
    return lambda run: run.get(RACE.name, contender) * steps_to_target(run, contender)


def over(slow: str, fast: str):
    """How many times as fast to the target."""
    return lambda run: seconds(slow)(run) / seconds(fast)(run)


def bars() -> list[Bar]:
    pairs = [(rule, DS_SYNC) for rule in ("asp", "ssp", "bsp", *DDP)]
    pairs += [("torch-ddp", "dasgd"), ("torch-ddp", STREAMING), (HOOK, "powersgd:rank=1")]
    return [Bar(f"{fast} over {slow}", over(slow, fast), 1) for slow, fast in pairs]


CLAIM = Claim(
    name="slow-host",
    title="One slow host: the time to the same accuracy",
    paper="DS-Sync, arXiv:2007.03298; our own setting",
    sentence="Ours: with a slow host and slow uplinks, ds-sync is ahead of the asynchronous methods.",
    setting="16 workers in 4 racks behind uplinks of 40 Mbps, one worker half as fast as the others. "
    f"Steps to {TARGET:.0%} come from real trainings (MNIST, MLP 784-64-10, batches of 64, rate 0.05, "
    "the slow worker sleeps as long as a step took), seconds of a step from the lab with the same model's "
    "sizes and 60 ms of emulated compute; their products are compared.",
    baseline="asp and ssp; beside them bsp, and torch DDP without and with its PowerSGD hook.",
    differs="torch DDP takes the steps of bsp, its PowerSGD hook (rank 1) those of powersgd:rank=1, which "
    "give the same weights.",
    limits="Workers meet at every evaluation (20 steps) and report (a second), so that in the trainings "
    "asp's slow worker is never further behind.",
    cases=(RACE, TRAINING),
    quick=(
        replace(RACE, contenders=("asp", DS_SYNC), steps=4),
        replace(TRAINING, contenders=("asp", DS_SYNC), steps=240),
    ),
    bars=tuple(bars()),
    charts=(
        Bars(RACE.name, "A step with one slow host"),
        Bars(TRAINING.name, "Digits: accuracy after 400 steps", "metric", 100, "%"),
    ),
)
