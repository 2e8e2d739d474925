"""Riffle: train one PyTorch model on many workers, fast also on slow networks.

A synchronization strategy is a schedule, and a schedule is data: `make("sesgd").program(...)` is
what `verify` proves, `simulate` times and `sync` runs. Importing riffle does not import torch; the
first use of `riffle.sync` does.
"""

from typing import TYPE_CHECKING, Any

from riffle._core import (
    Bucket,
    Candidate,
    Cluster,
    CommError,
    CostModel,
    Due,
    Engine,
    Exchange,
    InternalError,
    Layer,
    Merge,
    NamedStrategy,
    Option,
    Options,
    Plan,
    Program,
    Simulation,
    StrategyInfo,
    Trace,
    Traits,
    UsageError,
    Verification,
    World,
    __version__,
    after_step,
    before_forward,
    before_step,
    bucket_per_layer,
    builtin_traces,
    correct,
    load_trace,
    loopback_engines,
    make_buckets,
    mix,
    one_bucket,
    outer,
    replace,
    shm_engine,
)
from riffle.analysis import plan, simulate, verify
from riffle.strategy import Strategy, make, register, strategies

__all__ = [
    "Bucket",
    "Candidate",
    "Cluster",
    "CommError",
    "CostModel",
    "Due",
    "Engine",
    "Exchange",
    "InternalError",
    "Layer",
    "Merge",
    "NamedStrategy",
    "Option",
    "Options",
    "Plan",
    "Program",
    "Session",
    "Simulation",
    "Strategy",
    "StrategyInfo",
    "Trace",
    "Traits",
    "UsageError",
    "Verification",
    "World",
    "__version__",
    "after_step",
    "before_forward",
    "before_step",
    "bucket_per_layer",
    "builtin_traces",
    "c10d",
    "correct",
    "load_trace",
    "loopback_engines",
    "make",
    "make_buckets",
    "mix",
    "one_bucket",
    "outer",
    "plan",
    "register",
    "replace",
    "shm_engine",
    "simulate",
    "strategies",
    "sync",
    "verify",
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
