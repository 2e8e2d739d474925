"""Small models and data that every worker, and the reference, make alike."""

from collections.abc import Callable

import torch

BATCH = 8


def perceptron(dtype: torch.dtype = torch.float64) -> torch.nn.Module:
    torch.manual_seed(7)
    return torch.nn.Sequential(
        torch.nn.Linear(12, 20),
        torch.nn.Tanh(),
        torch.nn.Linear(20, 16),
        torch.nn.Tanh(),
        torch.nn.Linear(16, 5),
    ).to(dtype)


def normalized(seed: int) -> torch.nn.Module:
    """With BatchNorm, so float and integer buffers, and a frozen parameter; all by the seed."""
    torch.manual_seed(seed)
    model = torch.nn.Sequential(
        torch.nn.Linear(12, 10),
        torch.nn.BatchNorm1d(10),
        torch.nn.Tanh(),
        torch.nn.Linear(10, 6),
        torch.nn.BatchNorm1d(6),
        torch.nn.Linear(6, 5),
    ).double()
    model[3].bias.requires_grad = False
    for norm in (model[1], model[4]):
        norm.running_mean.normal_()
        norm.running_var.uniform_(0.5, 2)
        norm.num_batches_tracked.fill_(seed)
    return model


class Mixed(torch.nn.Module):
    """Layers of three element types, and statistics."""

    def __init__(self, dtypes: tuple[torch.dtype, ...]) -> None:
        super().__init__()
        torch.manual_seed(7)
        first, second, third = dtypes
        self.first = torch.nn.Linear(12, 10).to(first)
        self.norm = torch.nn.BatchNorm1d(10).to(first)
        self.second = torch.nn.Linear(10, 6).to(second)
        self.third = torch.nn.Linear(6, 5).to(third)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.norm(self.first(x.to(self.first.weight.dtype)))
        x = torch.tanh(self.second(x.to(self.second.weight.dtype)))
        return self.third(x.to(self.third.weight.dtype)).double()


def batch(rank: int, step: int, dtype: torch.dtype = torch.float64) -> tuple[torch.Tensor, ...]:
    """Different on every worker and step."""
    random = torch.Generator().manual_seed(1000 * step + rank)
    x = torch.randn(BATCH, 12, generator=random, dtype=torch.float64)
    y = torch.randint(0, 5, (BATCH,), generator=random)
    return x.to(dtype), y


def momentum(parameters: object) -> torch.optim.Optimizer:
    return torch.optim.SGD(parameters, lr=0.05, momentum=0.9, weight_decay=1e-3)


def adamw(parameters: object) -> torch.optim.Optimizer:
    return torch.optim.AdamW(parameters, lr=0.005)


OPTIMIZERS: dict[str, Callable[[object], torch.optim.Optimizer]] = {
    "momentum": momentum,
    "adamw": adamw,
}


def loss_of(model: torch.nn.Module, data: tuple[torch.Tensor, ...]) -> torch.Tensor:
    return torch.nn.functional.cross_entropy(model(data[0]), data[1])


def flat(model: torch.nn.Module) -> torch.Tensor:
    """All parameters as one vector."""
    return torch.cat([p.detach().flatten() for p in model.parameters()]).clone()


def state(model: torch.nn.Module) -> dict[str, torch.Tensor]:
    """A copy of the state_dict, after what is due before the next forward has come."""
    return {key: value.detach().clone() for key, value in model.state_dict().items()}


def distance(a: torch.Tensor, b: torch.Tensor) -> float:
    """|a - b| / |b|"""
    return float((a.double() - b.double()).norm() / b.double().norm())
