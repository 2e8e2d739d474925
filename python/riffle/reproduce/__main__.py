"""The verb `riffle reproduce`."""

import argparse
import csv
import json
import os
import shutil
import signal
import sys
import tempfile
from pathlib import Path

from riffle._core import UsageError
from riffle.command import program
from riffle.reproduce import words
from riffle.reproduce.cases import Interrupted, Place
from riffle.reproduce.claim import HELD, Claim, verdict
from riffle.reproduce.claims import CLAIMS
from riffle.reproduce.measure import measure
from riffle.reproduce.page import write_page
from riffle.reproduce.record import Record
from riffle.train.events import say

INTERRUPTED = 130


def _arguments(given: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="riffle reproduce",
        description="Runs a published claim again and judges it. Without a claim: lists them.",
        epilog="Races need the lab (root, or a user namespace). Exit code 0: all bars held; 1: one "
        "was missed or not measured; 130: interrupted, what is there was kept.",
    )
    add = parser.add_argument
    add("claim", nargs="?", metavar="CLAIM", help="a claim's name, or all")
    add("--quick", action="store_true", help="small: once, at most two minutes a claim")
    add("--repeats", type=int, metavar="N", help="default: 3, with --quick 1")
    add("--output", metavar="FILE", default="riffle-results.json", help="the record, as JSON")
    add("--resume", action="store_true", help="take from FILE what was measured, run the rest")
    add("--format", choices=("table", "json", "csv"), default="table")
    add("--seed", type=int, default=1, metavar="N")
    add("--page", metavar="PAGE.md", help="write a page and its charts from FILE, at the end")
    return parser.parse_args(given)


def _chosen(name: str | None) -> list[Claim]:
    if name == "all":
        return list(CLAIMS.values())
    if name is None:
        return []
    if name not in CLAIMS:
        raise UsageError(f"no claim '{name}'; known: {', '.join(CLAIMS)}, all")
    return [CLAIMS[name]]


def _program() -> str:
    found = os.environ.get("RIFFLE_COMMAND") or program() or shutil.which("riffle")
    if not found:
        raise UsageError("the program riffle is not at hand; RIFFLE_COMMAND can name it")
    os.environ.setdefault("RIFFLE_PYTHON", sys.executable)  # for the workers of races
    return found


def _run(options: argparse.Namespace, chosen: list[Claim], record: Record) -> bool:
    """Whether it came to its end."""
    repeats = options.repeats or 1
    with tempfile.TemporaryDirectory(prefix="riffle-reproduce-") as folder:
        place = Place(_program(), Path(folder), options.seed)
        for claim in chosen:
            repeats = options.repeats or (1 if options.quick else claim.repeats)
            measured = record.begin(claim, options.quick, repeats, options.resume)
            cases = claim.quick if options.quick else claim.cases
            try:
                measure(claim, measured, cases, place, record.save)
            except Interrupted:
                return False
            finally:
                record.save()
    return True


def _print(options: argparse.Namespace, chosen: list[Claim], record: Record) -> None:
    known = [(claim, record.of(claim)) for claim in chosen]
    if options.format == "json":
        print(Path(options.output).read_text(), end="")
        return
    table = csv.writer(sys.stdout, lineterminator="\n")
    if options.format == "csv":
        table.writerow(["claim", *words.HEAD[1:]])
    for claim, measured in known:
        if measured is None:
            continue
        if options.format == "csv":
            for judged in measured.judge(claim):
                table.writerow([f"{claim.name}: {judged.bar.what}", *words.row(judged)[1:]])
        else:
            print(words.report(claim, measured))


def _list(format: str) -> None:
    if format == "json":
        entries = [{"name": c.name, "title": c.title, "paper": c.paper} for c in CLAIMS.values()]
        print(json.dumps({"claims": entries}, indent=1))
    else:
        print(words.aligned([[c.name, c.title, c.paper] for c in CLAIMS.values()]))


def _do(options: argparse.Namespace) -> int:
    chosen = _chosen(options.claim)
    if options.repeats is not None and options.repeats < 1:
        raise UsageError(f"--repeats {options.repeats}: must be at least 1")
    if not chosen and not options.page:
        _list(options.format)
        return 0
    record = Record(options.output, CLAIMS)
    if not chosen or record.exists():
        record.load()
    finished = not chosen or _run(options, chosen, record)
    if chosen:
        _print(options, chosen, record)
    if options.page:
        write_page(Path(options.page), record)
    if not finished:
        say(f"interrupted; --resume --output {options.output} goes on")
        return INTERRUPTED
    return 0 if all(_is_fine(claim, record) for claim in chosen) else 1


def _is_fine(claim: Claim, record: Record) -> bool:
    measured = record.of(claim)
    if measured is None or measured.has_failed():
        return False
    return verdict(measured.judge(claim)) == HELD


def main(arguments: list[str]) -> int:
    """The exit code; arguments without the program's name."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # ends as Ctrl-C does
    try:
        return _do(_arguments(arguments))
    except UsageError as error:
        say(str(error))
        return 2
    except OSError as error:
        say(str(error))
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
