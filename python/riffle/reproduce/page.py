# ruff: noqa: E501 -- the page is prose
"""docs/results.md and its charts, from the record."""

from pathlib import Path
from statistics import median
from typing import Any

from riffle.reproduce import chart, words
from riffle.reproduce.cases import Case, Race, Sweep, Training
from riffle.reproduce.claim import HELD, MISSED, Bars, Claim, Lines, verdict
from riffle.reproduce.claims import CLAIMS
from riffle.reproduce.record import Measured, Record
from riffle.train.checkpoint import write_whole

HEAD = """<!-- Made by riffle reproduce --page from results.json; every figure comes from there. -->

# The papers' results

Each claim is one command, `riffle reproduce CLAIM`; `riffle reproduce all` runs them all and `--quick` a small version. This page and its charts are made from
the record `docs/results.json` by `riffle reproduce --page docs/results.md --output docs/results.json`. A bar is judged by the median of the repeats; the spread is from the least to the most.
Races are real processes and real TCP in [the lab](lab.md), on one machine with {cores} cores, so time is stretched and messages are shrunk as the tables say; all times are those of the true cluster.
"""
PEERS = ("torch-", "decent-dp", "torchft")


def table(head: list[str], rows: list[list[str]]) -> list[str]:
    """Lines of Markdown."""
    text = [[cell.replace("|", "\\|") for cell in row] for row in [head, *rows]]
    lines = ["| " + " | ".join(row) + " |" for row in text]
    return [lines[0], "|" + "---|" * len(head), *lines[1:], ""]


def write_page(path: Path, record: Record) -> None:
    """The page, and in a folder of its name the charts."""
    folder = path.with_suffix("")
    folder.mkdir(parents=True, exist_ok=True)
    for name in CLAIMS:
        for old in folder.glob(f"{name}*.svg"):
            old.unlink()
    lines = [HEAD.format(cores=record.machine["cores"]), *_summary(record)]
    for claim in CLAIMS.values():
        lines += _section(claim, record.of(claim), folder)
    write_whole(path, ("\n".join(lines).rstrip() + "\n").encode())


def _summary(record: Record) -> list[str]:
    rows = []
    for claim in CLAIMS.values():
        measured = record.of(claim)
        name = f"[`{claim.name}`](#{claim.name})"
        if measured is None:
            rows.append([name, claim.title, "not measured", "", ""])
            continue
        judged = measured.judge(claim)
        held = sum(each.verdict == HELD for each in judged)
        word = verdict(judged)
        word = f"**{word}**" if word == MISSED else word
        first = f"{judged[0].bar.what}: {words.with_unit(judged[0].value, judged[0].bar.unit)}"
        repeats = max(len(each.values) for each in judged)
        small = ", run small" if measured.quick else ""
        small += f", {repeats} of {claim.repeats} repeats" if repeats < claim.repeats else ""
        rows.append([name, claim.title, word + small, f"{held} of {len(judged)}", first])
    return table(["claim", "", "verdict", "bars held", "first of them"], rows)


def _section(claim: Claim, measured: Measured | None, folder: Path) -> list[str]:
    lines = [
        f"## {claim.name}",
        "",
        f"{claim.title}. {claim.paper}:",
        "",
        f"> {claim.sentence}",
        "",
    ]
    if measured is None:
        return [*lines, f"**Not measured.** {claim.setting}", ""]
    if measured.quick:
        lines += ["Run small (`--quick`).", ""]
    judged = measured.judge(claim)
    lines += table(words.HEAD, [words.row(each) for each in judged])
    lines += [
        f"Missed, {j.bar.what}: {j.bar.why}\n" for j in judged if j.verdict == MISSED and j.bar.why
    ]
    for i, each in enumerate(claim.charts):
        picture = _drawn(each, claim, measured)
        if picture:
            name = f"{claim.name}{'' if len(claim.charts) == 1 else f'-{i + 1}'}.svg"
            write_whole(folder / name, picture.encode())
            lines += [f"![{each.title}]({folder.name}/{name})", ""]
    for title, text in _texts(claim):
        lines += [f"**{title}.** {text}", ""]
    for case in claim.quick if measured.quick else claim.cases:
        lines += _figures(case, measured)
    lines += [f"Failed: {line}\n" for line in words.failures(measured)]
    return lines


def _texts(claim: Claim) -> list[tuple[str, str]]:
    return [
        ("Setting", claim.setting),
        ("Baseline", claim.baseline),
        ("Where it differs from the paper", claim.differs),
        ("What limits it", claim.limits),
    ]


def _of(found: list[dict[str, Any]], figure: str) -> list[float]:
    return [each[figure] for each in found if each.get(figure) is not None]


def _cell(found: list[dict[str, Any]], figure: str, scale: float = 1.0) -> str:
    values = [scale * v for v in _of(found, figure)]
    return words.number(median(values)) if values else "-"


def _figures(case: Case, measured: Measured) -> list[str]:
    """What every contender took."""
    found = {each: measured.figures(case.name, each) for each in case.contenders}
    known = {name: each for name, each in found.items() if each}
    if not known:
        return []
    if isinstance(case, Race):
        return _race_figures(case, known)
    if isinstance(case, Sweep):
        return _sweep_figures(case, known)
    return _training_figures(case, known)


def _race_figures(case: Race, found: dict[str, list[dict[str, Any]]]) -> list[str]:
    rows = []
    for name, each in found.items():
        seconds = [1e3 * s for s in _of(each, "seconds")]
        cells = [f"`{name}`", _cell(each, "seconds", 1e3), words.spread(seconds)]
        cells += [_cell(each, "predicted", 1e3), _cell(each, "exposed", 1e3)]
        if case.target is not None:
            cells += [_cell(each, "to_target"), _cell(each, "accuracy", 100)]
        paced = sum(bool(f.get("processors_set_the_pace")) for f in each)
        rows.append([*cells, f"{paced} of {len(each)}"])
    head = ["ms a step", "measured", "spread", "predicted", "exposed"]
    head += ["s to the target", "accuracy %"] if case.target is not None else []
    one = next((f for each in found.values() for f in each if "dilate" in f), {})
    scale = f", time stretched {one.get('dilate', 1):g} times, messages 1/{one.get('shrink', 1):g}"
    events = f", `{case.events}`" if case.events else ""
    title = f"{case.name}: `{case.cluster}`{events}{scale if one else ''}"
    return [title, "", *table([*head, "processors set the pace"], rows)]


def _sweep_figures(case: Sweep, found: dict[str, list[dict[str, Any]]]) -> list[str]:
    counts = sorted({p["workers"] for each in found.values() for p in each[0].get("points", [])})
    if len(counts) == 1:
        rows = [
            [f"`{n}`", _cell(e, "seconds", 1e3), _cell(e, "exposed", 1e3)] for n, e in found.items()
        ]
        title = f"{case.name}: simulated, `{case.clusters[0]}`"
        return [title, "", *table(["ms a step", "simulated", "exposed"], rows)]
    rows = []
    for name, each in found.items():
        points = {p["workers"]: p for p in each[0].get("points", [])}
        cells = [f"{points[n]['speedup']:.2f}" if n in points else "-" for n in counts]
        rows.append([f"`{name}`", *cells])
    title = f"{case.name}: simulated, speed-up over one worker"
    return [title, "", *table(["workers", *map(str, counts)], rows)]


def _training_figures(case: Training, found: dict[str, list[dict[str, Any]]]) -> list[str]:
    rows = []
    for name, each in found.items():
        metric = _of(each, "metric")
        shown = f"{median(metric):.4f}" if metric else "-"
        rows.append(
            [f"`{name}`", shown, words.spread(metric), _cell(each, "loss"), str(len(metric))]
            + [f"{median(_of(each, 'consensus_distance')):.3f}" if metric else "-"]
        )
    one = next((f for each in found.values() for f in each if "data" in f), {})
    title = f"{case.name}: {case.task} ({one.get('data', '?')}), {case.workers} workers"
    title += f", rate {case.rate}" if case.rate else ""
    title += f", {one['steps']} steps" if "steps" in one else ""
    head = ["rule", "median", "spread", "loss", "seeds", "consensus distance"]
    return [title, "", *table(head, rows)]


def _drawn(drawn: Bars | Lines, claim: Claim, measured: Measured) -> str:
    """Empty where nothing is known."""
    cases = claim.quick if measured.quick else claim.cases
    case = next((each for each in cases if each.name == drawn.case), None)
    if case is None:
        return ""
    if isinstance(drawn, Lines):
        return _lines(drawn, case, measured)
    names = [name for name in case.contenders if name not in drawn.without]
    rows = [row for name in names if (row := _bar(drawn, name, case, measured))]
    return chart.bars(drawn.title, drawn.unit, rows, drawn.bound) if rows else ""


def _lines(drawn: Lines, case: Case, measured: Measured) -> str:
    series = {}
    for name in case.contenders:
        points = [p for f in measured.figures(case.name, name) for p in f.get("points", [])]
        each = [(p["workers"], p["speedup"]) for p in points]
        if each:
            series[name] = [(n, 100 * s / n) for n, s in each] if drawn.efficiency else each
    unit = "% of one worker's speed, each" if drawn.efficiency else "speed-up over one worker"
    return chart.lines(drawn.title, unit, series, drawn.efficiency) if series else ""


def _bar(drawn: Bars, name: str, case: Case, measured: Measured) -> chart.Row | None:
    found = measured.figures(case.name, name)
    values = [drawn.scale * v for v in _of(found, drawn.figure)]
    if drawn.against:
        base = [
            drawn.scale * v for v in _of(measured.figures(case.name, drawn.against), drawn.figure)
        ]
        values = [a - b for a, b in zip(values, base, strict=False)]
    if not values or name == drawn.against:
        return None
    predicted = _of(found, "predicted") if drawn.figure == "seconds" else []
    kind = "c" if name.startswith(PEERS) else "a" if name == case.contenders[0] else "b"
    return chart.Row(
        name,
        median(values),
        min(values),
        max(values),
        drawn.scale * predicted[0] if predicted else None,
        kind,
    )
