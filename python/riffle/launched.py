"""Who this worker is, before any session: for samplers, seeds and what only one worker prints."""

import sys

from riffle import _core


def _place() -> tuple[int, int]:
    # Whoever has a process group has been told; importing torch only to ask takes seconds.
    distributed = sys.modules.get("torch.distributed")
    if distributed is not None and distributed.is_available() and distributed.is_initialized():
        return distributed.get_rank(), distributed.get_world_size()
    environment = _core.launch_environment()
    return (0, 1) if environment is None else (environment.rank, environment.size)


def rank() -> int:
    """This worker's number, as its launcher or torch.distributed says; 0 for a process alone."""
    return _place()[0]


def world_size() -> int:
    """How many workers there are; 1 for a process alone."""
    return _place()[1]
