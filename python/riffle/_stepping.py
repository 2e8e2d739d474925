"""Updating some of an optimizer's parameters: now, with the hyperparameters of some moment."""

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from typing import Any

import torch

Groups = list[dict[str, Any]]


class PartialOptimizer:
    """One optimizer of the user's. `update` bypasses its hooks, `limit` narrows its own step."""

    def __init__(self, optimizer: torch.optim.Optimizer) -> None:
        self.optimizer = optimizer
        self._known: set[torch.Tensor] = set()
        self._known_groups = 0
        step = type(optimizer).step
        # Torch wraps step() to run hooks; what it wrapped updates and does nothing else.
        self._update: Callable[..., Any] = getattr(step, "__wrapped__", step)

    @property
    def parameters(self) -> set[torch.Tensor]:
        """Of all its groups; the loop may add some."""
        groups = self.optimizer.param_groups
        if self._known_groups != len(groups):
            self._known = {p for group in groups for p in group["params"]}
            self._known_groups = len(groups)
        return self._known

    def updates_any_subset(self) -> bool:
        """False where one parameter's update depends on the others'."""
        return not isinstance(self.optimizer, torch.optim.LBFGS)

    def hyperparameters(self) -> Groups:
        """The groups as they are now, without their parameters; a copy, for later."""
        return [
            {key: v.clone() if isinstance(v, torch.Tensor) else v for key, v in group.items()}
            for group in self._groups()
        ]

    def rates(self) -> list[Any]:
        """What tells whether a learning rate has changed, without reading any."""
        rates = [group.get("lr") for group in self.optimizer.param_groups]
        return [(id(r), r._version) if isinstance(r, torch.Tensor) else r for r in rates]

    def _groups(self) -> Groups:
        return [
            {key: value for key, value in group.items() if key != "params"}
            for group in self.optimizer.param_groups
        ]

    def update(
        self, parameters: Collection[torch.Tensor], hyperparameters: Groups | None = None
    ) -> None:
        """Updates these parameters as step() would; with the groups and hyperparameters of another
        moment where given."""
        if hyperparameters is not None:
            groups = self.optimizer.param_groups[: len(hyperparameters)]
            parameters = {p for group in groups for p in group["params"] if p in parameters}
        if self.parameters.isdisjoint(parameters):
            return
        restore = self.limit(parameters)
        try:
            with self._with(hyperparameters):
                self._update(self.optimizer)
        finally:
            restore()

    def limit(self, parameters: Collection[torch.Tensor]) -> Callable[[], None]:
        """Makes the optimizer see only these until the returned function is called."""
        groups = self.optimizer.param_groups
        saved = [(group, group["params"]) for group in groups]
        for group, all_of_it in saved:
            group["params"] = [p for p in all_of_it if p in parameters]

        def restore() -> None:
            for group, all_of_it in saved:
                group["params"] = all_of_it

        return restore

    @contextmanager
    def _with(self, hyperparameters: Groups | None) -> Iterator[None]:
        if hyperparameters is None:
            yield
            return
        now = self._groups()
        self._set(hyperparameters)
        try:
            yield
        finally:
            self._set(now)

    def _set(self, hyperparameters: Groups) -> None:
        for group, values in zip(self.optimizer.param_groups, hyperparameters, strict=False):
            group.update(values)

    def state_of(self, parameter: torch.Tensor) -> list[torch.Tensor]:
        """Its state with a value per weight (momentum, moments), in a fixed order."""
        state = self.optimizer.state.get(parameter, {})
        return [
            state[key]
            for key in sorted(state)
            if isinstance(state[key], torch.Tensor) and state[key].shape == parameter.shape
            if key != "step" and state[key].is_floating_point()
        ]
