"""A session of many workers: what of riffle/session.py has to be done by all of them."""

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

from riffle import _core
from riffle._core import NamedStrategy, Plan, Trace
from riffle._steps import Steps
from riffle._tensors import copy_out


class Distributed(Steps):
    """What a loop may ask for, on top of the steps."""

    @property
    def strategy(self) -> NamedStrategy:
        return self.core.strategy  # which may change: "auto"

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        before = self.core.sync
        self.core.set_sync(False)
        try:
            yield
        finally:
            self.core.set_sync(before)

    def batches(self, loader: Iterable[Any]) -> Iterator[Any]:
        own = len(loader)  # type: ignore[arg-type]
        counts = [float(own) if rank == self.rank else 0.0 for rank in range(self.size)]
        most = round(max(self.average(*counts)) * self.size)
        yield from loader
        for _ in range(most - own):
            self._idle_step()

    def _idle_step(self) -> None:
        """A step without data: takes part in all exchanges, adds nothing of its own."""
        self._settle()
        for p in self._parameters:
            p.grad = None
        if not self.core.keeps_gradients:
            self._end_step()
            return
        for optimizer in self._optimizers:
            optimizer.optimizer.step()

    def clip_grad_norm_(self, max_norm: float) -> torch.Tensor:
        self.core.begin_clipping()
        if not self.core.postpones:
            left_alone = self._watch.changed() is None
            clipped = torch.nn.utils.clip_grad_norm_(self._parameters, max_norm)
            if left_alone:
                self._note_gradients()  # the session's own clipping is no change by the loop
            return clipped
        norm = self.core.gradient_norm()
        if norm > max_norm:
            self.core.scale_gradients(max_norm / (norm + 1e-6))
        return torch.tensor(norm)

    def finish(self) -> None:
        if self._pending:
            self._end_step()
        self._settle()
        self.core.finish()

    def _averages(self) -> dict[int, torch.Tensor]:
        self._settle()
        tensors = [*self._parameters, *self._buffers]
        copies = [torch.empty_like(t) for t in tensors]
        with self._known(copies):
            self.core.averaged([t.data_ptr() for t in copies])
        return dict(zip(map(id, tensors), copies, strict=True))

    def _over_workers(self, values: torch.Tensor) -> torch.Tensor:
        joined = values.clone()
        if self._tensors is not None:
            self._tensors.average_tensor(joined)
            return joined
        self.core.average_at(joined.data_ptr(), joined.numel())
        return joined

    def consensus_distance(self) -> float:
        self._settle()
        return self.core.consensus_distance()

    def average(self, *values: float) -> list[float]:
        return self.core.average(list(values))

    def stats(self) -> _core.SessionStats:
        return self._last_stats or self.core.stats()

    def trace(self) -> Trace:
        return self._last_trace or self.core.trace()

    @property
    def plan(self) -> Plan | None:
        return self._last_plan if self._last_stats is not None else self.core.plan()

    def timeline(self) -> dict[str, Any]:
        recorded: dict[str, Any] = json.loads(self._last_timeline or self.core.timeline())
        return recorded

    @property
    def sensed(self) -> list[tuple[int, str]]:
        return self.core.sensed

    def _saved(self) -> bytes:
        return self.core.save()

    def close(self) -> None:
        super().close()
        self._uninstall()
        self._clock.stop()
        for p in self._parameters:
            if self._gradient_views and p.grad is not None:
                p.grad = p.grad.clone()
        if self._weight_pointers:
            copy_out([*self._parameters, *self._buffers])
        self._gradient_views = []
        if self._last_stats is None:
            self._last_stats = self.core.stats()
            self._last_timeline = self.core.timeline()
            self._last_trace, self._last_plan = self.core.trace(), self.core.plan()
            del self._clock, self.core  # its threads and memory, once no tensor of ours shows any
