"""Sessions over a process group of torch.distributed: Gloo, NCCL, MPI, so GPUs too.

The same calls as the C++ session's (include/riffle/session.h), on torch tensors of the model's
device. All groups of a period become process groups at the start. `dear`'s two halves are
one all-reduce, awaited at the optimizer's step; its update still comes in the next forward.
"""

import time
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist

from riffle import _core
from riffle._core import NamedStrategy, UsageError
from riffle._flights import Flight, Outer, check
from riffle._tensors import WORDS


class C10d:
    """The engine of a process group; `riffle.c10d()` makes one."""

    name = "c10d"

    def __init__(self, group: Any = None) -> None:
        self.group = group if group is not None else dist.group.WORLD
        self.rank: int = dist.get_rank(self.group)
        self.size: int = dist.get_world_size(self.group)
        self._groups: dict[tuple[tuple[int, ...], int], Any] = {}

    def make_groups(self, exchanges: list[_core.Exchange]) -> None:
        """Process groups for all groups of these exchanges; all ranks make all, in one order."""
        whole = list(range(self.size))
        for exchange in exchanges:
            key = (tuple(exchange.group), exchange.lane)
            if len(exchange.group) == 1 or key in self._groups:
                continue
            if exchange.group == whole and exchange.lane == 0:
                self._groups[key] = self.group
            elif self.size != dist.get_world_size():
                raise UsageError("a strategy with groups needs the process group of the world")
            else:
                self._groups[key] = dist.new_group(exchange.group)

    def group_of(self, exchange: _core.Exchange) -> Any:
        """The process group of an exchange."""
        return self._groups[tuple(exchange.group), exchange.lane]


@dataclass
class Stats:
    """As _core.SessionStats."""

    steps: int = 0
    step_time: float = 0.0
    exposed_communication: float = 0.0
    bytes: int = 0
    consensus_distance: float | None = None


class C10dSession:
    """Runs programs over a process group."""

    def __init__(
        self,
        engine: C10d,
        strategy: NamedStrategy,
        parameters: list[tuple[str, torch.Tensor]],
        buffers: list[tuple[str, torch.Tensor]],
        cluster: _core.Cluster | None = None,
        trace: _core.Trace | None = None,
    ) -> None:
        self._engine = engine
        self.strategy = strategy
        self.rank, self.step, self.sync = engine.rank, 0, True
        self._parameters = [p for _, p in parameters]
        self._tensors = [*self._parameters, *(b for _, b in buffers)]
        dtypes = {t.dtype for t in self._tensors}
        if len(dtypes) != 1 or not dtypes <= WORDS.keys():
            raise UsageError(f"over c10d all tensors have one float type, not {dtypes}")
        cluster = cluster or _core.Cluster(f"flat:{engine.size},latency=50us,bandwidth=10Gbps")
        self.world = _core.World(cluster)
        sizes = [(name, p.numel()) for name, p in parameters]
        layers = [_core.Layer(name, n, forward=1e-9 * n, backward=2e-9 * n) for name, n in sizes]
        self.trace = trace or _core.Trace(layers, dtype=WORDS[dtypes.pop()])
        self.buckets = strategy.buckets(self.trace, self.world)
        for tensor in self._tensors:
            dist.broadcast(tensor.data, dist.get_global_rank(engine.group, 0), group=engine.group)
        self._lay_out()
        self._flights: list[Flight] = []
        self._postponed: set[int] = set()
        self._exposed, self._began = 0.0, time.monotonic()
        self._spread: float | None = None
        self._prepare()

    # --- Layout.

    def _lay_out(self) -> None:
        period = self.strategy.traits(self.world, self.buckets).period
        if period == 0:
            raise UsageError("random groups never repeat, and each would need a process group")
        programs = [self.strategy.program(t, self.world, self.buckets) for t in range(period)]
        exchanges = [e for program in programs for e in program.exchanges]
        for exchange in exchanges:
            check(exchange)
        self._engine.make_groups(exchanges)
        self.keeps_gradients = any(e.payload == "gradient" for e in exchanges)
        self.keeps_weights = any(e.payload == "weight" for e in exchanges)
        self.keeps_state = False
        self._bucket_of = {i: b.id for b in self.buckets for i in range(b.first, b.last + 1)}
        self._gradient: dict[int, torch.Tensor] = {}
        self._weight: dict[int, torch.Tensor] = {}
        for b in self.buckets:
            members = [self._parameters[i] for i in range(b.first, b.last + 1)]
            count = sum(p.numel() for p in members)
            if self.keeps_gradients:  # and a flag each: was it used?
                self._gradient[b.id] = members[0].new_zeros(count + len(members))
            if self.keeps_weights:
                tail = self._tensors[len(self._parameters) :] if b.id == 0 else []
                self._weight[b.id] = torch.cat([t.data.flatten() for t in [*members, *tail]])
        self._outer = {
            id(flat): Outer(flat.clone(), torch.zeros_like(flat))
            for flat in self._weight.values()
            if any(e.merge.kind == "outer" for e in exchanges)
        }

    def bucket_of(self, parameter: int) -> int:
        return self._bucket_of[parameter]

    def parameters_of(self, bucket: int) -> list[int]:
        return list(range(self.buckets[bucket].first, self.buckets[bucket].last + 1))

    def _slice(self, flat: dict[int, torch.Tensor], parameter: int) -> torch.Tensor | None:
        bucket = self._bucket_of[parameter]
        if bucket not in flat:
            return None
        first = self.buckets[bucket].first
        offset = sum(self._parameters[i].numel() for i in range(first, parameter))
        # A version counter of its own: what we merge elsewhere does not count as a change.
        return flat[bucket].data[offset : offset + self._parameters[parameter].numel()]

    def gradient(self, parameter: int) -> torch.Tensor | None:
        return self._slice(self._gradient, parameter)

    def weights(self, parameter: int) -> torch.Tensor | None:
        return self._slice(self._weight, parameter)

    def buffer(self, index: int) -> torch.Tensor | None:
        if not self._weight:
            return None
        sizes = [t.numel() for t in self._tensors[len(self._parameters) :]]
        end = self._weight[0].numel() - sum(sizes[index + 1 :])
        return self._weight[0][end - sizes[index] : end]

    def _flag(self, parameter: int) -> torch.Tensor:
        bucket = self.buckets[self._bucket_of[parameter]]
        return self._gradient[bucket.id][parameter - bucket.last - 1]

    # --- One step.

    def _prepare(self) -> None:
        self._ready: set[int] = set()
        self._passed: set[tuple[int, str]] = set()
        self._backward_over = False
        self.steps_per_bucket = False
        self._postpones: set[int] = set()
        for e in self.strategy.program(self.step, self.world, self.buckets).exchanges:
            if len(e.group) == 1 or self.rank not in e.group:
                continue
            flat = (self._gradient if e.payload == "gradient" else self._weight)[e.bucket]
            group = self._engine.group_of(e)
            outer = self._outer.get(id(flat))
            self._flights.append(Flight(e, self.step, self.rank, flat, group, outer))
            self.steps_per_bucket |= e.start == "bucket_stepped"
            if e.payload == "gradient" and e.due.point == "before_forward":
                self._postpones.add(e.bucket)

    @torch.no_grad()
    def _start(self, bucket: int, point: str) -> None:
        for flight in self._flights:
            e = flight.exchange
            if (flight.step, e.bucket, e.start) == (self.step, bucket, point):
                if not flight.started:
                    flight.take()
        blocked: set[int] = set()
        for flight in self._flights:  # in program order on each group and lane
            if flight.issued or id(flight.group) in blocked:
                continue
            if flight.started:
                flight.issue()
            else:
                blocked.add(id(flight.group))

    @torch.no_grad()
    def _merge(self, bucket: int, point: str) -> None:
        for flight in [f for f in self._flights if f.exchange.bucket == bucket]:
            if flight.due() == (self.step, point):
                self._exposed += flight.wait()
                flight.merge()
                self._flights.remove(flight)

    def _pass(self, bucket: int, point: str) -> bool:
        """True the first time."""
        if (bucket, point) in self._passed:
            return False
        self._passed.add((bucket, point))
        return True

    def needed(self, bucket: int) -> bool:
        if self._pass(bucket, "forward"):
            self._merge(bucket, "before_forward")
        return bucket in self._postponed

    def ready(self, parameter: int) -> int | None:
        if not self.sync:
            return None
        self._ready.add(parameter)
        bucket = self._bucket_of[parameter]
        if not self._ready.issuperset(self.parameters_of(bucket)):
            return None
        self._reach_ready(bucket)
        return bucket

    def _reach_ready(self, bucket: int) -> None:
        if not self._pass(bucket, "ready"):
            return
        if self.keeps_gradients:
            for i in self.parameters_of(bucket):
                self._flag(i).fill_(float(i in self._ready))
                if i not in self._ready:
                    self._slice(self._gradient, i).zero_()  # type: ignore[union-attr]
        self._start(bucket, "bucket_ready")

    def backward_done(self) -> None:
        if self._backward_over:
            return
        self._backward_over = True
        for b in self.buckets:
            self._reach_ready(b.id)
        for b in self.buckets:
            self._start(b.id, "backward_done")

    def before_step(self, bucket: int) -> bool:
        if (bucket, "ready") not in self._passed:
            self.backward_done()
        if self._pass(bucket, "before_step"):
            self._merge(bucket, "before_step")
        return bucket not in self._postpones

    def stepped(self, bucket: int) -> None:
        if bucket in self._postponed:
            self._postponed.discard(bucket)
            return
        self.before_step(bucket)
        if self._pass(bucket, "stepped"):
            self._merge(bucket, "after_step")
            self._start(bucket, "bucket_stepped")

    def end_step(self) -> None:
        for b in self.buckets:
            self.needed(b.id)
        self._postponed.clear()
        self.backward_done()
        for b in self.buckets:
            if self.before_step(b.id):
                self.stepped(b.id)
        for b in self.buckets:
            self._start(b.id, "step_done")
        self._postponed = set(self._postpones)
        self.step += 1
        self._prepare()

    def set_sync(self, sync: bool) -> None:
        self.sync = sync

    def used(self, parameter: int) -> bool:
        return bool(self._flag(parameter) != 0) if self.keeps_gradients else True

    def _gradients(self) -> list[torch.Tensor]:
        """As the update will see them."""
        for b in self.buckets:
            self.before_step(b.id)
        found = [self.gradient(i) for i in range(len(self._parameters))]
        return [g for g in found if g is not None]

    def gradient_norm(self) -> float:
        return float(torch.nn.utils.get_total_norm(self._gradients()))

    def scale_gradients(self, factor: float) -> None:
        for gradient in self._gradients():
            gradient.mul_(factor)

    def relayout(self) -> bool:
        return False

    # --- The whole model.

    def mean(self, tensor: torch.Tensor) -> torch.Tensor:
        """Over all workers, as a copy."""
        mean = tensor.detach().clone() / self._engine.size
        dist.all_reduce(mean, group=self._engine.group)
        return mean

    @torch.no_grad()
    def finish(self) -> None:
        for flight in self._flights:
            if flight.issued:
                self._exposed += flight.wait()
        self._flights = [f for f in self._flights if not f.issued]
        for tensor in self._tensors:
            tensor.copy_(self.mean(tensor))

    @torch.no_grad()
    def averaged(self, into: list[torch.Tensor]) -> None:
        for tensor, copy in zip(self._tensors, into, strict=True):
            copy.copy_(self.mean(tensor))

    @torch.no_grad()
    def consensus_distance(self) -> float:
        x = torch.cat([p.flatten() for p in self._parameters]).double()
        mean = self.mean(x)
        spread = self.mean(((x - mean) ** 2).sum())
        self._spread = float(spread.sqrt() / mean.norm())
        return self._spread

    def average(self, values: list[float]) -> list[float]:
        device = self._parameters[0].device
        return self.mean(torch.tensor(values, dtype=torch.float64, device=device)).tolist()

    def save(self) -> bytes:
        raise UsageError("a session over c10d cannot be saved; save after finish() instead")

    def stats(self) -> Stats:
        steps = max(self.step, 1)
        elapsed = time.monotonic() - self._began
        return Stats(self.step, elapsed / steps, self._exposed / steps, 0, self._spread)
