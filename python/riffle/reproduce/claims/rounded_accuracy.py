# ruff: noqa: E501 -- the page is prose
"""Rounded, compressed and served values: what they cost in accuracy."""

from dataclasses import replace

from riffle.reproduce.cases import Training
from riffle.reproduce.claim import Bar, Bars, Claim

WHOLE = "wfbp"
HALF, BYTE, FORGETFUL = "wfbp:wire=bf16", "wfbp:wire=int8", "wfbp:wire=int8,feedback=false"
RULES = (WHOLE, HALF, BYTE, FORGETFUL, "powersgd", "asp", "ssp", "ds-sync")
DIGITS = Training(
    "digits",
    "digits",
    RULES,
    model="mlp",
    workers=8,
    epochs=3,
    cluster="racks:2x4,inner=20us/10Gbps,outer=200us/1Gbps",
    falls=True,
)
GPT = replace(DIGITS, name="small GPT", task="chars", model="", epochs=None, steps=200)


def points(rule: str):
    """To whole values with the same seed."""
    return lambda run: (
        100 * (run.get("digits", rule, "metric") - run.get("digits", WHOLE, "metric"))
    )


def more_loss(rule: str):
    """Than with whole values and the same seed, in percent."""
    name = GPT.name
    return lambda run: 100 * (run.get(name, rule, "loss") / run.get(name, WHOLE, "loss") - 1)


def bars() -> list[Bar]:
    found = []
    for rule, lost, loss in ((HALF, -0.1, 0.5), (BYTE, -0.3, 1), ("ds-sync", -0.3, 1)):
        found += [
            Bar(f"{rule}, digits", points(rule), lost, "points"),
            Bar(f"{rule}, loss of the GPT", more_loss(rule), loss, "%", at_most=True),
        ]
    return found


CLAIM = Claim(
    name="rounded-accuracy",
    title="Fewer bytes, and asynchronous updates: what they cost in accuracy",
    paper="our own; PowerSGD is arXiv:1905.13727, ASP and SSP those of NIPS 2013",
    sentence="Ours: gradients rounded to bf16, or to int8 with error feedback, train as whole ones do; "
    "asynchronous updates lose accuracy, ds-sync does not.",
    setting="8 workers with real compute: MNIST with an MLP 784-64-10 (3 epochs of batches of 64 each), "
    "plays with a small GPT (200 steps); rates fall to a hundredth; a repeat is a seed, with the same "
    "weights and batches for every rule. Judged is the exact average of all workers.",
    baseline=f"`{WHOLE}`, whole values, with the same seed.",
    differs="Gradients are rounded to bf16, or to int8 with a scale for each 256 values; `feedback=false` "
    "forgets what is lost, to compare.",
    limits="Workers of asp and ssp share the processors of one host, and meet whenever the run reports "
    "or is judged, so nobody falls far behind; a slow host is the next claim's.",
    cases=(DIGITS, GPT),
    quick=(
        replace(DIGITS, contenders=(WHOLE, BYTE), epochs=None, steps=40),
        replace(GPT, contenders=(WHOLE, HALF), steps=8),
    ),
    bars=tuple(bars()),
    charts=(
        Bars(
            "digits",
            "Digits: accuracy against whole values",
            "metric",
            100,
            "points",
            against=WHOLE,
        ),
        Bars(GPT.name, "Small GPT: loss against whole values", "loss", 1, "", against=WHOLE),
    ),
)
