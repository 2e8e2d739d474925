"""The points of a step on torch: hooks that turn an ordinary loop into a distributed one.

The C++ session (include/riffle/session.h) says what a step means and runs it; this file tells it
which point has been reached, and lets gradients, and weights where they are mixed, live in its
memory. Gradients are exchanged under backward and awaited at its end, so that whatever the loop
does with them sees the average. What more may overlap is the session's policy: it asks whether
gradients were left alone between backward and step.
"""

import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch

from riffle import _core
from riffle._clock import Clock
from riffle._core import UsageError
from riffle._forward import ForwardWaits, Hook
from riffle._process_group import C10d, ProcessGroupExchanger
from riffle._stepping import Groups, PartialOptimizer
from riffle._tensors import describe, float_buffers, trained, untrained, view
from riffle._watch import GradientWatch, called_by_scaler
from riffle._weight_average import WeightAverage
from riffle.session import Session


class Steps(Session):
    """One model under a session, from hook to hook; `Distributed` adds what a loop may ask for."""

    def __init__(
        self,
        model: torch.nn.Module,
        optimizers: Sequence[torch.optim.Optimizer],
        engine: _core.Engine | C10d,
        strategy: _core.ChosenStrategy,
        *,
        overlap: bool = True,
        average: WeightAverage | None = None,
        **options: Any,
    ) -> None:
        super().__init__(model, [], strategy.strategy)
        self.rank, self.size = engine.rank, engine.size
        self._names = [name for name, _ in trained(model)]
        self._buffers = [b for _, b in float_buffers(model)]
        self._optimizers = [PartialOptimizer(o) for o in optimizers]
        self._frozen = [(n, p) for n, p in model.named_parameters() if not p.requires_grad]
        self._check_optimizers()
        self._engine = engine
        self._overlap = overlap
        self._average = average
        self._tensors: ProcessGroupExchanger | None = None  # over a process group
        whole = overlap and all(o.updates_any_subset() for o in self._optimizers)
        self.core = self._make_core(strategy, overlap="watched" if whole else "none", **options)
        self._last_stats: _core.SessionStats | None = None  # once closed
        self._last_timeline = ""
        self._last_trace: _core.Trace | None = None
        self._last_plan: _core.Plan | None = None

        self._in_backward = False
        self._pending = False  # a backward has not been followed by the end of its step
        self._ready: set[int] = set()  # parameters whose gradient is complete
        self._watch = GradientWatch(self._parameters)
        self._stepped: set[PartialOptimizer] = set()
        self._rates: list[list[Any]] = []  # that updates under backward were made with
        # Of updates that are left to the next forward. Not by bucket: buckets may change till then.
        self._postponed: dict[PartialOptimizer, Groups] = {}
        self._fresh: set[int] = set()  # buckets that forward may use
        self._restore: Callable[[], None] | None = None
        self._states: dict[int, list[int]] = {}
        self._make_views()
        if self.core.keeps_state:
            self._share_state()  # a resumed session may merge it before the first update
        self._clock = Clock(model, self._parameters, self.core, self._device())
        self._handles = self._install_on_optimizers()
        self._install()

    def _check_optimizers(self) -> None:
        known = set(self.model.parameters())
        for optimizer in self._optimizers:
            if any(p.requires_grad for p in optimizer.parameters - known):
                raise UsageError(
                    "the optimizer holds a parameter that the model does not train; it would "
                    "become another one on each worker, so put it into the model"
                )

    def _check_frozen(self) -> None:
        for name, p in self._frozen:
            if p.requires_grad and p.grad is not None:
                raise UsageError(
                    f"{name} was frozen when riffle.sync was called and has a gradient now, which "
                    "is not exchanged; end the session and call riffle.sync anew"
                )

    def _device(self) -> torch.device:
        tensors = [*self._parameters, *self._buffers]
        return tensors[0].device if tensors else torch.device("cpu")

    def _make_core(
        self,
        strategy: _core.ChosenStrategy,
        first_q: Mapping[str, torch.Tensor] | None = None,
        **options: Any,
    ) -> _core.Session:
        named, buffers = trained(self.model), float_buffers(self.model)
        by: Any = self._engine
        on_host = not isinstance(by, C10d)
        if isinstance(by, C10d):
            tensors = [*self._parameters, *self._buffers]
            by = self._tensors = ProcessGroupExchanger(
                by, tensors, self._device(), options["timeout"]
            )
        core = _core.Session(
            by,
            strategy,
            [describe(name, p, on_host) for name, p in named],
            buffers=[describe(name, b, on_host) for name, b in buffers],
            name=type(self.model).__name__,
            shapes=[list(p.shape) for _, p in named],
            first_q={name: q.flatten().tolist() for name, q in (first_q or {}).items()},
            **options,
        )
        if options.get("resume") is None:
            for tensor in untrained(self.model):
                self._broadcast(core, tensor)
        return core

    def _broadcast(self, core: _core.Session, tensor: torch.Tensor) -> None:
        if self._tensors is not None:
            self._tensors.broadcast_tensor(tensor)
            return
        dense = tensor.detach().contiguous()
        core.broadcast(dense.data_ptr(), dense.numel() * dense.element_size())
        tensor.detach().copy_(dense)

    def __getattr__(self, name: str) -> Any:
        if name == "core":
            raise UsageError("the session is over: it was closed, or its block has ended")
        raise AttributeError(f"a session has no attribute '{name}'")

    # --- The step, from the loop's point of view.

    def _install_on_optimizers(self) -> list[Any]:
        """Hooks that stay, also when the strategy changes, which happens inside of one."""
        handles: list[Any] = []
        for optimizer in self._optimizers:
            handles += [
                optimizer.optimizer.register_step_pre_hook(self._pre_hook(optimizer)),
                optimizer.optimizer.register_step_post_hook(self._post_hook(optimizer)),
            ]
        return handles

    def _install(self) -> None:
        """Hooks that the strategy needs."""
        self._strategy_handles: list[Any] = []
        if self.core.needs_ready:
            for i, p in enumerate(self._parameters):
                hook = self._gradient_hook(i)
                self._strategy_handles.append(p.register_post_accumulate_grad_hook(hook))
        self._forward: ForwardWaits | None = None
        if self.core.waits_in_forward:
            self._forward = self._make_forward_waits()
            settle = self.model.register_state_dict_pre_hook(Hook(self._settle))
            self._strategy_handles.append(settle)

    def _uninstall(self) -> None:
        for handle in self._strategy_handles:
            handle.remove()
        if self._forward is not None:
            self._forward.remove()

    def _make_forward_waits(self) -> ForwardWaits:
        bucket_of = {id(p): self.core.bucket_of(i) for i, p in enumerate(self._parameters)}
        return ForwardWaits(self.model, bucket_of, self._need, by_layer=self._overlap)

    def _gradient_hook(self, i: int) -> Callable[[torch.Tensor], None]:
        def hook(_: torch.Tensor) -> None:
            if not self.core.sync:
                return
            if not self._in_backward:
                self._begin_backward()
            self._announce(i)

        return hook

    def _begin_backward(self) -> None:
        if self._pending:
            self._abandon()
        self._in_backward = True
        torch.autograd.Variable._execution_engine.queue_callback(self._end_backward)

    def _abandon(self) -> None:
        """No optimizer.step() came after the last backward: an overflow, or accumulation."""
        buckets = range(len(self.core.buckets))
        if self.core.postpones or any(self.core.is_stepped(b) for b in buckets):
            raise UsageError(
                "backward was not followed by optimizer.step(), but its exchange or update has "
                "begun; accumulate inside `with session.no_sync():`, or pass overlap=False"
            )
        self._end_step()

    def _end_backward(self) -> None:
        self._in_backward = False
        self._settle()  # buckets that this forward has not used
        self._pending = True
        for i, p in enumerate(self._parameters):  # those of an earlier, accumulating backward
            if i not in self._ready and p.grad is not None:
                self._announce(i)
        self.core.backward_done()
        if self.core.keeps_gradients and not self.core.postpones:
            for bucket in self.core.buckets:
                self.core.before_step(bucket.id)
            self._show_gradients()
        self._note_gradients()

    def _note_gradients(self) -> None:
        """As the loop gets them; what it changes from here on is its own doing."""
        self._watch.clear()
        if self.core.watches:
            self._watch.note_all()
        if self.core.compares and self._tensors is None:
            self._watch.copy_all()

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
            if not self._stepped:
                if not self._pending and self.core.keeps_gradients:
                    self._end_backward()  # nothing was used, or all in no_sync: the others wait
                self._begin_update()
            self._limit(optimizer)
            self._clock.begin_update()
            return replaced

        return hook

    def _begin_update(self) -> None:
        self._check_frozen()
        if self._rates and self._rates != [optimizer.rates() for optimizer in self._optimizers]:
            raise UsageError(
                "a learning rate was changed after backward, when buckets had been updated with it "
                "already; change it before backward, or pass overlap=False"
            )
        changed = None
        if self.core.watches:
            changed = 0 if called_by_scaler() else self._watch.changed()
        line = self.core.begin_update("" if changed is None else self._names[changed])
        if line:
            warnings.warn(line, stacklevel=4)

    def _limit(self, optimizer: PartialOptimizer) -> None:
        """Lets the optimizer update what is its to update now."""
        left_out = []
        for bucket in self._buckets_of(optimizer):
            if not self.core.before_step(bucket):
                self._postponed[optimizer] = optimizer.hyperparameters()
                left_out.append(bucket)
            elif self.core.is_stepped(bucket):
                left_out.append(bucket)
        if left_out:
            out = {self._parameters[i] for b in left_out for i in self.core.parameters_of(b)}
            self._restore = optimizer.limit(optimizer.parameters - out)

    def _post_hook(self, optimizer: PartialOptimizer) -> Callable[..., None]:
        def hook(*_: Any) -> None:
            if not self.core.sync:
                return
            self._clock.end_update()
            if self._restore is not None:
                self._restore()
                self._restore = None
            self._stepped.add(optimizer)
            if len(self._stepped) == len(self._optimizers):
                self._end_step()

        return hook

    def _end_step(self) -> None:
        """Also where no update was made, as after an overflow in mixed precision."""
        if self.core.postpones:
            for p in self._parameters:
                p.grad = None  # its memory is still needed
        self._check_in_place()
        if self.core.keeps_state:
            self._share_state()
        self.core.end_step()
        self._pending = False
        self._ready.clear()
        self._rates.clear()
        self._watch.clear()
        self._stepped.clear()
        self._fresh.clear()
        if self._average is not None:
            self._settle()
            self._average.sample()
        self._clock.end_step()
        if self.core.relayout():
            self._relayout()

    # --- Parts of it.

    def _announce(self, i: int) -> None:
        """The gradient of a parameter is complete: into the session's memory with it."""
        p = self._parameters[i]
        if i in self._ready:
            raise UsageError(
                f"{self._names[i]} got a second gradient in one backward (re-entrant "
                "checkpointing does that; use_reentrant=False does not)"
            )
        self._ready.add(i)
        if p.grad is not None and p.grad.layout != torch.strided:
            raise UsageError(f"the gradient of {self._names[i]} is sparse; it cannot be averaged")
        if self._gradient_views and p.grad is not None:
            mine = self._gradient_views[i]
            if p.grad.data_ptr() != mine.data_ptr():
                mine.copy_(p.grad)
                p.grad = mine
        self._clock.catch_up()
        bucket = self.core.mark_gradient_ready(i)
        if bucket is not None and self.core.updates_in_backward:
            self._update_bucket(bucket)

    def _update_bucket(self, bucket: int) -> None:
        self.core.before_step(bucket)
        if not self._rates:
            self._rates = [optimizer.rates() for optimizer in self._optimizers]
        parameters = {self._parameters[i] for i in self.core.parameters_of(bucket)}
        with self._clock.update():
            for optimizer in self._optimizers:
                optimizer.update(parameters)
        self.core.stepped(bucket)

    def _show_gradients(self) -> None:
        """.grad is what the update must use: the average, or None where no rank used it."""
        for i, p in enumerate(self._parameters):
            p.grad = self._gradient_views[i] if self.core.used(i) else None

    def _check_in_place(self) -> None:
        for i, pointer in enumerate(self._weight_pointers):
            if self._parameters[i].data_ptr() != pointer:
                raise UsageError(
                    f"{self._names[i]} was moved (another device, dtype or .data) while a session "
                    "exchanges its weights; move models before riffle.sync"
                )

    def _need(self, bucket: int) -> None:
        """Before forward uses a bucket."""
        if self._in_backward:
            return
        if self._pending and torch.is_grad_enabled():
            self._abandon()
        if bucket in self._fresh:
            return
        self._fresh.add(bucket)
        if self.core.wait_before_forward(bucket):
            self._make_postponed_update(bucket)

    def _make_postponed_update(self, bucket: int) -> None:
        used = [i for i in self.core.parameters_of(bucket) if self.core.used(i)]
        for i in used:
            self._parameters[i].grad = self._gradient_views[i]
        chosen = {self._parameters[i] for i in used}
        with self._clock.update():
            for optimizer, hyperparameters in self._postponed.items():
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

    def _share_state(self) -> None:
        for i, p in enumerate(self._parameters):
            state = [t for o in self._optimizers if p in o.parameters for t in o.state_of(p)]
            pointers = [t.data_ptr() for t in state]
            if self._states.get(i) == pointers:
                continue
            self._states[i] = pointers
            for tensor in state if self._tensors is not None else []:
                self._tensors.adopt(tensor)  # type: ignore[union-attr]
            name = f"state of {self._names[i]}"
            specs = [describe(name, t, self._tensors is None) for t in state]
            self.core.set_state(i, specs)

    # --- Memory.

    def _view(self, memory: _core.Memory | None, like: torch.Tensor) -> torch.Tensor | None:
        if memory is None:
            return None
        if self._tensors is None:
            return view(memory, like)
        mine = self._tensors.tensor((memory.address, len(memory), memory.dtype))
        # .data: a version counter of its own, so that what the session does counts as no change.
        return mine.data.view(like.shape)

    def _known(self, tensors: list[torch.Tensor]) -> AbstractContextManager[None]:
        """Lets the session write to tensors in a block."""
        return nullcontext() if self._tensors is None else self._tensors.known(tensors)

    def _make_views(self) -> None:
        self._gradient_views: list[torch.Tensor] = []
        self._weight_pointers: list[int] = []
        for i, p in enumerate(self._parameters):
            gradient = self._view(self.core.gradient(i), p)
            if gradient is not None:
                if p.grad is not None:
                    gradient.copy_(p.grad)
                    p.grad = gradient
                self._gradient_views.append(gradient)
            weights = self._view(self.core.weights(i), p)
            if weights is not None:
                p.data = weights
                self._weight_pointers.append(p.data_ptr())
        for i, b in enumerate(self._buffers):
            buffer = self._view(self.core.buffer(i), b)
            if buffer is not None:
                b.data = buffer

    def _relayout(self) -> None:
        """Memory has moved, and another strategy may run from now on."""
        for p in self._parameters:
            p.grad = None
        self._make_views()
        self._uninstall()
        self._install()
        if self.core.keeps_state:
            self._share_state()

    def _settle(self) -> None:
        """All that is due before the next forward has happened."""
        if not self._in_backward and not self._pending and self._forward is not None:
            self._forward.all()
