"""The collectives of an exchange on a torch process group, started without waiting."""

import datetime
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist

if TYPE_CHECKING:
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


@dataclass
class Call:
    """One collective of these tensors, in place, as this rank takes part in it."""

    engine: "C10d"
    group: Any  # of the members; None: messages over the engine's own, so that none has to be made
    members: list[int]
    key: tuple[int, int]  # of the flight, which tells its messages from others
    tensors: list[torch.Tensor]

    @property
    def place(self) -> int:
        """This rank's among the members."""
        return self.members.index(self.engine.rank)

    @property
    def size(self) -> int:
        """How many members there are."""
        return len(self.members)

    @property
    def bytes(self) -> int:
        """Of all tensors."""
        return sum(t.numel() * t.element_size() for t in self.tensors)


def all_reduce(call: Call) -> Operation:
    """The sum over the members."""
    tensors, size, place = call.tensors, call.size, call.place
    if call.group is not None:
        works = [dist.all_reduce(t, group=call.group, async_op=True) for t in tensors]
        return Operation(works, 2 * (size - 1) * call.bytes // size)
    received = [[torch.empty_like(t) for t in tensors] for _ in range(size - 1)]
    others = [m for m in call.members if m != call.engine.rank]
    works = _messages(call, tensors, others, list(zip(others, received, strict=True)))

    def add_up() -> None:
        # In the order of ranks, so that all members get the same bits.
        for i, tensor in enumerate(tensors):
            parts = [r[i] for r in received]
            parts.insert(place, tensor.clone())
            tensor.copy_(parts[0])
            for part in parts[1:]:
                tensor.add_(part)

    return Operation(works, (size - 1) * call.bytes, add_up)


def _messages(
    call: Call,
    sent: list[torch.Tensor],
    to: list[int],
    received: list[tuple[int, list[torch.Tensor]]],
) -> list[Any]:
    """Sends all of `sent` to each, receives from each, in one batch."""
    first = (call.key[0] * 4099 + call.key[1]) * 8
    engine, operations = call.engine, []
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


def reduce_scatter(call: Call) -> Operation:
    """The own slice of the sum; what does not divide evenly is summed everywhere.

    Only NCCL's own is better than an all-reduce: torch makes Gloo's of one, in other memory, and
    its waits know no deadline.
    """
    group, size = call.group, call.size
    if group is None or dist.get_backend(group) != "nccl":
        return all_reduce(call)
    works = []
    for tensor in call.tensors:
        own, rest = _slice(tensor, size, call.place), tensor[tensor.numel() // size * size :]
        if own.numel():
            main = tensor[: own.numel() * size]
            works.append(dist.reduce_scatter_tensor(own, main, group=group, async_op=True))
        if rest.numel():
            works.append(dist.all_reduce(rest, group=group, async_op=True))
    return Operation(works, (size - 1) * call.bytes // size)


def all_gather(call: Call) -> Operation:
    """Every slice from its owner."""
    group, size, place = call.group, call.size, call.place
    sent = (size - 1) * call.bytes // size
    tensors = [t for t in call.tensors if t.numel() >= size]
    own = [_slice(t, size, place) for t in tensors]
    if group is None:
        others = [(m, [_slice(t, size, i) for t in tensors]) for i, m in enumerate(call.members)]
        del others[place]
        return Operation(_messages(call, own, [m for m, _ in others], others), sent)
    works = []
    for tensor, mine in zip(tensors, own, strict=True):
        # NCCL gathers where the values lie; others want memory of their own.
        source = mine if dist.get_backend(group) == "nccl" else mine.clone()
        main = tensor[: mine.numel() * size]
        works.append(dist.all_gather_into_tensor(main, source, group=group, async_op=True))
    return Operation(works, sent)


def send_around(call: Call, shift: int, weights: list[float]) -> Operation:
    """The mean of the own values and those of the member `shift` places back."""
    members, tensors, place, size = call.members, call.tensors, call.place, call.size
    back = (place - shift) % size
    if back == place:
        return Operation([], 0)
    received = [torch.empty_like(t) for t in tensors]
    to = members[(place + shift) % size]
    works = _messages(call, tensors, [to], [(members[back], received)])
    total = weights[place] + weights[back]

    def join() -> None:
        for tensor, other in zip(tensors, received, strict=True):
            tensor.mul_(weights[place] / total).add_(other, alpha=weights[back] / total)

    return Operation(works, call.bytes, join)
