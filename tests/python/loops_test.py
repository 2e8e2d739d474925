"""What training loops do besides forward, backward and step.

Exact strategies must give the weights of one worker with the large batch, weight-mixing ones those
of `in_lockstep`. Weights are taken before finish(), which would make workers equal.
"""

import copy
import pickle
import threading
import time
import unittest
from contextlib import contextmanager, nullcontext

import torch
from mixing_test import groups_of
from processes import apart, run
from reference import partition_matrix
from tasks import batch, distance, flat, loss_of, momentum, perceptron

import riffle

EXACT = ["wfbp", "dear:bucket=1KiB"]
# Four workers in changing pairs.
PAIRS = ["sesgd:bucket=layer,group=2", "ds-sync:bucket=single"]
BOUND = 1e-10
STEPS = 12


def on_one_worker(workers, loop, make_model=perceptron):
    """What exact strategies must give: one model, the loss averaged over all workers' batches."""
    model = make_model()

    def loss(step):
        return sum(loss_of(model, batch(rank, step)) for rank in range(workers)) / workers

    loop(model, loss, None)
    return flat(model)


def on_a_worker(engine, spec, loop, make_model=perceptron, **options):
    """The same loop, distributed."""
    model = make_model()
    loop(model, lambda step: loss_of(model, batch(engine.rank, step)), (engine, spec, options))
    return flat(model)


class InLockstep:
    """Stands for a session: after the last optimizer's step all workers, threads of one process,
    meet, and the matrix of the step makes their weights W X."""

    def __init__(self, barrier):
        self._barrier = barrier

    def start(self, optimizer):
        optimizers = optimizer if isinstance(optimizer, list) else [optimizer]
        optimizers[-1].register_step_post_hook(lambda *_: self._barrier.wait())

    def no_sync(self):
        return nullcontext()


class InTurns:
    """A barrier between whose waits one thread computes at a time: torch's pools were made for
    the process that forked this one, and threads that ask for new ones at once may crash."""

    def __init__(self, barrier):
        self.barrier, self.turn = barrier, threading.Lock()

    def wait(self):
        self.turn.release()
        try:
            return self.barrier.wait()
        finally:
            self.turn.acquire()


def in_lockstep(workers, spec, loop, make_model=perceptron):
    """What adapt-then-combine must give, by plain torch: a row of weights per worker."""
    groups = groups_of(spec, f"flat:{workers},latency=20us,bandwidth=10Gbps")
    models = [make_model() for _ in range(workers)]
    steps = iter(range(1000))

    @torch.no_grad()
    def mix():
        x = torch.stack([flat(model) for model in models])
        x = partition_matrix(groups(next(steps)), workers) @ x
        for model, row in zip(models, x, strict=True):
            torch.nn.utils.vector_to_parameters(row.clone(), model.parameters())

    barrier = InTurns(threading.Barrier(workers, action=mix, timeout=60))

    def work(rank):
        model = models[rank]
        with barrier.turn:
            loop(model, lambda step: loss_of(model, batch(rank, step)), InLockstep(barrier))

    threads = [threading.Thread(target=work, args=(rank,)) for rank in range(workers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [flat(model) for model in models]


@contextmanager
def sync(model, optimizer, how):
    """A session that is closed without finish()."""
    if isinstance(how, InLockstep):
        how.start(optimizer)
        yield how
        return
    if how is None:
        session = riffle.sync(model, optimizer)
    else:
        engine, spec, options = how
        session = riffle.sync(model, optimizer, spec, engine=engine, **options)
    yield session
    model.state_dict()  # what is due before the next forward has come
    session.close()


def accumulating(model, loss, how):
    optimizer = momentum(model.parameters())
    with sync(model, optimizer, how) as session:
        for step in range(STEPS):
            with session.no_sync():
                loss(2 * step).backward()
            loss(2 * step + 1).backward()
            optimizer.step()
            optimizer.zero_grad()


def accumulating_without_no_sync(model, loss, how):
    optimizer = momentum(model.parameters())
    with sync(model, optimizer, how):
        for step in range(STEPS):
            loss(2 * step).backward()
            loss(2 * step + 1).backward()
            optimizer.step()
            optimizer.zero_grad(set_to_none=False)


def accumulating_in_a_function(model, loss, how):
    """no_sync in no_sync, as where a helper has one of its own."""
    optimizer = momentum(model.parameters())
    with sync(model, optimizer, how) as session:
        for step in range(STEPS):
            optimizer.zero_grad()
            with session.no_sync():
                with session.no_sync():
                    loss(3 * step).backward()
                loss(3 * step + 1).backward()
            loss(3 * step + 2).backward()
            optimizer.step()


def stepping_after_no_sync(model, loss, how):
    optimizer = momentum(model.parameters())
    with sync(model, optimizer, how) as session:
        for step in range(STEPS):
            optimizer.zero_grad()
            with session.no_sync() if step % 3 == 1 else nullcontext():
                loss(step).backward()
            optimizer.step()


def adding_groups(model, loss, how):
    layers = [module for module in model if isinstance(module, torch.nn.Linear)]
    optimizer = momentum(layers[0].parameters())
    with sync(model, optimizer, how):
        for step in range(STEPS):
            if step % 4 == 3 and len(optimizer.param_groups) < 3:
                added = layers[len(optimizer.param_groups)]
                optimizer.add_param_group({"params": added.parameters(), "lr": 0.01})
            model.zero_grad()
            loss(step).backward()
            optimizer.step()


def copying(model, loss, how):
    """As for an average of weights, or to save the whole model."""
    optimizer = momentum(model.parameters())
    with sync(model, optimizer, how):
        for step in range(STEPS):
            optimizer.zero_grad()
            loss(step).backward()
            for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
                other(batch(0, step)[0]).sum().backward()
                other.state_dict()
            optimizer.step()


def clipping(model, loss, how):
    optimizer = momentum(model.parameters())
    with sync(model, optimizer, how) as session:
        for step in range(STEPS):
            optimizer.zero_grad()
            loss(step).backward()
            session.clip_grad_norm_(0.3)
            optimizer.step()


def clipping_by_torch(model, loss, how):
    optimizer = momentum(model.parameters())
    with sync(model, optimizer, how):
        for step in range(STEPS):
            optimizer.zero_grad()
            loss(step).backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 0.3)
            optimizer.step()


def groups_and_schedule(model, loss, how):
    layers = [module for module in model if isinstance(module, torch.nn.Linear)]
    groups = [{"params": layers[0].parameters(), "lr": 0.01}, {"params": layers[1].parameters()}]
    optimizer = torch.optim.Adam(groups, lr=0.004)
    last = torch.optim.SGD(layers[2].parameters(), lr=0.1)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, step_size=3, gamma=0.5)
    with sync(model, [optimizer, last], how):
        for step in range(STEPS):
            optimizer.zero_grad()
            last.zero_grad()
            loss(step).backward()
            optimizer.step()
            last.step()
            schedule.step()


def closures(model, loss, how):
    optimizer = momentum(model.parameters())
    with sync(model, optimizer, how):
        for step in range(STEPS):

            def closure(step=step):
                optimizer.zero_grad()
                value = loss(step)
                value.backward()
                return value

            optimizer.step(closure)


class Odd(torch.nn.Module):
    """A frozen, a shared and a never used parameter; one module used through functions only."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(3)
        self.first = torch.nn.Linear(12, 5)
        self.first.bias.requires_grad = False
        self.shared = torch.nn.Linear(5, 5)
        self.again = torch.nn.Linear(5, 5)
        self.again.weight = self.shared.weight
        self.unused = torch.nn.Linear(5, 5)
        self.borrowed = torch.nn.Linear(5, 5)
        self.double()

    def forward(self, x):
        borrowed = torch.nn.functional.linear(self.first(x), self.borrowed.weight)
        return self.again(torch.tanh(self.shared(borrowed)))


class Sometimes(torch.nn.Module):
    """Data decide what is used: all layers, all but one, or none."""

    def __init__(self):
        super().__init__()
        self.inner = perceptron()
        self.often = torch.nn.Linear(5, 5).double()

    def forward(self, x):
        kind = int(1000 * x[0, 0].abs()) % 4
        if kind == 0:
            return torch.zeros(len(x), 5, dtype=x.dtype, requires_grad=True)
        return self.inner(x) if kind == 1 else self.often(self.inner(x))


def plain(model, loss, how):
    optimizer = momentum(p for p in model.parameters() if p.requires_grad)
    with sync(model, optimizer, how):
        for step in range(STEPS):
            optimizer.zero_grad()
            loss(step).backward()
            optimizer.step()


class Compiled(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = torch.compile(perceptron(), backend="aot_eager")

    def forward(self, x):
        return self.inner(x)


class Checkpointed(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = perceptron()

    def forward(self, x):
        return torch.utils.checkpoint.checkpoint(self.inner, x, use_reentrant=False)


class Slow(torch.nn.Module):
    """Layers are used and gradients arrive late, one after the other, so that merging layers does
    not pay."""

    def __init__(self):
        super().__init__()
        self.inner = perceptron()
        for layer in self.inner:
            layer.register_forward_pre_hook(lambda *_: time.sleep(0.005))
            layer.register_full_backward_hook(lambda *_: time.sleep(0.005))

    def forward(self, x):
        return self.inner(x)


def with_other_buckets(engine, spec, cluster):
    """The weights, and the number of buckets before and after times were measured."""
    model = Slow()
    optimizer = momentum(model.parameters())
    # The rate of an update that is still to be made is that of its step.
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.8)
    with sync(model, optimizer, (engine, spec, {"cluster": cluster})) as session:
        before = len(session.core.buckets)
        for step in range(STEPS):
            optimizer.zero_grad()
            loss_of(model, batch(engine.rank, step)).backward()
            optimizer.step()
            schedule.step()
        after = len(session.core.buckets)
    return flat(model), before, after


def scheduled(model, loss, how):
    optimizer = momentum(model.parameters())
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.8)
    with sync(model, optimizer, how):
        for step in range(STEPS):
            optimizer.zero_grad()
            loss(step).backward()
            optimizer.step()
            schedule.step()


class Loops(unittest.TestCase):
    def same_as_one_worker(self, loop, specs=EXACT, make_model=perceptron, workers=2):
        right = on_one_worker(workers, loop, make_model)
        for spec in specs:
            with self.subTest(loop=loop.__name__, spec=spec):
                for weights in run(workers, on_a_worker, spec, loop, make_model):
                    self.assertLessEqual(distance(weights, right), BOUND)

    def test_accumulation(self):
        self.same_as_one_worker(accumulating)
        self.same_as_one_worker(accumulating_without_no_sync, ["wfbp", "bsp"])
        self.same_as_one_worker(accumulating_in_a_function)
        self.same_as_one_worker(stepping_after_no_sync)

    def test_clipping(self):
        self.same_as_one_worker(clipping)
        self.same_as_one_worker(clipping_by_torch)

    def test_groups_schedules_several_optimizers_closures(self):
        self.same_as_one_worker(groups_and_schedule)
        self.same_as_one_worker(closures)
        self.same_as_one_worker(adding_groups)

    def test_copies_of_the_model_while_it_trains(self):
        self.same_as_one_worker(copying)

    def test_odd_models(self):
        self.same_as_one_worker(plain, EXACT, Odd)
        self.same_as_one_worker(plain, EXACT, Checkpointed)
        self.same_as_one_worker(plain, EXACT, Sometimes)

    def test_buckets_change_while_updates_wait(self):
        right = on_one_worker(2, scheduled)
        cluster = "flat:2,latency=1ms,bandwidth=10Gbps"
        for weights, before, after in run(2, with_other_buckets, "dear:bucket=optimal", cluster):
            self.assertGreater(after, before)
            self.assertLessEqual(distance(weights, right), BOUND)

    def test_compiled_models(self):
        self.same_as_one_worker(plain, EXACT, Compiled)
        self.same_as_in_lockstep(plain, Compiled, perceptron)

    def same_as_in_lockstep(self, loop, make_model=perceptron, make_reference=None, workers=4):
        for spec in PAIRS:
            with self.subTest(loop=loop.__name__, model=make_model.__name__, spec=spec):
                right = apart(in_lockstep, workers, spec, loop, make_reference or make_model)
                self.assertGreater(distance(right[0], right[3]), 1e-6, "all are equal")
                found = run(workers, on_a_worker, spec, loop, make_model)
                for weights, row in zip(found, right, strict=True):
                    self.assertLessEqual(distance(weights, row), BOUND)

    def test_weight_mixing_takes_odd_models_and_accumulation(self):
        for loop in (accumulating, groups_and_schedule, closures, adding_groups, copying):
            self.same_as_in_lockstep(loop)
        self.same_as_in_lockstep(plain, Odd)
        self.same_as_in_lockstep(plain, Sometimes)
        self.same_as_in_lockstep(plain, Checkpointed, perceptron)


if __name__ == "__main__":
    unittest.main()
