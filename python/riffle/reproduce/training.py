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
    # Averaging over all steps holds the rate constant; the plain weights are judged as well.
    words += [f"--cluster={case.cluster}", "--swa=1"]
    words += [f"--model={case.model}"] if case.model else []
    words += [f"--learning-rate={case.rate}"] if case.rate else []
    words += [f"--epochs={case.epochs}"] if case.epochs else []
    words += [f"--steps={case.steps}"] if case.steps else []
    options: Options = read(words, None)
    return options


def _worker(options: Any, data: Any, job: str, rank: int) -> dict[str, Any]:
    import riffle
    from riffle.train.worker import Worker

    size = options.settings.workers
    # On a busy machine a worker may get no time for seconds; that is no failure here.
    engine = riffle.shm_engine(job, rank, size, failure_timeout=60)
    return Worker(options, data, [], engine).run()


def _start(options: Any, data: Any, job: str, rank: int) -> tuple[int, int]:
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
        result = _worker(options, data, job, rank)
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
    answers = _gather([_start(options, data, job, rank) for rank in range(case.workers)])
    failed = next((each["failed"] for each in answers if "failed" in each), None)
    if failed:
        return {"failed": failed}
    end = answers[0]
    kept = {name: end[name] for name in (task.metric, "loss", "steps", "consensus_distance")}
    return kept | {"metric": end[task.metric], "data": data.what, "took": time.monotonic() - began}
