"""A training script as others write them gives torch DDP's weights with every exact strategy.

The script: a small language model with tied weights, gradient accumulation, torch's own clipping,
AdamW with and without decay, a learning rate set by hand, evaluation on rank 0 only, five workers,
float64. `python third_party_test.py` prints the distance from DDP for each strategy and engine.
"""

import contextlib
import math
import sys
import unittest

import torch
from processes import run_with_gloo
from tasks import distance, flat

import riffle

WORKERS = 5
STEPS = 8
ACCUMULATED = 3
WORDS, WIDTH, LENGTH, BATCH = 17, 12, 6, 4
BOUND = 1e-10
# Small buckets, so that the small model has several; the rest of the table as it is.
OPTIONS = {"ddp": ":bucket=2KiB,first=1KiB", "dear": ":bucket=2KiB"}


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = torch.nn.LayerNorm(WIDTH)
        self.attention = torch.nn.MultiheadAttention(WIDTH, 2, batch_first=True)
        self.expand = torch.nn.Linear(WIDTH, 2 * WIDTH)
        self.shrink = torch.nn.Linear(2 * WIDTH, WIDTH)

    def forward(self, x):
        y = self.norm(x)
        x = x + self.attention(y, y, y, need_weights=False)[0]
        return x + self.shrink(torch.nn.functional.gelu(self.expand(x)))


class LanguageModel(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = torch.nn.Embedding(WORDS, WIDTH)
        self.places = torch.nn.Parameter(torch.randn(LENGTH, WIDTH))
        self.blocks = torch.nn.ModuleList(Block() for _ in range(2))
        self.output = torch.nn.Linear(WIDTH, WORDS, bias=False)
        self.output.weight = self.embedding.weight

    def forward(self, words):
        x = self.embedding(words) + self.places
        for block in self.blocks:
            x = block(x)
        return self.output(x)


def make_model():
    torch.manual_seed(3)
    return LanguageModel().double()


def make_optimizer(model):
    decayed = [p for p in model.parameters() if p.dim() > 1]
    others = [p for p in model.parameters() if p.dim() <= 1]
    groups = [{"params": decayed, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=0.01, betas=(0.9, 0.95))


def loss_of(model, rank, step, part):
    random = torch.Generator().manual_seed(10000 * rank + 100 * step + part)
    words = torch.randint(0, WORDS, (BATCH, LENGTH + 1), generator=random)
    logits = model(words[:, :-1])
    return torch.nn.functional.cross_entropy(logits.flatten(0, 1), words[:, 1:].flatten())


def rate(step):
    return 0.01 * (step + 1) / 3 if step < 3 else 0.01 * math.cos(step / STEPS)


@torch.no_grad()
def evaluate(model):
    model.eval()
    loss = sum(float(loss_of(model, 99, step, 0)) for step in range(2))
    model.train()
    return loss


def train(model, optimizer, rank, no_sync, clip, clip_from=0):
    """The script itself; `clip` gets the largest norm, `no_sync` is a context."""
    for step in range(STEPS):
        for group in optimizer.param_groups:
            group["lr"] = rate(step)
        optimizer.zero_grad(set_to_none=True)
        for part in range(ACCUMULATED):
            last = part == ACCUMULATED - 1
            with contextlib.nullcontext() if last else no_sync():
                (loss_of(model, rank, step, part) / ACCUMULATED).backward()
        if step >= clip_from:
            clip(0.7)
        optimizer.step()
        if rank == 0 and step % 3 == 1:
            evaluate(model)


def with_ddp(rank, clips=True):
    model = make_model()
    wrapped = torch.nn.parallel.DistributedDataParallel(model)
    none = math.inf

    def clip(norm):
        torch.nn.utils.clip_grad_norm_(model.parameters(), norm if clips else none)

    train(wrapped, make_optimizer(model), rank, wrapped.no_sync, clip)
    return flat(model)


def with_riffle(engine, spec, clip="torch", **options):
    """clip: by torch, by the session, not at all."""
    model = make_model()
    optimizer = make_optimizer(model)
    with riffle.sync(model, optimizer, spec, engine=engine, **options) as session:
        by = {
            "torch": lambda norm: torch.nn.utils.clip_grad_norm_(model.parameters(), norm),
            "session": session.clip_grad_norm_,
            "nobody": lambda _: None,
        }
        train(model, optimizer, engine.rank, session.no_sync, by[clip])
        model.state_dict()
        return flat(model)  # before finish(), which would average


def begins_to_clip(engine, spec):
    """What is said to a loop that clips from step 6 on."""
    model = make_model()
    optimizer = make_optimizer(model)
    session = riffle.sync(model, optimizer, spec, engine=engine)

    def clip(norm):
        torch.nn.utils.clip_grad_norm_(model.parameters(), norm)

    try:
        train(model, optimizer, engine.rank, session.no_sync, clip, clip_from=6)
        return ""
    except riffle.UsageError as error:
        return str(error)
    finally:
        session.close()


def exact():
    """The exact strategies of the table."""
    return [f"{i.name}{OPTIONS.get(i.name, '')}" for i in riffle.strategies() if i.exact]


def compare(engine, every):
    """{(strategy, engine, clipped by): distance from DDP}, and what late clipping is told. Unless
    every: without torch's clipping only for dear, whose updates then wait for the next forward."""
    engines = (engine, riffle.c10d())
    clipped, unclipped = with_ddp(engine.rank), with_ddp(engine.rank, clips=False)
    found = {}
    for spec in exact():
        for by in engines:
            all_ways = every or spec.startswith("dear")
            for clip in ("torch", "session", "nobody") if all_ways else ("torch",):
                right = unclipped if clip == "nobody" else clipped
                found[spec, by.name, clip] = distance(with_riffle(by, spec, clip), right)
    said = {by.name: begins_to_clip(by, "dear:bucket=2KiB") for by in engines}
    return found, said, distance(unclipped, clipped)


class ThirdParty(unittest.TestCase):
    every = False

    @classmethod
    def setUpClass(cls):
        cls.answers = run_with_gloo(WORKERS, compare, cls.every, seconds=550)

    def test_every_exact_strategy_equals_ddp(self):
        for rank, (found, _, _) in enumerate(self.answers):
            for case, error in found.items():
                with self.subTest(case=case, rank=rank):
                    self.assertLessEqual(error, BOUND)

    def test_clipping_counts_here(self):
        self.assertGreater(self.answers[0][2], 1e-3)

    def test_clipping_that_begins_late_is_refused_with_the_way_out(self):
        for _, said, _ in self.answers:
            for engine, text in said.items():
                with self.subTest(engine=engine):
                    self.assertIn("session.clip_grad_norm_", text)


class ThirdPartyLong(ThirdParty):
    every = True


def print_table():
    answers = run_with_gloo(WORKERS, compare, True, seconds=1000)
    print(f"{WORKERS} workers, {STEPS} steps, float64: |x - x of DDP| / |x of DDP|, worst rank")
    print(f"{'strategy':<24}{'engine':<8}{'clipped by':<12}distance")
    worst = 0.0
    for case in answers[0][0]:
        error = max(found[case] for found, _, _ in answers)
        worst = max(worst, error)
        print(f"{case[0]:<24}{case[1]:<8}{case[2]:<12}{error:.1e}")
    return 0 if worst <= BOUND else 1


if __name__ == "__main__":
    if len(sys.argv) == 1:
        sys.exit(print_table())
    unittest.main()
