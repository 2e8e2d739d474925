"""A race as its workers see it: the file that RIFFLE_RACE names, and the lines they write."""

import json
import math
import os
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from riffle._core import UsageError

VARIABLE = "RIFFLE_RACE"


@dataclass(frozen=True)
class Race:
    """Either a trace or a task; null where the default is meant."""

    contender: str
    folder: str
    trace: str | None = None
    task: str | None = None
    data: str = "auto"
    seed: int = 1
    steps: int | None = None
    warmup: int = 0
    epochs: float | None = None
    target: float | None = None
    batch: int | None = None
    learning_rate: float | None = None
    evaluate: int = 10  # steps from one evaluation to the next


def read_race(path: str) -> Race:
    """Fields that are not known here are for others."""
    try:
        content = json.loads(Path(path).read_text())
        known = {field.name for field in fields(Race)}
        race = Race(**{key: value for key, value in content.items() if key in known})
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}") from None
    except (ValueError, AttributeError) as error:
        raise UsageError(f"{path}: is no JSON object: {error}") from None
    except TypeError as error:
        raise UsageError(f"{path}: {str(error).replace('Race.__init__() ', '')}") from None
    if (race.trace is None) == (race.task is None):
        raise UsageError(f"{path}: needs a trace or a task, one of them")
    if race.trace is not None and not race.steps:
        raise UsageError(f"{path}: a race with a trace needs steps")
    of_tasks = ("epochs", "batch", "learning_rate", "evaluate") if race.task is not None else ()
    for name in ("steps", *of_tasks):
        value = getattr(race, name)
        if value is not None and not _is_positive(value):
            raise UsageError(f"{path}: {name} is {value!r}; it must be a number above 0")
    return race


def _is_positive(value: Any) -> bool:
    return isinstance(value, int | float) and math.isfinite(value) and value > 0


class Lines:
    """What a rank tells, line by line as it happens."""

    def __init__(self, folder: str, rank: int) -> None:
        path = Path(folder) / f"rank{rank}.jsonl"
        try:
            self._stream = path.open("a", buffering=1)
        except OSError as error:
            raise UsageError(f"{path}: cannot be written: {error.strerror}") from None

    def write(self, **values: Any) -> None:
        """Those that are None are left out, but for the timeline."""
        kept = {k: v for k, v in values.items() if v is not None or k == "timeline"}
        self._stream.write(json.dumps(kept) + "\n")


def from_environment() -> Race:
    """Of a worker."""
    path = os.environ.get(VARIABLE)
    if not path:
        raise UsageError(f"{VARIABLE} is not set: this is a worker of riffle race")
    return read_race(path)
