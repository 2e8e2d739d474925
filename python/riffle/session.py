"""What a training loop may ask of its session, on one worker as on many."""

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from typing import Any, Protocol, Self

import torch

from riffle._core import NamedStrategy, Plan, SessionStats, Trace


class Session(Protocol):
    """Made by `riffle.sync`; use it as a context manager. At the end of the block all workers hold
    the exact average."""

    model: torch.nn.Module

    @property
    def rank(self) -> int:
        """This worker's number."""

    @property
    def size(self) -> int:
        """How many workers there are."""

    @property
    def strategy(self) -> NamedStrategy:
        """What runs, with its options."""

    def no_sync(self) -> AbstractContextManager[None]:
        """Accumulates gradients in the block, without exchanging."""

    def batches(self, loader: Iterable[Any]) -> Iterator[Any]:
        """The loader's batches. Workers that have fewer go on without data until all are done."""

    def clip_grad_norm_(self, max_norm: float) -> torch.Tensor:
        """Clips the norm of the gradient that the update will use; returns the norm before."""

    def finish(self) -> None:
        """One exact average of weights and buffers over all workers, in place."""

    def averaged(self, batches: Iterable[Any] | None = None) -> dict[str, torch.Tensor]:
        """A state_dict whose parameters and float buffers are the average over all workers.

        With `batches`, this worker's, BatchNorm's statistics are computed anew from those of all
        workers. The model stays as it is.
        """

    def swa(self, batches: Iterable[Any] | None = None) -> dict[str, torch.Tensor]:
        """A state_dict of the average over steps and workers (swa=True); batches: as above."""

    def consensus_distance(self) -> float:
        """How far workers are from their mean, relative to it."""

    def average(self, *values: float) -> list[float]:
        """The mean of each value over all workers, for metrics."""

    def stats(self) -> SessionStats:
        """Step time, exposed communication, bytes, consensus distance; also after the end."""

    def trace(self) -> Trace:
        """What computing takes, a layer per parameter, as this worker has measured it in its first
        steps (profile=True: in more); before that, modelled."""

    @property
    def plan(self) -> Plan | None:
        """With strategy="auto", once there is one: the ranking, and beside each prediction what a
        step took, of those that ran."""

    def timeline(self) -> dict[str, Any]:
        """What happened on this worker (record=True), as Chrome and Perfetto read it."""

    @property
    def sensed(self) -> list[tuple[int, str]]:
        """What was sensed of the network and what was changed, each with its step."""

    def state_dict(self) -> dict[str, Any]:
        """What `resume=` of riffle.sync takes; save it with the model's and the optimizer's."""

    def close(self) -> None:
        """Takes hooks off and gives tensors memory of their own."""

    def __enter__(self) -> Self: ...

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None: ...
