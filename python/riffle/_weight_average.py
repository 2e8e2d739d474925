"""DS-Sync's extended stochastic weight averaging: the mean over sampled steps and all workers."""

from collections.abc import Callable, Sequence

import torch

from riffle._core import UsageError


class WeightAverage:
    """Sums in float64 on this worker; workers are joined once, at the end."""

    def __init__(self, parameters: Sequence[torch.Tensor], buffers: Sequence[torch.Tensor]) -> None:
        self._tensors = [*parameters, *buffers]
        self._means = [torch.zeros_like(t, dtype=torch.float64) for t in self._tensors]
        self._samples = 0

    @torch.no_grad()
    def sample(self) -> None:
        """Takes in the weights as they are now."""
        self._samples += 1
        for mean, tensor in zip(self._means, self._tensors, strict=True):
            mean += (tensor.double() - mean) / self._samples

    def joined(
        self, model: torch.nn.Module, join: Callable[[torch.Tensor], torch.Tensor]
    ) -> dict[str, torch.Tensor]:
        """A state_dict of the average; `join` makes one worker's mean that of all."""
        if self._samples == 0:
            raise UsageError("no step has been made yet, so there is nothing to average")
        found = {
            id(tensor): join(mean).to(tensor.dtype)
            for tensor, mean in zip(self._tensors, self._means, strict=True)
        }
        state = model.state_dict(keep_vars=True)
        return {key: found.get(id(t), t.detach().clone()) for key, t in state.items()}
