"""A session of one worker: no hooks, no memory of its own, nothing added to a step."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Self

import torch

from riffle import _core
from riffle._batch_norm import recompute
from riffle._core import UsageError
from riffle._tensors import trained
from riffle._weight_average import WeightAverage


class Alone:
    """As riffle/session.py says, for world size 1."""

    rank: int = 0
    size: int = 1

    def __init__(
        self,
        model: torch.nn.Module,
        optimizers: list[torch.optim.Optimizer],
        strategy: _core.NamedStrategy,
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
    def strategy(self) -> _core.NamedStrategy:
        """What would run on several workers."""
        return self._strategy

    @property
    def sensed(self) -> list[tuple[int, str]]:
        """There is no network."""
        return []

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        """Nothing is exchanged anyway."""
        yield

    def batches(self, loader: Iterable[Any]) -> Iterator[Any]:
        """The loader's batches."""
        yield from loader

    def clip_grad_norm_(self, max_norm: float) -> torch.Tensor:
        """As torch.nn.utils.clip_grad_norm_."""
        return torch.nn.utils.clip_grad_norm_(self._parameters, max_norm)

    def finish(self) -> None:
        """One worker is its own average."""

    def averaged(self, batches: Iterable[Any] | None = None) -> dict[str, torch.Tensor]:
        """A copy of the model's state_dict; with `batches`, BatchNorm's statistics of those."""
        state = {key: t.detach().clone() for key, t in self.model.state_dict().items()}
        return self._with_statistics(state, batches)

    def swa(self, batches: Iterable[Any] | None = None) -> dict[str, torch.Tensor]:
        """The average over steps (swa=True); batches: as above."""
        if self._average is None:
            raise UsageError("riffle.sync was not called with swa=True")
        state = self._average.joined(self.model, torch.clone)
        return self._with_statistics(state, batches)

    def _with_statistics(
        self, state: dict[str, torch.Tensor], batches: Iterable[Any] | None
    ) -> dict[str, torch.Tensor]:
        if batches is not None:
            recompute(self.model, state, batches, lambda mean: mean)
        return state

    def consensus_distance(self) -> float:
        """Nobody to differ from."""
        return 0.0

    def average(self, *values: float) -> list[float]:
        """The values themselves."""
        return list(values)

    def stats(self) -> _core.SessionStats:
        """Nothing is measured."""
        return _core.SessionStats()

    def trace(self) -> _core.Trace:
        """Nothing is measured."""
        raise UsageError(
            "a worker alone measures nothing: pass profile=True to riffle.sync, or run the script "
            "under `riffle profile`"
        )

    @property
    def plan(self) -> None:
        """Nothing to plan."""
        return None

    def timeline(self) -> dict[str, Any]:
        """Nothing is recorded."""
        return {"traceEvents": []}

    def state_dict(self) -> dict[str, Any]:
        """Nothing is in flight; the average of swa, where there is one."""
        average = None if self._average is None else self._average.state_dict()
        return {"rank": 0, "size": 1, "session": b"", "swa": average}

    def close(self) -> None:
        """Takes off the hook of swa."""
        for handle in self._handles:
            handle.remove()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
