# ruff: noqa: E501 -- the page is prose
"""DS-Sync: up to 94 % on racks behind slow uplinks."""

from dataclasses import replace

from riffle.reproduce.cases import Race, Sweep
from riffle.reproduce.claim import Bar, Bars, Claim, ratio
from riffle.reproduce.models import Model

RING, HIER = "bsp:algorithm=ring", "hierarchical"
NOW, LATER = "ds-sync:pattern=bottleneck,delay=0", "ds-sync:pattern=bottleneck"
WHO = (RING, HIER, NOW, LATER)
HALF = Model("resnet50", 0.4)  # what the uplinks take is twice that
TWO = Race("2 racks of 8", "racks:2x8,inner=1.2ms/10Gbps,outer=1.2ms/1Gbps", WHO, HALF, steps=6)
FOUR = replace(TWO, name="4 racks of 4", cluster="racks:4x4,inner=1.2ms/10Gbps,outer=1.2ms/1.5Gbps")
CHANGING = replace(
    FOUR,
    name="an uplink, then a host becomes slow",
    contenders=(RING, HIER, LATER),
    steps=16,
    events="at=6s,link=rack1,bandwidth=750Mbps at=12s,link=worker3,bandwidth=2Gbps",
)
DIGITS = Race(
    "to 95 % of the digits",
    "racks:4x4,inner=200us/1Gbps,outer=300us/100Mbps",
    (RING, HIER, LATER),
    task="digits",
    target=0.95,
)
BOUND = Sweep(
    "32 workers, bound by the uplink",
    ("racks:2x16,inner=10us/100Gbps,outer=10us/1Gbps",),
    (RING, HIER, NOW, LATER),
    Model("resnet50", 0.001),
)


SLOWER = (
    "a step takes longer than the simulator says, by which the bar would hold; why was not found"
)


def bars() -> list[Bar]:
    found = [Bar("simulated, 2x16: delay=0 over the ring", ratio(BOUND.name, RING, NOW), 1.93)]
    for case in (TWO, FOUR):
        name = case.name
        found += [
            Bar(f"{name}: delay=auto over the ring", ratio(name, RING, LATER), 1.94),
            Bar(f"{name}: delay=auto over hierarchical", ratio(name, HIER, LATER), 1.5, goal=1.94),
            Bar(f"{name}: delay=0 over the ring", ratio(name, RING, NOW), 1.6, why=SLOWER),
            Bar(f"{name}: delay=0 over hierarchical", ratio(name, HIER, NOW), 1.3, why=SLOWER),
        ]
    name = DIGITS.name
    found += [
        Bar(f"{name}: delay=auto over the ring", ratio(name, RING, LATER, "to_target"), 1.94),
        Bar(f"{name}: delay=auto over hierarchical", ratio(name, HIER, LATER, "to_target"), 1.5),
        Bar("through both changes: over the ring", ratio(CHANGING.name, RING, LATER), 1.94),
        Bar(
            "through both changes: over hierarchical",
            ratio(CHANGING.name, HIER, LATER),
            1.5,
            goal=1.94,
        ),
    ]
    return found


CLAIM = Claim(
    name="ds-sync-racks",
    title="DS-Sync: up to 94 % on racks",
    paper="DS-Sync, arXiv:2007.03298v2",
    sentence="... our testbed experiments show that DS-Sync can achieve up to 94% improvements on the "
    "end-to-end training time with existing solutions while maintaining the same accuracy.",
    setting="16 workers in 2 racks of 8 and 4 racks of 4 behind slow shared uplinks, ResNet-50 with 0.4 "
    "s of compute, half of what the uplinks take; then with an uplink that falls to half its rate and a "
    "host that falls to a fifth in mid-run; and the digits with real compute to 95 % accuracy.",
    baseline="`bsp:algorithm=ring` and `hierarchical`, both without overlap, as the paper names them.",
    differs="The paper's testbed is not known. 94 % is what a ring of 32 over two racks costs more than "
    "the delegates' exchange alone ((62/32) / 1): the simulated case shows it to the digit. `delay=auto` is "
    "ours: delegates merge what crossed the slow link some steps later.",
    limits="Without a delay the slow link bounds everybody: at most 1.5 over hierarchical. With one, racks "
    "agree more slowly; the digits show what that costs in steps. In the lab strategies are planned for the "
    "network as it was at the start: nobody regroups when it changes.",
    cases=(BOUND, TWO, FOUR, CHANGING, DIGITS),
    quick=(BOUND, replace(FOUR, steps=2)),
    bars=tuple(bars()),
    charts=(
        Bars(TWO.name, "2 racks of 8 behind uplinks of 1 Gbps: time of a step"),
        Bars(FOUR.name, "4 racks of 4 behind uplinks of 1.5 Gbps: time of a step"),
        Bars(DIGITS.name, "Digits, 4 racks of 4: seconds to 95 %", "to_target", 1, "s"),
    ),
)
