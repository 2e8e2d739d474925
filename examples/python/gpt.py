"""A small GPT that learns to write: the next character of a text, on all workers.

    torchrun --nproc-per-node 4 gpt.py          (or mpirun, srun, riffle launch, or plain python)

Each worker sees a few steps of its own between averages (local-sgd), which suits slow networks.
"""

import argparse

import torch

import riffle
from riffle.tasks.chars import CHARS, Gpt
from riffle.train.batches import Batches, share

parser = argparse.ArgumentParser()
parser.add_argument("--data", default="synthetic", help="synthetic, real (the plays) or a file")
parser.add_argument("--strategy", default="local-sgd:tau=4")
parser.add_argument("--steps", type=int, default=150)
arguments = parser.parse_args()

torch.manual_seed(0)
data = CHARS.load(arguments.data, seed=0)
model = Gpt(width=64)
optimizer = torch.optim.AdamW(model.parameters(), lr=4e-3)
schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 4e-3, total_steps=arguments.steps)

with riffle.sync(model, optimizer, strategy=arguments.strategy) as session:
    batches = Batches(data.train, 8, session.rank, session.size, seed=0)
    for step in range(arguments.steps):
        optimizer.zero_grad()
        CHARS.loss(model, batches.at(step)).backward()
        session.clip_grad_norm_(1.0)
        optimizer.step()
        schedule.step()

if session.rank == 0:
    model.eval()
    with torch.no_grad():
        first = next(share(data.test, 0, 8))
        perplexity = CHARS.result(CHARS.measure(model, first))["perplexity"]
    print(f"{session.size} workers on {data.what}: perplexity {perplexity:.2f}")
