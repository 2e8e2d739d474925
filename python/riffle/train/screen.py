"""Events for people: a live line on a terminal, plain lines otherwise, on standard error."""

import shutil
import sys
import time

from riffle.train.events import Event

PLAIN_SECONDS = 5.0
FIGURES = ("accuracy", "perplexity", "auc")


def _figure(name: str, value: float) -> str:
    return f"{value:.2%}".replace("%", " %") if name == "accuracy" else f"{value:.4f}"


def figures(event: Event) -> str:
    """The measured figures of an event, as people write them."""
    return "  ".join(f"{name} {_figure(name, event[name])}" for name in FIGURES if name in event)


def milliseconds(seconds: float) -> str:
    """Three digits are enough."""
    return f"{1000 * seconds:.3g} ms"


class Screen:
    """Called with each event of a run."""

    def __init__(self) -> None:
        self._live = sys.stderr.isatty()
        self._shown = 0.0
        self._figures = ""

    def __call__(self, event: Event) -> None:
        show = getattr(self, f"_{event['event']}", None)
        if show is not None:
            show(event)

    def _line(self, text: str) -> None:
        clear = "\r\x1b[K" if self._live else ""
        print(f"{clear}{text}", file=sys.stderr, flush=True)

    def _start(self, event: Event) -> None:
        resumed = f", from step {event['step']}" if event["step"] else ""
        workers = f"{event['workers']} worker{'s' if event['workers'] > 1 else ''}"
        self._line(
            f"{event['task']}: {event['model']}, {event['parameters']:,} weights, on "
            f"{event['data']}\n{workers} x {event['batch']} examples, {event['steps']} steps, "
            f"{event['strategy']}{resumed}"
        )

    def _progress(self, event: Event) -> None:
        now = time.monotonic()
        share = event["step"] / event["steps"]
        exposed = milliseconds(event["exposed_communication_seconds"])
        text = (
            f"step {event['step']}/{event['steps']}  loss {event['loss']:.4f}  "
            f"{event['steps_per_second']:.1f} steps/s  exposed {exposed}"
        )
        if self._live:
            done = round(20 * share)
            bar = f"[{'#' * done}{'.' * (20 - done)}] {share:4.0%}"
            width = shutil.get_terminal_size().columns - 1
            line = f"{bar}  {text}  {self._figures}"[:width]
            print(f"\r\x1b[K{line}", end="", file=sys.stderr, flush=True)
        elif now - self._shown >= PLAIN_SECONDS:
            self._shown = now
            self._line(text)

    def _evaluation(self, event: Event) -> None:
        self._figures = figures(event)
        of = event.get("of", "")
        self._line(f"step {event['step']}  {of}test loss {event['loss']:.4f}  {self._figures}")

    def _checkpoint(self, event: Event) -> None:
        if event["step"] == event["steps"] or event["stopped"]:
            self._line(f"saved step {event['step']} in {event['folder']}")

    def _end(self, event: Event) -> None:
        self._line(f"end of training after {event['seconds']:.1f} s")


def rows_of(ends: list[Event]) -> list[tuple[str, ...]]:
    """A table of finished runs, its head first."""
    name = next(f for f in FIGURES if f in ends[0])
    swa = f"swa_{name}"
    more = (f"swa {name}",) if any(swa in end for end in ends) else ()
    rows = [("workers", "strategy", "steps", "seconds", "examples/s", "exposed/step", name, *more)]
    for end in ends:
        best = f" (best possible {end['best']:.4f})" if end.get("best") else ""
        rows.append(
            (
                str(end["workers"]),
                end["strategy"],
                str(end["step"]),
                f"{end['seconds']:.1f}",
                f"{end['examples_per_second']:.0f}",
                milliseconds(end["exposed_communication_seconds"]),
                figures(end).removeprefix(f"{name} ") + best,
                *(_figure(name, end[swa]) if swa in end else "" for _ in more),
            )
        )
    return rows


def print_table(rows: list[tuple[str, ...]]) -> None:
    """On standard output."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    for row in rows:
        print("  ".join(t.ljust(w) for t, w in zip(row, widths, strict=True)).rstrip())
