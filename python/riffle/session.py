"""What a training loop may ask of its session."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

from riffle import _core
from riffle._batch_norm import recompute
from riffle._core import UsageError
from riffle._steps import Steps
from riffle._tensors import copy_out


class Session(Steps):
    """Made by `riffle.sync`; use it as a context manager."""

    @property
    def rank(self) -> int:
        """This worker's number."""
        return self._engine.rank

    @property
    def size(self) -> int:
        """How many workers there are."""
        return self._engine.size

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        """Accumulates gradients in the block, without exchanging."""
        self.core.set_sync(False)
        try:
            yield
        finally:
            self.core.set_sync(True)

    def batches(self, loader: Iterable[Any]) -> Iterator[Any]:
        """The loader's batches. Workers that have fewer go on without data until all are done."""
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
        """Clips the norm of the gradient that the update will use; returns the norm before."""
        self.core.begin_clipping()
        if not self.core.keeps_gradients:
            return torch.nn.utils.clip_grad_norm_(self._parameters, max_norm)
        norm = self.core.gradient_norm()
        if norm > max_norm:
            self._scale_gradients(max_norm / (norm + 1e-6))
        return torch.tensor(norm)

    def finish(self) -> None:
        """One exact average of weights and buffers over all workers, in place."""
        if self._pending:
            self._end_step()
        self._settle()
        self.core.finish()

    def averaged(self, batches: Iterable[Any] | None = None) -> dict[str, torch.Tensor]:
        """A state_dict whose parameters and float buffers are the average over all workers.

        With `batches`, this worker's, BatchNorm's statistics are computed anew from those of all
        workers. The model stays as it is.
        """
        self._settle()
        tensors = [*self._parameters, *self._buffers]
        copies = [torch.empty_like(t) for t in tensors]
        for copy in copies if self._tensors is not None else []:
            self._tensors.adopt(copy)  # type: ignore[union-attr]
        self.core.averaged([t.data_ptr() for t in copies])
        found = dict(zip(map(id, tensors), copies, strict=True))
        state = self.model.state_dict(keep_vars=True)
        state = {key: found.get(id(t), t.detach().clone()) for key, t in state.items()}
        return self._with_statistics(state, batches)

    def swa(self, batches: Iterable[Any] | None = None) -> dict[str, torch.Tensor]:
        """A state_dict of the average over steps and workers (swa=True); batches: as above."""
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
        """How far workers are from their mean, relative to it."""
        self._settle()
        return self.core.consensus_distance()

    def average(self, *values: float) -> list[float]:
        """The mean of each value over all workers, for metrics."""
        return self.core.average(list(values))

    def stats(self) -> _core.SessionStats:
        """Step time, exposed communication, bytes, consensus distance; also after the end."""
        return self._last_stats or self.core.stats()

    @property
    def sensed(self) -> list[tuple[int, str]]:
        """What was sensed of the network and what was changed, each with its step."""
        return self.core.sensed

    def state_dict(self) -> dict[str, Any]:
        """What `resume=` of riffle.sync takes; save it with the model's and the optimizer's."""
        self._settle()
        average = None if self._average is None else self._average.state_dict()
        return {
            "rank": self.rank,
            "size": self.size,
            "session": self.core.save(),
            "swa": average,
        }

    def close(self) -> None:
        """Takes hooks off and gives tensors memory of their own."""
        for handle in self._handles:
            handle.remove()
        if self._forward is not None:
            self._forward.remove()
        for p in self._parameters:
            if self._gradient_views and p.grad is not None:
                p.grad = p.grad.clone()
        if self._weight_pointers:
            copy_out([*self._parameters, *self._buffers])
        self._gradient_views = []
        if self._last_stats is None:
            self._last_stats = self.core.stats()
            del self.core  # its threads and memory, once no tensor of ours shows any

    def __enter__(self) -> "Session":
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if kind is None:
                self.finish()
        finally:
            self.close()
