"""Exchanges over a process group of torch.distributed: Gloo, NCCL, MPI, so GPUs too.

One of the two exchangers behind a session (src/runtime/exchanger.h); the step machine, the buckets
and the merges are the core's. What is particular here:

* Flights are issued strictly in program order, whatever their lane, so that all ranks issue the
  collectives of all groups in one order, as NCCL wants.
* Process groups are made once, at the start, and reused. A schedule with more groups than
  MOST_GROUPS, or with random ones, runs them point to point over the group it was given.
* What travels rounded (_rounded.py) or as factors (_low_rank.py) is made, sent and added up by a
  thread for each lane, over a process group of its own.
* No value of a tensor is read on the host in a step; waiting for a work of NCCL makes the stream
  wait, not the host.
"""

import datetime
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from types import FunctionType
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed.nn import functional

from riffle import _core
from riffle._collectives import Call, Operation, all_gather, all_reduce, reduce_scatter, send_around
from riffle._core import Cluster, CommError, Exchange, Flight
from riffle._low_rank import Factored, run_low_rank
from riffle._rounded import Background, RoundedCall, Rounding, run_rounded
from riffle._tensor_memory import TensorMemory, TensorView, bytes_of

MOST_GROUPS = 64


def _let_go_of_world() -> None:
    """Lets destroy_process_group() end the threads of the world's group.

    torch.distributed.nn, which making the first optimizer imports, takes the group of that moment
    as the default of its functions and so keeps it for ever. A thread of Gloo that then still drops
    its last tensor while the interpreter ends aborts the process. None means the same group.
    """
    for each in vars(functional).values():
        if isinstance(each, FunctionType) and each.__defaults__:
            each.__defaults__ = tuple(
                None if isinstance(value, dist.ProcessGroup) else value
                for value in each.__defaults__
            )


def is_factor(exchange: Exchange) -> bool:
    return exchange.low_rank.factor != "none"


def by_thread(exchange: Exchange) -> bool:
    """The values need arithmetic between messages."""
    return is_factor(exchange) or exchange.wire != "f32"


class C10d:
    """The engine of a process group; `riffle.c10d()` makes one."""

    name = "c10d"

    def __init__(self, group: Any = None) -> None:
        _let_go_of_world()
        self.group = group if group is not None else dist.group.WORLD
        self.rank: int = dist.get_rank(self.group)
        self.size: int = dist.get_world_size(self.group)
        self._groups: dict[tuple[int, tuple[int, ...]], Any] = {}

    def global_rank(self, rank: int) -> int:
        """What torch.distributed calls a rank of this group."""
        return dist.get_global_rank(self.group, rank)

    def group_of(self, lane: int, members: list[int], timeout: datetime.timedelta) -> Any:
        """The process group of these ranks on a lane; all ranks ask for all, in one order."""
        if lane == 0 and members == list(range(self.size)):
            return self.group
        key = (lane, tuple(members))
        if key not in self._groups:
            self._groups[key] = dist.new_group(
                [self.global_rank(rank) for rank in members],
                timeout=timeout,
                use_local_synchronization=self.size != dist.get_world_size(),
            )
        return self._groups[key]


class ProcessGroupExchanger(TensorMemory):
    """Carries the flights of one session."""

    def __init__(
        self, engine: C10d, tensors: Iterable[torch.Tensor], device: torch.device, timeout: float
    ) -> None:
        super().__init__(tensors, device)
        self.rank, self.size = engine.rank, engine.size
        self._engine = engine
        self._timeout = datetime.timedelta(seconds=timeout)
        self._groups: dict[tuple[int, tuple[int, ...]], Any] = {}
        self._queue: deque[tuple[int, int]] = deque()  # planned, not issued, in program order
        self._flights: dict[tuple[int, int], Flight] = {}
        self._started: set[tuple[int, int]] = set()
        self._under_way: dict[tuple[int, int], Operation | Background] = {}
        self._lanes: dict[int, tuple[Any, ThreadPoolExecutor]] = {}  # of what a thread exchanges
        self._step = 0  # that was planned last
        self._failed = False

    # --- For all ranks, between steps.

    def _root(self) -> int:
        return self._engine.global_rank(0)

    def _for_all(self, call: Callable[..., Any], *arguments: Any) -> None:
        """A collective of all ranks, with this session's deadline."""
        try:
            work = call(*arguments, group=self._engine.group, async_op=True)
            _ = work.wait() if self._device.type != "cpu" else work.wait(self._timeout)
        except RuntimeError as error:
            raise self._error(
                error, call.__name__, list(range(self.size)), -1, self._step
            ) from error

    def broadcast_bytes(self, data: bytes) -> bytes:
        if not data:
            return data
        tensor = torch.frombuffer(bytearray(data), dtype=torch.uint8).to(self._device)
        self.broadcast_tensor(tensor)
        return bytes_of(tensor)

    def broadcast_tensor(self, tensor: torch.Tensor) -> None:
        self._for_all(dist.broadcast, tensor.detach(), self._root())

    def broadcast(self, values: TensorView) -> None:
        self.broadcast_tensor(self.tensor(values))

    def all_reduce(self, values: list[float], mean: bool) -> list[float]:
        tensor = torch.tensor(values, dtype=torch.float64, device=self._device)
        self._for_all(dist.all_reduce, tensor)
        return (tensor / self.size if mean else tensor).tolist()

    def average(self, values: TensorView) -> None:
        self.average_tensor(self.tensor(values))

    @torch.no_grad()
    def average_tensor(self, tensor: torch.Tensor) -> None:
        tensor.div_(self.size)
        self._for_all(dist.all_reduce, tensor)

    def cluster(self, measure: bool) -> Cluster:
        """Flat, with links that explain two all-reduces of a ring, or with ordinary ones."""
        latency, rate = 50e-6, 1.25e9
        if measure and self.size > 1:
            small, large = 1 << 7, 1 << 20
            quick, slow = self._time(small), self._time(large)
            share = 2 * (self.size - 1) / self.size
            per_byte = max((slow - quick) / (8 * (large - small)), 1e-12)
            rate = share / per_byte
            latency = max(quick - per_byte * 8 * small, 1e-7) / (2 * (self.size - 1))
        latency, rate = self.all_reduce([latency, rate], True)
        links = f"latency={latency * 1e9:.0f}ns,bandwidth={rate:.0f}B/s"
        return Cluster(f"flat:{self.size},{links},algorithm=ring")

    def _time(self, count: int) -> float:
        """The median of a few all-reduces of float64."""
        tensor = torch.zeros(count, dtype=torch.float64, device=self._device)
        times = []
        for _ in range(6):
            began = time.perf_counter()
            self._for_all(dist.all_reduce, tensor)
            if self._device.type != "cpu":
                torch.accelerator.synchronize()
            times.append(time.perf_counter() - began)
        return sorted(times[1:])[2]

    def meet(self, steps: int) -> None:
        counts = [float(steps) if rank == self.rank else 0.0 for rank in range(self.size)]
        for rank, count in enumerate(self.all_reduce(counts, False)):
            if count != steps:
                raise CommError(f"rank {rank} has ended after {count:.0f} steps, not {steps}")

    # --- Flights.

    def open(self, programs: list[_core.Program]) -> None:
        """Makes the process groups that these programs need, if they are not too many."""
        wanted = [
            (exchange.lane, tuple(exchange.group))
            for program in programs
            for exchange in program.exchanges
            if len(exchange.group) > 1
            and exchange.collective != "shift"
            and not by_thread(exchange)
        ]
        distinct = list(dict.fromkeys(wanted))
        for lane, members in distinct if len(distinct) <= MOST_GROUPS else []:
            self._groups[lane, members] = self._engine.group_of(lane, list(members), self._timeout)
        whole = tuple(range(self.size))
        self._groups.setdefault((0, whole), self._engine.group)
        lanes = {e.lane for program in programs for e in program.exchanges if by_thread(e)}
        for lane in sorted(lanes - self._lanes.keys()):
            group = self._engine.group_of(-1 - lane, list(whole), self._timeout)
            self._lanes[lane] = group, ThreadPoolExecutor(1, f"riffle-lane-{lane}")
        factored = [
            (-1 - e.lane, tuple(e.group))
            for program in programs
            for e in program.exchanges
            if is_factor(e)
        ]
        for lane, members in dict.fromkeys(factored):
            self._groups[lane, members] = self._engine.group_of(lane, list(members), self._timeout)

    def plan(self, flight: Flight) -> None:
        self._step = flight.step
        self._flights[flight.id] = flight
        self._queue.append(flight.id)

    def start(self, flight: Flight) -> float:
        """Issues what may go now; gives the seconds that this had to wait."""
        began = time.monotonic()
        waited = 0.0
        self._started.add(flight.id)
        while self._queue and self._queue[0] in self._started:
            key = self._queue.popleft()
            self._started.discard(key)
            planned = self._flights.pop(key)
            for earlier in planned.after:  # it starts from what nobody has waited for
                # A right factor's thread has exchanged the left one before it.
                if earlier in self._under_way and planned.exchange.low_rank.factor != "right":
                    self._wait(planned, self._under_way[earlier])
                    waited = time.monotonic() - began
            with self._named(planned):
                issued = time.monotonic()  # a quick one has ended before all of it is issued
                self._under_way[key] = operation = self._issue(planned)
                operation.began = issued
        return waited

    def _issue_rounded(self, flight: Flight) -> Background:
        exchange = flight.exchange
        group, thread = self._lanes[exchange.lane]
        tensors = [self.tensor(data) for data in flight.data]
        call = Call(self._engine, group, exchange.group, flight.id, tensors)
        timeout = self._timeout if self._device.type == "cpu" else None
        rounded = [
            (self._optional(reference), moves, Rounding(exchange.wire, self._optional(lost), exact))
            for lost, reference, moves, exact in flight.rounded
        ]

        def run() -> tuple[int, float]:
            one = RoundedCall(call, group, timeout)
            for tensor, (reference, moves, rounding) in zip(tensors, rounded, strict=True):
                run_rounded(one, exchange, tensor, reference, moves, rounding)
            return one.sent, time.monotonic()

        return Background(thread.submit(run))

    def _issue_factor(self, flight: Flight) -> Background:
        exchange = flight.exchange
        _, thread = self._lanes[exchange.lane]
        tensors = [self.tensor(data) for data in flight.data]
        group = self._groups[-1 - exchange.lane, tuple(exchange.group)]
        call = Call(self._engine, group, exchange.group, flight.id, tensors)
        timeout = self._timeout if self._device.type == "cpu" else None
        factored = [
            Factored(*(self.tensor(view) for view in views), rank)
            for *views, rank in flight.factored
        ]
        whole = [(self.tensor(values), self.tensor(to)) for values, to in flight.whole]

        def run() -> tuple[int, float]:
            return run_low_rank(call, exchange, factored, whole, timeout), time.monotonic()

        return Background(thread.submit(run))

    def _optional(self, view: TensorView) -> torch.Tensor | None:
        return self.tensor(view) if view[0] else None

    @torch.no_grad()
    def _issue(self, flight: Flight) -> Operation | Background:
        if is_factor(flight.exchange):
            return self._issue_factor(flight)
        if flight.exchange.wire != "f32":
            return self._issue_rounded(flight)
        exchange, members = flight.exchange, flight.exchange.group
        group = self._groups.get((exchange.lane, tuple(members)))
        tensors = [self.tensor(data) for data in flight.data]
        call = Call(self._engine, group, members, flight.id, tensors)
        weights = exchange.weights or [1.0] * len(members)
        if exchange.collective == "shift":
            return send_around(call, exchange.shift, weights)
        if exchange.collective == "all_gather":
            return all_gather(call)
        for tensor in tensors:
            tensor.mul_(weights[call.place] / sum(weights))
        return (reduce_scatter if exchange.collective == "reduce_scatter" else all_reduce)(call)

    def wait(self, flight: Flight) -> tuple[int, float, float]:
        """Bytes that it sent, and how many seconds ago it started and ended."""
        operation = self._under_way.pop(flight.id)
        self._wait(flight, operation)
        now = time.monotonic()
        return operation.sent, now - operation.began, now - operation.ended

    def _wait(self, flight: Flight, operation: Operation | Background) -> None:
        with self._named(flight):
            operation.wait(self._timeout if self._device.type == "cpu" else None)

    @contextmanager
    def _named(self, flight: Flight) -> Iterator[None]:
        """What fails in the block is of this flight."""
        try:
            yield
        except RuntimeError as error:
            what = flight.exchange
            raise self._error(
                error, what.collective, what.group, what.bucket, flight.step
            ) from error

    def _error(
        self, error: RuntimeError, operation: str, group: list[int], bucket: int, step: int
    ) -> CommError:
        self._failed = True
        of = f", bucket {bucket}" if bucket >= 0 else ""
        what = CommError(
            f"{operation} in group {group}{of}, step {step}, on rank {self.rank}: {error}"
        )
        known = {"operation": operation, "group": group, "bucket": bucket, "step": step}
        for key, value in {**known, "rank": -1}.items():
            setattr(what, key, value)
        return what

    def forget_planned(self) -> None:
        self._queue.clear()
        self._flights.clear()
        self._started.clear()

    def end(self) -> None:
        """Lets what was issued come to its end: its memory goes with the session."""
        if not self._failed:  # else nothing more can be expected; the works keep their memory
            for operation in self._under_way.values():
                operation.wait(self._timeout if self._device.type == "cpu" else None)
        self._under_way.clear()
        self.forget_planned()
        for _, thread in self._lanes.values():
            thread.shutdown(wait=not self._failed, cancel_futures=True)
        self._lanes.clear()
