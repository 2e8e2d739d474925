"""`riffle.sync`: the one call that makes a training loop distributed."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from riffle import _core
from riffle._core import (
    ChosenStrategy,
    Cluster,
    Engine,
    NamedStrategy,
    Plan,
    Trace,
    UsageError,
    choose_strategy,
    load_plan,
)
from riffle._distributed import Distributed
from riffle._process_group import C10d
from riffle._tensors import float_buffers, trained
from riffle._weight_average import WeightAverage
from riffle.session import Session
from riffle.strategy import table


def c10d(group: Any = None) -> C10d:
    """An engine over a process group (default: the world's) that torch.distributed has made."""
    return C10d(group)


def _choose(spec: str | NamedStrategy) -> ChosenStrategy:
    if isinstance(spec, NamedStrategy):
        return ChosenStrategy(spec)
    return choose_strategy(spec, table())


def _check_options(
    engine: Engine | C10d | None,
    strategy: NamedStrategy,
    sense: bool | None,
    sense_window: int | None,
    failure_timeout: float | None,
) -> None:
    """What cannot be had with this engine is refused, never ignored."""
    if engine is not None and failure_timeout is not None:
        raise UsageError("failure_timeout: the engine is given; say it where that is made")
    if not isinstance(engine, C10d):
        return
    if sense or sense_window is not None:
        raise UsageError(
            "sense: over a process group the network cannot be sensed, because process groups are "
            "made once, at the start; leave sense and sense_window out, or use riffle's own engine"
        )
    if re.search("[:,]algorithm=(?!auto)", strategy.spec):
        raise UsageError(
            f"{strategy.spec}: over a process group the library behind it chooses the algorithm; "
            "leave algorithm out, or use riffle's own engine"
        )


def _weight_average(
    model: torch.nn.Module, start: int, resume: dict[str, Any] | None
) -> WeightAverage:
    """Goes on from a checkpoint that has one, else begins here."""
    parameters = [p for _, p in trained(model)]
    average = WeightAverage(parameters, [b for _, b in float_buffers(model)], start)
    saved = None if resume is None else resume.get("swa")
    if saved is not None:
        average.load_state_dict(saved)
    return average


def sync(
    model: torch.nn.Module,
    optimizer: torch.optim.Optimizer | Sequence[torch.optim.Optimizer],
    strategy: str | NamedStrategy = "auto",
    *,
    engine: Engine | C10d | None = None,
    cluster: Cluster | str | None = None,
    trace: Trace | None = None,
    plan: Plan | str | None = None,
    profile: bool = False,
    overlap: bool = True,
    swa: bool = False,
    swa_from: int = 0,
    resume: dict[str, Any] | None = None,
    measure_network: bool = True,
    sense: bool | None = None,
    sense_window: int | None = None,
    record: bool = False,
    timeout: float = 600.0,
    failure_timeout: float | None = None,
    first_q: Mapping[str, torch.Tensor] | None = None,
) -> Session:
    """Trains `model` on all workers of the job: the loop in the `with` block stays as it was.

    Rank 0's parameters and buffers are broadcast first. At the end of the block all workers hold
    the exact average.

    strategy: as on the command line, "sesgd:group=4". "auto" begins with mg-wfbp and changes, after
        a few steps, to what is planned on the measured network and times: among exact strategies
        only, unless "auto:inexact=true"; see session.plan.
    engine: default: what reaches all ranks, by the environment the launcher left; c10d(group)
        for a process group of torch.distributed.
    cluster: what the strategy plans for, as on the command line; default: measured.
    trace: layer times, one layer per trained parameter; default: modelled, then measured.
    plan: with "auto", what was planned before, or its file (`riffle plan --plan-file`, or
        session.plan.to_json()), instead of planning.
    profile: measure more steps than the first few, also on one worker; see session.trace().
    overlap: False starts exchanges that would overlap the update at optimizer.step().
    swa: keep the average over steps and workers, see session.swa(); over those from step
        `swa_from` on, steps before a checkpoint that has the average counted.
    resume: what session.state_dict() gave on this rank; weights are loaded by the caller.
    sense: on several hosts and a measured cluster, watch what exchanges take, measure the network
        again when that changes, and plan buckets, groups, delays and with "auto" the strategy anew;
        see session.sensed. By default wherever it can be had; over c10d it cannot, and True is
        refused. "auto:replan=false" keeps its first plan.
    sense_window: the number of steps, at most, after which workers tell each other what they have
        seen; 20 by default, fewer where steps take long.
    record: keep a timeline.
    timeout: seconds that any wait may take.
    failure_timeout: seconds that a worker may be silent before it counts as failed, where `engine`
        is not given; default: RIFFLE_FAILURE_TIMEOUT, else 10.
    first_q: with powersgd, Q of the first factors by name of the parameter, columns x rank, instead
        of drawn numbers; to compare with another program. Rank 0's are taken.
    """
    optimizers = list(optimizer) if isinstance(optimizer, Sequence) else [optimizer]
    if isinstance(cluster, str):
        cluster = Cluster(cluster)
    if isinstance(plan, str):
        plan = load_plan(plan)
    chosen = _choose(strategy)
    _check_options(engine, chosen.strategy, sense, sense_window, failure_timeout)
    engine = engine or _core.launched_engine(failure_timeout)
    rank, size = (0, 1) if engine is None else (engine.rank, engine.size)
    if resume is not None and (resume["rank"], resume["size"]) != (rank, size):
        raise UsageError(
            f"the checkpoint is of rank {resume['rank']} of {resume['size']}, this is rank "
            f"{rank} of {size}; resuming needs the same workers"
        )
    average = _weight_average(model, swa_from, resume) if swa else None
    if engine is None or engine.size == 1:
        if not profile and not _core.profile_requested():
            return Session(model, optimizers, chosen.strategy, average)
        engine = engine or _core.loopback_engines(1)[0]
    return Distributed(
        model,
        optimizers,
        engine,
        chosen,
        overlap=overlap,
        average=average,
        cluster=cluster,
        trace=trace,
        plan=plan,
        profile=profile,
        measure_network=measure_network,
        sense=sense is not False,
        sense_window=20 if sense_window is None else sense_window,
        resume=None if resume is None else resume["session"],
        record=record,
        timeout=timeout,
        compute_threads=torch.get_num_threads(),
        first_q=first_q,
    )
