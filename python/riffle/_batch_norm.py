"""BatchNorm's statistics belong to weights: other weights, such as an average, need their own."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.nn.modules.batchnorm import _BatchNorm

from riffle._core import UsageError

State = dict[str, torch.Tensor]
Join = Callable[[torch.Tensor], torch.Tensor]  # the mean over workers of float64 values


@contextmanager
def _measuring(model: torch.nn.Module, norms: Iterable[_BatchNorm]) -> Iterator[None]:
    """BatchNorm takes the mean over all batches; everything else is as in evaluation."""
    modes = [(module, module.training) for module in model.modules()]
    momenta = [(norm, norm.momentum) for norm in norms]
    try:
        model.eval()
        for norm, _ in momenta:
            norm.train()
            norm.momentum = None
        yield
    finally:
        for module, mode in modes:
            module.training = mode
        for norm, momentum in momenta:
            norm.momentum = momentum


@torch.no_grad()
def recompute(model: torch.nn.Module, state: State, batches: Iterable[Any], join: Join) -> None:
    """Puts into `state` the statistics of its weights over the batches of all workers.

    The model's own weights and statistics stay as they are. As with torch's update_bn, of a batch
    that is a list or tuple the first item is the input.
    """
    norms = {
        name: module
        for name, module in model.named_modules()
        if isinstance(module, _BatchNorm) and module.track_running_stats
    }
    if not norms:
        return
    for name in norms:
        state[f"{name}.running_mean"].zero_()
        state[f"{name}.running_var"].fill_(1)
        state[f"{name}.num_batches_tracked"].zero_()
    own = 0
    with _measuring(model, norms.values()):
        for batch in batches:
            x = batch[0] if isinstance(batch, list | tuple) else batch
            torch.func.functional_call(model, state, (x,))
            own += 1
    all_of_them = join(torch.tensor([float(own)], dtype=torch.float64))
    if all_of_them == 0:
        raise UsageError("no batch to recompute BatchNorm's statistics from")
    for name in norms:
        for key in (f"{name}.running_mean", f"{name}.running_var"):
            state[key].copy_(join(own * state[key].double()) / all_of_them)
