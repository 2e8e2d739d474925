"""`riffle.sync`: the one call that makes a training loop distributed."""

from collections.abc import Sequence
from typing import Any

import torch

from riffle import _core
from riffle._alone import Alone
from riffle._c10d import C10d
from riffle._core import Cluster, Engine, NamedStrategy, Trace, UsageError
from riffle._tensors import WORDS, trained
from riffle.analysis import plan
from riffle.session import Session
from riffle.strategy import make


def c10d(group: Any = None) -> C10d:
    """An engine over a process group (default: the world's) that torch.distributed has made."""
    return C10d(group)


def _choose(
    spec: str | NamedStrategy, model: torch.nn.Module, cluster: Cluster | None
) -> NamedStrategy:
    """`auto`: the planner's first choice for a given cluster, else the best exact strategy."""
    if spec != "auto":
        return make(spec)
    if cluster is None:
        return make("mg-wfbp")
    layers = [_core.Layer(name, p.numel(), 1e-6, 2e-6) for name, p in trained(model)]
    dtype = WORDS.get(next(iter(trained(model)))[1].dtype, "f32")
    return make(plan(Trace(layers, dtype=dtype), cluster).candidates[0].spec)


def sync(
    model: torch.nn.Module,
    optimizer: torch.optim.Optimizer | Sequence[torch.optim.Optimizer],
    strategy: str | NamedStrategy = "auto",
    *,
    engine: Engine | C10d | None = None,
    cluster: Cluster | str | None = None,
    trace: Trace | None = None,
    overlap: bool = True,
    swa: bool = False,
    resume: dict[str, Any] | None = None,
    measure_network: bool = True,
    sense: bool = True,
    sense_window: int = 20,
    record: bool = False,
    timeout: float = 600.0,
) -> Session | Alone:
    """Trains `model` on all workers of the job: the loop in the `with` block stays as it was.

    Rank 0's parameters and buffers are broadcast first. At the end of the block all workers hold
    the exact average.

    strategy: as on the command line, "sesgd:group=4"; "auto": see the planner.
    engine: default: what reaches all ranks, by the environment the launcher left; c10d(group)
        for a process group of torch.distributed.
    cluster: what the strategy plans for, as on the command line; default: measured.
    trace: layer times, one layer per trained parameter; default: modelled, then measured.
    overlap: False starts exchanges that would overlap the update at optimizer.step().
    swa: keep the average over steps and workers, see session.swa().
    resume: what session.state_dict() gave on this rank; weights are loaded by the caller.
    sense: with ds-sync:pattern=bottleneck on several hosts and a measured cluster, find racks and
        slow hosts at the start, watch them, and group workers anew when they change; see
        session.sensed. Not over c10d.
    sense_window: after so many steps workers tell each other what they have seen.
    record: keep a timeline.
    timeout: seconds that any wait may take.
    """
    optimizers = list(optimizer) if isinstance(optimizer, Sequence) else [optimizer]
    engine = engine or _core.launched_engine()
    if isinstance(cluster, str):
        cluster = Cluster(cluster)
    chosen = _choose(strategy, model, cluster)
    if engine is None or engine.size == 1:
        return Alone(model, optimizers, chosen, swa)
    if resume is not None and (resume["rank"], resume["size"]) != (engine.rank, engine.size):
        raise UsageError(
            f"the checkpoint is of rank {resume['rank']} of {resume['size']}, this is rank "
            f"{engine.rank} of {engine.size}; resuming needs the same workers"
        )
    return Session(
        model,
        optimizers,
        engine,
        chosen,
        overlap=overlap,
        swa=swa,
        cluster=cluster,
        trace=trace,
        measure_network=measure_network,
        sense=sense,
        sense_window=sense_window,
        resume=None if resume is None else resume["session"],
        record=record,
        timeout=timeout,
    )
