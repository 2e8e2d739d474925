"""Sessions as a whole: joining, resuming, averaging, refusing, failing."""

import copy
import os
import signal
import time
import unittest
import warnings
from pathlib import Path

import reference
import torch
from core_test import Pairs  # registers "pairs"
from mixing_test import groups_of
from processes import gather, job_name, run, start
from tasks import adamw, batch, distance, flat, loss_of, momentum, perceptron

import riffle

SESGD = "sesgd:bucket=layer"
DEAR = "dear:bucket=1KiB"
BOUND = 1e-10
STEPS = 12


def steps(model, optimizer, rank, first=0, last=STEPS):
    for step in range(first, last):
        optimizer.zero_grad()
        loss_of(model, batch(rank, step)).backward()
        optimizer.step()


# --- Averages.


def normalized():
    torch.manual_seed(5)
    return torch.nn.Sequential(
        torch.nn.Linear(12, 8), torch.nn.BatchNorm1d(8), torch.nn.Linear(8, 5)
    ).double()


def averages(engine, spec):
    """Weights and statistics of this worker, and what averaged(), swa() and the end made of it."""
    model = normalized()
    optimizer = momentum(model.parameters())
    sums = torch.zeros_like(flat(model))
    with riffle.sync(model, optimizer, spec, engine=engine, swa=True) as session:
        for step in range(STEPS):
            steps(model, optimizer, engine.rank, step, step + 1)
            model.state_dict()
            sums += flat(model)
        own = {key: value.clone() for key, value in model.state_dict().items()}
        averaged, swa = session.averaged(), session.swa()
        spread = session.consensus_distance()
        stats = session.stats()
    final = {key: value.clone() for key, value in model.state_dict().items()}
    return own, averaged, final, swa, sums / STEPS, spread, (stats.steps, stats.step_time)


def recomputed(engine, spec):
    """Averages with BatchNorm's statistics of all workers' batches, and what must stay."""
    model = normalized()
    model.append(torch.nn.Dropout(0.5))
    optimizer = momentum(model.parameters())
    with riffle.sync(model, optimizer, spec, engine=engine, swa=True, swa_from=4) as session:
        steps(model, optimizer, session.rank)
        before = copy.deepcopy(model.state_dict())
        random = torch.get_rng_state()
        found = [get(own_batches(session.rank)) for get in (session.averaged, session.swa)]
        same = all(torch.equal(before[key], value) for key, value in model.state_dict().items())
        same &= torch.equal(random, torch.get_rng_state()) and model.training
        same &= model[1].momentum == 0.1
        try:
            session.swa([])
            said = "nothing"
        except riffle.UsageError as error:
            said = str(error)
    return found, same, said


def own_batches(rank):
    """One, two, three ... of them."""
    return [batch(rank, 100 + i) for i in range(rank + 1)]


def statistics(state, batches):
    """As torch computes them."""
    model = normalized()
    model.load_state_dict(state)
    torch.optim.swa_utils.update_bn(batches, model)
    return model.state_dict()


# --- Joining, resuming.


def uneven(engine, spec):
    model = perceptron()
    optimizer = momentum(model.parameters())
    session = riffle.sync(model, optimizer, spec, engine=engine)
    mine = [batch(engine.rank, step) for step in range(4 + 2 * engine.rank)]
    for data in session.batches(mine):
        optimizer.zero_grad()
        loss_of(model, data).backward()
        optimizer.step()
    model.state_dict()
    weights = flat(model)  # before finish(), which would make workers equal
    session.finish()
    session.close()
    return weights


def uneven_on_one_worker(workers):
    """A worker without data adds nothing, and the mean is still over all workers."""
    model = perceptron()
    optimizer = momentum(model.parameters())
    for step in range(4 + 2 * (workers - 1)):
        optimizer.zero_grad()
        for rank in range(workers):
            if step < 4 + 2 * rank:
                (loss_of(model, batch(rank, step)) / workers).backward()
        optimizer.step()
    return flat(model)


def uneven_in_pairs(spec, workers):
    """Who has no data left makes no update, but averages with its group."""
    replicas = reference.Replicas(workers, perceptron, momentum)
    groups = groups_of(spec, f"flat:{workers},latency=20us,bandwidth=10Gbps")
    for step in range(4 + 2 * (workers - 1)):
        for rank, (model, optimizer) in enumerate(
            zip(replicas.models, replicas.optimizers, strict=True)
        ):
            if step < 4 + 2 * rank:
                optimizer.zero_grad()
                loss_of(model, batch(rank, step)).backward()
                optimizer.step()
        replicas.average(reference.partition_matrix(groups(step), workers))
    return replicas.weights()


def resumed(engine, spec, make_optimizer):
    """Weights and their average of 2*STEPS steps in one go, and with a stop in the middle."""

    def fresh(state=None):
        model = perceptron()
        optimizer = make_optimizer(model.parameters())
        if state is not None:
            model.load_state_dict(state["model"])
            optimizer.load_state_dict(state["optimizer"])
        resume = None if state is None else state["session"]
        session = riffle.sync(
            model,
            optimizer,
            spec,
            engine=engine,
            swa=True,
            swa_from=STEPS // 2,
            resume=resume,
            measure_network=False,
        )
        return model, optimizer, session

    def weights(model, session):
        model.state_dict()  # settles what is due
        return torch.cat([flat(model), *(v.flatten() for v in session.swa().values())])

    model, optimizer, session = fresh()
    steps(model, optimizer, engine.rank, 0, STEPS)
    saved = {"session": session.state_dict(), "model": model.state_dict()}
    saved["optimizer"] = optimizer.state_dict()
    saved = copy.deepcopy(saved)
    steps(model, optimizer, engine.rank, STEPS, 2 * STEPS)
    whole = weights(model, session)
    session.close()
    del session

    model, optimizer, session = fresh(saved)
    steps(model, optimizer, engine.rank, STEPS, 2 * STEPS)
    halves = weights(model, session)
    session.close()
    return whole, halves


# --- Mixed precision, strategies in Python.


def scaled(engine, spec, overflow):
    """float16 scaling with an overflow on one worker in one step."""
    torch.manual_seed(0)
    model = perceptron(torch.float32)
    optimizer = momentum(model.parameters())
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0, growth_interval=4)
    with riffle.sync(model, optimizer, spec, engine=engine) as session:
        for step in range(STEPS):
            x, y = batch(engine.rank, step, torch.float32)
            if overflow and step == 5 and engine.rank == 0:
                x = x * float("inf")
            optimizer.zero_grad()
            with torch.autocast("cpu", dtype=torch.bfloat16):
                loss = torch.nn.functional.cross_entropy(model(x), y)
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
        finite = bool(torch.isfinite(flat(model)).all())
        spread = session.consensus_distance()
    return finite, spread, flat(model)


def pairs(engine):
    model = perceptron()
    optimizer = momentum(model.parameters())
    _ = riffle.sync(model, optimizer, "pairs", engine=engine)
    steps(model, optimizer, engine.rank)
    model.state_dict()
    return flat(model)


def clipped(engine, spec):
    """Clipping as if on one worker: warns once, and gives the rule with clipped gradients."""
    model = perceptron()
    optimizer = momentum(model.parameters())
    _ = riffle.sync(model, optimizer, spec, engine=engine)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for step in range(STEPS):
            optimizer.zero_grad()
            loss_of(model, batch(engine.rank, step)).backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 0.2)
            optimizer.step()
    model.state_dict()
    return flat(model), [str(w.message) for w in caught if "gradient" in str(w.message)]


def refusals(engine):
    """Messages for what cannot work."""
    said = {}

    def attempt(name, action):
        try:
            action()
            said[name] = "nothing"
        except riffle.UsageError as error:
            said[name] = str(error)

    def sparse():
        model = torch.nn.Embedding(4, 3, sparse=True)
        riffle.sync(model, momentum(model.parameters()), "bsp", engine=engine)

    def late_clip():
        model = perceptron()
        optimizer = momentum(model.parameters())
        session = riffle.sync(model, optimizer, SESGD, engine=engine)
        steps(model, optimizer, engine.rank, 0, 3)
        loss_of(model, batch(engine.rank, 3)).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.1)
        try:
            optimizer.step()
        finally:
            session.close()

    def late_rate():
        model = perceptron()
        optimizer = momentum(model.parameters())
        with riffle.sync(model, optimizer, SESGD, engine=engine):
            steps(model, optimizer, engine.rank, 0, 3)
            loss_of(model, batch(engine.rank, 3)).backward()
            optimizer.param_groups[0]["lr"] = 0.01
            optimizer.step()

    def thawed():
        model = perceptron()
        model[0].bias.requires_grad = False
        optimizer = momentum(model.parameters())
        with riffle.sync(model, optimizer, "wfbp", engine=engine):
            steps(model, optimizer, engine.rank, 0, 3)
            model[0].bias.requires_grad = True
            steps(model, optimizer, engine.rank, 3, 4)

    def foreign():
        model, other = perceptron(), perceptron()
        optimizer = momentum([*model.parameters(), *other.parameters()])
        riffle.sync(model, optimizer, "wfbp", engine=engine)

    def moved():
        model = perceptron()
        optimizer = momentum(model.parameters())
        session = riffle.sync(model, optimizer, "local-sgd", engine=engine)
        model.float()
        try:
            x, y = batch(engine.rank, 0, torch.float32)
            torch.nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()
        finally:
            session.close()

    attempt("sparse", sparse)
    attempt("late clip", late_clip)
    attempt("late rate", late_rate)
    attempt("thawed", thawed)
    attempt("foreign", foreign)
    attempt("moved", moved)
    attempt("other world", lambda: other_world(engine))
    return said


def other_world(engine):
    model = perceptron()
    saved = {"rank": 5, "size": 9, "session": b""}
    riffle.sync(model, momentum(model.parameters()), "bsp", engine=engine, resume=saved)


# --- Failure.


def unequal(engine, spec):
    """Rank 0 has fewer batches than the others, and nothing was done about it."""
    model = perceptron()
    optimizer = momentum(model.parameters())
    try:
        with riffle.sync(model, optimizer, spec, engine=engine):
            steps(model, optimizer, engine.rank, 0, 5 + 3 * (engine.rank > 0))
    except riffle.CommError as error:
        time.sleep(1)  # our own end must not be what others see first
        return str(error)
    return "nothing was said"


def cycles(engine, count):
    """Resident memory, in pages, after a few sessions and after many more."""

    def session():
        model = perceptron()
        optimizer = momentum(model.parameters())
        with riffle.sync(model, optimizer, SESGD, engine=engine, measure_network=False):
            steps(model, optimizer, engine.rank, 0, 2)

    def resident():
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1])

    for _ in range(20):
        session()
    before, threads = resident(), len(os.listdir("/proc/self/task"))
    for _ in range(count):
        session()
    return before, resident(), threads, len(os.listdir("/proc/self/task"))


def train_until_killed(job, rank, size, spec):
    """Trains for ever; rank 1 is killed in mid-step. The error, and seconds from the kill to it."""
    model = perceptron()
    optimizer = momentum(model.parameters())
    engine = riffle.shm_engine(job, rank, size)
    riffle.sync(model, optimizer, spec, engine=engine)
    moment = f"/dev/shm/{job}-killed"

    def die(*_):
        Path(moment).write_text(f"{time.monotonic()}")
        os.kill(os.getpid(), signal.SIGKILL)

    for step in range(1_000_000):
        if rank == 1 and step == 20:
            model[2].weight.register_hook(die)  # in the middle of backward
        try:
            steps(model, optimizer, rank, step, step + 1)
        except riffle.CommError as error:
            raised = time.monotonic()
            time.sleep(1)  # our own end must not be what others see first
            return str(error), error.rank, raised - float(Path(moment).read_text())
    return None


def closed_in_mid_step(engine, spec):
    """A session that ends after backward, as an exception ends it, and the next one."""
    for _ in range(3):
        model = perceptron()
        optimizer = momentum(model.parameters())
        session = riffle.sync(model, optimizer, spec, engine=engine)
        steps(model, optimizer, engine.rank, 0, 3)
        loss_of(model, batch(engine.rank, 3)).backward()
        session.close()
    return flat(model)


def side_by_side(engine, specs):
    """Weights of models that are trained in turns on one engine, and of each alone."""

    def train(some, turns):
        models = [perceptron() for _ in some]
        optimizers = [momentum(model.parameters()) for model in models]
        sessions = [
            riffle.sync(m, o, spec, engine=engine, measure_network=False)
            for m, o, spec in zip(models, optimizers, some, strict=True)
        ]
        first = 0
        for turn in turns:
            for model, optimizer in zip(models, optimizers, strict=True):
                steps(model, optimizer, engine.rank, first, first + turn)
            first += turn
        for session in sessions:
            session.finish()
            session.close()
        return [flat(model) for model in models]

    together = train(specs, (1, 4, 2, 5))
    alone = [weights for spec in specs for weights in train([spec], (STEPS,))]
    return together, alone


class Sessions(unittest.TestCase):
    def test_averages(self):
        for spec in ("wfbp", SESGD, "local-sgd:tau=5"):
            with self.subTest(spec=spec):
                answers = run(4, averages, spec)
                owns = [answer[0] for answer in answers]
                mean = {key: sum(o[key].double() for o in owns) / 4 for key in owns[0]}
                tracks = sum(answer[4] for answer in answers) / 4
                for _, averaged, final, swa, _, _, stats in answers:
                    for key in mean:
                        if "num_batches" not in key:
                            self.assertLess(distance(averaged[key], mean[key]), 1e-12)
                            self.assertLess(distance(final[key], mean[key]), 1e-12)
                    parameters = [v.flatten() for k, v in swa.items() if "running" not in k]
                    parameters = torch.cat([v for v in parameters if v.is_floating_point()])
                    self.assertLess(distance(parameters, tracks), 1e-12)
                    self.assertEqual(stats[0], STEPS)
                    self.assertGreater(stats[1], 0)
                spreads = {answer[5] for answer in answers}
                self.assertEqual(len(spreads), 1)
                if spec == "local-sgd:tau=5":
                    self.assertGreater(spreads.pop(), 1e-4)

    def test_batch_norm_of_averages(self):
        for spec, workers in (("wfbp", 2), (SESGD, 3)):
            with self.subTest(spec=spec, workers=workers):
                every = [x for rank in range(workers) for x in own_batches(rank)]
                for found, same, said in run(workers, recomputed, spec):
                    self.check_statistics(found, every)
                    self.assertTrue(same)
                    self.assertIn("no batch", said)
        found, same, _ = recomputed(None, "auto")
        self.check_statistics(found, own_batches(0))
        self.assertTrue(same)

    def check_statistics(self, found, batches):
        for state in found:
            right = statistics(state, batches)
            for key in ("1.running_mean", "1.running_var"):
                self.assertLess(distance(state[key], right[key]), 1e-12)

    def test_uneven_batches(self):
        right = uneven_on_one_worker(3)
        for spec in ("wfbp", DEAR):
            with self.subTest(spec=spec):
                for weights in run(3, uneven, spec):
                    self.assertLessEqual(distance(weights, right), BOUND)
        for spec in (SESGD, "ds-sync"):
            with self.subTest(spec=spec):
                right = uneven_in_pairs(spec, 4)
                self.assertGreater(distance(right[0], right[3]), 1e-6)
                for weights, row in zip(run(4, uneven, spec), right, strict=True):
                    self.assertLessEqual(distance(weights, row), BOUND)

    def test_resuming_is_bit_exact(self):
        specs = ["wfbp", DEAR, SESGD, "sesgd:order=combine-then-adapt", "dasgd", "diloco:tau=7"]
        for spec in specs:
            for make_optimizer in (momentum, adamw):
                with self.subTest(spec=spec, optimizer=make_optimizer.__name__):
                    for whole, halves in run(2, resumed, spec, make_optimizer):
                        self.assertTrue(torch.equal(whole, halves), distance(whole, halves))

    def test_resuming_alone_is_bit_exact(self):
        whole, halves = resumed(riffle.shm_engine(job_name(), 0, 1), "auto", momentum)
        self.assertTrue(torch.equal(whole, halves))

    def test_an_average_may_begin_at_a_checkpoint(self):
        model = perceptron()
        optimizer = momentum(model.parameters())
        saved = riffle.sync(model, optimizer).state_dict()
        session = riffle.sync(model, optimizer, swa=True, resume=saved)
        steps(model, optimizer, 0, 0, 1)
        for key, value in session.swa().items():
            self.assertTrue(torch.equal(value, model.state_dict()[key]))
        other = riffle.sync(torch.nn.Linear(2, 2), optimizer, swa=True)
        with self.assertRaisesRegex(riffle.UsageError, "of another model"):
            riffle.sync(model, optimizer, swa=True, resume=other.state_dict())

    def test_mixed_precision(self):
        for spec in ("wfbp", DEAR, SESGD):
            for overflow in (False, True):
                with self.subTest(spec=spec, overflow=overflow):
                    answers = run(2, scaled, spec, overflow)
                    for finite, spread, weights in answers:
                        self.assertTrue(finite)
                        self.assertEqual(spread, 0)
                        self.assertTrue(torch.equal(weights, answers[0][2]))

    def test_a_strategy_in_python_trains(self):
        replicas = reference.Replicas(4, perceptron, momentum)
        even, odd = [[0, 1], [2, 3]], [[1, 2], [0, 3]]
        reference.adapt_then_combine(
            replicas, STEPS, lambda t: reference.partition_matrix(odd if t % 2 else even, 4)
        )
        self.assertEqual(Pairs.name, "pairs")
        for weights, right in zip(run(4, pairs), replicas.weights(), strict=True):
            self.assertLessEqual(distance(weights, right), BOUND)

    def test_clipping_replaces_stepping_per_bucket(self):
        class Clipped(reference.Replicas):
            def update(self):
                for model in self.models:
                    torch.nn.utils.clip_grad_norm_(model.parameters(), 0.2)
                super().update()

        replicas = Clipped(2, perceptron, momentum)
        reference.adapt_then_combine(replicas, STEPS, lambda _: reference.mean_matrix(2))
        for weights, said in run(2, clipped, SESGD):
            self.assertLessEqual(distance(weights, replicas.weights()[0]), BOUND)
            self.assertEqual(len(said), 1, said)

    def test_refusals(self):
        for said in run(2, refusals):
            self.assertIn("sparse", said["sparse"])
            self.assertIn("overlap=False", said["late clip"])
            self.assertIn("was moved", said["moved"])
            self.assertIn("a learning rate was changed", said["late rate"])
            self.assertIn("0.bias was frozen", said["thawed"])
            self.assertIn("does not train", said["foreign"])
            self.assertIn("rank 5 of 9", said["other world"])

    def test_a_killed_worker_is_named_by_all(self):
        for spec in ("wfbp", DEAR, SESGD, "sesgd:group=2", "local-sgd:tau=3"):
            with self.subTest(spec=spec):
                job = job_name()
                workers = [start(train_until_killed, job, rank, 4, spec) for rank in range(4)]
                answers = gather(workers, 30)
                Path(f"/dev/shm/{job}-killed").unlink()
                for rank in (0, 2, 3):
                    fine, answer = answers[rank]
                    self.assertTrue(fine, answer)
                    message, culprit, seconds = answer
                    self.assertEqual(culprit, 1, message)
                    self.assertRegex(message, r"rank 1 .*of \{[\d ]+\}, bucket \d+, step \d+")
                    self.assertLess(seconds, 2, message)

    def test_sessions_after_one_that_ended_in_mid_step(self):
        for spec in (SESGD, "sesgd:group=2", DEAR, "wfbp"):
            with self.subTest(spec=spec):
                run(4, closed_in_mid_step, spec)

    def test_sessions_side_by_side(self):
        for together, alone in run(3, side_by_side, [SESGD, DEAR, "wfbp", "dasgd"]):
            for one, other in zip(together, alone, strict=True):
                self.assertTrue(torch.equal(one, other))

    def test_unequal_batches_fail_by_name(self):
        for spec in ("wfbp", SESGD):
            with self.subTest(spec=spec):
                said = run(3, unequal, spec)
                for message in said[1:]:
                    self.assertIn("rank 0", message)
                    self.assertIn("it ended its session after 5 steps", message)

    def test_sessions_leave_nothing_behind(self):
        for before, after, threads, threads_after in run(2, cycles, 80):
            self.assertLess(after - before, 1000, "pages")
            self.assertEqual(threads, threads_after)

    def test_one_worker_adds_nothing(self):
        model = perceptron()
        optimizer = momentum(model.parameters())
        pointers = [p.data_ptr() for p in model.parameters()]
        with riffle.sync(model, optimizer, SESGD) as session:
            self.assertEqual((session.rank, session.size), (0, 1))
            self.assertEqual([p.data_ptr() for p in model.parameters()], pointers)
            self.assertFalse(optimizer._optimizer_step_pre_hooks)
            self.assertFalse(any(p._post_accumulate_grad_hooks for p in model.parameters()))
            self.assertFalse(any(m._forward_pre_hooks for m in model.modules()))


if __name__ == "__main__":
    unittest.main()
