"""A session of many workers; riffle/session.py says what each function does."""

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Self

import torch

from riffle import _core
from riffle._batch_norm import recompute
from riffle._core import NamedStrategy, Plan, Trace, UsageError
from riffle._steps import Steps
from riffle._tensors import copy_out


class Distributed(Steps):
    """What a loop may ask for, on top of the steps."""

    @property
    def rank(self) -> int:
        return self._engine.rank

    @property
    def size(self) -> int:
        return self._engine.size

    @property
    def strategy(self) -> NamedStrategy:
        return self.core.strategy

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        self.core.set_sync(False)
        try:
            yield
        finally:
            self.core.set_sync(True)

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
        self._ready = set()
        self._end_backward()
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

    def averaged(self, batches: Iterable[Any] | None = None) -> dict[str, torch.Tensor]:
        self._settle()
        tensors = [*self._parameters, *self._buffers]
        copies = [torch.empty_like(t) for t in tensors]
        with self._known(copies):
            self.core.averaged([t.data_ptr() for t in copies])
        found = dict(zip(map(id, tensors), copies, strict=True))
        state = self.model.state_dict(keep_vars=True)
        state = {key: found.get(id(t), t.detach().clone()) for key, t in state.items()}
        return self._with_statistics(state, batches)

    def swa(self, batches: Iterable[Any] | None = None) -> dict[str, torch.Tensor]:
        if self._average is None:
            raise UsageError("riffle.sync was not called with swa=True")
        self._settle()
        return self._with_statistics(self._average.joined(self.model, self._over_workers), batches)

    def _with_statistics(
        self, state: dict[str, torch.Tensor], batches: Iterable[Any] | None
    ) -> dict[str, torch.Tensor]:
        if batches is not None:
            recompute(self.model, state, batches, self._over_workers)
        return state

    def _over_workers(self, values: torch.Tensor) -> torch.Tensor:
        """The mean of float64 values."""
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

    def state_dict(self) -> dict[str, Any]:
        self._settle()
        average = None if self._average is None else self._average.state_dict()
        return {
            "rank": self.rank,
            "size": self.size,
            "session": self.core.save(),
            "swa": average,
        }

    def close(self) -> None:
        for handle in self._handles:
            handle.remove()
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

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if kind is None:
                self.finish()
        finally:
            self.close()
