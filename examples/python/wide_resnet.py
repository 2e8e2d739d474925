"""WideResNet with BatchNorm: DS-Sync first, then its extended weight averaging (swa).

    torchrun --nproc-per-node 4 wide_resnet.py  (or mpirun, srun, riffle launch, or plain python)

Weights are averaged over the last steps and over all workers. BatchNorm's statistics belong to
weights, so they are computed again for the average.
"""

import argparse

import torch

import riffle
from riffle.tasks.images import IMAGES, wide_resnet
from riffle.train.batches import Batches, share

parser = argparse.ArgumentParser()
parser.add_argument("--data", default="synthetic", help="synthetic, or CIFAR-10's binary files")
parser.add_argument("--strategy", default="ds-sync")
parser.add_argument("--steps", type=int, default=80)
parser.add_argument("--swa-steps", type=int, default=20)
arguments = parser.parse_args()

torch.manual_seed(0)
data = IMAGES.load(arguments.data, seed=0)
model = wide_resnet()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=5e-4)


def train(first: int, last: int, swa: bool) -> riffle.Session:
    """Steps first .. last - 1; leaves in the model the weights to go on with."""
    with riffle.sync(model, optimizer, strategy=arguments.strategy, swa=swa) as session:
        batches = Batches(data.train, 16, session.rank, session.size, seed=0)
        for step in range(first, last):
            optimizer.zero_grad()
            IMAGES.loss(model, batches.at(step)).backward()
            optimizer.step()
        few = [Batches(data.train, 64, session.rank, session.size, seed=1).at(i) for i in range(4)]
        average = session.swa(few) if swa else session.averaged()
    model.load_state_dict(average)
    return session


total = arguments.steps + arguments.swa_steps
train(0, arguments.steps, swa=False)
for group in optimizer.param_groups:
    group["lr"] = 0.02
session = train(arguments.steps, total, swa=True)

if session.rank == 0:
    model.eval()
    with torch.no_grad():
        sums = sum(IMAGES.measure(model, batch) for batch in share(data.test, 0, 4))
    print(f"{session.size} workers on {data.what}: accuracy {IMAGES.result(sums)['accuracy']:.1%}")
