"""Charts as SVG: bars, and lines over worker counts. They follow the reader's light or dark."""

import math
from dataclasses import dataclass
from html import escape

WIDTH = 760
STYLE = """<style>
text{font:13px system-ui,sans-serif;fill:#1f2328}.s{font-size:12px;fill:#59636e}
.t{font-weight:600;font-size:14px}
.g{stroke:#d1d9e0}.z{stroke:#59636e}.w{stroke:#1f2328;stroke-width:1.5}.p{stroke:#bc4c00;stroke-width:2}
.bound{stroke:#cf222e;stroke-dasharray:4 3}.a{fill:#8c959f}.b{fill:#0969da}.c{fill:#bf8700}
.l{fill:none;stroke-width:2}
@media(prefers-color-scheme:dark){text{fill:#f0f6fc}.s{fill:#9198a1}.g{stroke:#3d444d}.z{stroke:#9198a1}
.w{stroke:#f0f6fc}.p{stroke:#f0883e}.bound{stroke:#f85149}.a{fill:#656c76}.b{fill:#4493f8}.c{fill:#d29922}}
</style>"""
LINE_COLOURS = ["#656c76", "#bf8700", "#cf222e", "#0969da", "#1a7f37", "#8250df", "#bc4c00"]


@dataclass(frozen=True)
class Row:
    """A bar: the median, the least and the most, and a tick for what was predicted."""

    label: str
    value: float
    least: float
    most: float
    predicted: float | None = None
    kind: str = "b"  # a: baseline, b: ours, c: other libraries


def _number(value: float) -> str:
    if value == 0 or abs(value) >= 100:
        return f"{value:.0f}"
    return f"{value:.2f}" if abs(value) < 10 else f"{value:.1f}"


def _text(x: float, y: float, content: str, style: str = "", anchor: str = "start") -> str:
    shown = f' class="{style}"' if style else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{shown}>{escape(content)}</text>'


def _line(x1: float, y1: float, x2: float, y2: float, style: str) -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" class="{style}"/>'


def _whole(height: float, parts: list[str], title: str) -> str:
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:.0f}" role="img">'
    return "\n".join([head, f"<title>{escape(title)}</title>", STYLE, *parts, "</svg>"]) + "\n"


def _ticks(low: float, high: float) -> list[float]:
    """Four to eight round numbers."""
    unit = 10 ** math.floor(math.log10(high - low))
    step = next(s for s in (unit / 5, unit / 2, unit, 2 * unit) if (high - low) / s <= 7)
    return [i * step for i in range(math.ceil(low / step), math.floor(high / step + 1e-9) + 1)]


def bars(title: str, unit: str, rows: list[Row], bound: float | None = None) -> str:
    """One under the other; zero is where they begin."""
    left, right, top, each = 300, WIDTH - 110, 52, 28
    ends = [v for r in rows for v in (r.least, r.most, r.predicted) if v is not None]
    ends += [0.0] + ([] if bound is None else [bound])
    low, high = min(ends), max(ends)
    high = high if high > low else low + 1

    def x(value: float) -> float:
        return left + (value - low) / (high - low) * (right - left)

    bottom = top + each * len(rows)
    parts = [_text(12, 22, title, "t")]
    for tick in _ticks(low, high):
        parts.append(_line(x(tick), top - 6, x(tick), bottom, "g"))
        parts.append(_text(x(tick), top - 12, f"{tick:g}", "s", "middle"))
    parts.append(_text(WIDTH - 12, top - 12, unit, "s", "end"))
    for i, row in enumerate(rows):
        parts += _bar(row, top + each * i, each, x, unit)
    parts.append(_line(x(0), top - 6, x(0), bottom, "z"))
    if bound is not None:
        parts.append(_line(x(bound), top - 6, x(bound), bottom, "bound"))
    legend = "line: least to most of the repeats"
    if any(row.predicted is not None for row in rows):
        legend += "; upright stroke: predicted by riffle simulate"
    if bound is not None:
        legend += "; dashed: the bar"
    return _whole(bottom + 34, [*parts, _text(12, bottom + 22, legend, "s")], title)


def _bar(row: Row, y: float, each: float, x, unit: str) -> list[str]:
    start, end, middle = min(x(0), x(row.value)), max(x(0), x(row.value)), y + each / 2
    parts = [_text(12, middle + 4, row.label)]
    width = max(end - start, 1.5)
    box = f'x="{start:.1f}" y="{y + 5:.1f}" width="{width:.1f}" height="{each - 10}" rx="2"'
    parts.append(f'<rect {box} class="{row.kind}"/>')
    if row.most > row.least:
        parts.append(_line(x(row.least), middle, x(row.most), middle, "w"))
    if row.predicted is not None:
        parts.append(_line(x(row.predicted), y + 2, x(row.predicted), y + each - 2, "p"))
    farthest = max(end, x(row.most), x(row.predicted or 0))
    return [*parts, _text(farthest + 6, middle + 4, f"{_number(row.value)} {unit}")]


Series = dict[str, list[tuple[float, float]]]


def lines(title: str, unit: str, series: Series, percent: bool = False) -> str:
    """Over worker counts, doubling; values doubling too, or from 0 to 100. Names at the ends."""
    left, right, top, bottom = 64, WIDTH - 240, 44, 340
    points = [point for each in series.values() for point in each]
    x_low, x_high = (f(math.log2(x) for x, _ in points) for f in (min, max))
    y_ticks = [20.0 * i for i in range(6)] if percent else _doublings([y for _, y in points])
    height = float if percent else math.log2
    y_low, y_high = height(y_ticks[0]), height(y_ticks[-1])

    def at(x: float, y: float) -> tuple[float, float]:
        across = (math.log2(x) - x_low) / max(x_high - x_low, 1e-9)
        up = (height(y) - y_low) / (y_high - y_low)
        return left + across * (right - left), bottom - up * (bottom - top)

    parts = [_text(12, 22, title, "t"), _text(left, bottom + 38, "workers", "s")]
    for tick in y_ticks:
        y = at(2**x_low, tick)[1]
        parts += [_line(left, y, right, y, "g"), _text(left - 8, y + 4, f"{tick:g}", "s", "end")]
    for count in sorted({x for x, _ in points}):
        x = at(count, y_ticks[0])[0]
        parts += [_line(x, top, x, bottom, "g"), _text(x, bottom + 18, f"{count:g}", "s", "middle")]
    parts.append(_text(WIDTH - 12, bottom + 38, unit, "s", "end"))
    free = -math.inf
    for name in sorted(series, key=lambda name: -series[name][-1][1]):
        colour = LINE_COLOURS[list(series).index(name) % len(LINE_COLOURS)]
        drawn = " ".join(f"{x:.1f},{y:.1f}" for x, y in (at(*p) for p in series[name]))
        parts.append(f'<polyline points="{drawn}" class="l" stroke="{colour}"/>')
        end = at(*series[name][-1])[1]
        free = max(free + 17, end)  # moved apart where they would meet
        parts.append(_line(right + 2, end, right + 14, free, "g"))
        text = f'<tspan style="fill:{colour}">&#9632;</tspan> {escape(name)}'
        text += f" {_number(series[name][-1][1])}"
        parts.append(f'<text x="{right + 16}" y="{free + 4:.1f}">{text}</text>')
    return _whole(bottom + 48, parts, title)


def _doublings(values: list[float]) -> list[float]:
    low, high = math.floor(math.log2(min(values))), math.ceil(math.log2(max(values)))
    return [2.0**power for power in range(low, max(high, low + 1) + 1)]
