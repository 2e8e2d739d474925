"""torch-ddp: DistributedDataParallel of torch on Gloo, with torch's own communication hooks."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from riffle._core import UsageError
from riffle.peers.peer import NUMPY, Option, Options, Peer, Running

if TYPE_CHECKING:
    from riffle.peers.work import Work

BUCKET_MIB = 25  # torch's default

_SAYS = {
    "none": "",
    "fp16": ", gradients as 16 bit (fp16_compress_hook)",
    "powersgd": ", PowerSGD of rank 1 (powerSGD_hook, its defaults) after a tenth of the steps; "
    "with a trace, which has no shapes, from step 2 on matrices as square as they can be",
}


def _how(options: Options) -> str:
    hook = _SAYS[options["hook"]]
    return f"torch DistributedDataParallel on Gloo, buckets of 25 MiB{hook}; SCHED_BATCH"


def wrapped(work: Work):
    """The model in DDP, its buckets as small as the lab's messages."""
    from torch.nn.parallel import DistributedDataParallel

    return DistributedDataParallel(work.module, bucket_cap_mb=BUCKET_MIB / work.shrink)


def _start(work: Work, options: Options) -> Running:
    if options["hook"] == "powersgd":
        _as_matrices(work)
    model = wrapped(work)
    if options["hook"] == "fp16":
        from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import fp16_compress_hook

        model.register_comm_hook(None, fp16_compress_hook)
    if options["hook"] == "powersgd":
        from torch.distributed.algorithms.ddp_comm_hooks import powerSGD_hook as powersgd

        first = 2 if work.is_emulated else max(2, work.steps // 10)  # its documentation's advice
        state = powersgd.PowerSGDState(process_group=None, start_powerSGD_iter=first)
        model.register_comm_hook(state, powersgd.powerSGD_hook)
    return Running(model, work.optimizer(model))


def _as_matrices(work: Work) -> None:
    """Layers of a trace are vectors, which PowerSGD leaves as they are."""
    import torch

    if not work.is_emulated:
        return
    if work.shrink != 1:
        raise UsageError(
            "torch-ddp:hook=powersgd: what it sends does not shrink with the model; "
            "run it without --shrink"
        )
    for layer in work.module.children():
        elements = layer.weight.numel()
        rows = next(n for n in range(math.isqrt(elements), 0, -1) if elements % n == 0)
        layer.weight = torch.nn.Parameter(layer.weight.detach().view(rows, -1))


TORCH_DDP = Peer(
    name="torch-ddp",
    what="torch's DistributedDataParallel: all-reduce of gradients in buckets, under backward",
    options=(Option("hook", ("none", "fp16", "powersgd"), "none"),),
    packages=lambda options: (NUMPY,) if options["hook"] == "powersgd" else (),
    modules=(),
    how=_how,
    period=lambda options, workers: 1,
    start=_start,
)
