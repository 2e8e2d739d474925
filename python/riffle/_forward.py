"""Waiting for buckets in forward, each as late as is right.

A module's own parameters are normally used in its own forward, so waiting just before that is
enough, and lets earlier layers compute while later buckets are still on their way. Parameters that
another module uses (attention's output projection, hand-written functional calls) must be waited
for earlier. The first forward shows which: until then, and for those, everything waits at the
first hook that is reached.
"""

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch.overrides import TorchFunctionMode


class _Watch(TorchFunctionMode):
    """Notes parameters that a function uses before their module's forward has begun."""

    def __init__(self, bucket_of: dict[int, int]) -> None:
        super().__init__()
        self._bucket_of = bucket_of
        self.entered: set[int] = set()  # parameters, by id
        self.early: set[int] = set()  # buckets

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        self._look((*args, *kwargs.values()))
        return func(*args, **kwargs)

    def _look(self, values: Iterable[Any]) -> None:
        for value in values:
            if isinstance(value, torch.Tensor):
                bucket = self._bucket_of.get(id(value))
                if bucket is not None and id(value) not in self.entered:
                    self.early.add(bucket)
            elif isinstance(value, list | tuple):
                self._look(value)


class Hook:
    """A hook of a module. Copies of the module, pickled ones too, have one that does nothing."""

    def __init__(self, call: Callable[[], None] = lambda: None) -> None:
        self._call = call

    def __call__(self, *_: Any) -> None:
        self._call()

    def __reduce__(self) -> tuple[type["Hook"], tuple[()]]:
        return Hook, ()


class ForwardWaits:
    """Hooks on a model that call `need(bucket)` before a bucket's parameters are used."""

    def __init__(
        self,
        model: torch.nn.Module,
        bucket_of: dict[int, int],
        need: Callable[[int], None],
        by_layer: bool,
    ) -> None:
        self._need = need
        self._bucket_of = bucket_of
        self._all = sorted(set(bucket_of.values()), reverse=True)  # first layers first
        self._first: list[int] | None = None  # to wait for at the model's hook; None: not known
        self._watch: _Watch | None = None
        self._watching = False
        self._handles = [
            model.register_forward_pre_hook(Hook(self._enter_model)),
            model.register_forward_hook(Hook(self._leave_model), always_call=True),
        ]
        if by_layer and not is_compiled(model):
            for module in model.modules():
                self._add(module)
        else:
            self._first = self._all

    def remove(self) -> None:
        """Takes the hooks off."""
        self._stop_watching()
        for handle in self._handles:
            handle.remove()

    def all(self) -> None:
        """Waits for everything."""
        for bucket in self._all:
            self._need(bucket)

    def _add(self, module: torch.nn.Module) -> None:
        own = [id(p) for p in module.parameters(recurse=False) if id(p) in self._bucket_of]
        buckets = sorted({self._bucket_of[p] for p in own}, reverse=True)
        if not own:
            return

        def enter() -> None:
            if self._first is None:
                if self._watch is not None:
                    self._watch.entered.update(own)
                self.all()
            else:
                for bucket in buckets:
                    self._need(bucket)

        self._handles.append(module.register_forward_pre_hook(Hook(enter), prepend=True))

    def _enter_model(self) -> None:
        if self._first is not None:
            for bucket in self._first:
                self._need(bucket)
            return
        self.all()
        if self._watch is None and torch.is_grad_enabled():
            self._watch = _Watch(self._bucket_of)
            self._watch.__enter__()
            self._watching = True

    def _leave_model(self) -> None:
        if not self._watching or self._watch is None:
            return
        self._stop_watching()
        left_out = {b for p, b in self._bucket_of.items() if p not in self._watch.entered}
        self._first = sorted(self._watch.early | left_out, reverse=True)

    def _stop_watching(self) -> None:
        if self._watching and self._watch is not None:
            self._watching = False
            self._watch.__exit__(None, None, None)


def is_compiled(model: torch.nn.Module) -> bool:
    """Whether hooks of inner modules would break a compiled graph."""
    return any(
        getattr(module, "_compiled_call_impl", None) is not None or hasattr(module, "_orig_mod")
        for module in model.modules()
    )
