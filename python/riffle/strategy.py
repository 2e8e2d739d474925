"""Strategies by name, and strategies of your own: subclass `Strategy`, then `register` it.

    @riffle.register
    class Pairs(riffle.Strategy):
        '''neighbours average their weights'''
        name = "pairs"

        def program(self, step, world, buckets):
            ...

What is registered is known to `make`, `verify`, `simulate`, `plan` and training, with its options,
like a built-in strategy. Everything runs on every rank, so a program may depend on nothing but its
arguments: no rank, clock or unseeded random number.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar, TypeVar

from riffle._core import (
    Bucket,
    CostModel,
    NamedStrategy,
    Option,
    Options,
    Program,
    StrategyInfo,
    StrategyTable,
    Trace,
    Traits,
    World,
    one_bucket,
)


class Strategy(ABC):
    """Pure policy: the same arguments give the same answer on every rank, forever."""

    name: ClassVar[str]
    paper: ClassVar[str] = ""
    exact: ClassVar[bool] = False
    options: ClassVar[Sequence[Option]] = ()

    def __init__(self, options: Options) -> None:
        """`options` has a value for every declared key; override to read them."""
        self.given = options

    def buckets(self, trace: Trace, cost: CostModel, world: World) -> list[Bucket]:
        """How layers travel; one bucket of all unless overridden. `cost` is valid in the call."""
        return one_bucket(trace)

    @abstractmethod
    def program(self, step: int, world: World, buckets: list[Bucket]) -> Program:
        """The exchanges of `step` for the whole world, in issue order."""

    def traits(self, world: World) -> Traits:
        """What the verifier holds the strategy to."""
        return Traits(exact=self.exact)


_table = StrategyTable()
Registered = TypeVar("Registered", bound=type[Strategy])


def register(strategy: Registered) -> Registered:
    """Makes a subclass of Strategy known by its name; also usable as a decorator."""
    summary = (strategy.__doc__ or "").strip().split("\n")[0]
    _table.add(
        strategy.name, summary, strategy.paper, strategy.exact, list(strategy.options), strategy
    )
    return strategy


def strategies() -> list[StrategyInfo]:
    """All known strategies, the registered ones last."""
    return _table.all()


def make(spec: str | NamedStrategy) -> NamedStrategy:
    """The strategy of a spec such as "sesgd:group=4"; a wrong name is answered with the known."""
    return spec if isinstance(spec, NamedStrategy) else _table.make(spec)


def table() -> StrategyTable:
    """What `make` looks in."""
    return _table
