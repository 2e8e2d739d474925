"""Gradients that travel as factors over a process group: what include/riffle/program.h says of
LowRank, as src/codec/low_rank.cpp does it on the host, for tensors on any device.

A matrix lies row by row; its factors lie column by column, so a row of theirs here is a column.
"""

import datetime
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
import torch.distributed as dist

from riffle._core import Exchange

if TYPE_CHECKING:
    from riffle._collectives import Call


class Factored(NamedTuple):
    """A matrix of a gradient, flat, what was lost of it, and its factors."""

    matrix: torch.Tensor
    lost: torch.Tensor
    left: torch.Tensor
    right: torch.Tensor
    rank: int

    def views(self) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """The matrix and both factors, a row for each column of theirs."""
        left, right = self.left.view(self.rank, -1), self.right.view(self.rank, -1)
        return self.matrix.view(left.shape[1], right.shape[1]), left, right


def orthonormalize(columns: torch.Tensor) -> None:
    """Gram-Schmidt; a column that those before it make up but for rounding gives way to another."""

    def without_others(column: torch.Tensor, others: torch.Tensor) -> torch.Tensor:
        for _ in range(2 if len(others) else 0):
            column = column - (others @ column) @ others
        return column

    count, length = columns.shape
    rounding = 128 * torch.finfo(columns.dtype).eps
    places = torch.arange(1, length + 1, dtype=torch.float64, device=columns.device)
    for i in range(count):
        column = without_others(columns[i], columns[:i])
        other = without_others((places * (i + 1)).cos().to(columns.dtype), columns[:i])
        after = column.norm()
        good = (after > rounding * columns[i].norm()) & after.isfinite()
        columns[i] = torch.where(good, column / after, other / other.norm())


@torch.no_grad()
def run_low_rank(
    call: "Call",
    exchange: Exchange,
    factored: list[Factored],
    whole: Iterable[tuple[torch.Tensor, torch.Tensor]],
    timeout: datetime.timedelta | None,
) -> int:
    """As src/runtime/low_rank.cpp; gives the bytes sent."""
    if exchange.low_rank.factor == "left":
        for values, travelling in whole:
            travelling.copy_(values)
        for each in factored:
            matrix, left, right = each.views()
            each.matrix.add_(each.lost)
            orthonormalize(right)
            left.copy_(right @ matrix.T)
        _average(call, exchange, timeout)
        for values, travelling in whole:
            values.copy_(travelling)
    else:
        for each in factored:
            matrix, left, right = each.views()
            orthonormalize(left)
            right.copy_(left @ matrix)
        _average(call, exchange, timeout)
        for each in factored:
            matrix, left, right = each.views()
            each.lost.copy_(each.matrix)
            matrix.copy_(left.T @ right)
            each.lost.sub_(each.matrix).nan_to_num_(0, 0, 0)
    return 2 * (call.size - 1) * call.bytes // call.size


def _average(call: "Call", exchange: Exchange, timeout: datetime.timedelta | None) -> None:
    weights: list[float] = exchange.weights or [1.0] * call.size
    for tensor in call.tensors:
        tensor.mul_(weights[call.place] / sum(weights))
        work: Any = dist.all_reduce(tensor, group=call.group, async_op=True)
        _ = work.wait() if timeout is None else work.wait(timeout)
