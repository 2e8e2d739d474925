"""What GPUs and NCCL want of a session over a process group, checked on the host with Gloo: no step
reads a tensor's value on the host, and all ranks issue their collectives in one order."""

import unittest
from contextlib import contextmanager

import torch
import torch.distributed as dist
from engines_test import cases
from processes import run_with_gloo
from tasks import batch, loss_of, momentum, normalized
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

import riffle
from riffle._process_group import ProcessGroupExchanger

WORKERS = 4
STEPS = 8  # measured times change buckets in between
READS = {"_local_scalar_dense", "item", "equal", "is_nonzero", "nonzero", "allclose", "unique"}
# On the host these read without an operator; on a device they would wait for it.
CALLS = {"item", "tolist", "numpy", "cpu", "__bool__", "__int__", "__float__", "__index__", "equal"}


class HostRead(AssertionError):
    pass


class ForbidOperators(TorchDispatchMode):
    """Operators whose result is a value on the host."""

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        if function._schema.name.split("::")[1] in READS:
            raise HostRead(f"{function} in a step")
        return function(*args, **(kwargs or {}))


class ForbidCalls(TorchFunctionMode):
    """Functions of tensors that give a value to the host."""

    def __torch_function__(self, function, types, args=(), kwargs=None):
        if getattr(function, "__name__", "") in CALLS:
            raise HostRead(f"{function.__name__} of a tensor in a step")
        return function(*args, **(kwargs or {}))


@contextmanager
def no_reads():
    with ForbidOperators(), ForbidCalls():
        yield


class BetweenSteps:
    """Lets calls for all ranks between two steps read, and counts them by step."""

    def __init__(self):
        self.step = 0
        self.steps = []
        self._kept = {name: getattr(ProcessGroupExchanger, name) for name in self.NAMES}

    NAMES = ("broadcast_bytes", "all_reduce")

    def __enter__(self):
        for name, function in self._kept.items():
            setattr(ProcessGroupExchanger, name, self._allowed(function))
        return self

    def __exit__(self, *_):
        for name, function in self._kept.items():
            setattr(ProcessGroupExchanger, name, function)

    def _allowed(self, function):
        def call(*arguments):
            self.steps.append(self.step)
            with (
                torch._C.DisableTorchFunction(),
                torch.utils._python_dispatch._disable_current_modes(),
            ):
                return function(*arguments)

        return call


def reads(_engine, some):
    """Trains under the ban; the steps whose end agreed on other buckets."""
    found = []
    for spec, cluster in some:
        model = normalized(5)
        optimizer = momentum(model.parameters())
        session = riffle.sync(model, optimizer, spec, engine=riffle.c10d(), cluster=cluster)
        try:
            with BetweenSteps() as between:
                for between.step in range(STEPS):
                    data = batch(session.rank, between.step)
                    with no_reads():
                        optimizer.zero_grad()
                        loss_of(model, data).backward()
                        optimizer.step()
            found.append(sorted(set(between.steps)))
        except HostRead as error:
            found.append(str(error))
        session.close()
    return found


# --- The order of issue.


class Branches(torch.nn.Module):
    """Gradients arrive in another order on every other rank."""

    def __init__(self, rank):
        super().__init__()
        torch.manual_seed(2)
        self.parts = torch.nn.ModuleList(torch.nn.Linear(12, 5) for _ in range(4)).double()
        self.order = list(range(4)) if rank % 2 else [2, 0, 3, 1]

    def forward(self, x):
        total = 0
        for i in self.order:
            total = torch.tanh(total + self.parts[i](x))
        return total


class Issued:
    """Notes every collective and message with who takes part in it."""

    NAMES = (
        "all_reduce",
        "reduce_scatter_tensor",
        "all_gather_into_tensor",
        "broadcast",
        "batch_isend_irecv",
    )

    def __init__(self):
        self.calls = []
        self._kept = {name: getattr(dist, name) for name in self.NAMES}

    def __enter__(self):
        for name in self.NAMES:
            setattr(dist, name, self._noted(name))
        return self

    def __exit__(self, *_):
        for name, function in self._kept.items():
            setattr(dist, name, function)

    def _noted(self, name):
        def call(*arguments, **named):
            if name == "batch_isend_irecv":
                me = dist.get_rank()
                self.calls += [("message", tuple(sorted((me, op.peer)))) for op in arguments[0]]
            else:
                self.calls.append((name, tuple(dist.get_process_group_ranks(named["group"]))))
            return self._kept[name](*arguments, **named)

        return call


def issued(engine, some):
    found = []
    for spec, cluster in some:
        model = Branches(engine.rank)
        optimizer = momentum(model.parameters())
        session = riffle.sync(model, optimizer, spec, engine=riffle.c10d(), cluster=cluster)
        with Issued() as calls:
            for step in range(STEPS):
                optimizer.zero_grad()
                loss_of(model, batch(engine.rank, step)).backward()
                optimizer.step()
            session.finish()
        found.append(calls.calls)
        session.close()
    return found


def both(engine, some):
    return reads(engine, some), issued(engine, some)


class Device(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cases = cases()
        cls.answers = run_with_gloo(WORKERS, both, cls.cases, seconds=400)

    def test_no_step_reads_a_value_on_the_host(self):
        for read, _ in self.answers:
            for (spec, cluster), found in zip(self.cases, read, strict=True):
                with self.subTest(spec=spec, cluster=cluster):
                    self.assertNotIsInstance(found, str, found)
                    self.assertLessEqual(len(found), 1, "agreed more than once on buckets")

    def test_the_ban_notices(self):
        for read in (lambda x: x.item(), torch.Tensor.tolist, bool, lambda x: torch.equal(x, x)):
            with self.assertRaises(HostRead), no_reads():
                read(torch.ones(1))

    def test_ranks_issue_in_one_order(self):
        for k, (spec, cluster) in enumerate(self.cases):
            with self.subTest(spec=spec, cluster=cluster):
                calls = [issued[k] for _, issued in self.answers]
                self.assertTrue(all(calls))
                for a in range(WORKERS):
                    for b in range(a):
                        self.assertEqual(
                            *([c for c in calls[r] if {a, b} <= set(c[1])] for r in (a, b))
                        )


if __name__ == "__main__":
    unittest.main()
