"""Every strategy of the table gives the same model on our own engine and over a process group.

The model has what review after review found forgotten: BatchNorm's statistics, its integer counters
and a frozen parameter, all different on each worker at the start. Weights and statistics are also
those of reference.py. Everything is compared before finish(), which would make workers equal.
"""

import unittest
from functools import partial

import torch
from mixing_test import expected, is_exact
from processes import run_with_gloo
from tasks import batch, distance, loss_of, momentum, normalized, state

import riffle

WORKERS = 4
STEPS = 12
BOUND = 1e-10
FLAT = "flat:4,latency=20us,bandwidth=10Gbps"
RACKS = "racks:2x2,inner=20us/10Gbps,outer=200us/1Gbps"
SEED = 11  # of rank 0

# What of a strategy's options counts here, besides what it does by itself.
OPTIONS = {
    "ddp": ["bucket=1KiB,first=512B"],
    "dear": ["bucket=1KiB", "bucket=optimal"],
    "mg-wfbp": ["", "merge=paper"],
    "local-sgd": ["tau=5", "tau=7,mix_state=true"],
    "gossip": ["", "mix_state=true", "order=combine-then-adapt"],
    "sesgd": [
        "",
        "bucket=layer,group=2",
        "group=2,every=2,bucket=single",
        "order=combine-then-adapt",
        "group=2,schedule=random",
        "group=2,schedule=random,order=combine-then-adapt",
        "mix_state=true",
        "mix_state=true,order=combine-then-adapt",
    ],
    "ds-sync": ["", "order=combine-then-adapt", "bucket=layer", "mix_state=true"],
    "dasgd": ["", "tau=3,delay=3", "merge=mix,xi=0.25", "tau=4,delay=2,mix_state=true"],
    "diloco": [
        "tau=5",
        "tau=5,outer=0.5,momentum=0.8,mix_state=true",
        "tau=6,fragments=3",
        "tau=7,fragments=3,overlap=2,mix_state=true",
        "tau=5,overlap=4,xi=0.3",
    ],
    "slowmo": ["tau=4", "tau=3,outer=0.8,momentum=0.7,mix_state=true"],
    "noloco": ["tau=3", "tau=5,mix_state=true"],
}
SERVING = ["asp", "ssp"]  # refused over a process group: c10d_test.py
ON_RACKS = [
    "ds-sync:pattern=bottleneck,delay=0,bucket=layer",
    "ds-sync:pattern=bottleneck,delay=0,order=combine-then-adapt",
    "ds-sync:pattern=bottleneck,delay=2",
    "ds-sync:pattern=bottleneck,delay=2,bucket=layer",
    "hierarchical",
]


def cases():
    """(strategy, cluster), by the table."""
    names = [info.name for info in riffle.strategies()]
    names = [n for n in names if n not in SERVING]
    specs = [f"{n}:{o}".rstrip(":") for n in names for o in OPTIONS.get(n, [""])]
    return [(spec, FLAT) for spec in specs] + [(spec, RACKS) for spec in ON_RACKS]


def train(engine, spec, cluster):
    model = normalized(SEED + 5 * engine.rank)
    optimizer = momentum(model.parameters())
    session = riffle.sync(model, optimizer, spec, engine=engine, cluster=cluster)
    for step in range(STEPS):
        optimizer.zero_grad()
        loss_of(model, batch(engine.rank, step)).backward()
        optimizer.step()
    found = state(model)
    session.finish()
    spread = session.consensus_distance()
    session.close()
    if spread > 1e-15:
        raise AssertionError(f"{spec} on {engine.name}: {spread} apart after finish()")
    return found


def train_all(engine, some):
    group = riffle.c10d()
    return [(train(engine, *case), train(group, *case)) for case in some]


class Engines(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cases = cases()
        cls.answers = run_with_gloo(WORKERS, train_all, cls.cases, seconds=400)

    def for_each_case(self, check):
        for k, (spec, cluster) in enumerate(self.cases):
            with self.subTest(spec=spec, cluster=cluster.split(":")[0]):
                check(spec, cluster, [answer[k] for answer in self.answers])

    def same(self, found, right):
        for key, value in right.items():
            if value.is_floating_point():
                self.assertLessEqual(distance(found[key], value), BOUND, key)
            else:
                self.assertTrue(torch.equal(found[key], value), key)

    def test_own_engine_and_process_group_agree(self):
        def check(_spec, _cluster, answers):
            for own, over_group in answers:
                self.same(over_group, own)

        self.for_each_case(check)

    def test_they_are_what_the_rule_says(self):
        unknown = []

        def check(spec, cluster, answers):
            first = partial(normalized, SEED)
            right = expected(spec, cluster, WORKERS, momentum, make_model=first, steps=STEPS)
            if right is None:
                unknown.append(spec)  # another strategy of the table; the engines agree on it
                return
            for model, (own, _) in zip(right.models, answers, strict=True):
                self.same(own, state(model))

        self.for_each_case(check)
        self.assertLessEqual(len(unknown), len(self.cases) - 30, unknown)

    def test_what_is_not_trained_is_rank_0s(self):
        right = normalized(SEED).state_dict()

        def check(_spec, _cluster, answers):
            for found in (each for answer in answers for each in answer):
                self.assertTrue(torch.equal(found["3.bias"], right["3.bias"]))
                for key in ("1.num_batches_tracked", "4.num_batches_tracked"):
                    self.assertEqual(int(found[key]), SEED + STEPS)

        self.for_each_case(check)

    def test_workers_of_mixing_strategies_differ(self):
        """Else the tests above would not tell a rule from a global average."""

        def check(spec, _cluster, answers):
            if is_exact(spec.split(":")[0]):
                return
            first = answers[0][0]["0.weight"]
            apart = max(distance(own["0.weight"], first) for own, _ in answers)
            self.assertGreater(apart, 1e-6)

        self.for_each_case(check)


if __name__ == "__main__":
    unittest.main()
