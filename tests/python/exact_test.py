"""Exact strategies give torch DDP's weights."""

import os
import tempfile
import unittest

import torch
import torch.distributed as dist
from processes import run
from tasks import OPTIMIZERS, batch, distance, flat, loss_of, perceptron

import riffle

# All of them, and small buckets, so that a small model has several.
EXACT = [info.name for info in riffle.strategies() if info.exact]
EXACT += ["ddp:bucket=1KiB,first=512B", "dear:bucket=1KiB"]
BOUND = {torch.float64: 1e-10, torch.float32: 1e-5}
STEPS = 50


def train(model, optimizer, rank, dtype, steps=STEPS):
    for step in range(steps):
        optimizer.zero_grad()
        loss_of(model, batch(rank, step, dtype)).backward()
        optimizer.step()


def with_riffle(engine, spec, name, dtype):
    model = perceptron(dtype)
    optimizer = OPTIMIZERS[name](model.parameters())
    with riffle.sync(model, optimizer, spec, engine=engine):
        train(model, optimizer, engine.rank, dtype)
    return flat(model)


def compare(engine, folder, names, dtypes):
    """For each case the distance from DDP's weights, and the weights."""
    rank, size = engine.rank, engine.size
    os.environ.update(GLOO_SOCKET_IFNAME="lo")
    file = dist.FileStore(os.path.join(folder, f"store{size}"), size)
    dist.init_process_group("gloo", store=file, rank=rank, world_size=size)
    found = {}
    for name in names:
        for dtype in dtypes:
            model = perceptron(dtype)
            wrapped = torch.nn.parallel.DistributedDataParallel(model)
            train(wrapped, OPTIMIZERS[name](model.parameters()), rank, dtype)
            expected = flat(model)
            for spec in EXACT:
                weights = with_riffle(engine, spec, name, dtype)
                found[spec, name, dtype] = (distance(weights, expected), weights)
    dist.destroy_process_group()
    return found


class Exact(unittest.TestCase):
    def check(self, size, names, dtypes):
        with tempfile.TemporaryDirectory() as folder:
            answers = run(size, compare, folder, names, dtypes, seconds=280)
        for case, (error, weights) in answers[0].items():
            with self.subTest(case=case, workers=size):
                self.assertLessEqual(error, BOUND[case[2]])
                for other in answers[1:]:
                    self.assertTrue(torch.equal(other[case][1], weights), "workers differ")

    def test_two_workers(self):
        self.check(2, ["momentum", "adamw"], [torch.float64, torch.float32])

    def test_three_workers(self):
        self.check(3, ["momentum", "adamw"], [torch.float64])

    def test_four_workers(self):
        self.check(4, ["momentum", "adamw"], [torch.float64, torch.float32])


if __name__ == "__main__":
    unittest.main()
