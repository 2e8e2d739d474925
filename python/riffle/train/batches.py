"""Which examples a worker sees at a step: a function of seed and step, so nothing is to be saved.

A step's examples are the same whatever the number of workers; each takes its part of them.
"""

from collections.abc import Iterator

import torch

from riffle._core import UsageError
from riffle.tasks import Examples
from riffle.tasks.task import Batch, generator

EVALUATION_BATCH = 500


class Batches:
    """Batches of `size` examples for one of `workers`; every epoch in an order of its own."""

    def __init__(self, examples: Examples, size: int, rank: int, workers: int, seed: int) -> None:
        self.per_epoch = len(examples) // (size * workers)
        if self.per_epoch == 0:
            raise UsageError(
                f"{workers} workers x {size} examples a step are more than the {len(examples)} "
                "there are"
            )
        self._examples, self._size, self._rank, self._workers = examples, size, rank, workers
        self._seed = seed
        self._epoch = -1
        self._order = torch.empty(0)

    def at(self, step: int) -> Batch:
        """The batch of a step."""
        epoch, number = divmod(step, self.per_epoch)
        if epoch != self._epoch:
            self._epoch = epoch
            count = len(self._examples)
            self._order = torch.randperm(count, generator=generator(self._seed, 100, epoch))
        first = (number * self._workers + self._rank) * self._size
        return self._examples.take(self._order[first : first + self._size])


def share(examples: Examples, rank: int, workers: int) -> Iterator[Batch]:
    """Every `workers`-th example from `rank` on, in batches, for evaluation."""
    for part in torch.arange(rank, len(examples), workers).split(EVALUATION_BATCH):
        yield examples.take(part)
