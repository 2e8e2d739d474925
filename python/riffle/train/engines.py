"""Engines by name, for a worker that a launcher has started."""

from typing import Any

import torch

import riffle
from riffle._core import launch_environment


def engine_named(name: str) -> Any:
    """`auto`: None, what riffle.sync finds by itself. One worker needs none."""
    environment = launch_environment()
    if name == "auto" or environment is None or environment.size == 1:
        return None
    if name == "shm":
        return riffle.shm_engine(environment.job, environment.rank, environment.size)
    torch.distributed.init_process_group("gloo")
    return riffle.c10d()


def close_engine() -> None:
    """Ends the process group, where one was made."""
    if torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()
