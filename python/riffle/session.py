"""What a training loop may ask of its session; and a session of one worker."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Self

import torch

from riffle._batch_norm import recompute
from riffle._core import NamedStrategy, Plan, SessionStats, Trace, UsageError
from riffle._tensors import trained
from riffle._weight_average import WeightAverage


class Session:
    """Made by `riffle.sync`; use it as a context manager. At the end of the block all workers hold
    the exact average.

    This one is of one worker: no hooks, no memory of its own, nothing added to a step. A session of
    many overrides what has to be done by all (_distributed.py).
    """

    rank: int = 0  # this worker's number
    size: int = 1  # how many workers there are

    def __init__(
        self,
        model: torch.nn.Module,
        optimizers: list[torch.optim.Optimizer],
        strategy: NamedStrategy,
        average: WeightAverage | None = None,
    ) -> None:
        self.model = model
        self._strategy = strategy
        self._parameters = [p for _, p in trained(model)]
        self._average = average
        self._handles: list[Any] = []
        if average is not None:
            self._handles = [optimizers[-1].register_step_post_hook(lambda *_: average.sample())]

    @property
    def strategy(self) -> NamedStrategy:
        """What runs, with its options; on one worker, what would."""
        return self._strategy

    @property
    def sensed(self) -> list[tuple[int, str]]:
        """What was sensed of the network and what was changed, each with its step."""
        return []

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        """Accumulates gradients in the block, without exchanging."""
        yield

    def batches(self, loader: Iterable[Any]) -> Iterator[Any]:
        """The loader's batches. Workers that have fewer go on without data until all are done."""
        yield from loader

    def clip_grad_norm_(self, max_norm: float) -> torch.Tensor:
        """Clips the norm of the gradient that the update will use; returns the norm before."""
        return torch.nn.utils.clip_grad_norm_(self._parameters, max_norm)

    def finish(self) -> None:
        """One exact average of weights and buffers over all workers, in place."""

    def averaged(self, batches: Iterable[Any] | None = None) -> dict[str, torch.Tensor]:
        """A state_dict whose parameters and float buffers are the average over all workers.

        With `batches`, this worker's, BatchNorm's statistics are computed anew from those of all
        workers. The model stays as it is.
        """
        averages = self._averages()
        state = self.model.state_dict(keep_vars=True)
        state = {
            key: averages[id(t)] if id(t) in averages else t.detach().clone()
            for key, t in state.items()
        }
        return self._with_statistics(state, batches)

    def swa(self, batches: Iterable[Any] | None = None) -> dict[str, torch.Tensor]:
        """A state_dict of the average over steps and workers (swa=True); batches: as above."""
        if self._average is None:
            raise UsageError("riffle.sync was not called with swa=True")
        self._settle()
        return self._with_statistics(self._average.joined(self.model, self._over_workers), batches)

    def consensus_distance(self) -> float:
        """How far workers are from their mean, relative to it."""
        return 0.0

    def average(self, *values: float) -> list[float]:
        """The mean of each value over all workers, for metrics."""
        return list(values)

    def stats(self) -> SessionStats:
        """Step time, exposed communication, bytes, consensus distance; also after the end."""
        return SessionStats()

    def trace(self) -> Trace:
        """What computing takes, a layer per parameter, as this worker has measured it in its first
        steps (profile=True: in more); before that, modelled."""
        raise UsageError(
            "a worker alone measures nothing: pass profile=True to riffle.sync, or run the script "
            "under `riffle profile`"
        )

    @property
    def plan(self) -> Plan | None:
        """With strategy="auto", once there is one: the ranking, and beside each prediction what a
        step took, of those that ran."""
        return None

    def timeline(self) -> dict[str, Any]:
        """What happened on this worker (record=True), as Chrome and Perfetto read it."""
        return {"traceEvents": []}

    def state_dict(self) -> dict[str, Any]:
        """What `resume=` of riffle.sync takes; save it with the model's and the optimizer's."""
        self._settle()
        average = None if self._average is None else self._average.state_dict()
        return {"rank": self.rank, "size": self.size, "session": self._saved(), "swa": average}

    def close(self) -> None:
        """Takes hooks off and gives tensors memory of their own."""
        for handle in self._handles:
            handle.remove()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if kind is None:
                self.finish()
        finally:
            self.close()

    # --- What is another thing with many workers.

    def _settle(self) -> None:
        """All that is due before the next forward has happened."""

    def _averages(self) -> dict[int, torch.Tensor]:
        """Averages over workers, by the id of the tensor that each is of."""
        return {}

    def _over_workers(self, values: torch.Tensor) -> torch.Tensor:
        """The mean of float64 values, as a tensor of its own."""
        return values.clone()

    def _saved(self) -> bytes:
        """What is in flight."""
        return b""

    def _with_statistics(
        self, state: dict[str, torch.Tensor], batches: Iterable[Any] | None
    ) -> dict[str, torch.Tensor]:
        if batches is not None:
            recompute(self.model, state, batches, self._over_workers)
        return state
