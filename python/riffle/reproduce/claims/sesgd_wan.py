# ruff: noqa: E501 -- the page is prose
"""SESGD: up to 5x at 5 ms."""

from dataclasses import replace

from riffle.reproduce.cases import Race
from riffle.reproduce.claim import Bar, Bars, Claim, ratio
from riffle.reproduce.claims.sesgd_lan import DDP, DECENT, FAST, LIKE, OURS, PAIRS, RING
from riffle.reproduce.models import Model

FAR = Race(
    name="V100",
    cluster="flat:16,latency=2.5ms,bandwidth=10Gbps",
    contenders=FAST.contenders,
    model=Model("resnet50", 0.1),
    steps=4,
)

CLAIM = Claim(
    name="sesgd-wan",
    title="SESGD: up to 5x at 5 ms",
    paper="SESGD, arXiv:2007.00433",
    sentence="Moreover, the process can be accelerated up to 5x in high latency networks (5ms).",
    setting="16 workers, ping 5 ms (2.5 ms one way), 10 Gbps; ResNet-50, batch 32, 0.1 s of forward "
    "and backward; compute is emulated, gradients and weights really travel.",
    baseline="`wfbp:algorithm=ring`, as for [sesgd-lan](#sesgd-lan).",
    differs="As for [sesgd-lan](#sesgd-lan). `mg-wfbp` stands beside it, so that what merging alone "
    "brings is seen.",
    limits="Where latency is all, a ring of 16 takes 30 of them for each layer and one of 4 takes 6: "
    "like for like cannot pass 5. What goes beyond comes from merging layers and from algorithms "
    "with fewer rounds.",
    cases=(FAR,),
    quick=(replace(FAR, contenders=(RING, LIKE, OURS), steps=2),),
    bars=(
        Bar("like for like", ratio("V100", RING, LIKE), 4.5),
        Bar("as we would run it, over the ring", ratio("V100", RING, OURS), 5, goal=30),
        Bar(
            "averages under the whole next step, over torch DDP",
            ratio("V100", DDP, PAIRS),
            1,
            goal=5,
        ),
        Bar(
            "the same over decent-dp on its ring of pairs",
            ratio("V100", DECENT, PAIRS),
            1,
            why="both hide the whole exchange, so both take what computing takes",
        ),
        Bar("over mg-wfbp, which stays exact", ratio("V100", "mg-wfbp", OURS), 1),
    ),
    charts=(Bars("V100", "ResNet-50 on 16 workers, ping 5 ms, 10 Gbps: time of a step"),),
)
