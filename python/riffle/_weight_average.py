"""DS-Sync's extended stochastic weight averaging: the mean over sampled steps and all workers."""

from collections.abc import Callable, Sequence
from typing import Any

import torch

from riffle._core import UsageError


class WeightAverage:
    """Means in float64 on this worker; workers are joined once, at the end."""

    def __init__(
        self, parameters: Sequence[torch.Tensor], buffers: Sequence[torch.Tensor], start: int = 0
    ) -> None:
        if start < 0:
            raise UsageError(f"swa_from: {start}: must be 0 or more")
        self._tensors = [*parameters, *buffers]
        self._means = [torch.zeros_like(t, dtype=torch.float64) for t in self._tensors]
        self._start = start
        self._steps = self._samples = 0

    @torch.no_grad()
    def sample(self) -> None:
        """After a step: takes in the weights as they are now, from step `start` on."""
        self._steps += 1
        if self._steps <= self._start:
            return
        self._samples += 1
        for mean, tensor in zip(self._means, self._tensors, strict=True):
            mean += (tensor.double() - mean) / self._samples

    def joined(
        self, model: torch.nn.Module, join: Callable[[torch.Tensor], torch.Tensor]
    ) -> dict[str, torch.Tensor]:
        """A state_dict of the average; `join` makes one worker's mean that of all."""
        if self._samples == 0:
            raise UsageError("no step has been averaged yet")
        found = {
            id(tensor): join(mean).to(tensor.dtype)
            for tensor, mean in zip(self._tensors, self._means, strict=True)
        }
        state = model.state_dict(keep_vars=True)
        return {key: found.get(id(t), t.detach().clone()) for key, t in state.items()}

    def state_dict(self) -> dict[str, Any]:
        """For a checkpoint: the sums of this worker."""
        return {
            "steps": self._steps,
            "samples": self._samples,
            "means": [mean.clone() for mean in self._means],
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """What state_dict() gave."""
        if [m.shape for m in state["means"]] != [m.shape for m in self._means]:
            raise UsageError("the weight average in the checkpoint is of another model")
        self._steps, self._samples = state["steps"], state["samples"]
        for mean, saved in zip(self._means, state["means"], strict=True):
            mean.copy_(saved)
