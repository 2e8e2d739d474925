"""A run that is killed and resumed ends with the bits of a run that was not, for every strategy.

One worker is killed with SIGKILL at a random step: after its update, inside backward, or between
its save and the publication. The others fail by themselves; all are then started again.
"""

import os
import random
import signal
import tempfile
import unittest
from pathlib import Path

import torch
from processes import gather, job_name, start

import riffle
from riffle.tasks.chars import Windows
from riffle.tasks.task import Loaded, Table, generator
from riffle.train import checkpoint
from riffle.train.options import Options, Settings
from riffle.train.worker import Worker

WORKERS = 4
STEPS = 13
EVERY = 3
RACKS = "racks:2x2,inner=20us/10Gbps,outer=200us/1Gbps"
FLAT = "flat:4,latency=20us,bandwidth=10Gbps"
FEW = [
    ("mg-wfbp", FLAT),
    ("dear", FLAT),
    ("sesgd:order=combine-then-adapt", FLAT),
    ("ds-sync:pattern=bottleneck,delay=3", RACKS),
    ("dasgd:tau=4,delay=3", FLAT),
    ("diloco:tau=5", FLAT),
    ("diloco:tau=8,fragments=3,overlap=2", FLAT),
]
VARIANTS = [
    ("sesgd:schedule=random", FLAT),
    ("ds-sync", FLAT),
    ("ds-sync:pattern=bottleneck,order=combine-then-adapt", RACKS),
    ("dasgd:tau=4,delay=4,merge=mix", FLAT),
    ("local-sgd:tau=5", FLAT),
    ("gossip:mix_state=true", FLAT),
    ("ssp:staleness=0", FLAT),
    ("slowmo:tau=5", FLAT),
    ("noloco:tau=3", FLAT),
]
MOMENTS = ("after step", "in backward", "in save")


def data_of(task):
    if task == "chars":
        text = torch.randint(0, 96, (3000,), dtype=torch.uint8, generator=generator(1))
        return Loaded(Windows(text, 8), Windows(text[:500], 64), "noise")
    shape = (3, 32, 32) if task == "images" else (1, 28, 28)
    inputs = torch.randn(300, *shape, generator=generator(2))
    table = Table(inputs, torch.randint(0, 10, (300,), generator=generator(3)))
    return Loaded(table, Table(inputs[:40], table.targets[:40]), "noise")


def options_of(task, model, spec, cluster, folder, resume, swa=None):
    settings = Settings(
        task=task,
        model=model,
        data="noise",
        strategy=spec,
        workers=WORKERS,
        batch=4,
        learning_rate=0.01,
        epochs=None,
        steps=STEPS,
        seed=5,
        cluster=cluster,
        swa=swa,
    )
    return Options(
        settings=settings,
        engine="auto",
        checkpoint=folder,
        checkpoint_every=EVERY,
        resume=folder if resume else None,
        timeline=None,
        log=None,
        compare=False,
    )


def die(*_):
    os.kill(os.getpid(), signal.SIGKILL)


def arm(worker, moment, step):
    """Kills this process at a moment of a step (its number counts from 1)."""
    if moment == "in save":
        kept = checkpoint.save

        def save(home, header, state):
            kept(home, header, state)
            if header["step"] >= step:
                die()

        checkpoint.save = save
    elif moment == "after step":
        worker.after_step = lambda now: now == step and die()
    else:
        parameter = next(worker.model.parameters())

        def after(now):
            if now == step - 1:
                parameter.register_hook(die)

        worker.after_step = after


def train(rank, job, options, victim, moment, step):
    worker = Worker(
        options,
        data_of(options.settings.task),
        [],
        engine=riffle.shm_engine(job, rank, WORKERS),
    )
    if rank == victim:
        arm(worker, moment, step)
    worker.run()


def run_all(options, victim=None, moment="", step=0):
    job = job_name()
    workers = [start(train, rank, job, options, victim, moment, step) for rank in range(WORKERS)]
    return gather(workers)


def states(folder):
    """Everything that the last checkpoint of a run holds, and the model it left."""
    found = [checkpoint.load(folder, rank, WORKERS)[1] for rank in range(WORKERS)]
    models = sorted(Path(folder).glob("*.pt"))
    return [*found, *(torch.load(path, weights_only=True) for path in models)]


def differences(a, b, where=""):
    """Where two nested states differ in any bit; the session's bytes carry measured times."""
    if isinstance(a, dict):
        if a.keys() != b.keys():
            return [f"{where}: other keys"]
        return [
            d
            for key in a
            if key != "session"
            for d in differences(a[key], b[key], f"{where}/{key}")
        ]
    if isinstance(a, list | tuple):
        pairs = enumerate(zip(a, b, strict=True))
        return [d for i, (x, y) in pairs for d in differences(x, y, f"{where}/{i}")]
    same = torch.equal(a, b) if isinstance(a, torch.Tensor) else a == b
    return [] if same else [where]


class Resume(unittest.TestCase):
    def check(self, cases, task="digits", model="mlp", moments=1, swa=None):
        choice = random.Random(f"{task} {cases}")
        for spec, cluster in cases:
            with tempfile.TemporaryDirectory() as whole:
                answers = run_all(options_of(task, model, spec, cluster, whole, False, swa))
                self.assertEqual([a for a in answers if not a[0]], [], spec)
                expected = states(whole)
            for moment in choice.sample(MOMENTS, moments):
                step = choice.randrange(EVERY + 1, STEPS)
                victim = choice.randrange(WORKERS)
                with self.subTest(spec=spec, moment=moment, step=step, victim=victim):
                    self.kill_and_resume(
                        (task, model, spec, cluster), victim, moment, step, expected, swa
                    )

    def kill_and_resume(self, case, victim, moment, step, expected, swa):
        with tempfile.TemporaryDirectory() as folder:
            answers = run_all(options_of(*case, folder, False, swa), victim, moment, step)
            self.assertIn("no answer", answers[victim][1])
            self.assertFalse((Path(folder) / "model.pt").exists())
            answers = run_all(options_of(*case, folder, True, swa))
            self.assertEqual([a for a in answers if not a[0]], [])
            self.assertEqual(differences(states(folder), expected), [])

    def test_strategies_with_nothing_in_flight(self):
        self.check(FEW[:2])

    def test_mixing_strategies(self):
        self.check(FEW[2:4])

    def test_delayed_strategies(self):
        self.check(FEW[4:])

    def test_dropout(self):
        self.check([("dasgd:tau=4,delay=2", FLAT)], "chars", "gpt")

    def test_batch_norm(self):
        self.check([("ds-sync:pattern=bottleneck,delay=2", RACKS)], "images", "wrn-10-1")

    def test_batch_norm_and_swa(self):
        self.check([("dasgd:tau=4,delay=2", FLAT)], "images", "wrn-10-1", swa=0.7)

    def test_the_comparison_sees_one_bit(self):
        with tempfile.TemporaryDirectory() as folder:
            run_all(options_of("digits", "mlp", "bsp", FLAT, folder, resume=False))
            a, b = states(folder), states(folder)
        self.assertEqual(differences(a, b), [])
        weight = next(iter(b[2]["model"].values()))
        weight.view(torch.int32).flatten()[5] ^= 1
        self.assertEqual(len(differences(a, b)), 1)


class Matrix(Resume):
    """Labelled long: every strategy, every moment."""

    def test_every_strategy_every_moment(self):
        world = riffle.World(FLAT)  # what depends on clocks never has the same bits twice
        names = [info.name for info in riffle.strategies()]
        names = [(n, FLAT) for n in names if not riffle.make(n).traits(world).timed]
        self.check(names + FEW + VARIANTS, moments=len(MOMENTS))

    def test_batch_norm_every_moment(self):
        cases = [("ds-sync:pattern=bottleneck,delay=2", RACKS), ("dasgd", FLAT), ("ddp", FLAT)]
        self.check(cases, "images", "wrn-10-1", moments=len(MOMENTS))


if __name__ == "__main__":
    torch.set_num_threads(1)
    unittest.main()
