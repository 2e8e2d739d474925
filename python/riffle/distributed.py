"""The backend "riffle" of torch.distributed: `import riffle.distributed`, then
`init_process_group("riffle")`; the rest of a script stays as it is.

Ranks meet at the store that torch gives, so there is nothing else to set. Where they are on several
hosts, `RIFFLE_INTERFACE` names the network interface, by default the one that reaches the store.
"""

import atexit
import itertools
import os
import socket
from datetime import timedelta
from typing import Any

try:
    import torch
    import torch.distributed as dist
except ModuleNotFoundError as error:
    raise ImportError("riffle.distributed needs torch, which is not installed") from error

try:
    from riffle._built_for_torch import version as _built_for
except ModuleNotFoundError:
    raise ImportError(
        "this riffle was built without its backend of torch.distributed: no torch was found then; "
        "install torch and build again, with pip install --no-build-isolation"
    ) from None

if torch.__version__ != _built_for:
    raise ImportError(
        f"riffle's backend of torch.distributed was built for torch {_built_for}, "
        f"and this is torch {torch.__version__}: install that one, or build riffle again for this"
    )

from riffle import _c10d_backend  # noqa: E402

__all__ = ["create"]

# One world for each init_process_group of this process, which all ranks call equally often.
_numbers = itertools.count()
_worlds: list[Any] = []  # the last is that of the default group


def _tcp_store(store: Any) -> Any:
    """What is below prefixes, where that is a TCPStore; else nothing."""
    while isinstance(store, dist.PrefixStore):
        store = store.underlying_store
    return store if isinstance(store, dist.TCPStore) else None


def _address(store: Any) -> tuple[str, int]:
    """A host that all ranks reach: what is on its network is what connects them."""
    tcp = _tcp_store(store)
    if tcp is not None:
        return tcp.host, tcp.port
    return os.environ.get("MASTER_ADDR") or socket.gethostname(), 1


def _job(options: Any) -> str:
    """A name that no other ranks at this store have. The store may be older than its ranks: that of
    torchrun with a fixed address outlives the workers that it starts again, and what they said."""
    number = next(_numbers)
    before = options.store.add(f"riffle/{number}/joined", 1) - 1
    return f"{number}.{before // options.group_size}"


def _join(options: Any) -> Any:
    host, port = _address(options.store)
    return _c10d_backend.join(
        options.store,
        host,
        port,
        _job(options),
        options.group_rank,
        options.group_size,
        _seconds(options.timeout),
        os.environ.get("RIFFLE_INTERFACE", ""),
        os.environ.get("RIFFLE_TRANSPORT", ""),
    )


def _seconds(timeout: timedelta | float) -> float:
    return timeout.total_seconds() if isinstance(timeout, timedelta) else float(timeout)


def create(options: Any, _backend_options: Any = None) -> Any:
    """What torch.distributed calls for every group. The first joins all ranks; the others cost
    nothing: they are lists of ranks over what connects them already."""
    ranks = list(options.global_ranks_in_group)
    if not ranks:
        world = _join(options)
        _worlds[:] = [world]
        ranks = list(range(options.group_size))
    elif _worlds and dist.is_initialized():
        world = _worlds[-1]
    else:  # the default group is of another backend
        world = _join(options)
        ranks = list(range(options.group_size))
    return _c10d_backend.make_backend(world, options.group_id, ranks, _seconds(options.timeout))


_LAST_CALLS = 5.0  # seconds


@atexit.register
def _leave() -> None:
    """A process that ends says goodbye, so that others do not take it for dead. Calls that still
    hold tensors end before the interpreter does."""
    for world in _worlds:
        world.rest(_LAST_CALLS)
    _worlds.clear()


if "riffle" not in dist.Backend.backend_list:
    dist.Backend.register_backend("riffle", create, extended_api=True, devices=["cpu"])
