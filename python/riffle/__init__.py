"""Riffle: train one PyTorch model on many workers, fast also on slow networks.

A synchronization strategy is a schedule, and a schedule is data: `make("sesgd").program(...)` is
what `verify` proves, `simulate` times and `sync` runs. The words of schedules are in
`riffle.schedule`. Importing riffle does not import torch; the first use of `riffle.sync` does.
"""

from typing import TYPE_CHECKING, Any

from riffle import schedule
from riffle._core import (
    Candidate,
    Cluster,
    CommError,
    Engine,
    InternalError,
    Layer,
    NamedStrategy,
    Plan,
    SessionStats,
    Simulation,
    StrategyInfo,
    Trace,
    UsageError,
    Verification,
    World,
    __version__,
    builtin_traces,
    load_trace,
    loopback_engines,
    shm_engine,
)
from riffle.analysis import plan, simulate, verify
from riffle.launched import rank, world_size
from riffle.strategy import Strategy, make, register, strategies

__all__ = [
    "Candidate",
    "Cluster",
    "CommError",
    "Engine",
    "InternalError",
    "Layer",
    "NamedStrategy",
    "Plan",
    "Session",
    "SessionStats",
    "Simulation",
    "Strategy",
    "StrategyInfo",
    "Trace",
    "UsageError",
    "Verification",
    "World",
    "__version__",
    "builtin_traces",
    "c10d",
    "load_trace",
    "loopback_engines",
    "make",
    "plan",
    "rank",
    "register",
    "schedule",
    "shm_engine",
    "simulate",
    "strategies",
    "sync",
    "verify",
    "world_size",
]

if TYPE_CHECKING:
    from riffle.session import Session
    from riffle.training import c10d, sync


def __getattr__(name: str) -> Any:
    """What needs torch, on first use."""
    if name not in ("Session", "c10d", "sync"):
        raise AttributeError(f"module 'riffle' has no attribute '{name}'")
    from riffle import session, training

    globals().update(Session=session.Session, c10d=training.c10d, sync=training.sync)
    return globals()[name]
