"""Trains a task on forked workers of this host, joined by shared memory; torch is imported once."""

import contextlib
import ctypes
import json
import os
import signal
import time
import uuid
from typing import Any

SECONDS = 3000  # for all of it
PR_SET_PDEATHSIG = 1


def _settings(case: Any, rule: str, seed: int) -> Any:
    from riffle.train.options import Options, read

    words = [case.task, f"--workers={case.workers}", f"--strategy={rule}", f"--seed={seed}"]
    words += [f"--cluster={case.cluster}"]
    # Averaging over all steps holds the rate constant; the plain weights are judged as well.
    words += [] if case.falls else ["--swa=1"]
    words += [f"--evaluate-every={case.evaluate_every}"] if case.evaluate_every else []
    words += [f"--model={case.model}"] if case.model else []
    words += [f"--learning-rate={case.rate}"] if case.rate else []
    words += [f"--epochs={case.epochs}"] if case.epochs else []
    words += [f"--steps={case.steps}"] if case.steps else []
    options: Options = read(words, None)
    return options


def _worker(options: Any, data: Any, job: str, rank: int, slow: bool) -> dict[str, Any]:
    import riffle
    from riffle.train.worker import Worker

    size = options.settings.workers
    # On a busy machine a worker may get no time for seconds; that is no failure here.
    engine = riffle.shm_engine(job, rank, size, failure_timeout=60)
    evaluations: list[dict[str, Any]] = []

    def keep(event: dict[str, Any]) -> None:
        if event["event"] == "evaluation" and not event["of"]:
            evaluations.append(event)

    worker = Worker(options, data, [keep], engine)
    if slow:
        worker.after_step = _Slow()
    return worker.run() | {"evaluations": evaluations}


class _Slow:
    """Sleeps as long as the step took that came before."""

    def __init__(self) -> None:
        self._since = time.monotonic()

    def __call__(self, step: int) -> None:
        time.sleep(time.monotonic() - self._since)
        self._since = time.monotonic()


def _start(options: Any, data: Any, job: str, rank: int, slow: bool) -> tuple[int, int]:
    """A process, and where its answer comes from."""
    answer, end = os.pipe()
    child = os.fork()
    if child > 0:
        os.close(end)
        return child, answer
    code = 1
    try:
        os.close(answer)
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)  # none outlives us
        signal.alarm(SECONDS)
        result = _worker(options, data, job, rank, slow)
        with os.fdopen(end, "w") as stream:
            json.dump(result, stream)
        code = 0
    except Exception as error:
        with os.fdopen(end, "w") as stream:
            json.dump({"failed": str(error) or type(error).__name__}, stream)
    finally:
        os._exit(code)


def _gather(started: list[tuple[int, int]]) -> list[dict[str, Any]]:
    """What each answered; none stays behind."""
    answers = []
    try:
        for _, answer in started:
            with os.fdopen(answer) as stream:
                text = stream.read()
            answers.append(json.loads(text) if text else {"failed": "a worker has ended early"})
    finally:
        for child, _ in started:
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
    return answers


def train(case: Any, rule: str, seed: int) -> dict[str, Any]:
    """The task's metric of the exact average, its loss, and the consensus distance before it."""
    import torch

    from riffle.data import NotAvailable
    from riffle.tasks import task_named

    torch.set_num_threads(1)  # before anything computes: threads would not survive a fork
    options = _settings(case, rule, seed)
    task = task_named(case.task)
    try:
        data = task.load(options.settings.data, seed)
    except NotAvailable as error:
        return {"failed": str(error)}
    began = time.monotonic()
    job = f"reproduce-{uuid.uuid4().hex}"
    started = [_start(options, data, job, rank, rank == case.slow) for rank in range(case.workers)]
    answers = _gather(started)
    failed = next((each["failed"] for each in answers if "failed" in each), None)
    if failed:
        return {"failed": failed}
    end = answers[0]
    kept = {name: end[name] for name in (task.metric, "loss", "steps", "consensus_distance")}
    if case.evaluate_every:
        kept["curve"] = [(each["step"], each[task.metric]) for each in end["evaluations"]]
        kept["curve"].append((end["steps"], end[task.metric]))
    return kept | {"metric": end[task.metric], "data": data.what, "took": time.monotonic() - began}
