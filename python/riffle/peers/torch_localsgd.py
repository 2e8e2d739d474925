"""torch-localsgd: post-local SGD of torch, local from the first step."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from riffle.peers.peer import WHOLE_NUMBER, Option, Options, Peer, Running
from riffle.peers.torch_ddp import wrapped

if TYPE_CHECKING:
    from riffle.peers.work import Work


def _how(options: Options) -> str:
    return (
        f"torch DDP on Gloo with post_localSGD_hook and PostLocalSGDOptimizer, weights averaged "
        f"every {options['tau']} steps from the first on, gradients inside a host only; SCHED_BATCH"
    )


def _start(work: Work, options: Options) -> Running:
    import torch.distributed as dist
    from torch.distributed.algorithms.ddp_comm_hooks.post_localSGD_hook import (
        PostLocalSGDState,
        post_localSGD_hook,
    )
    from torch.distributed.algorithms.model_averaging.averagers import PeriodicModelAverager
    from torch.distributed.optim import PostLocalSGDOptimizer

    model = wrapped(work)
    # torch's default, one group per host, takes a host to have as many ranks as GPUs.
    group, _ = dist.new_subgroups(group_size=int(os.environ.get("LOCAL_WORLD_SIZE", "1")))
    state = PostLocalSGDState(process_group=None, subgroup=group, start_localSGD_iter=0)
    model.register_comm_hook(state, post_localSGD_hook)
    averager = PeriodicModelAverager(period=int(options["tau"]), warmup_steps=0)
    return Running(model, PostLocalSGDOptimizer(work.optimizer(model), averager))


TORCH_LOCALSGD = Peer(
    name="torch-localsgd",
    what="torch's post-local SGD: tau local steps, then one average of the weights",
    options=(Option("tau", WHOLE_NUMBER, "4"),),
    packages=lambda options: (),
    modules=(),
    how=_how,
    period=lambda options, workers: int(options["tau"]),
    start=_start,
)
