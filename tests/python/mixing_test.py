"""Weight-mixing strategies against reference.py: 50 steps, float64, real processes."""

import unittest

import reference
import torch
from processes import run
from tasks import adamw, batch, distance, flat, loss_of, momentum, perceptron

import riffle

STEPS = 50
BOUND = 1e-10
FLAT = "flat:{},latency=20us,bandwidth=10Gbps"
RACKS = "racks:{},inner=20us/10Gbps,outer=200us/1Gbps"
# Two racks, or three of two where that is all there is to divide.
SHAPES = {4: "2x2", 6: "2x3", 8: "2x4"}
GROUPED = ("sesgd", "ds-sync")  # whose programs are a partition in every step


def train(engine, cases, make_optimizer):
    """The weights of this worker after STEPS steps, before anything is averaged at the end."""
    found = []
    for spec, cluster in cases:
        model = perceptron()
        optimizer = make_optimizer(model.parameters())
        session = riffle.sync(model, optimizer, spec, engine=engine, cluster=cluster)
        for step in range(STEPS):
            optimizer.zero_grad()
            loss_of(model, batch(engine.rank, step)).backward()
            optimizer.step()
        model.state_dict()  # what is due before the next forward has come
        found.append(flat(model))
        session.close()
    return found


def program_of(spec, cluster):
    """The exchanges of one bucket by step: how a model is cut does not matter to its weights."""
    world = riffle.World(cluster)
    strategy = riffle.make(spec)
    buckets = strategy.buckets(riffle.load_trace("resnet50"), world)

    def program(step):
        exchanges = strategy.program(step, world, buckets).exchanges
        return [each for each in exchanges if each.bucket == 0]

    return program


def fragments_of(strategy, cluster, model):
    """Where a model is cut into parts that take turns; and the program of all of them."""
    world = riffle.World(cluster)
    places, end = {}, 0  # in the weights
    for name, p in model.named_parameters():
        places[name] = slice(end, end + p.numel())
        end += p.numel()
    trained = [(name, p.numel()) for name, p in model.named_parameters() if p.requires_grad]
    layers = [riffle.Layer(name, count, 1e-3, 1e-3) for name, count in trained]
    buckets = strategy.buckets(riffle.Trace(layers), world)
    fragments = []
    for each in buckets:
        before = sum(count for _, count in trained[: each.first])
        inside = sum(count for _, count in trained[each.first : each.last + 1])
        first, last = (places[trained[k][0]] for k in (each.first, each.last))
        weights, state = slice(first.start, last.stop), slice(before, before + inside)
        fragments.append(reference.Fragment(weights, state, each.first == 0))
    return fragments, lambda step: strategy.program(step, world, buckets).exchanges


def is_streaming(strategy):
    options = strategy.options
    return strategy.name == "diloco" and (options["fragments"], options["overlap"]) != ("1", "0")


def groups_of(spec, cluster, lane=0):
    """Who averages with whom at a step, as the strategy's programs say."""
    program = program_of(spec, cluster)
    return lambda step: reference.disjoint(e.group for e in program(step) if e.lane == lane)


def interpreted(spec, cluster, workers, make_optimizer):
    """What the programs of any strategy mean, a row per worker."""
    replicas = reference.Replicas(workers, perceptron, make_optimizer)
    if is_streaming(riffle.make(spec)):
        fragments, program = fragments_of(riffle.make(spec), cluster, perceptron())
        reference.interpret(replicas, STEPS, program, [each.weights for each in fragments])
    else:
        reference.interpret(replicas, STEPS, program_of(spec, cluster))
    return replicas.weights()


def is_timed(spec, cluster):
    """What its workers hold depends on who is faster: it has no one result."""
    return riffle.make(spec).traits(riffle.World(cluster)).timed


def is_exact(name):
    return next(info.exact for info in riffle.strategies() if info.name == name)


def expected(spec, cluster, workers, make_optimizer, make_model=perceptron, steps=STEPS):
    """Replicas by the papers' formula where it is known, else as the programs mean; None where
    those would have to tell of statistics too."""
    strategy = riffle.make(spec)
    options = strategy.options
    mix_state = options.get("mix_state") == "true"
    replicas = reference.Replicas(workers, make_model, make_optimizer, mix_state=mix_state)
    groups = groups_of(spec, cluster)

    def matrix(step):
        if strategy.name == "gossip":
            rounds = max(1, (workers - 1).bit_length())
            return reference.shift_matrix(workers, 1 << step % rounds)
        return reference.partition_matrix(groups(step), workers)

    if workers == 1:  # nobody to exchange with: plain training, also of outer steps
        reference.synchronous(replicas, steps)
    elif is_exact(strategy.name):
        reference.synchronous(replicas, steps)
    elif strategy.name == "ds-sync" and options["delay"] not in ("auto", "0"):
        crossing = groups_of(spec, cluster, lane=1)
        reference.ds_sync_delayed(
            replicas,
            steps,
            int(options["delay"]),
            groups,
            lambda step: (crossing(step) or [[]])[0],
        )
    elif options.get("order") == "adapt-then-combine":
        reference.adapt_then_combine(replicas, steps, matrix)
    elif options.get("order") == "combine-then-adapt":
        reference.combine_then_adapt(replicas, steps, matrix)
    elif strategy.name == "local-sgd":
        reference.local_sgd(replicas, steps, int(options["tau"]))
    elif strategy.name == "dasgd":
        how = int(options["tau"]), int(options["delay"]), float(options["xi"])
        reference.dasgd(replicas, steps, *how, options["merge"] == "mix")
    elif is_streaming(strategy):
        fragments, _ = fragments_of(strategy, cluster, make_model())
        numbers = (float(options[key]) for key in ("xi", "outer", "momentum"))
        tau, overlap = int(options["tau"]), int(options["overlap"])
        reference.streaming_diloco(replicas, steps, fragments, tau, overlap, *numbers)
    elif strategy.name == "slowmo" and make_optimizer is momentum:
        how = int(options["tau"]), float(options["outer"]), float(options["momentum"]), 0.05
        reference.slowmo(replicas, steps, *how)
    elif strategy.name == "noloco":
        how = float(options["outer"]), float(options["momentum"])
        reference.noloco(replicas, steps, *how, groups)
    elif strategy.name == "diloco":
        how = int(options["tau"]), float(options["outer"]), float(options["momentum"])
        reference.diloco(replicas, steps, *how)
    elif make_model is perceptron and not mix_state:
        reference.interpret(replicas, steps, program_of(spec, cluster))
    else:
        return None
    return replicas


def cases_for(workers):
    """Every strategy that mixes weights, and settings that a small model and few steps need."""
    flat_cluster = FLAT.format(workers)
    specs = [info.name for info in riffle.strategies() if not info.exact]
    specs += [
        "sesgd:bucket=layer",
        "sesgd:bucket=single,order=combine-then-adapt",
        "sesgd:schedule=random,group=2",
        "ds-sync:bucket=layer,order=adapt-then-combine",
        "ds-sync:order=combine-then-adapt",
        "gossip:order=combine-then-adapt",
        "dasgd:tau=4,delay=2",
        "dasgd:tau=3,delay=3",
        "dasgd:tau=4,delay=1,merge=mix,xi=0.25",
        "local-sgd:tau=5",
        "diloco:tau=10",
        "ssp:staleness=0",
        "ssp:staleness=0,bucket=layer",
        "diloco:tau=9,fragments=3",
        "diloco:tau=10,fragments=3,overlap=3,xi=0.4",
        "diloco:tau=7,overlap=6",
        "slowmo:tau=5,momentum=0.7",
        "noloco:tau=4",
    ]
    cases = [(spec, flat_cluster) for spec in specs if not is_timed(spec, flat_cluster)]
    if workers in SHAPES:
        racks = RACKS.format(SHAPES[workers])
        cases += [
            ("ds-sync:pattern=bottleneck,delay=0,bucket=layer", racks),
            ("ds-sync:pattern=bottleneck,delay=0,order=combine-then-adapt", racks),
            ("ds-sync:pattern=bottleneck,delay=3,bucket=layer", racks),
        ]
    return cases


class Checks(unittest.TestCase):
    def check(self, workers, make_optimizer=momentum):
        cases = cases_for(workers)
        answers = run(workers, train, cases, make_optimizer, seconds=280)
        for k, (spec, cluster) in enumerate(cases):
            right = expected(spec, cluster, workers, make_optimizer).weights()
            with self.subTest(spec=spec, workers=workers):
                for rank in range(workers):
                    self.assertLessEqual(distance(answers[rank][k], right[rank]), BOUND)


class Mixing(Checks):
    def test_one_worker(self):
        self.check(1)

    def test_two_workers(self):
        self.check(2)

    def test_four_workers(self):
        self.check(4)

    def test_the_reference_tells_rules_apart(self):
        cluster = FLAT.format(4)
        a, b = (
            expected(f"sesgd:order={order}", cluster, 4, momentum).weights()
            for order in ("adapt-then-combine", "combine-then-adapt")
        )
        self.assertGreater(distance(a, b), 1e-4)

    def test_programs_mean_what_the_papers_say(self):
        for spec, cluster in cases_for(4):
            with self.subTest(spec=spec):
                meant = interpreted(spec, cluster, 4, momentum)
                right = expected(spec, cluster, 4, momentum).weights()
                self.assertLessEqual(distance(meant, right), 1e-12)


class MixingLong(Checks):
    def test_three_workers(self):
        self.check(3)

    def test_six_workers(self):
        self.check(6)

    def test_eight_workers(self):
        self.check(8)

    def test_adamw(self):
        self.check(4, adamw)


if __name__ == "__main__":
    torch.set_num_threads(1)
    unittest.main()
