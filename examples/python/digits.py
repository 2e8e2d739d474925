"""An ordinary training script with two changed lines, marked below.

torchrun --nproc-per-node 4 digits.py      (or mpirun, srun, riffle launch, or plain python)
"""

import argparse

import torch

import riffle  # <- the first changed line

parser = argparse.ArgumentParser()
parser.add_argument("--strategy", default="auto")
parser.add_argument("--steps", type=int, default=150)
arguments = parser.parse_args()


def digits(seed: int, count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Ten fixed patterns of 8x8 under noise: learnable, and nothing to download."""
    patterns = torch.randn(10, 64, generator=torch.Generator().manual_seed(0))
    random = torch.Generator().manual_seed(seed)
    labels = torch.randint(0, 10, (count,), generator=random)
    return patterns[labels] + 1.5 * torch.randn(count, 64, generator=random), labels


model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)

with riffle.sync(model, optimizer, strategy=arguments.strategy) as session:  # <- the second
    for step in range(arguments.steps):
        x, y = digits(seed=1 + step * session.size + session.rank, count=32)
        loss = torch.nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

if session.rank == 0:
    x, y = digits(seed=0, count=2000)
    accuracy = (model(x).argmax(1) == y).float().mean()
    print(f"{session.size} workers: accuracy {accuracy:.1%}")
