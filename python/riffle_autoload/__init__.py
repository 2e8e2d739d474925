"""What `import torch` runs where riffle is installed (the entry point group `torch.backends`):
makes the name "riffle" known to torch.distributed.

It must not cost anything, nor break torch, where nobody asks for that backend; so riffle itself is
imported when a process group of that name is made, and what is wrong with it is said then.
"""

from typing import Any


def register() -> None:
    """The backend of `riffle.distributed`, to be loaded on first use."""
    import torch.distributed as dist

    if dist.is_available():
        dist.Backend.register_backend("riffle", _create, extended_api=True, devices=["cpu"])


def _create(*arguments: Any) -> Any:
    from riffle.distributed import create

    return create(*arguments)
