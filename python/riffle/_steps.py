"""The points of a step on torch: hooks that turn an ordinary loop into a distributed one.

The C++ session (include/riffle/session.h) runs the strategy's programs; this file tells it which
point of a step has been reached. Gradients, and weights where they are mixed, live in its memory.

When things happen:

* Strategies that average gradients start as soon as a bucket's gradient is complete and are awaited
  at the end of backward, so that whatever the loop does with gradients sees the average.
* Strategies that mix weights right after a bucket's update (and `dear`, whose gradients are whole
  only in the next forward) overlap more: buckets are updated under backward. That is right only
  where nothing happens to gradients between backward and step. The first step is made late, at
  `optimizer.step()`, to see whether something does; if so it stays that way, said once.
"""

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import torch

from riffle import _core
from riffle._c10d import C10d, C10dSession, Stats
from riffle._core import UsageError
from riffle._forward import ForwardWaits
from riffle._schedule import needs_of
from riffle._stepping import Groups, PartialOptimizer
from riffle._tensors import describe, float_buffers, trained, view
from riffle._watch import GradientWatch, called_by_scaler
from riffle._weight_average import WeightAverage


class Steps:
    """One model under a session, from hook to hook; `Session` adds what a loop may ask for."""

    def __init__(
        self,
        model: torch.nn.Module,
        optimizers: Sequence[torch.optim.Optimizer],
        engine: _core.Engine | C10d,
        strategy: _core.NamedStrategy,
        *,
        overlap: bool = True,
        average: WeightAverage | None = None,
        **options: Any,
    ) -> None:
        self.model = model
        named = trained(model)
        self._names = [name for name, _ in named]
        self._parameters = [p for _, p in named]
        self._buffers = [b for _, b in float_buffers(model)]
        self._optimizers = [PartialOptimizer(o) for o in optimizers]
        self._engine = engine
        self.core = self._make_core(engine, strategy, options)
        self._last_stats: _core.SessionStats | Stats | None = None  # once closed
        self._needs = needs_of(self.core)
        self._gradients = self.core.keeps_gradients
        self._reports_ready = self._needs.ready or self._needs.per_bucket
        # Late: everything happens at optimizer.step().
        self._overlap = overlap
        self._may_overlap = overlap and all(o.updates_any_subset() for o in self._optimizers)
        self._watches = self._needs.per_bucket or self._needs.postpones
        self._late = self._late_next = self._watches
        self._begun = False  # a late step's exchanges have been started
        self._average = average

        self._in_backward = False
        self._pending = False  # a backward has not been followed by the end of its step
        self._ready: set[int] = set()
        self._watch = GradientWatch(self._parameters)
        self._merged: set[int] = set()  # buckets whose before_step has been called
        self._updated: set[int] = set()  # buckets that were updated under backward
        self._stepped: set[PartialOptimizer] = set()
        self._postponed: dict[int, dict[PartialOptimizer, Groups]] = {}
        self._fresh: set[int] = set()  # buckets that forward may use
        self._restore: Callable[[], None] | None = None
        self._states: dict[int, list[int]] = {}
        self._make_views()
        if self.core.keeps_state:
            self._share_state()  # a resumed session may merge it before the first update
        self._handles = self._install()

    def _make_core(
        self, engine: _core.Engine | C10d, strategy: _core.NamedStrategy, options: dict[str, Any]
    ) -> _core.Session | C10dSession:
        named, buffers = trained(self.model), float_buffers(self.model)
        if isinstance(engine, C10d):
            if options.get("resume") is not None:
                raise UsageError("resume= is not available over c10d")
            known = {key: options.get(key) for key in ("cluster", "trace")}
            return C10dSession(engine, strategy, named, buffers, **known)
        return _core.Session(
            engine,
            strategy,
            [describe(name, p) for name, p in named],
            buffers=[describe(name, b) for name, b in buffers],
            **options,
        )

    def __getattr__(self, name: str) -> Any:
        if name == "core":
            raise UsageError("the session is over: it was closed, or its block has ended")
        raise AttributeError(f"a session has no attribute '{name}'")

    # --- The step, from the loop's point of view.

    def _install(self) -> list[Any]:
        handles: list[Any] = []
        if self._reports_ready:
            for i, p in enumerate(self._parameters):
                handles.append(p.register_post_accumulate_grad_hook(self._gradient_hook(i)))
        for optimizer in self._optimizers:
            handles += [
                optimizer.optimizer.register_step_pre_hook(self._pre_hook(optimizer)),
                optimizer.optimizer.register_step_post_hook(self._post_hook(optimizer)),
            ]
        self._forward: ForwardWaits | None = None
        if self._needs.forward:
            self._forward = self._make_forward_waits()
            handles.append(self.model.register_state_dict_pre_hook(lambda *_: self._settle()))
        return handles

    def _make_forward_waits(self) -> ForwardWaits:
        bucket_of = {id(p): self.core.bucket_of(i) for i, p in enumerate(self._parameters)}
        return ForwardWaits(self.model, bucket_of, self._need, by_layer=self._overlap)

    def _gradient_hook(self, i: int) -> Callable[[torch.Tensor], None]:
        def hook(_: torch.Tensor) -> None:
            if not self.core.sync:
                return
            if not self._in_backward:
                self._begin_backward()
            if not self._late:
                self._adopt(i)
                self._announce(i)

        return hook

    def _begin_backward(self) -> None:
        if self._pending:
            self._abandon()
        self._in_backward = True
        torch.autograd.Variable._execution_engine.queue_callback(self._end_backward)

    def _abandon(self) -> None:
        """No optimizer.step() came after the last backward: an overflow, or accumulation."""
        if not self._late and (self._needs.postpones or self._updated):
            raise UsageError(
                "backward was not followed by optimizer.step(), but its exchange or update has "
                "begun; accumulate inside `with session.no_sync():`, or pass overlap=False"
            )
        self._end_step()

    def _end_backward(self) -> None:
        self._in_backward = False
        self._pending = True
        if self._late:
            if self._may_overlap:
                self._watch.copy_all()
            return
        self._complete()
        if self._gradients and not self._needs.postpones:
            self._merge(range(len(self.core.buckets)))
            self._show_gradients()

    def _complete(self) -> None:
        """All gradients are there: those of an earlier, accumulating backward count too."""
        if len(self._ready) < len(self._parameters):
            for i, p in enumerate(self._parameters):
                if i not in self._ready and p.grad is not None:
                    self._adopt(i)
                    self._announce(i)
        self.core.backward_done()

    def _pre_hook(self, optimizer: PartialOptimizer) -> Callable[..., Any]:
        def hook(_: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
            if not self.core.sync:
                return None
            closure = args[1] if len(args) > 1 else kwargs.get("closure")
            if closure is not None and not optimizer.updates_any_subset():
                return None  # it evaluates as often as it likes; each backward is a step
            replaced = None
            if closure is not None:
                # Its backward must come before the exchange.
                with torch.enable_grad():
                    loss = closure()
                replaced = ((args[0], lambda: loss), {})
            if self._late:
                self._begin_late()
            else:
                self._check_unchanged()
            buckets = self._buckets_of(optimizer)
            self._merge(buckets)
            if self._late and self._gradients:
                self._show_gradients()
            left_out = self._updated | self._postponed.keys()
            if left_out:
                for bucket in self._postponed:
                    self._postponed[bucket][optimizer] = optimizer.hyperparameters()
                keep = {
                    self._parameters[i]
                    for bucket in set(buckets) - left_out
                    for i in self.core.parameters_of(bucket)
                }
                self._restore = optimizer.limit(keep | self._foreign(optimizer))
            return replaced

        return hook

    def _post_hook(self, optimizer: PartialOptimizer) -> Callable[..., None]:
        def hook(*_: Any) -> None:
            if not self.core.sync:
                return
            if self._restore is not None:
                self._restore()
                self._restore = None
            self._stepped.add(optimizer)
            if len(self._stepped) == len(self._optimizers):
                self._end_step()

        return hook

    def _end_step(self) -> None:
        """Also where no update was made, as after an overflow in mixed precision."""
        if self._needs.postpones and self._late and not self._stepped:
            # What the others have found is still to be applied, as they do.
            now = {o: o.hyperparameters() for o in self._optimizers}
            self._postponed = dict.fromkeys(range(len(self.core.buckets)), now)
        for bucket in self._postponed:
            for i in self.core.parameters_of(bucket):
                self._parameters[i].grad = None  # its memory is still needed
        self._check_in_place()
        if self.core.keeps_state:
            self._share_state()
        self.core.end_step()
        self._late = self._late_next
        self._pending = self._begun = False
        self._ready.clear()
        self._watch.clear()
        self._merged.clear()
        self._updated.clear()
        self._stepped.clear()
        self._fresh.clear()
        if self._average is not None:
            self._settle()
            self._average.sample()
        if self._reports_ready and self.core.relayout():
            self._relayout()

    # --- Parts of it.

    def _adopt(self, i: int) -> None:
        """Brings a gradient into the session's memory, where the session exchanges it."""
        p = self._parameters[i]
        if p.grad is None:
            return
        if p.grad.layout != torch.strided:
            raise UsageError(f"the gradient of {self._names[i]} is sparse; it cannot be averaged")
        if self._gradients:
            mine = self._gradient_views[i]
            if p.grad.data_ptr() != mine.data_ptr():
                mine.copy_(p.grad)
                p.grad = mine

    def _check_in_place(self) -> None:
        for i, pointer in enumerate(self._weight_pointers):
            if self._parameters[i].data_ptr() != pointer:
                raise UsageError(
                    f"{self._names[i]} was moved (another device, dtype or .data) while a session "
                    "exchanges its weights; move models before riffle.sync"
                )

    def _announce(self, i: int) -> None:
        if i in self._ready:
            raise UsageError(
                f"{self._names[i]} got a second gradient in one backward (re-entrant "
                "checkpointing does that; use_reentrant=False does not)"
            )
        self._ready.add(i)
        bucket = self.core.ready(i)
        if self._watches:
            self._watch.note(i)
            if bucket is not None and self.core.steps_per_bucket:
                self._update_bucket(bucket)

    def _update_bucket(self, bucket: int) -> None:
        self.core.before_step(bucket)
        parameters = {self._parameters[i] for i in self.core.parameters_of(bucket)}
        for optimizer in self._optimizers:
            optimizer.update(parameters)
        self.core.stepped(bucket)
        self._merged.add(bucket)
        self._updated.add(bucket)

    def _begin_late(self) -> None:
        """The step's exchanges, started by the first optimizer.step() after backward."""
        if self._begun:
            return
        self._begun = True
        changed = self._watch.changed()
        if changed is None and self._may_overlap and called_by_scaler():
            changed = 0  # all of them
        for i, p in enumerate(self._parameters):
            if p.grad is not None and i not in self._ready:
                self._adopt(i)
                self._ready.add(i)
                self.core.ready(i)
        self.core.backward_done()
        if not self._may_overlap:
            return
        if changed is None:
            self._late_next = False
        else:
            self._may_overlap = False
            warnings.warn(
                f"the gradient of {self._names[changed]} changed between backward and "
                "optimizer.step() (clipping, scaling): exchanges start at optimizer.step(), "
                "without overlap with backward",
                stacklevel=4,
            )

    def _check_unchanged(self) -> None:
        if not self._watches:
            return
        changed = 0 if called_by_scaler() else self._watch.changed()
        if changed is not None:
            raise UsageError(
                f"the gradient of {self._names[changed]} was changed after its bucket was "
                "exchanged or updated; pass overlap=False to riffle.sync, or clip with "
                "session.clip_grad_norm_ from the first step on"
            )

    def _merge(self, buckets: Sequence[int]) -> None:
        for bucket in buckets:
            if bucket not in self._merged:
                self._merged.add(bucket)
                if not self.core.before_step(bucket):
                    self._postponed[bucket] = {}

    def _show_gradients(self) -> None:
        """.grad is what the update must use: the average, or None where no rank used it."""
        for i, p in enumerate(self._parameters):
            if self.core.bucket_of(i) in self._postponed:
                continue
            p.grad = self._gradient_views[i] if self.core.used(i) else None

    def _need(self, bucket: int) -> None:
        """Before forward uses a bucket."""
        if self._in_backward:
            return
        if self._pending and torch.is_grad_enabled():
            self._abandon()
        if bucket in self._fresh:
            return
        self._fresh.add(bucket)
        if self.core.needed(bucket):
            self._make_postponed_update(bucket)

    def _make_postponed_update(self, bucket: int) -> None:
        used = [i for i in self.core.parameters_of(bucket) if self.core.used(i)]
        for i in used:
            self._parameters[i].grad = self._gradient_views[i]
        chosen = {self._parameters[i] for i in used}
        for optimizer, hyperparameters in self._postponed.pop(bucket, {}).items():
            optimizer.update(chosen, hyperparameters)
        for i in used:
            self._parameters[i].grad = None
        self.core.stepped(bucket)

    def _buckets_of(self, optimizer: PartialOptimizer) -> list[int]:
        return sorted(
            {
                self.core.bucket_of(i)
                for i, p in enumerate(self._parameters)
                if p in optimizer.parameters
            }
        )

    def _foreign(self, optimizer: PartialOptimizer) -> set[torch.Tensor]:
        return optimizer.parameters - set(self._parameters)

    def _share_state(self) -> None:
        for i, p in enumerate(self._parameters):
            state = [t for o in self._optimizers if p in o.parameters for t in o.state_of(p)]
            pointers = [t.data_ptr() for t in state]
            if self._states.get(i) != pointers:
                self._states[i] = pointers
                self.core.set_state(i, [describe(f"state of {self._names[i]}", t) for t in state])

    # --- Memory.

    def _make_views(self) -> None:
        self._gradient_views: list[torch.Tensor] = []
        self._weight_pointers: list[int] = []
        for i, p in enumerate(self._parameters):
            memory = self.core.gradient(i)
            if memory is not None:
                mine = view(memory, p)
                if p.grad is not None:
                    mine.copy_(p.grad)
                    p.grad = mine
                self._gradient_views.append(mine)
            memory = self.core.weights(i)
            if memory is not None:
                p.data = view(memory, p)
                self._weight_pointers.append(p.data_ptr())
        for i, b in enumerate(self._buffers):
            memory = self.core.buffer(i)
            if memory is not None:
                b.data = view(memory, b)

    def _relayout(self) -> None:
        for p in self._parameters:
            p.grad = None
        self._make_views()
        if self._forward is not None:
            self._forward.remove()
            self._forward = self._make_forward_waits()

    def _settle(self) -> None:
        """All that is due before the next forward has happened."""
        if not self._in_backward and not self._pending and self._forward is not None:
            self._forward.all()
