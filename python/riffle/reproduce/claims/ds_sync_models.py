# ruff: noqa: E501 -- the page is prose
"""DS-Sync: BERT, WideResNet, DeepFM."""

from dataclasses import replace

from riffle.reproduce.cases import Training
from riffle.reproduce.claim import Bar, Bars, Claim, ratio
from riffle.reproduce.claims.ds_sync_racks import FOUR, HIER, LATER, RING
from riffle.reproduce.models import Model

MODELS = {"BERT": "bert-base", "WideResNet": "wrn-26-10", "DeepFM": "deepfm"}
RACES = tuple(
    replace(FOUR, name=name, contenders=(RING, HIER, LATER), model=Model(trace), steps=4)
    for name, trace in MODELS.items()
)
DELAYED = "ds-sync:pattern=bottleneck,delay=3"
RULES = ("bsp", "ds-sync", "ds-sync:pattern=bottleneck,delay=0", DELAYED)
TRAININGS = (
    Training("small transformer", "chars", RULES, steps=200),
    Training("small WideResNet", "images", RULES, epochs=3),
    Training("small DeepFM", "clicks", RULES, epochs=2),
)


def difference(case: str, rule: str, figure: str, scale: float):
    """To bsp with the same seed."""
    return lambda run: scale * (run.get(case, rule, figure) - run.get(case, "bsp", figure))


def bars() -> list[Bar]:
    found = []
    for race in RACES:
        found += [
            Bar(f"{race.name}: over the ring", ratio(race.name, RING, LATER), 1.94),
            Bar(f"{race.name}: over hierarchical", ratio(race.name, HIER, LATER), 1.5),
        ]
    adamw = "AdamW's state stays local: a loss that exact averaging every step has as well"
    for rule in ("ds-sync", "ds-sync:pattern=bottleneck,delay=0"):
        loss = difference("small transformer", rule, "loss", 1)
        found += [
            Bar(f"loss of the transformer, {rule}", loss, 0.05, "", at_most=True, why=adamw),
            Bar(
                f"accuracy of the WideResNet, {rule}",
                difference("small WideResNet", rule, "accuracy", 100),
                -0.5,
                "points",
            ),
            Bar(
                f"AUC of DeepFM, {rule}",
                difference("small DeepFM", rule, "auc", 100),
                -0.5,
                "points",
                why=adamw,
            ),
        ]
    return found


CLAIM = Claim(
    name="ds-sync-models",
    title="DS-Sync: BERT, WideResNet, DeepFM",
    paper="DS-Sync, arXiv:2007.03298v1",
    sentence="Comprehensive experiments also show the significant improvements in the latest and popular "
    "models like Bert, WideResnet, and DeepFM on challenging datasets.",
    setting="The built-in traces of BERT (base, sequence 64), WideResNet-26-10 and DeepFM on 4 racks of 4 "
    "behind uplinks of 1.5 Gbps; and small versions trained for real on 16 workers: a transformer on plays "
    "(loss), WRN-10-1 on generated textures (accuracy), DeepFM on generated click logs (AUC).",
    baseline="`bsp:algorithm=ring` and `hierarchical` for time, `bsp` with the same seed for accuracy.",
    differs="The paper trains BERT-Large on SQuAD, WideResNets on CIFAR and ImageNet and DeepFM on Criteo; "
    "our data are small or generated, and rates are constant.",
    limits="The large models are bound by the uplinks, where the delay gains most.",
    cases=(*RACES, *TRAININGS),
    quick=(
        replace(RACES[2], contenders=(RING, LATER), steps=2),
        replace(TRAININGS[2], contenders=RULES[:2], epochs=None, steps=20),
    ),
    bars=tuple(bars()),
    charts=tuple(Bars(race.name, f"{race.name} on 4 racks of 4: time of a step") for race in RACES),
)
