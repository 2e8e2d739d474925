"""Runs what a claim asks for, cell by cell; every cell is kept as soon as it is there."""

import sys
import time
from collections.abc import Iterator

from riffle.reproduce.cases import Case, Place
from riffle.reproduce.claim import Claim
from riffle.reproduce.record import Measured
from riffle.train.events import say


def cells_of(cases: tuple[Case, ...], repeats: int) -> Iterator[tuple[Case, str, int | None]]:
    """All contenders in turn, then all again: what disturbs one repeat disturbs all alike. What
    does not vary runs once."""
    for repeat in range(repeats):
        for case in cases:
            if case.varies or repeat == 0:
                for contender in case.contenders:
                    yield case, contender, repeat if case.varies else None


class Screen:
    """Progress on standard error."""

    def __init__(self, claim: str, cells: int) -> None:
        self._claim, self._cells, self._done = claim, cells, 0
        self._live = sys.stderr.isatty()

    def begin(self, case: Case, contender: str, repeat: int | None) -> None:
        self._done += 1
        again = "" if repeat is None else f", repeat {repeat + 1}"
        self._line = f"{self._claim} {self._done}/{self._cells}: {case.name}, {contender}{again}"
        self._began = time.monotonic()
        if self._live:
            print(f"riffle: {self._line}", end="\r", file=sys.stderr, flush=True)

    def end(self, what: str) -> None:
        seconds = time.monotonic() - self._began
        say(f"{self._line}: {what} ({seconds:.0f} s)")


def _words(figures: dict) -> str:
    if "failed" in figures:
        return f"failed: {figures['failed']}"
    if "metric" in figures:
        return f"{figures['metric']:.4f}"
    if figures.get("seconds") is not None:
        return f"{figures['seconds'] * 1e3:.1f} ms a step"
    return f"{len(figures['points'])} worker counts"


def measure(
    claim: Claim, measured: Measured, cases: tuple[Case, ...], place: Place, keep: callable
) -> None:
    """Interrupted where Ctrl-C came; `keep` is called after every cell."""
    cells = list(cells_of(cases, measured.repeats))
    screen = Screen(claim.name, len(cells))
    for case, contender, repeat in cells:
        screen.begin(case, contender, repeat)
        if measured.find(case, contender, repeat) is not None:
            screen.end("as recorded")
            continue
        figures = case.run(contender, repeat or 0, place)
        measured.add(case, contender, repeat, figures)
        screen.end(_words(figures))
        keep()
