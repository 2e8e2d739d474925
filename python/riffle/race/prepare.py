"""What a race with real compute must know before it begins: `python -m riffle.race.prepare TASK`.

Fetches the data, and measures what a step of the task takes of a core while as many workers compute
at once as the race has. Prints one JSON object.
"""

import argparse
import json
import os
import sys
import time
from typing import Any

import torch

import riffle
from riffle._core import UsageError
from riffle.data import NotAvailable
from riffle.tasks import TASKS, Loaded, Task, task_named
from riffle.train.batches import Batches
from riffle.train.events import say

WARM_UP = 5
STEPS = WARM_UP + 100  # of them to measure


def _load(task: Task, data: str, seed: int) -> tuple[str, Loaded]:
    """Generated, and said so, where the real data cannot be had."""
    try:
        return data, task.load(data, seed)
    except NotAvailable as error:
        say(f"{error}; going on with --data synthetic")
        return "synthetic", task.load("synthetic", seed)


def _measure(task: Task, batches: Batches, seed: int, ready: int, go: int) -> str:
    """In a process of its own: the trace, as JSON."""
    torch.manual_seed(seed)
    model = next(iter(task.models.values()))()
    optimizer = task.optimizer(model, task.learning_rate)
    session = riffle.sync(model, optimizer, "bsp", profile=True)
    os.write(ready, b".")
    os.read(go, 1)  # all at once
    began = 0.0
    for step in range(STEPS):
        if step == WARM_UP:
            began = time.process_time()
        optimizer.zero_grad()
        task.loss(model, batches.at(step % batches.per_epoch)).backward()
        optimizer.step()
    seconds = (time.process_time() - began) / (STEPS - WARM_UP)
    trace = session.trace().to_json()
    session.close()
    return json.dumps(_stretched(json.loads(trace), seconds))


def _stretched(trace: dict[str, Any], seconds: float) -> dict[str, Any]:
    """The layers' shares of a step of so many seconds of a core: medians of layers leave out what a
    loop does beside its layers."""
    layers = trace["layers"]
    whole = sum(x["forward"] + x["backward"] for x in layers) + trace["optimizer_step"]
    for layer in layers:
        layer["forward"] *= seconds / whole
        layer["backward"] *= seconds / whole
    trace["optimizer_step"] *= seconds / whole
    return trace


def _start(work: Any, ready: int, go: int) -> tuple[int, int]:
    """A process, and where its answer comes from."""
    answer, end = os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            with os.fdopen(end, "w") as stream:
                stream.write(work(ready, go))
            code = 0
        finally:
            os._exit(code)
    os.close(end)
    return child, answer


def _measured(task: Task, batches: Batches, seed: int, workers: int) -> dict[str, Any]:
    """The worker in the middle of all: what it took, layer by layer."""
    ready_from, ready = os.pipe()
    go, go_from = os.pipe()
    started = [
        _start(lambda *pipes: _measure(task, batches, seed, *pipes), ready, go)
        for _ in range(workers)
    ]
    os.close(ready)
    arrived = 0
    while arrived < workers and (got := os.read(ready_from, workers)):
        arrived += len(got)
    os.write(go_from, b"." * workers)
    traces = []
    for child, answer in started:
        with os.fdopen(answer) as stream:
            text = stream.read()
        if os.waitpid(child, 0)[1] != 0:
            raise RuntimeError("a worker that measures its compute has failed")
        traces.append(json.loads(text))
    traces.sort(key=lambda t: sum(x["forward"] + x["backward"] for x in t["layers"]))
    return traces[len(traces) // 2]


def _arguments(words: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="riffle.race.prepare", description=__doc__)
    parser.add_argument("task")
    parser.add_argument("--data", default="real")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args(words)


def prepare(words: list[str]) -> dict[str, Any]:
    """What is printed."""
    given = _arguments(words)
    task = task_named(given.task)
    if task.metric != "accuracy":
        known = ", ".join(t.name for t in TASKS.values() if t.metric == "accuracy")
        raise UsageError(f"{task.name} is judged by {task.metric}; a race needs one of: {known}")
    # Before anything computes: threads would not survive a fork.
    torch.set_num_threads(max(1, (os.cpu_count() or 1) // given.workers))
    data, loaded = _load(task, given.data, given.seed)
    batches = Batches(loaded.train, task.batch, 0, given.workers, given.seed)
    return {
        "data": data,
        "what": loaded.what,
        "batch": task.batch,
        "learning_rate": task.learning_rate,
        "steps_per_epoch": batches.per_epoch,
        "trace": _measured(task, batches, given.seed, given.workers),
    }


def main(words: list[str]) -> int:
    """The exit code."""
    try:
        print(json.dumps(prepare(words)))
    except UsageError as error:
        say(str(error))
        return 2
    except (OSError, RuntimeError) as error:
        say(str(error))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
