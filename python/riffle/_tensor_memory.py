"""Where the values of a session over a process group live: tensors on the model's device.

The core (src/runtime/memory.h) knows addresses only, which it never looks behind. This finds the
tensors again and does the arithmetic on them, without ever asking a device for a value in a step.
"""

import bisect
import ctypes
import weakref
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import torch

from riffle._tensors import DTYPES

TensorView = tuple[int, int, str]  # address, count, dtype


def bytes_of(tensor: torch.Tensor) -> bytes:
    """The values of a dense tensor."""
    host = tensor.cpu()
    return ctypes.string_at(host.data_ptr(), host.numel() * host.element_size())


class TensorMemory:
    """The arithmetic of merges, snapshots and flags on tensors that are known by their address."""

    def __init__(self, tensors: Iterable[torch.Tensor], device: torch.device) -> None:
        self._device = device
        self._known: weakref.WeakValueDictionary[int, torch.Tensor] = weakref.WeakValueDictionary()
        self._addresses: list[int] = []
        self._own: dict[int, torch.Tensor] = {}  # of the model and the optimizer
        for tensor in tensors:
            self.adopt(tensor)

    def adopt(self, tensor: torch.Tensor) -> None:
        """Makes a dense tensor known, for as long as this lives."""
        flat = tensor.detach().reshape(-1).view(torch.uint8)
        self._own[flat.data_ptr()] = flat
        self._add(flat)

    @contextmanager
    def known(self, tensors: list[torch.Tensor]) -> Iterator[None]:
        """The same for a block."""
        for tensor in tensors:
            self.adopt(tensor)
        try:
            yield
        finally:
            for tensor in tensors:
                self._own.pop(tensor.data_ptr(), None)

    def _add(self, flat: torch.Tensor) -> None:
        address = flat.data_ptr()
        if address not in self._known:
            self._addresses = [a for a in self._addresses if a in self._known]
            bisect.insort(self._addresses, address)
        self._known[address] = flat

    def tensor(self, view: TensorView) -> torch.Tensor:
        """A tensor that shares the memory of `view`."""
        address, count, word = view
        dtype = DTYPES[word]
        base_address = self._addresses[bisect.bisect_right(self._addresses, address) - 1]
        begin = address - base_address
        return self._known[base_address][begin : begin + count * dtype.itemsize].view(dtype)

    # --- As src/runtime/memory.h says.

    def allocate(self, size: int) -> torch.Tensor:
        memory = torch.zeros(size, dtype=torch.uint8, device=self._device)
        self._add(memory)
        return memory

    def address(self, memory: torch.Tensor) -> int:
        return memory.data_ptr()

    @torch.no_grad()
    def copy(self, to: TensorView, source: TensorView) -> None:
        self.tensor(to).copy_(self.tensor(source))

    @torch.no_grad()
    def fill(self, x: TensorView, value: float) -> None:
        self.tensor(x).fill_(value)

    @torch.no_grad()
    def combine(self, out: TensorView, inputs: list[TensorView], factors: list[float]) -> None:
        target = self.tensor(out)
        if inputs[0] == out:  # in place: x <- f0*x + f1*y + ...
            target.mul_(factors[0])
            for x, factor in zip(inputs[1:], factors[1:], strict=True):
                target.add_(self.tensor(x), alpha=factor)
            return
        total = self.tensor(inputs[0]) * factors[0]
        for x, factor in zip(inputs[1:], factors[1:], strict=True):
            total.add_(self.tensor(x), alpha=factor)
        target.copy_(total)

    @torch.no_grad()
    def correct_statistics(self, x: TensorView, mean: TensorView, snapshot: TensorView) -> None:
        local, agreed, before = self.tensor(x), self.tensor(mean), self.tensor(snapshot)
        value = local + (agreed - before)
        vanishes = (value <= 0) & (local > 0) & (agreed > 0) & (before > 0)
        local.copy_(torch.where(vanishes, torch.minimum(local, agreed), value))

    def square_sum(self, x: TensorView) -> float:
        return float(self.tensor(x).double().square().sum())

    def is_zero(self, x: TensorView) -> bool:
        return not bool(self.tensor(x).any())

    def read(self, x: TensorView) -> bytes:
        return bytes_of(self.tensor(x))

    @torch.no_grad()
    def write(self, x: TensorView, data: bytes) -> None:
        if data:
            source = torch.frombuffer(bytearray(data), dtype=torch.uint8)
            self.tensor(x).view(torch.uint8).copy_(source)
