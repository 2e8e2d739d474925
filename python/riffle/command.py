"""The command `riffle`, as pip installs it: the program that came with the package, and the verbs
that are Python."""

import os
import runpy
import sys
from pathlib import Path

IN_PYTHON = ("train", "data", "reproduce", "bench.ddp")


def program(name: str = "riffle") -> str | None:
    """Where the program of this package is; None in a clone, where CMake has it elsewhere."""
    path = Path(__file__).with_name("bin") / name
    return str(path) if path.exists() else None


def _become(name: str) -> None:
    path = program(name)
    if path is None:
        sys.exit(f"{name}: this package was built without the command; see docs/python.md")
    os.environ.setdefault("RIFFLE_PYTHON", sys.executable)  # for the workers of `race`
    os.execv(path, [name, *sys.argv[1:]])


def main() -> None:
    """`riffle VERB ...`."""
    words = sys.argv[1:]
    if words[:2] == ["bench", "ddp"]:
        words[:2] = ["bench.ddp"]
    if words and words[0] in IN_PYTHON:
        sys.argv[1:] = words[1:]
        runpy.run_module(f"riffle.{words[0]}", run_name="__main__", alter_sys=True)
        return
    _become("riffle")


def worker() -> None:
    """`riffle-worker ...`, for labs."""
    _become("riffle-worker")
