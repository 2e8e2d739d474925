"""Values that travel rounded, over our collectives and over a process group of torch."""

import copy
import unittest

import torch
from processes import run_with_gloo
from tasks import batch, distance, loss_of, momentum, perceptron, state

import riffle
from riffle._rounded import BLOCK, Rounding, decode, encode

WORKERS = 4
STOP, STEPS = 6, 13
FLAT = "flat:4,latency=20us,bandwidth=10Gbps"
EXACT = ["wfbp:wire=bf16", "wfbp:wire=f16", "bsp:wire=int8", "dear:wire=int8"]
MIXING = [
    "sesgd:wire=int8",
    "sesgd:schedule=random,group=2,wire=int8",
    "gossip:wire=bf16",
    "local-sgd:tau=2,wire=int8",
    "dasgd:tau=4,delay=3,wire=int8",
    "diloco:tau=5,wire=int8",
    "diloco:tau=8,fragments=3,overlap=2,wire=int8",
    "noloco:tau=2,wire=int8",
]


def steps(model, optimizer, rank, begin, end):
    for step in range(begin, end):
        optimizer.zero_grad()
        loss_of(model, batch(rank, step, torch.float32)).backward()
        optimizer.step()


def fresh(engine, spec, saved=None):
    model = perceptron(torch.float32)
    optimizer = momentum(model.parameters())
    if saved is not None:
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
    resume = saved and saved["session"]
    session = riffle.sync(model, optimizer, spec, engine=engine, cluster=FLAT, resume=resume)
    return model, optimizer, session


def trained(engine, spec):
    """A run in one go, and one that went on from a checkpoint; what was sent."""
    model, optimizer, session = fresh(engine, spec)
    steps(model, optimizer, engine.rank, 0, STOP)
    saved = {"session": session.state_dict(), "model": model.state_dict()}
    saved = copy.deepcopy(saved | {"optimizer": optimizer.state_dict()})
    steps(model, optimizer, engine.rank, STOP, STEPS)
    whole, sent = state(model), session.stats().bytes
    session.close()
    model, optimizer, session = fresh(engine, spec, saved)
    steps(model, optimizer, engine.rank, STOP, STEPS)
    halves = state(model)
    session.close()
    return whole, halves, sent


def all_of_it(engine):
    return {
        by: {
            spec: trained(riffle.c10d() if by == "group" else engine, spec)
            for spec in ["wfbp", *EXACT, *MIXING]
        }
        for by in ("engine", "group")
    }


class Wire(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.answers = run_with_gloo(WORKERS, all_of_it, seconds=300)

    def each(self, specs):
        for by in ("engine", "group"):
            for spec in specs:
                with self.subTest(by=by, spec=spec):
                    yield [answer[by][spec] for answer in self.answers]

    def test_resuming_is_bit_exact(self):
        for found in self.each(EXACT + MIXING):
            for whole, halves, _ in found:
                for key, value in whole.items():
                    self.assertTrue(torch.equal(halves[key], value), key)

    def test_workers_of_exact_strategies_hold_the_same_bits(self):
        for (first, _, _), *others in self.each(EXACT):
            for whole, _, _ in others:
                for key, value in first.items():
                    self.assertTrue(torch.equal(whole[key], value), key)

    def test_training_is_near_that_without_rounding(self):
        exact = self.answers[0]["engine"]["wfbp"][0]
        for found in self.each(EXACT):
            for key, value in exact.items():
                self.assertLess(distance(found[0][0][key], value), 0.05, key)

    def test_bytes_are_fewer(self):
        for answer in self.answers:
            group = {spec: sent for spec, (_, _, sent) in answer["group"].items()}
            self.assertLess(group["wfbp:wire=bf16"], 0.6 * group["wfbp"])


class Codec(unittest.TestCase):
    def test_what_was_decoded_stays_as_it_is(self):
        torch.manual_seed(1)
        values = torch.randn(1000) * torch.logspace(-3, 3, 1000)
        for wire, bound in (("bf16", 2.0**-8), ("f16", 2.0**-11), ("int8", 0.5 / 127)):
            once = decode(wire, encode(wire, values.clone()), values.numel())
            self.assertTrue(torch.equal(decode(wire, encode(wire, once), values.numel()), once))
            blocks = torch.nn.functional.pad((values - once).abs(), (0, 24)).view(-1, BLOCK)
            sizes = torch.nn.functional.pad(values.abs(), (0, 24)).view(-1, BLOCK)
            most = sizes.amax(1, keepdim=True) * bound * 1.001
            self.assertTrue(bool((blocks <= most).all()), wire)

    def test_what_is_not_a_number_is_passed_on_and_never_lost(self):
        values = torch.randn(300)
        values[7] = torch.inf
        lost = torch.zeros(300)
        rounding = Rounding("int8", lost, 3)
        data = rounding.encode(values, 0, 300, 1.0)
        self.assertEqual(data.numel(), rounding.size(0, 300, 300))
        again = rounding.decode(data, 0, 300, 300)
        self.assertFalse(bool(again[7].isfinite()))
        self.assertTrue(bool(lost.isfinite().all()))
        self.assertTrue(torch.equal(again[297:], values[297:]))


if __name__ == "__main__":
    unittest.main()
