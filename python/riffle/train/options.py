"""What `riffle train` can be told, and what a checkpoint remembers of it."""

import argparse
import os
from dataclasses import asdict, dataclass, fields
from typing import Any

from riffle._core import UsageError
from riffle.tasks import TASKS, task_named
from riffle.train import checkpoint

WORKERS = 4
SWA_SHARE = 0.25
ENGINES = ("auto", "shm", "c10d")


@dataclass(frozen=True)
class Settings:
    """What decides the weights that come out; resuming needs the same."""

    task: str
    model: str
    data: str
    strategy: str
    workers: int
    batch: int
    learning_rate: float
    epochs: float | None  # None: `steps` decides
    steps: int | None
    seed: int
    cluster: str | None
    swa: float | None = None  # over which share of the steps weights are averaged
    plan: str | None = None  # a file; once it is read, checkpoints have what it says


@dataclass(frozen=True)
class Options:
    """Settings, and where things go."""

    settings: Settings
    engine: str
    checkpoint: str | None
    checkpoint_every: int | None  # steps; None: at every evaluation
    resume: str | None
    timeline: str | None
    log: str | None
    compare: bool
    evaluate_every: int | None = None  # steps; None: every epoch, and four times at least


def parser() -> argparse.ArgumentParser:
    """The command line; no defaults here, so that a checkpoint's values can stand in."""
    found = argparse.ArgumentParser(
        prog="riffle train",
        description="Trains a built-in task on workers of this host. Under torchrun, mpirun or "
        "Slurm it is one of their workers. Without arguments: digits on "
        f"{WORKERS} workers, then on one, to compare.",
        epilog="Tasks: " + "; ".join(f"{t.name}: {t.summary}" for t in TASKS.values()) + ".",
    )
    add = found.add_argument
    add("task", nargs="?", metavar="TASK", help=f"{', '.join(TASKS)} (default digits)")
    add("-n", "--workers", type=int, metavar="N", help=f"local workers (default {WORKERS})")
    add("--strategy", metavar="S", help="as `riffle strategies` lists them (default auto)")
    add("--engine", choices=ENGINES, default="auto", help="what moves bytes (default auto)")
    add("--plan", metavar="FILE", help="of riffle plan --plan-file: what auto takes, unplanned")
    add("--cluster", metavar="SPEC", help="what the strategy plans for (default: measured)")
    add("--model", metavar="NAME", help="one of the task's models")
    add("--data", metavar="D", help="real (default), synthetic, or a folder or file of the task's")
    add("--epochs", type=float, metavar="E")
    add("--steps", type=int, metavar="K", help="instead of --epochs")
    add("--batch", type=int, metavar="B", help="examples per worker and step")
    add("--learning-rate", type=float, metavar="R")
    add("--seed", type=int, metavar="N", help="default 0")
    add(
        "--swa",
        type=float,
        nargs="?",
        const=SWA_SHARE,
        metavar="SHARE",
        help="average weights over the last SHARE of the steps, at a constant rate "
        f"(default {SWA_SHARE})",
    )
    add("--checkpoint", metavar="DIR", help="save there, also on Ctrl-C; the model at the end")
    add("--checkpoint-every", type=int, metavar="K", help="steps (default: at evaluations)")
    add("--resume", metavar="DIR", help="go on from the newest checkpoint there, and save there")
    add("--evaluate-every", type=int, metavar="K", help="steps (default: every epoch, 4 at least)")
    add("--timeline", metavar="FILE", help="of all workers, for ui.perfetto.dev")
    add("--log", metavar="FILE", help="JSON lines")
    add("--compare", action="store_true", help="train on one worker too, and compare")
    return found


def read(arguments: list[str], workers: int | None) -> Options:
    """Checked options; `workers` is what a launcher around us says."""
    given = parser().parse_args(arguments)
    if workers is not None:
        if given.workers not in (None, workers):
            raise UsageError(f"--workers {given.workers}, but the launcher started {workers}")
        given.workers = workers
    remembered = checkpoint.settings_in(given.resume) if given.resume else {}
    return Options(
        settings=_settings(given, remembered),
        engine=given.engine,
        checkpoint=given.checkpoint or given.resume and checkpoint.home_of(given.resume),
        checkpoint_every=_positive("--checkpoint-every", given.checkpoint_every),
        resume=given.resume,
        timeline=given.timeline,
        log=given.log,
        evaluate_every=_positive("--evaluate-every", given.evaluate_every),
        compare=given.compare or (not arguments and workers is None),
    )


def _settings(given: argparse.Namespace, remembered: dict[str, Any]) -> Settings:
    if remembered:
        return _as_remembered(given, remembered)
    task = task_named(given.task or "digits")
    model = given.model or next(iter(task.models))
    if model not in task.models:
        raise UsageError(f"no model '{model}' of {task.name}; known: {', '.join(task.models)}")
    if given.swa is not None and given.swa > 1:
        raise UsageError(f"--swa {given.swa}: is a share of all steps, at most 1")
    if given.epochs is not None and given.steps is not None:
        raise UsageError("--epochs and --steps say the same thing; give one")
    steps = task.steps if given.epochs is None and given.steps is None else given.steps
    epochs = None if steps is not None else given.epochs or task.epochs
    return Settings(
        task=task.name,
        model=model,
        data=given.data or "real",
        strategy=given.strategy or "auto",
        workers=_positive("--workers", given.workers) or WORKERS,
        batch=_positive("--batch", given.batch) or task.batch,
        learning_rate=_positive("--learning-rate", given.learning_rate) or task.learning_rate,
        epochs=_positive("--epochs", epochs),
        steps=_positive("--steps", steps),
        seed=given.seed or 0,
        cluster=given.cluster,
        swa=_positive("--swa", given.swa),
        plan=given.plan and os.path.abspath(given.plan),
    )


def _as_remembered(given: argparse.Namespace, remembered: dict[str, Any]) -> Settings:
    for field in fields(Settings):
        now, then = getattr(given, field.name), remembered.get(field.name)
        if now is not None and now != then:
            more = "; resuming needs the same number" if field.name == "workers" else ""
            raise UsageError(
                f"{given.resume}: {field.name.replace('_', '-')} was {then}, not {now}{more}"
            )
    return Settings(**remembered)


def _positive(name: str, value: Any) -> Any:
    if value is not None and not value > 0:
        raise UsageError(f"{name} {value}: must be more than 0")
    return value


def as_arguments(options: Options) -> list[str]:
    """The command line that gives the same options, for the workers."""
    values = asdict(options.settings)
    words = [values.pop("task")]
    if options.resume:  # the checkpoint has the settings
        words, values = [], {}
    values |= {
        "engine": options.engine,
        "checkpoint": options.checkpoint and os.path.abspath(options.checkpoint),
        "checkpoint_every": options.checkpoint_every,
        "resume": options.resume and os.path.abspath(options.resume),
        "timeline": options.timeline and os.path.abspath(options.timeline),
        "log": options.log and os.path.abspath(options.log),
    }
    for name, value in values.items():
        option = f"--{name.replace('_', '-')}"
        if value is not None:
            words.append(f"{option}={value}")
    return words
