"""DeepFM on click logs, where small groups of workers average their weights (sesgd).

    torchrun --nproc-per-node 4 deepfm.py       (or mpirun, srun, riffle launch, or plain python)

The logs come from a known teacher, so the best possible AUC is known and printed too.
"""

import argparse

import torch

import riffle
from riffle.tasks.clicks import CLICKS, DeepFm
from riffle.train.batches import Batches, share

parser = argparse.ArgumentParser()
parser.add_argument("--strategy", default="sesgd")
parser.add_argument("--steps", type=int, default=250)
arguments = parser.parse_args()

torch.manual_seed(0)
data = CLICKS.load("synthetic", seed=0)
model = DeepFm()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)

with riffle.sync(model, optimizer, strategy=arguments.strategy) as session:
    batches = Batches(data.train, 256, session.rank, session.size, seed=0)
    for step in range(arguments.steps):
        optimizer.zero_grad()
        CLICKS.loss(model, batches.at(step)).backward()
        optimizer.step()

if session.rank == 0:
    with torch.no_grad():
        sums = sum(CLICKS.measure(model, batch) for batch in share(data.test, 0, 1))
    auc = CLICKS.result(sums)["auc"]
    print(f"{session.size} workers: AUC {auc:.4f}, the teacher's own is {data.best:.4f}")
