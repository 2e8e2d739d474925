"""`riffle data`: lists, fetches and checks the data sets of the built-in tasks."""

import argparse
import sys

from riffle._core import UsageError
from riffle.data import SETS, DataSet, NotAvailable, fetch, folder, is_cached, verify
from riffle.data.cache import path_of


def _state(data_set: DataSet) -> str:
    if not is_cached(data_set):
        return "not fetched"
    size = sum(path_of(data_set, file).stat().st_size for file in data_set.files)
    return f"{size / 1e6:.1f} MB here"


def _list() -> int:
    rows = [("set", "task", "state", "from", "what")]
    for each in SETS.values():
        origin = f"{each.registry} {each.package} {each.version}"
        rows.append((each.name, each.task, _state(each), origin, each.what))
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    for row in rows:
        cells = (text.ljust(width) for text, width in zip(row, widths, strict=True))
        print("  ".join(cells).rstrip())
    print(f"\nin {folder()}; clicks and images are generated, as is any task's --data synthetic")
    return 0


def _fetch(sets: list[DataSet]) -> int:
    for each in sets:
        print(f"riffle: {each.name}: {each.what}", file=sys.stderr)
        for path in fetch(each).values():
            print(path)
    return 0


def _verify(sets: list[DataSet]) -> int:
    bad = 0
    for each in sets:
        if not is_cached(each):
            print(f"{each.name}: not fetched")
            continue
        problems = verify(each)
        bad += len(problems)
        for problem in problems:
            print(problem)
        if not problems:
            print(f"{each.name}: {len(each.files)} files as they must be")
    return 1 if bad else 0


def _chosen(names: list[str]) -> list[DataSet]:
    for name in names:
        if name not in SETS:
            raise UsageError(f"no data set '{name}'; known: {', '.join(SETS)}")
    return [SETS[name] for name in names or SETS]


def main(arguments: list[str]) -> int:
    """The exit code; arguments without the program's name."""
    parser = argparse.ArgumentParser(prog="riffle data", description=__doc__)
    parser.add_argument("action", nargs="?", default="list", choices=("list", "fetch", "verify"))
    parser.add_argument("sets", nargs="*", metavar="SET", help=f"of {', '.join(SETS)}; default all")
    given = parser.parse_args(arguments)
    try:
        sets = _chosen(given.sets)
        if given.action == "list":
            return _list()
        return _fetch(sets) if given.action == "fetch" else _verify(sets)
    except UsageError as error:
        print(f"riffle: {error}", file=sys.stderr)
        return 2
    except NotAvailable as error:
        print(f"riffle: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
