"""What a peer is made of: its options, its packages and how to start it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from riffle._core import UsageError

if TYPE_CHECKING:  # listing peers needs no torch
    import torch

    from riffle.peers.work import Work

Options = dict[str, str]
WHOLE_NUMBER = ("1..",)
NUMPY = "numpy==2.4.6"  # torch needs it where objects travel


@dataclass(frozen=True)
class Option:
    """The values it may have, or WHOLE_NUMBER."""

    name: str
    values: tuple[str, ...]
    default: str

    def check(self, peer: str, value: str) -> str:
        """The value, where it is one."""
        if self.values == WHOLE_NUMBER:
            if not (value.isascii() and value.isdigit() and int(value) > 0):
                raise UsageError(f"{peer}: {self.name}={value}: must be a whole number, 1 or more")
        elif value not in self.values:
            raise UsageError(f"{peer}: {self.name}={value}; known: {', '.join(self.values)}")
        return value


@dataclass(frozen=True)
class Peer:
    """Functions take the options as `parse` gives them: all of them, with their values."""

    name: str
    what: str
    options: tuple[Option, ...]
    packages: Callable[[Options], tuple[str, ...]]  # name==version each, installed without more
    modules: tuple[str, ...]  # that must be importable in its environment
    how: Callable[[Options], str]  # one sentence for people
    period: Callable[[Options, int], int]  # of N workers: steps after which exchanges repeat
    start: Callable[[Work, Options], Running]  # on every rank; torch.distributed is initialized

    def parse(self, words: str) -> Options:
        """Of `key=value,...`, completed by the defaults."""
        known = {option.name: option for option in self.options}
        found = {option.name: option.default for option in self.options}
        for word in filter(None, words.split(",")):
            key, _, value = word.partition("=")
            if key not in known:
                names = ", ".join(known)
                raise UsageError(f"{self.name}: no option '{key}'; known: {names}")
            found[key] = known[key].check(self.name, value)
        return found

    def all_packages(self) -> list[str]:
        """What any value of its options needs."""
        defaults = self.parse("")
        chosen = [defaults] + [
            defaults | {option.name: value} for option in self.options for value in option.values
        ]
        return sorted({package for options in chosen for package in self.packages(options)})


class Running:
    """A model under a peer: call `model`, then backward, then `step`; all ranks `close` it."""

    def __init__(self, model: torch.nn.Module, optimizer: Any) -> None:
        self.model, self._optimizer = model, optimizer

    def step(self) -> None:
        """Updates, after backward."""
        self._optimizer.step()

    def rehearse(self, is_rehearsal: bool) -> None:
        """Called with True before passes that will be no steps, with False after them."""

    def close(self) -> None:
        """Lets go of what is not torch.distributed's."""
