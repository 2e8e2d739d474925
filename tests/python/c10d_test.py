"""The same rules over a process group of torch.distributed (Gloo on loopback)."""

import os
import tempfile
import unittest

import torch
import torch.distributed as dist
from mixing_test import STEPS, cases_for, expected
from processes import gather, start
from tasks import batch, distance, flat, loss_of, momentum, perceptron

import riffle

EXACT = [info.name for info in riffle.strategies() if info.exact] + ["dear:bucket=1KiB"]


def train(rank, size, folder, cases):
    os.environ.update(GLOO_SOCKET_IFNAME="lo")
    store = dist.FileStore(os.path.join(folder, "store"), size)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=size)
    found = []
    for spec, cluster in cases:
        model = perceptron()
        optimizer = momentum(model.parameters())
        session = riffle.sync(model, optimizer, spec, engine=riffle.c10d(), cluster=cluster)
        for step in range(STEPS):
            optimizer.zero_grad()
            loss_of(model, batch(rank, step)).backward()
            if spec in EXACT:
                session.clip_grad_norm_(0.5)
            optimizer.step()
        model.state_dict()
        found.append(flat(model))
        session.finish()
        spread = session.consensus_distance()
        session.close()
        if spread > 1e-15:
            raise AssertionError(f"{spec}: workers differ by {spread} after finish()")
    dist.destroy_process_group()
    return found


def on_one_worker(workers):
    model = perceptron()
    optimizer = momentum(model.parameters())
    for step in range(STEPS):
        optimizer.zero_grad()
        (sum(loss_of(model, batch(r, step)) for r in range(workers)) / workers).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        optimizer.step()
    return flat(model)


class C10d(unittest.TestCase):
    def test_all_rules(self):
        size = 4
        exact = [(spec, None) for spec in EXACT]
        mixing = [case for case in cases_for(size) if "random" not in case[0]]
        with tempfile.TemporaryDirectory() as folder:
            workers = [start(train, rank, size, folder, exact + mixing) for rank in range(size)]
            answers = gather(workers, 500)
        for fine, value in answers:
            self.assertTrue(fine, value)
        for k, (spec, cluster) in enumerate(exact + mixing):
            with self.subTest(spec=spec):
                if k < len(exact):
                    right = on_one_worker(size).expand(size, -1)
                else:
                    right = expected(spec, cluster, size, momentum)
                for rank, (_, found) in enumerate(answers):
                    self.assertLessEqual(distance(found[k], right[rank]), 1e-10)


if __name__ == "__main__":
    unittest.main()
