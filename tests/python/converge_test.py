"""`riffle converge` against real training: the same network, weights, batches and strategy on torch
workers give the same loss in every step, to rounding."""

import json
import os
import struct
import subprocess
import tempfile
import unittest
from pathlib import Path

import torch
from processes import run

import riffle

RIFFLE = os.environ["RIFFLE_COMMAND"]
STEPS, BATCH, RATE = 40, 8, 0.1
SIZES = (64, 16, 10)
RULES = [
    "bsp",
    "mg-wfbp",
    "dear",
    "sesgd",
    "sesgd:order=combine-then-adapt",
    "sesgd:schedule=random",
    "gossip",
    "ds-sync",
    "local-sgd:tau=4",
    "dasgd:tau=4,delay=1",
    "dasgd:tau=4,delay=2,merge=mix",
    "diloco:tau=8",
    "slowmo:tau=8",
    "noloco:tau=8",
]


def write_idx(path, values):
    head = struct.pack(f">BBBB{values.dim()}I", 0, 0, 8, values.dim(), *values.shape)
    path.write_bytes(head + bytes(values.flatten().tolist()))


def write_data(folder):
    """Ten blurred patterns of 8 x 8, in the form of MNIST's files; the images and labels."""
    random = torch.Generator().manual_seed(3)
    patterns = 200 * torch.rand(10, 8, 8, generator=random)
    for name, count in (("t10k", 100), ("train", 1600)):
        labels = torch.arange(count) % 10
        noise = 100 * torch.rand(count, 8, 8, generator=random)
        images = (patterns[labels] + noise).clamp(0, 255).to(torch.uint8)
        write_idx(folder / f"{name}-images-idx3-ubyte", images)
        write_idx(folder / f"{name}-labels-idx1-ubyte", labels)
    features = (images.flatten(1).float() / 255 - 0.1307) / 0.3081
    return features.double(), labels


def simulated(folder, workers, split):
    """The loss of every step by rule, and what the run began with and learned from."""
    batches = folder / "batches.json"
    command = [RIFFLE, "converge", "--workers", str(workers), "--data", str(folder)]
    command += ["--layers", "-".join(map(str, SIZES)), "--batch", str(BATCH), "--split", split]
    command += ["--steps", str(STEPS), "--every", "1", "--learning-rate", str(RATE)]
    command += ["--save-batches", str(batches), "--format", "json"]
    for rule in RULES:
        command += ["--strategy", rule]
    answer = subprocess.run(command, stdout=subprocess.PIPE, check=True, timeout=600)
    curves = {each["strategy"]: each["loss"] for each in json.loads(answer.stdout)["results"]}
    return curves, json.loads(batches.read_text())


def network(start):
    """Weights lie layer by layer, inputs x outputs, then the biases."""
    model = torch.nn.Sequential(
        torch.nn.Linear(SIZES[0], SIZES[1]), torch.nn.ReLU(), torch.nn.Linear(SIZES[1], SIZES[2])
    ).double()
    at = 0
    for layer in (model[0], model[2]):
        size = layer.in_features * layer.out_features
        with torch.no_grad():
            layer.weight.copy_(start[at : at + size].view(layer.in_features, -1).T)
            layer.bias.copy_(start[at + size : at + size + layer.out_features])
        at += size + layer.out_features
    return model


def train(engine, data, batches):
    """The losses of this worker's batches, a list for each rule."""
    x, y = data
    cluster = f"flat:{engine.size},latency=20us,bandwidth=10Gbps"
    found = []
    for rule in RULES:
        model = network(torch.tensor(batches["start"], dtype=torch.float64))
        optimizer = torch.optim.SGD(model.parameters(), lr=RATE, momentum=0.9)
        losses = []
        with riffle.sync(model, optimizer, rule, engine=engine, cluster=cluster):
            for step in range(STEPS):
                mine = torch.tensor(batches["samples"][step][engine.rank])
                optimizer.zero_grad()
                loss = torch.nn.functional.cross_entropy(model(x[mine]), y[mine])
                loss.backward()
                optimizer.step()
                losses.append(loss.item())
        found.append(losses)
    return found


class Converge(unittest.TestCase):
    def test_torch_workers_have_the_same_loss_in_every_step(self):
        for workers, split in ((4, "iid"), (8, "dirichlet:0.3")):
            with tempfile.TemporaryDirectory() as name:
                data = write_data(Path(name))
                curves, batches = simulated(Path(name), workers, split)
            answers = run(workers, train, data, batches, seconds=900)
            for i, rule in enumerate(RULES):
                mean = torch.tensor([each[i] for each in answers], dtype=torch.float64).mean(0)
                curve = torch.tensor(curves[rule], dtype=torch.float64)
                worst = (mean - curve).abs().max().item()
                with self.subTest(rule=rule, workers=workers):
                    self.assertLess(worst, 1e-9)
                    self.assertLess(curve.min(), 0.8 * curve[0])  # it learns


if __name__ == "__main__":
    unittest.main()
