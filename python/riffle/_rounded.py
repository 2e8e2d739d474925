"""Exchanges that travel rounded over a process group: what include/riffle/program.h says of Wire.

An all-reduce is a scatter of encoded slices, which their owners decode and add up in f32 in the
order of ranks, and a gather of the encoded sums; so all members hold the same bits, and each knows
what its own rounding has lost. The codecs are those of src/codec, on any device.
"""

import datetime
from concurrent.futures import Future
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist

from riffle._core import Exchange

if TYPE_CHECKING:
    from riffle._collectives import Call

BLOCK = 256
_LEAST = 2.0**-100
_HALVES = {"bf16": torch.bfloat16, "f16": torch.float16}


def encode(wire: str, values: torch.Tensor) -> torch.Tensor:
    """As bytes."""
    if wire in _HALVES:
        return values.to(_HALVES[wire]).view(torch.uint8)
    padded = torch.nn.functional.pad(values, (0, -values.numel() % BLOCK)).view(-1, BLOCK)
    largest = padded.abs().amax(dim=1, keepdim=True)
    bits = (largest / 127).view(torch.int32)
    scale = ((bits + 0xFF) & ~0xFF).view(torch.float32)
    scale = torch.where(largest < _LEAST, torch.zeros_like(scale), scale)
    scale = torch.where(largest.isfinite(), scale, torch.full_like(scale, torch.nan))
    whole = torch.where(scale > 0, (padded * (1 / scale)).round(), torch.zeros_like(padded))
    return torch.cat([scale.view(torch.uint8), whole.to(torch.int8).view(torch.uint8)], 1).view(-1)


def decode(wire: str, data: torch.Tensor, count: int) -> torch.Tensor:
    """What was encoded from `count` values."""
    if wire in _HALVES:
        return data.view(_HALVES[wire]).float()
    blocks = data.view(-1, 4 + BLOCK)
    scale = blocks[:, :4].contiguous().view(torch.float32)
    return (blocks[:, 4:].view(torch.int8).float() * scale).view(-1)[:count]


@dataclass
class Rounding:
    """How the values of one tensor travel."""

    wire: str
    lost: torch.Tensor | None  # what rounding takes away is added to it
    exact: int  # values at the end that travel as they are

    def encode(self, values: torch.Tensor, begin: int, total: int, factor: float) -> torch.Tensor:
        """The values from `begin` on, of `total`; they become what the others will decode."""
        some = max(min(values.numel(), total - self.exact - begin), 0)
        data = encode(self.wire, values[:some])
        decoded = decode(self.wire, data, some)
        if self.lost is not None:
            lost = torch.nan_to_num(values[:some] - decoded, 0, 0, 0)
            self.lost[begin : begin + some].add_(lost, alpha=factor)
        values[:some] = decoded
        return torch.cat([data, values[some:].view(torch.uint8)])

    def decode(self, data: torch.Tensor, begin: int, count: int, total: int) -> torch.Tensor:
        """What encode() has made of so many values."""
        some = max(min(count, total - self.exact - begin), 0)
        rest = data.numel() - 4 * (count - some)
        tail = data[rest:].clone().view(torch.float32)
        return torch.cat([decode(self.wire, data[:rest].clone(), some), tail])

    def size(self, begin: int, count: int, total: int) -> int:
        """Of the bytes of so many values."""
        some = max(min(count, total - self.exact - begin), 0)
        blocks = -(-some // BLOCK)
        rounded = 2 * some if self.wire in _HALVES else blocks * (4 + BLOCK)
        return rounded + 4 * (count - some)


class Background:
    """An exchange that a lane's own thread runs; waited for as an Operation is."""

    def __init__(self, future: "Future[Any]") -> None:
        self._future = future
        self.sent = 0
        self.began = self.ended = 0.0

    def wait(self, timeout: datetime.timedelta | None) -> None:
        """Until it is done."""
        try:
            self.sent, self.ended = self._future.result(
                None if timeout is None else timeout.total_seconds()
            )
        except TimeoutError as error:
            raise RuntimeError(f"no end within {timeout}") from error


class RoundedCall:
    """The collectives of one tensor, message by message; each waits for its end."""

    def __init__(self, call: "Call", group: Any, timeout: datetime.timedelta | None) -> None:
        self._call, self._group, self._timeout = call, group, timeout
        self.sent = 0

    def _exchange(
        self, out: dict[int, torch.Tensor], sizes: dict[int, int], device: torch.device
    ) -> dict[int, torch.Tensor]:
        """Sends each member its bytes, receives so many from each."""
        call = self._call
        received, operations = {}, []
        for place, data in out.items():
            peer = call.engine.global_rank(call.members[place])
            if data.numel():
                operations.append(dist.P2POp(dist.isend, data, peer, self._group))
            self.sent += data.numel()
        for place, size in sizes.items():
            peer = call.engine.global_rank(call.members[place])
            received[place] = torch.empty(size, dtype=torch.uint8, device=device)
            if size:
                operations.append(dist.P2POp(dist.irecv, received[place], peer, self._group))
        for work in dist.batch_isend_irecv(operations) if operations else []:
            _ = work.wait() if self._timeout is None else work.wait(self._timeout)
        return received

    def _slices(self, tensor: torch.Tensor, rest: bool = True) -> list[tuple[int, int]]:
        """Begin and count of each member's; the last takes the `rest` that does not divide."""
        size, each = self._call.size, tensor.numel() // self._call.size
        counts = [each] * size
        counts[-1] += tensor.numel() % size if rest else 0
        return [(each * place, counts[place]) for place in range(size)]

    def reduce_scatter(
        self, tensor: torch.Tensor, rounding: Rounding, weights: list[float], scale: float
    ) -> None:
        """The own slice of the sum of weights times values, times scale."""
        place, total = self._call.place, tensor.numel()
        slices = self._slices(tensor)
        weight = weights[place]
        tensor.mul_(weight)
        out, sizes = {}, {}
        begin, count = slices[place]
        for other, (first, some) in enumerate(slices):
            if other == place:
                continue
            factor = 1 / weight if weight else 0.0
            out[other] = rounding.encode(tensor[first : first + some], first, total, factor)
            sizes[other] = rounding.size(begin, count, total)
        received = self._exchange(out, sizes, tensor.device)
        parts = {p: rounding.decode(d, begin, count, total) for p, d in received.items()}
        own = tensor[begin : begin + count]
        parts[place] = own.clone()
        own.copy_(sum(parts[p] for p in sorted(parts))).mul_(scale)

    def all_gather(
        self, tensor: torch.Tensor, rounding: Rounding, factor: float, rest: bool = True
    ) -> None:
        """Every slice from its owner."""
        place, total = self._call.place, tensor.numel()
        slices = self._slices(tensor, rest)
        begin, count = slices[place]
        data = rounding.encode(tensor[begin : begin + count], begin, total, factor)
        others = [p for p in range(len(slices)) if p != place]
        sizes = {p: rounding.size(*slices[p], total) for p in others}
        received = self._exchange(dict.fromkeys(others, data), sizes, tensor.device)
        for other, bytes_in in received.items():
            first, some = slices[other]
            tensor[first : first + some] = rounding.decode(bytes_in, first, some, total)

    def all_reduce(self, tensor: torch.Tensor, rounding: Rounding, weights: list[float]) -> None:
        """The mean over the members."""
        self.reduce_scatter(tensor, rounding, weights, 1 / sum(weights))
        own = weights[self._call.place]
        self.all_gather(tensor, rounding, sum(weights) / own if own else 0.0)

    def send_around(
        self, tensor: torch.Tensor, rounding: Rounding, weights: list[float], shift: int
    ) -> None:
        """The mean of the own values and those of the member `shift` places back."""
        place, size, total = self._call.place, self._call.size, tensor.numel()
        back, to = (place - shift) % size, (place + shift) % size
        if back == place:
            return
        data = rounding.encode(tensor, 0, total, 1.0)
        received = self._exchange({to: data}, {back: data.numel()}, tensor.device)
        other = rounding.decode(received[back], 0, total, total)
        both = weights[place] + weights[back]
        tensor.mul_(weights[place] / both).add_(other, alpha=weights[back] / both)

    def run(self, exchange: Exchange, tensor: torch.Tensor, rounding: Rounding) -> None:
        """The collective of an exchange. Half of an all-reduce leaves the rest whole on all."""
        weights = exchange.weights or [1.0] * self._call.size
        if exchange.collective == "shift":
            self.send_around(tensor, rounding, weights, exchange.shift)
        elif exchange.collective == "all_gather":
            self.all_gather(tensor, rounding, float(self._call.size), rest=False)
        else:
            self.all_reduce(tensor, rounding, weights)


@torch.no_grad()
def run_rounded(
    call: RoundedCall,
    exchange: Exchange,
    tensor: torch.Tensor,
    reference: torch.Tensor | None,
    moves: bool,
    rounding: Rounding,
) -> None:
    """As src/runtime/rounding.cpp."""
    lost = rounding.lost
    if reference is None:
        if lost is not None and exchange.collective != "all_gather":
            tensor.add_(lost)
            lost.zero_()
        call.run(exchange, tensor, rounding)
        return
    tensor.sub_(reference)
    call.run(exchange, tensor, rounding)
    tensor.add_(reference)
    if moves:
        reference.copy_(tensor)
    if lost is not None and exchange.merge.kind != "outer":
        tensor.add_(lost)
