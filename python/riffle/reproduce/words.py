"""Figures as people read them, in a terminal and on the page."""

from riffle.reproduce.claim import Claim, Judged, verdict
from riffle.reproduce.record import Measured


def number(value: float) -> str:
    """Three digits."""
    if value == 0 or abs(value) >= 100:
        return f"{value:.0f}"
    return f"{value:.2f}" if abs(value) < 10 else f"{value:.1f}"


def with_unit(value: float | None, unit: str) -> str:
    """A dash for what is not known."""
    if value is None:
        return "-"
    return f"{number(value)}{unit if unit == 'x' else ' ' + unit if unit else ''}"


def spread(values: list[float]) -> str:
    """From the least to the most of several repeats."""
    if len(values) < 2:
        return ""
    return f"{number(min(values))} to {number(max(values))}"


def bound(judged: Judged) -> str:
    sign = "<=" if judged.bar.at_most else ">="
    return f"{sign} {with_unit(judged.bar.bound, judged.bar.unit)}"


def goal(judged: Judged) -> str:
    """What was hoped for, and whether it came."""
    if judged.bar.goal is None:
        return ""
    reached = judged.reaches(judged.bar.goal)
    word = {True: "reached", False: "not reached", None: "not measured"}[reached]
    return f"{with_unit(judged.bar.goal, judged.bar.unit)}, {word}"


def row(judged: Judged) -> list[str]:
    """What, value, repeats, spread, bar, verdict, goal."""
    value = with_unit(judged.value, judged.bar.unit)
    count = str(len(judged.values)) if judged.values else ""
    return [
        judged.bar.what,
        value,
        count,
        spread(judged.values),
        bound(judged),
        judged.verdict,
        goal(judged),
    ]


HEAD = ["", "result", "repeats", "spread", "bar", "verdict", "goal"]


def aligned(rows: list[list[str]]) -> str:
    """A table of plain text."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = ("  ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)) for row in rows)
    return "\n".join(line.rstrip() for line in lines)


def failures(measured: Measured) -> list[str]:
    """What did not run, each once."""
    seen = {}
    for cell in measured.cells:
        if "failed" in cell["figures"]:
            where = f"{cell['case']}, {cell['contender']}"
            seen.setdefault(f"{where}: {cell['figures']['failed']}")
    return list(seen)


def report(claim: Claim, measured: Measured) -> str:
    """What the command prints of one claim."""
    judged = measured.judge(claim)
    small = " (run small: --quick)" if measured.quick else ""
    lines = [f"{claim.name}: {claim.title}: {verdict(judged)}{small}"]
    lines += [f"  paper     {claim.paper}: {claim.sentence}"]
    lines += [f"  setting   {claim.setting}", f"  baseline  {claim.baseline}", ""]
    lines += ["  " + line for line in aligned([HEAD, *map(row, judged)]).splitlines()]
    lines += [
        f"  why: {j.bar.what}: {j.bar.why}" for j in judged if j.verdict == "missed" and j.bar.why
    ]
    lines += [f"  failed: {line}" for line in failures(measured)]
    return "\n".join(lines) + "\n"
