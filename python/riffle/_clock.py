"""Times of computing, told to a session while it measures: forward layer by layer, updates.

The session takes the times of gradients by itself. A layer's forward lasts from the end of the one
before it to its own end, so what has no parameters counts for the next layer that has some.
"""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch

from riffle import _core
from riffle._forward import Hook, is_compiled


class Clock:
    """Hooks on a model that last as long as the session wants times."""

    def __init__(
        self,
        model: torch.nn.Module,
        parameters: Sequence[torch.Tensor],
        core: _core.Session,
        device: torch.device,
    ) -> None:
        self._core = core
        self._on_host = device.type == "cpu"
        self._handles: list[Any] = []
        if not core.profiles:
            return
        index = {id(p): i for i, p in enumerate(parameters)}
        self._handles.append(model.register_forward_pre_hook(Hook(self._begin), prepend=True))
        for module in [] if is_compiled(model) else model.modules():
            own = [index[id(p)] for p in module.parameters(recurse=False) if id(p) in index]
            if own and not isinstance(module, torch.jit.ScriptModule):
                self._handles.append(module.register_forward_hook(self._layer_hook(own[0])))
        self._handles.append(model.register_forward_hook(Hook(self._end)))

    @property
    def runs(self) -> bool:
        """The session still wants times."""
        return bool(self._handles)

    def stop(self) -> None:
        """Takes the hooks off."""
        for handle in self._handles:
            handle.remove()
        self._handles = []

    def end_step(self) -> None:
        """Stops where the session has what it wants."""
        if self.runs and not self._core.profiles:
            self.stop()

    def catch_up(self) -> None:
        """A device runs behind the host: what was asked of it is done when this returns."""
        if not self._on_host and self.runs:
            torch.accelerator.synchronize()

    @contextmanager
    def update(self) -> Iterator[None]:
        """The optimizer runs in the block."""
        self.begin_update()
        yield
        self.end_update()

    def begin_update(self) -> None:
        """The optimizer begins."""
        if self.runs:
            self.catch_up()
            self._began = time.perf_counter()

    def end_update(self) -> None:
        """It has ended."""
        if self.runs:
            self.catch_up()
            self._core.optimizer_took(time.perf_counter() - self._began)

    def _begin(self) -> None:
        if _is_forward():
            self.catch_up()
            self._core.begin_forward()

    def _layer_hook(self, parameter: int) -> Hook:
        def hook() -> None:
            if _is_forward():
                self.catch_up()
                self._core.forward_done(parameter)

        return Hook(hook)

    def _end(self) -> None:
        if _is_forward():
            self.catch_up()
            self._core.end_forward()


def _is_forward() -> bool:
    """Of training, and none that backward runs again (checkpointed activations)."""
    return torch.is_grad_enabled() and torch._C._current_graph_task_id() == -1
