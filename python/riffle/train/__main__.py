"""The verb `riffle train`."""

import dataclasses
import os
import sys

from riffle._core import (
    CommError,
    UsageError,
    choose_strategy,
    launch_environment,
    load_plan,
)
from riffle.data import NotAvailable
from riffle.strategy import table
from riffle.tasks import Loaded, task_named
from riffle.train import events, local, screen
from riffle.train.engines import close_engine, engine_named
from riffle.train.options import Options, Settings, read
from riffle.train.worker import Stopped, Worker

INTERRUPTED = 130


def _load(settings: Settings) -> tuple[Settings, Loaded]:
    """The data; generated, and said so, where the real one cannot be had."""
    task = task_named(settings.task)
    try:
        return settings, task.load(settings.data, settings.seed)
    except NotAvailable as error:
        events.say(f"{error}; going on with --data synthetic")
        settings = dataclasses.replace(settings, data="synthetic")
        return settings, task.load("synthetic", settings.seed)


def _work(options: Options) -> int:
    """As one worker, in this process."""
    settings, data = _load(options.settings)
    options = dataclasses.replace(options, settings=settings)
    piped = os.environ.get(events.PIPE_VARIABLE) == "1"
    sinks: list[events.Sink] = [events.pipe if piped else screen.Screen()]
    environment = launch_environment()
    if options.log and (environment is None or environment.rank == 0):
        sinks.append(events.log_file(options.log, append=options.resume is not None))
    worker = Worker(options, data, sinks, engine_named(options.engine))
    worker.stop_on_signals()
    try:
        end = worker.run()
    except (Stopped, KeyboardInterrupt):
        return INTERRUPTED
    finally:
        close_engine()
    if not piped and (environment is None or environment.rank == 0):
        screen.print_table(screen.rows_of([end]))
    return 0


def _alone(options: Options) -> Options:
    """The same on one worker: as many examples a step, so as many steps."""
    settings = options.settings
    together = settings.workers * settings.batch
    settings = dataclasses.replace(settings, workers=1, batch=together, strategy="auto", plan=None)
    return dataclasses.replace(
        options, settings=settings, checkpoint=None, resume=None, timeline=None, log=None
    )


def _start(options: Options) -> int:
    """Workers of this host, watched."""
    settings, data = _load(options.settings)  # once, before all workers ask for it
    del data
    options = dataclasses.replace(options, settings=settings)
    ends = []
    for each in [options, _alone(options)] if options.compare else [options]:
        code, end = local.run(each, screen.Screen())
        if code != 0 or end is None:
            return code or 1
        ends.append(end)
    screen.print_table(screen.rows_of(ends))
    if len(ends) == 2:
        print(_compared(*ends))
    return 0


def _compared(many: events.Event, one: events.Event) -> str:
    """One sentence."""
    faster = many["examples_per_second"] / one["examples_per_second"]
    metric = task_named(many["task"]).metric
    difference = many[metric] - one[metric]
    better = f"{100 * difference:+.2f} points" if metric == "accuracy" else f"{difference:+.4f}"
    return (
        f"{many['workers']} workers against one, same examples a step: {faster:.2f}x the speed, "
        f"{metric} {better}\n(on this machine's {os.cpu_count()} cores, which one worker has for "
        "itself and several share)"
    )


def _check(settings: Settings) -> None:
    """Refuses a wrong name, and a wrong plan, before anything starts."""
    choose_strategy(settings.strategy, table())
    if settings.plan is not None:
        load_plan(settings.plan)


def main(arguments: list[str]) -> int:
    """The exit code; arguments without the program's name."""
    try:
        environment = launch_environment()
        options = read(arguments, None if environment is None else environment.size)
        if environment is not None or os.environ.get(events.PIPE_VARIABLE) == "1":
            return _work(options)
        _check(options.settings)
        return _start(options)
    except UsageError as error:
        events.say(str(error))
        return 2
    except CommError as error:
        events.say(str(error))
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
