"""Has somebody changed a gradient between backward and the optimizer's step?"""

import sys
from collections.abc import Sequence

import torch

_FRAMES = 10  # of ours, of torch.optim and of schedulers between a scaler and our hook


class GradientWatch:
    """Notes marks, which cost next to nothing: the tensor and its version, which clipping counts up
    even where it changes no value. Copies, where wanted, miss nothing. GradScaler changes gradients
    without counting their version up: ask `called_by_scaler` too."""

    def __init__(self, parameters: Sequence[torch.Tensor]) -> None:
        self._parameters = parameters
        self._copies: dict[int, torch.Tensor] = {}
        self._marks: dict[int, tuple[int, int]] = {}

    def clear(self) -> None:
        """Forgets everything."""
        self._copies.clear()
        self._marks.clear()

    def copy_all(self) -> None:
        """Keeps the gradients as they are now."""
        self._copies = {
            i: p.grad.clone() for i, p in enumerate(self._parameters) if p.grad is not None
        }

    def note_all(self) -> None:
        """Marks the gradients as they are now."""
        self._marks = {
            i: (p.grad.data_ptr(), p.grad._version)
            for i, p in enumerate(self._parameters)
            if p.grad is not None
        }

    def changed(self) -> int | None:
        """The first parameter whose gradient is not what it was."""
        for i, copy in self._copies.items():
            grad = self._parameters[i].grad
            if grad is None or not torch.equal(grad, copy):
                return i
        for i, mark in self._marks.items():
            grad = self._parameters[i].grad
            if grad is None or (grad.data_ptr(), grad._version) != mark:
                return i
        return None


def called_by_scaler() -> bool:
    """Whether an enabled GradScaler is making the optimizer's step that we are in."""
    frame = sys._getframe(1)
    for _ in range(_FRAMES):
        if frame.f_globals.get("__name__") == "torch.amp.grad_scaler":
            return bool(getattr(frame.f_locals.get("self"), "_enabled", True))
        if frame.f_back is None:
            return False
        frame = frame.f_back
    return False
