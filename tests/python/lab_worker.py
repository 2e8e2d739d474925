"""Trains a small model with every strategy given, one after the other, and keeps the weights.

lab_worker.py FOLDER CLUSTER STRATEGY...
"""

import sys
from pathlib import Path

import torch

import riffle

STEPS = 10


def train(strategy, cluster, engine):
    torch.manual_seed(1)
    model = torch.nn.Sequential(
        torch.nn.Linear(6, 16), torch.nn.BatchNorm1d(16), torch.nn.Tanh(), torch.nn.Linear(16, 3)
    ).double()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    data = torch.Generator().manual_seed(100 + engine.rank)
    with riffle.sync(model, optimizer, strategy, engine=engine, cluster=cluster, sense=False):
        for _ in range(STEPS):
            inputs = torch.randn(8, 6, generator=data, dtype=torch.float64)
            loss = (model(inputs) - inputs[:, :3].sin()).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        # What is due before the next forward is merged then. Read before the block's end, which
        # makes all workers equal.
        model(inputs)
        return torch.cat([p.detach().flatten().clone() for p in model.parameters()])


def main():
    folder, cluster, *strategies = sys.argv[1:]
    torch.set_num_threads(1)
    engine = riffle._core.launched_engine()  # one for all
    trained = {strategy: train(strategy, cluster, engine) for strategy in strategies}
    torch.save(trained, Path(folder) / f"{engine.rank}.pt")


if __name__ == "__main__":
    main()
