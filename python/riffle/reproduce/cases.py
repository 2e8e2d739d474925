"""Kinds of cases: a setting in which contenders run. What came of one contender are figures."""

import json
import signal
import subprocess
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar

from riffle.reproduce.models import Model
from riffle.reproduce.training import train

Figures = dict[str, Any]
PATIENCE = 1800  # seconds for one contender


class Interrupted(Exception):
    """Ctrl-C; what is under way has ended."""


@dataclass(frozen=True)
class Place:
    """Where cases run."""

    riffle: str  # the program
    folder: Path  # for files that nobody keeps
    seed: int = 1


def _answer(words: list[str]) -> tuple[int, str, str]:
    """Exit code, standard output, standard error."""
    process = subprocess.Popen(
        words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        output, errors = process.communicate(timeout=PATIENCE)
    except (KeyboardInterrupt, subprocess.TimeoutExpired) as error:
        process.send_signal(signal.SIGINT)  # it ends its workers
        try:
            process.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
        if isinstance(error, KeyboardInterrupt):
            raise Interrupted from None
        return 1, "", f"no end after {PATIENCE} s"
    return process.returncode, output, errors


def _last_line(text: str) -> str:
    lines = text.strip().splitlines()
    return lines[-1].removeprefix("riffle: ") if lines else "it said nothing"


def _ask(words: list[str]) -> tuple[Any, str]:
    """The JSON that a command of ours prints, and what it said beside it; None: it failed."""
    code, output, errors = _answer([*words, "--format", "json"])
    if code == 128 + signal.SIGINT:
        raise Interrupted
    try:
        return json.loads(output), errors
    except ValueError:
        return None, errors


@dataclass(frozen=True)
class Race:
    """Real processes and real TCP in the lab, compute emulated, or with `task` real."""

    name: str
    cluster: str
    contenders: tuple[str, ...]
    model: Model | None = None
    task: str = ""
    target: float | None = None
    epochs: float = 3
    steps: int = 8
    events: str = ""
    varies: ClassVar[bool] = True

    def words(self, contender: str, repeat: int, place: Place) -> list[str]:
        """The command without its program."""
        words = ["race", "--cluster", self.cluster, "--strategy", contender]
        if self.model is not None:
            words += ["--trace", str(self.model.file(place.riffle, place.folder))]
            words += ["--steps", str(self.steps)]
        else:
            words += ["--task", self.task, "--target", str(self.target)]
            words += ["--epochs", str(self.epochs)]
        if self.events:
            words += ["--events", self.events]
        return [*words, "--seed", str(place.seed + repeat)]

    def run(self, contender: str, repeat: int, place: Place) -> Figures:
        """Seconds are those of the true cluster."""
        words = [place.riffle, *self.words(contender, repeat, place)]
        race, said = _ask([*words, "--output", str(place.folder / "race")])
        if race is None:
            return {"failed": _last_line(said)}
        result = race["results"][0]
        if result["failed"]:
            return {"failed": result["failed"]}
        predicted = result["predicted"] or {}
        return {
            "seconds": result["seconds_per_step"],
            "exposed": result["exposed_communication_seconds"],
            "predicted": result["predicted_seconds_per_step"],
            "predicted_exposed": predicted.get("exposed_communication_seconds"),
            "to_target": result["seconds_to_target"],
            "accuracy": result["accuracy"],
            "steps": result["steps"],
            "dilate": race["dilate"],
            "shrink": race["shrink"],
            "processors_set_the_pace": "processors set the pace" in said,
        }


@dataclass(frozen=True)
class Sweep:
    """Simulated, on one cluster for each worker count."""

    name: str
    clusters: tuple[str, ...]
    contenders: tuple[str, ...]
    model: Model
    varies: ClassVar[bool] = False

    def run(self, contender: str, repeat: int, place: Place) -> Figures:
        """Points by worker count; of a single one also plain figures."""
        verb = "sweep" if len(self.clusters) > 1 else "simulate"
        words = [place.riffle, verb, "--strategy", contender]
        words += ["--trace", str(self.model.file(place.riffle, place.folder))]
        for cluster in self.clusters:
            words += ["--cluster", cluster]
        answer, said = _ask(words)
        if answer is None:
            return {"failed": _last_line(said)}
        points = [
            {
                "workers": each["workers"],
                "seconds": each["iteration_seconds"],
                "compute": each["compute_seconds"],
                "exposed": each["exposed_communication_seconds"],
                "speedup": each["speedup"],
                "messages": each.get("bucket_count") or len(each["buckets"]),
            }
            for each in answer.get("results", [answer])
        ]
        if not points:
            return {"failed": "not possible on this cluster"}
        return {"points": points} | (points[0] if len(points) == 1 else {})


@dataclass(frozen=True)
class Training:
    """Real compute on workers of this host; the seed changes with every repeat. The rate is
    constant, and weights are averaged over all steps beside; or it `falls`, and they are not."""

    name: str
    task: str
    contenders: tuple[str, ...]
    model: str = ""
    rate: float | None = None
    workers: int = 16
    epochs: float | None = None
    steps: int | None = None
    cluster: str = "racks:4x4,inner=20us/10Gbps,outer=200us/1Gbps"
    falls: bool = False
    evaluate_every: int | None = None  # steps, for a curve
    slow: int | None = None  # a worker whose steps take twice as long
    varies: ClassVar[bool] = True

    def run(self, contender: str, repeat: int, place: Place) -> Figures:
        """Of the exact average of all workers, and how far apart they were."""
        try:
            return train(self, contender, place.seed + repeat)
        except KeyboardInterrupt:
            raise Interrupted from None


Case = Race | Sweep | Training


def fingerprint(case: Case) -> str:
    """Equal where figures may stand for each other: the setting, not who runs in it."""
    setting = {"kind": type(case).__name__, **asdict(case)}
    del setting["contenders"]
    for later in ("falls", "evaluate_every", "slow"):  # than the first results
        if not setting.get(later):
            setting.pop(later, None)
    return json.dumps(setting, sort_keys=True)
