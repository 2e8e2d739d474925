"""Exchanges over a torch process group: the arithmetic of the merges on flat tensors."""

import time
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.distributed as dist

from riffle._core import Exchange, UsageError


@dataclass
class Outer:
    """What an outer optimizer keeps of a bucket."""

    agreed: torch.Tensor
    momentum: torch.Tensor


@dataclass
class Flight:
    """One exchange of one step, as this rank sees it."""

    exchange: Exchange
    step: int
    rank: int
    value: torch.Tensor  # the flat payload, in place
    group: Any
    outer: Outer | None = None
    travelling: torch.Tensor | None = None
    own: torch.Tensor | None = None
    received: torch.Tensor | None = None
    works: list[Any] = field(default_factory=list)
    started: bool = False
    issued: bool = False

    def due(self) -> tuple[int, str]:
        """The step and the point at which it is merged."""
        return self.step + self.exchange.due.steps, self.exchange.due.point

    def take(self) -> None:
        """Takes the snapshot that travels."""
        exchange = self.exchange
        weights = exchange.weights or [1.0] * len(exchange.group)
        share = weights[exchange.group.index(self.rank)] / sum(weights)
        self.started = True
        if exchange.merge.kind == "correct":
            self.own = self.value.clone()
        if exchange.collective == "shift":
            self.travelling = self.value.clone()
        elif exchange.collective != "all_gather":
            self.travelling = self.value * share

    def issue(self) -> None:
        """Starts it on the process group; members of a group do so in the same order."""
        self.issued = True
        exchange, tensor = self.exchange, self.travelling
        if tensor is None:
            return  # reduce_scatter has brought the whole sum already
        if exchange.collective != "shift":
            self.works = [dist.all_reduce(tensor, group=self.group, async_op=True)]
            return
        members = exchange.group
        place, size = members.index(self.rank), len(members)
        self.received = torch.empty_like(tensor)
        to = dist.get_global_rank(self.group, (place + exchange.shift) % size)
        back = dist.get_global_rank(self.group, (place - exchange.shift) % size)
        self.works = dist.batch_isend_irecv(
            [
                dist.P2POp(dist.isend, tensor, to, self.group),
                dist.P2POp(dist.irecv, self.received, back, self.group),
            ]
        )

    def wait(self) -> float:
        """Seconds that it took."""
        began = time.monotonic()
        for work in self.works:
            work.wait()
        return time.monotonic() - began

    def merge(self) -> None:
        """Joins the mean to the local value."""
        mean, merge, x = self.travelling, self.exchange.merge, self.value
        if mean is None:
            return
        if self.received is not None:
            mean = (mean + self.received) / 2
        if merge.kind == "replace":
            x.copy_(mean)
        elif merge.kind == "mix":
            x.mul_(merge.xi).add_(mean, alpha=1 - merge.xi)
        elif merge.kind == "correct" and self.own is not None:
            scales = self.exchange.scales
            scale = scales[self.exchange.group.index(self.rank)] if scales else merge.scale
            x.add_(mean - self.own, alpha=scale)
        elif merge.kind == "outer" and self.outer is not None:
            distance = self.outer.agreed - mean
            self.outer.momentum.mul_(merge.momentum).add_(distance)
            step = distance + merge.momentum * self.outer.momentum
            self.outer.agreed.sub_(step, alpha=merge.learning_rate)
            x.copy_(self.outer.agreed)


def check(exchange: Exchange) -> None:
    """Refuses what a process group is not used for."""
    if exchange.wire != "f32":
        raise UsageError(f"wire={exchange.wire} is not available over c10d")
    if exchange.payload == "state":
        raise UsageError("mix_state=true is not available over c10d")
