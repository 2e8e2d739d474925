"""What a task is made of. Nothing here knows about workers."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor, nn

Batch = tuple[Tensor, ...]  # inputs, then what they should give


class Examples(Protocol):
    """Numbered examples; a batch is made of any of them."""

    def __len__(self) -> int: ...

    def take(self, indices: Tensor) -> Batch: ...


@dataclass(frozen=True)
class Table:
    """Examples that are rows of tensors. `prepare` turns stored inputs into what models take."""

    inputs: Tensor
    targets: Tensor
    prepare: Callable[[Tensor], Tensor] = lambda inputs: inputs

    def __len__(self) -> int:
        return len(self.targets)

    def take(self, indices: Tensor) -> Batch:
        """Rows `indices`."""
        return self.prepare(self.inputs[indices]), self.targets[indices]


@dataclass(frozen=True)
class Loaded:
    """Data to learn from and to be judged by; the same on every worker."""

    train: Examples
    test: Examples
    what: str  # for people
    best: float | None = None  # of the metric, where the generator knows it


@dataclass(frozen=True)
class Task:
    """Sums of `measure` over any split of the test data add up, so workers can share it."""

    name: str
    summary: str
    metric: str  # the figure people compare, one of `result`'s
    higher_is_better: bool
    models: dict[str, Callable[[], nn.Module]]  # the first is the default
    optimizer: Callable[[nn.Module, float], torch.optim.Optimizer]  # (model, learning rate)
    learning_rate: float
    batch: int  # per worker
    steps: int | None  # default length; None: `epochs`
    epochs: float
    load: Callable[[str, int], Loaded]  # ("real", "synthetic" or a folder; seed)
    loss: Callable[[nn.Module, Batch], Tensor]
    measure: Callable[[nn.Module, Batch], Tensor]
    result: Callable[[Tensor], dict[str, float]]


def classification_loss(model: nn.Module, batch: Batch) -> Tensor:
    """Mean cross-entropy."""
    return nn.functional.cross_entropy(model(batch[0]), batch[1])


def measure_classification(model: nn.Module, batch: Batch) -> Tensor:
    """Sums: cross-entropy, right answers, examples."""
    scores = model(batch[0])
    loss = nn.functional.cross_entropy(scores, batch[1], reduction="sum")
    right = (scores.argmax(1) == batch[1]).sum()
    return torch.stack([loss.double(), right.double(), torch.tensor(float(len(batch[1])))])


def classification_result(sums: Tensor) -> dict[str, float]:
    """Loss and accuracy of summed measures."""
    loss, right, count = sums.tolist()
    return {"loss": loss / count, "accuracy": right / count}


def momentum(model: nn.Module, learning_rate: float) -> torch.optim.Optimizer:
    """SGD with Nesterov momentum 0.9 and weight decay 5e-4."""
    return torch.optim.SGD(
        model.parameters(), lr=learning_rate, momentum=0.9, nesterov=True, weight_decay=5e-4
    )


def adamw(model: nn.Module, learning_rate: float) -> torch.optim.Optimizer:
    """AdamW with torch's defaults."""
    return torch.optim.AdamW(model.parameters(), lr=learning_rate)


def generator(seed: int, *more: int) -> torch.Generator:
    """A stream of its own for each tuple of numbers."""
    mixed = seed
    for number in more:
        mixed = (mixed * 6364136223846793005 + number + 1442695040888963407) % (1 << 63)
    return torch.Generator().manual_seed(mixed)
