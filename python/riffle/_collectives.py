"""The collectives of an exchange on a torch process group, started without waiting.

`group` is a process group of the members, or None: then messages between them go over the engine's
own group, each with the number of its flight, so that no group has to be made.
"""

import datetime
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist

if TYPE_CHECKING:
    from riffle._core import Exchange
    from riffle._process_group import C10d

_TAGS = 1 << 20


class Operation:
    """Works under way, and what is left to do when they are done."""

    def __init__(
        self, works: list[Any], sent: int, finish: Callable[[], None] | None = None
    ) -> None:
        self.sent = sent
        self.began = self.ended = time.monotonic()
        self._works = works
        self._finish = finish
        self._left = len(works)
        for work in works:
            self._note_end(work)

    def _note_end(self, work: Any) -> None:
        """When it ends, not when somebody asks; NCCL's works end on the device."""
        try:
            work.get_future().add_done_callback(self._one_ended)
        except (RuntimeError, AttributeError):
            return  # point to point works of some backends have no future

    def _one_ended(self, _: Any) -> None:
        self.ended = time.monotonic()
        self._left -= 1

    @torch.no_grad()
    def wait(self, timeout: datetime.timedelta | None) -> None:
        """Until all of it is done; once."""
        works, self._works = self._works, []
        for work in works:
            _ = work.wait() if timeout is None else work.wait(timeout)
        if self._left > 0:
            self.ended = time.monotonic()
        if self._finish is not None:
            self._finish()
            self._finish = None


def _bytes(tensors: list[torch.Tensor]) -> int:
    return sum(t.numel() * t.element_size() for t in tensors)


def all_reduce(
    engine: "C10d",
    group: Any,
    members: list[int],
    place: int,
    key: tuple[int, int],
    tensors: list[torch.Tensor],
) -> Operation:
    """The sum over the members."""
    size = len(members)
    if group is not None:
        works = [dist.all_reduce(t, group=group, async_op=True) for t in tensors]
        return Operation(works, 2 * (size - 1) * _bytes(tensors) // size)
    received = [[torch.empty_like(t) for t in tensors] for _ in range(size - 1)]
    others = [m for m in members if m != members[place]]
    works = _messages(engine, key, tensors, others, list(zip(others, received, strict=True)))

    def add_up() -> None:
        # In the order of ranks, so that all members get the same bits.
        for i, tensor in enumerate(tensors):
            parts = [r[i] for r in received]
            parts.insert(place, tensor.clone())
            tensor.copy_(parts[0])
            for part in parts[1:]:
                tensor.add_(part)

    return Operation(works, (size - 1) * _bytes(tensors), add_up)


def _messages(
    engine: "C10d",
    key: tuple[int, int],
    sent: list[torch.Tensor],
    to: list[int],
    received: list[tuple[int, list[torch.Tensor]]],
) -> list[Any]:
    """Sends all of `sent` to each, receives from each, in one batch."""
    first = (key[0] * 4099 + key[1]) * 8
    operations = []
    for i, tensor in enumerate(sent):
        tag = (first + i) % _TAGS
        for rank in to:
            peer = engine.global_rank(rank)
            operations.append(dist.P2POp(dist.isend, tensor, peer, engine.group, tag))
        for rank, into in received:
            peer = engine.global_rank(rank)
            operations.append(dist.P2POp(dist.irecv, into[i], peer, engine.group, tag))
    return list(dist.batch_isend_irecv(operations)) if operations else []


def _slice(tensor: torch.Tensor, size: int, place: int) -> torch.Tensor:
    """What a member owns; what does not divide evenly is whole on all of them."""
    each = tensor.numel() // size
    return tensor[place * each : (place + 1) * each]


def reduce_scatter(
    engine: "C10d",
    group: Any,
    members: list[int],
    place: int,
    key: tuple[int, int],
    tensors: list[torch.Tensor],
) -> Operation:
    """The own slice of the sum; what does not divide evenly is summed everywhere.

    Only NCCL's own is better than an all-reduce: torch makes Gloo's of one, in other memory, and
    its waits know no deadline.
    """
    if group is None or dist.get_backend(group) != "nccl":
        return all_reduce(engine, group, members, place, key, tensors)
    size, works = len(members), []
    for tensor in tensors:
        own, rest = _slice(tensor, size, place), tensor[tensor.numel() // size * size :]
        if own.numel():
            main = tensor[: own.numel() * size]
            works.append(dist.reduce_scatter_tensor(own, main, group=group, async_op=True))
        if rest.numel():
            works.append(dist.all_reduce(rest, group=group, async_op=True))
    return Operation(works, (size - 1) * _bytes(tensors) // size)


def all_gather(
    engine: "C10d",
    group: Any,
    members: list[int],
    place: int,
    key: tuple[int, int],
    tensors: list[torch.Tensor],
) -> Operation:
    """Every slice from its owner."""
    size = len(members)
    sent = (size - 1) * _bytes(tensors) // size
    tensors = [t for t in tensors if t.numel() >= size]
    own = [_slice(t, size, place) for t in tensors]
    if group is None:
        others = [(m, [_slice(t, size, i) for t in tensors]) for i, m in enumerate(members)]
        del others[place]
        works = _messages(engine, key, own, [m for m, _ in others], others)
        return Operation(works, sent)
    works = []
    for tensor, mine in zip(tensors, own, strict=True):
        # NCCL gathers where the values lie; others want memory of their own.
        source = mine if dist.get_backend(group) == "nccl" else mine.clone()
        main = tensor[: mine.numel() * size]
        works.append(dist.all_gather_into_tensor(main, source, group=group, async_op=True))
    return Operation(works, sent)


def send_around(
    engine: "C10d",
    exchange: "Exchange",
    key: tuple[int, int],
    tensors: list[torch.Tensor],
    weights: list[float],
) -> Operation:
    """The mean of the own values and those of the member `shift` places back."""
    members = exchange.group
    place, size = members.index(engine.rank), len(members)
    back = (place - exchange.shift) % size
    received = [torch.empty_like(t) for t in tensors]
    to = members[(place + exchange.shift) % size]
    if to == members[place]:
        return Operation([], 0)
    works = _messages(engine, key, tensors, [to], [(members[back], received)])
    total = weights[place] + weights[back]

    def join() -> None:
        for tensor, other in zip(tensors, received, strict=True):
            tensor.mul_(weights[place] / total).add_(other, alpha=weights[back] / total)

    return Operation(works, _bytes(tensors), join)
