"""decent-dp: decentralized training with an exchange under the whole next step (arXiv:2410.11998).

It steps an optimizer per bucket inside backward, waits there for the exchange that the last step
began, and begins the next one.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from riffle._core import UsageError
from riffle.peers.peer import NUMPY, Option, Options, Peer, Running

if TYPE_CHECKING:
    from riffle.peers.work import Work

BUCKET_MIB = 25  # its default
TOPOLOGIES = ("complete", "ring", "one-peer-exp", "alternating-exp-ring")
NODE = 2  # ranks that alternating-exp-ring takes for one host where each has a host of its own


def _how(options: Options) -> str:
    topology = options["topology"]
    pairs = topology == "alternating-exp-ring"
    nodes = f", {NODE} ranks to a node where a host has one rank" if pairs else ""
    return (
        f"decent_dp.ddp.DecentralizedDataParallel on Gloo, topology {topology}{nodes}, "
        f"buckets of 25 MiB; SCHED_BATCH"
    )


def _node(topology: str) -> int:
    ranks = int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
    return NODE if topology == "alternating-exp-ring" and ranks == 1 else ranks


def _period(options: Options, workers: int) -> int:
    topology = options["topology"]
    nodes = workers // _node(topology)
    if topology == "complete":
        return 1
    if topology == "ring":
        return 2
    rounds = (workers if topology == "one-peer-exp" else nodes).bit_length() - 1
    return max(1, rounds if topology == "one-peer-exp" else 2 * rounds)


def _refuse(topology: str, workers: int) -> None:
    """It raises an error without words where a topology does not fit."""
    nodes = workers // _node(topology)
    powers = {"one-peer-exp": workers, "alternating-exp-ring": nodes}
    if topology == "ring" and workers % 2:
        raise UsageError(f"decent-dp:topology=ring needs an even number of workers, not {workers}")
    count = powers.get(topology, 2)
    if count < 2 or count & (count - 1):
        of = "workers" if topology == "one-peer-exp" else f"nodes of {_node(topology)}"
        raise UsageError(f"decent-dp:topology={topology} needs 2, 4, 8, .. {of}, not {count}")


class _Running(Running):
    def step(self) -> None:
        """Backward has stepped."""

    def rehearse(self, is_rehearsal: bool) -> None:
        """As if gradients were to be accumulated, where backward does not step."""
        self.model.set_accumulate_grad(is_rehearsal)


def _start(work: Work, options: Options) -> Running:
    import torch
    import torch.distributed as dist

    os.environ.setdefault("LOGURU_LEVEL", "ERROR")
    from decent_dp.ddp import DecentralizedDataParallel

    _refuse(options["topology"], dist.get_world_size())

    def optimizer(named):
        return work.optimizer(torch.nn.ParameterList([parameter for _, parameter in named]))

    model = DecentralizedDataParallel(
        work.module,
        optim_fn=optimizer,
        topology=options["topology"],
        bucket_size_in_mb=BUCKET_MIB / work.shrink,
        _local_world_size=_node(options["topology"]),
    )
    return _Running(model, None)


DECENT_DP = Peer(
    name="decent-dp",
    what="decentralized data parallel: groups average weights under the whole next step",
    options=(Option("topology", TOPOLOGIES, "complete"),),
    packages=lambda options: ("decent-dp==0.2.3", "loguru==0.7.3", NUMPY),
    modules=("decent_dp.ddp",),
    how=_how,
    period=_period,
    start=_start,
)
