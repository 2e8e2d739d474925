"""What happens in a run, as JSON lines: for a file, the process that started us, a screen."""

import json
import sys
from collections.abc import Callable
from typing import Any

from riffle._core import UsageError

Event = dict[str, Any]
Sink = Callable[[Event], None]

# Set for workers that `riffle train` itself has started: events go to standard output.
PIPE_VARIABLE = "RIFFLE_TRAIN_EVENTS"


def pipe(event: Event) -> None:
    """A line for `local.py`."""
    print(json.dumps(event), flush=True)


def log_file(path: str, append: bool) -> Sink:
    """Lines for a file, each written at once."""
    try:
        stream = open(path, "a" if append else "w", buffering=1)  # noqa: SIM115
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from None
    return lambda event: print(json.dumps(event), file=stream)


def say(message: str) -> None:
    """For people."""
    print(f"riffle: {message}", file=sys.stderr, flush=True)
