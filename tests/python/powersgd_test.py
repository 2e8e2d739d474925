"""powersgd against torch's own powerSGD_hook, over our collectives and over a process group."""

import copy
import unittest

import torch
from processes import run_with_gloo
from reference import compressed_rank, first_factors
from tasks import batch, distance, flat, loss_of, momentum, state
from torch.distributed.algorithms.ddp_comm_hooks import powerSGD_hook as torch_powersgd

import riffle

torch_powersgd.logger.setLevel("ERROR")  # it notes that a state has been restored

WORKERS = 4
STEPS, START = 20, 2
RANKS = (1, 2, 4)  # torch takes Gram-Schmidt up to 2, then QR
BOUNDS = {torch.float32: 1e-5, torch.float64: 1e-10}
RUNS = [(rank, dtype) for rank in RANKS for dtype in BOUNDS]
FLAT = "flat:4,latency=20us,bandwidth=10Gbps"


def convolution(dtype: torch.dtype = torch.float32) -> torch.nn.Module:
    """A matrix of four dimensions, one of two, one too small to be worth it, and vectors."""
    torch.manual_seed(7)
    return torch.nn.Sequential(
        torch.nn.Unflatten(1, (3, 2, 2)),
        torch.nn.Conv2d(3, 40, 2, padding=1),
        torch.nn.Tanh(),
        torch.nn.Flatten(),
        torch.nn.Linear(360, 24),
        torch.nn.Tanh(),
        torch.nn.Linear(24, 5),
    ).to(dtype)


def steps(model, optimizer, rank, begin, end):
    for step in range(begin, end):
        optimizer.zero_grad()
        dtype = next(model.parameters()).dtype
        loss_of(model, batch(rank, step, dtype)).backward()
        optimizer.step()


# --- torch's hook


def hook_state(rank):
    """As PowerSGDState makes it, which needs numpy to draw the first Q; here they are given."""
    made = torch_powersgd.PowerSGDState.__new__(torch_powersgd.PowerSGDState)
    made.__setstate__(
        {
            "matrix_approximation_rank": rank,
            "start_powerSGD_iter": START,
            "min_compression_rate": 2,
            "orthogonalization_epsilon": 0,
            "use_error_feedback": True,
            "warm_start": True,
            "batch_tensors_with_same_shape": False,
            "rng": None,
            "error_dict": {},
            "p_memory_dict": {},
            "q_memory_dict": {},
            "iter": 0,
            "total_numel_before_compression": 0,
            "total_numel_after_compression": 0,
            "compression_stats_logging_frequency": 10_000,
            "next_stats_report": 0,
        }
    )
    return made


def hook_with(first, names):
    """powerSGD_hook whose first Q are those, in the order in which it lays them out."""

    def hook(of, bucket):
        index = bucket.index()
        if of.iter >= START and index not in of.p_memory_dict:
            by_shape = {}
            for parameter in bucket.parameters():
                if names[parameter] in first:
                    matrix = (parameter.shape[0], parameter[0].numel())
                    by_shape.setdefault(matrix, []).append(first[names[parameter]])
            rows = sum(shape[0] * q.shape[1] for shape, all_q in by_shape.items() for q in all_q)
            flat = [q.flatten() for all_q in by_shape.values() for q in all_q]
            of.p_memory_dict[index] = torch.zeros(rows, dtype=bucket.buffer().dtype)
            of.q_memory_dict[index] = torch.cat([bucket.buffer()[:0], *flat])
        return torch_powersgd.powerSGD_hook(of, bucket)

    return hook


def trained_by_torch(place, rank, dtype):
    model = convolution(dtype)
    optimizer = momentum(model.parameters())
    parallel = torch.nn.parallel.DistributedDataParallel(model)
    names = {parameter: name for name, parameter in model.named_parameters()}
    parallel.register_comm_hook(hook_state(rank), hook_with(first_factors(model, rank), names))
    steps(parallel, optimizer, place, 0, STEPS)
    return flat(model)


# --- ours


def fresh(engine, spec, saved=None, dtype=torch.float32, **options):
    model = convolution(dtype)
    optimizer = momentum(model.parameters())
    if saved is not None:
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
    resume = saved and saved["session"]
    session = riffle.sync(
        model, optimizer, spec, engine=engine, cluster=FLAT, resume=resume, **options
    )
    return model, optimizer, session


def trained(engine, rank, dtype):
    first = first_factors(convolution(dtype), rank)
    spec = f"powersgd:rank={rank},start={START}"
    model, optimizer, session = fresh(engine, spec, dtype=dtype, first_q=first)
    steps(model, optimizer, engine.rank, 0, STEPS)
    found = flat(model)
    session.close()
    return found


def resumed(engine, stop):
    """A run in one go, and one that went on from a checkpoint, both after buckets have been cut by
    measured times."""
    spec = "powersgd:start=8"
    model, optimizer, session = fresh(engine, spec)
    steps(model, optimizer, engine.rank, 0, stop)
    saved = {"session": session.state_dict(), "model": model.state_dict()}
    saved = copy.deepcopy(saved | {"optimizer": optimizer.state_dict()})
    steps(model, optimizer, engine.rank, stop, STEPS)
    whole = state(model)
    session.close()
    model, optimizer, session = fresh(engine, spec, saved)
    steps(model, optimizer, engine.rank, stop, STEPS)
    halves = state(model)
    session.close()
    return whole, halves


def sent(engine, spec):
    model, optimizer, session = fresh(engine, spec)
    steps(model, optimizer, engine.rank, 0, 5)
    session.finish()
    session.close()
    return session.stats().bytes


def refusals(engine):
    model = convolution()
    first = first_factors(model, 4)
    found = []
    for spec, given, dtype in (
        ("powersgd", {"nobody": torch.zeros(3, 4)}, torch.float32),
        ("powersgd", {"1.weight": torch.zeros(3, 4)}, torch.float32),
        ("powersgd", {"1.bias": torch.zeros(3, 4)}, torch.float32),
        ("wfbp", first, torch.float32),
        ("powersgd", {}, torch.bfloat16),
    ):
        one = convolution().to(dtype)
        try:
            riffle.sync(
                one, momentum(one.parameters()), spec, engine=engine, cluster=FLAT, first_q=given
            ).close()
            found.append("")
        except riffle.UsageError as error:
            found.append(str(error))
    return found


def all_of_it(engine):
    group = riffle.c10d()
    return {
        "torch": {each: trained_by_torch(engine.rank, *each) for each in RUNS},
        "engine": {each: trained(engine, *each) for each in RUNS},
        "group": {each: trained(group, *each) for each in RUNS},
        "resumed": [resumed(by, stop) for by in (engine, group) for stop in (7, 8, 12)],
        "sent": sent(engine, "powersgd:start=0,algorithm=ring"),
        "sent by the group": sent(group, "powersgd:start=0"),
        "refused": refusals(engine),
    }


class PowerSgd(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.answers = run_with_gloo(WORKERS, all_of_it, seconds=300)

    def test_equal_to_the_hook_of_torch(self):
        for answer in self.answers:
            for each, right in answer["torch"].items():
                for by in ("engine", "group"):
                    with self.subTest(rank=each[0], dtype=each[1], by=by):
                        self.assertLess(distance(answer[by][each], right), BOUNDS[each[1]])

    def test_the_hook_of_torch_compresses(self):
        one, other = (self.answers[0]["torch"][rank, torch.float64] for rank in (1, 4))
        self.assertGreater(distance(one, other), 1e-3)

    def test_all_workers_hold_the_same_bits(self):
        first, *others = self.answers
        for answer in others:
            for each, right in first["engine"].items():
                self.assertTrue(torch.equal(answer["engine"][each], right), each)

    def test_resuming_is_bit_exact(self):
        for answer in self.answers:
            for whole, halves in answer["resumed"]:
                for key, value in whole.items():
                    self.assertTrue(torch.equal(halves[key], value), key)

    def test_bytes_are_those_of_the_factors(self):
        values = 0
        for parameter in convolution().parameters():
            rank = compressed_rank(parameter, 4)
            sizes = rank * (parameter.shape[0] + parameter[0].numel())
            values += sizes if rank else parameter.numel()
        # A ring's, of f32.
        expected = 2 * (WORKERS - 1) / WORKERS * 4 * values
        for answer in self.answers:
            self.assertAlmostEqual(answer["sent"], expected, delta=4)
            # What really travels lies on 64 bytes, and flags say whose gradient was used.
            self.assertGreater(answer["sent by the group"], expected)
            self.assertLess(answer["sent by the group"], expected + 1.5 * (8 * 64 + 6 * 4))

    def test_what_cannot_be_had_is_refused_with_the_reason(self):
        words = ["nobody", "1.weight needs 12 x 4", "1.bias does not", "does not travel", "f32"]
        for answer in self.answers:
            for word, found in zip(words, answer["refused"], strict=True):
                self.assertIn(word, found)
        for spec in ("rank=0", "start=-1", "wire=int8", "feedback=false", "ranks=2"):
            with self.assertRaises(riffle.UsageError):
                riffle.make(f"powersgd:{spec}")


if __name__ == "__main__":
    unittest.main()
