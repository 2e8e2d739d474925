"""What a claim is, and how it is judged."""

from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from typing import Any

from riffle.reproduce.cases import Case, Figures

HELD, MISSED, UNKNOWN, PARTLY = "held", "missed", "not measured", "not all measured"


class Run:
    """The figures of one repeat of all cases."""

    def __init__(self, figures: dict[tuple[str, str], Figures]) -> None:
        self._figures = figures

    def get(self, case: str, contender: str, figure: str = "seconds") -> Any:
        """LookupError where it was not run, failed, or has no such figure."""
        value = self._figures[case, contender].get(figure)
        if value is None:
            raise LookupError(f"{case}, {contender}: no {figure}")
        return value


Value = Callable[[Run], float]


def ratio(case: str, slow: str, fast: str, figure: str = "seconds") -> Value:
    """How many times as fast."""
    return lambda run: run.get(case, slow, figure) / run.get(case, fast, figure)


def exposed_share(case: str, contender: str) -> Value:
    """Of a step, in percent."""
    return lambda run: 100 * run.get(case, contender, "exposed") / run.get(case, contender)


@dataclass(frozen=True)
class Judged:
    """A bar and what came of it."""

    bar: "Bar"
    values: list[float]  # by repeat, as far as measured
    verdict: str

    @property
    def value(self) -> float | None:
        return median(self.values) if self.values else None

    def reaches(self, wanted: float | None) -> bool | None:
        """None where nothing is known or wanted."""
        if self.value is None or wanted is None:
            return None
        return self.value <= wanted if self.bar.at_most else self.value >= wanted


@dataclass(frozen=True)
class Bar:
    """A number that must be reached; the median of the repeats is judged."""

    what: str
    value: Value
    bound: float
    unit: str = "x"
    at_most: bool = False
    goal: float | None = None
    why: str = ""  # it is missed, where that is known

    def judge(self, runs: list[Run]) -> Judged:
        """Repeats in which a figure is missing do not count."""
        values = []
        for run in runs:
            try:
                values.append(self.value(run))
            except LookupError:
                continue
        judged = Judged(self, values, UNKNOWN)
        fine = judged.reaches(self.bound)
        return judged if fine is None else Judged(self, values, HELD if fine else MISSED)


@dataclass(frozen=True)
class Bars:
    """A chart: a bar for each contender of a case."""

    case: str
    title: str
    figure: str = "seconds"
    scale: float = 1e3
    unit: str = "ms"
    against: str = ""  # a contender whose figure is subtracted, repeat by repeat
    bound: float | None = None  # a line
    without: tuple[str, ...] = ()


@dataclass(frozen=True)
class Lines:
    """A chart: a line for each contender of a case, over worker counts."""

    case: str
    title: str
    efficiency: bool = False  # of a worker against one alone, else the speed-up of all


@dataclass(frozen=True)
class Claim:
    """One published claim; `name` is also that of its file."""

    name: str
    title: str
    paper: str
    sentence: str
    setting: str
    baseline: str
    differs: str
    limits: str
    cases: tuple[Case, ...]
    quick: tuple[Case, ...]  # in two minutes
    bars: tuple[Bar, ...]
    charts: tuple[Bars | Lines, ...] = ()
    repeats: int = 3

    def judge(self, runs: list[Run]) -> list[Judged]:
        """Every bar."""
        return [bar.judge(runs) for bar in self.bars]


def verdict(judged: list[Judged]) -> str:
    """Of a whole claim: one bar that is missed is enough."""
    verdicts = {each.verdict for each in judged}
    if verdicts == {HELD, UNKNOWN}:
        return PARTLY
    return next((v for v in (MISSED, UNKNOWN) if v in verdicts), HELD)
