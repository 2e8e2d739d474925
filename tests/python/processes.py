"""Workers as forked processes: torch is imported once, in the parent."""

import contextlib
import os
import pickle
import select
import signal
import tempfile
import time
import traceback
import uuid
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist

import riffle

# The first optimizer imports half of torch; once, here, is enough.
torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1)
torch.set_num_threads(1)


class WorkerFailed(AssertionError):
    pass


def job_name() -> str:
    """Jobs of one host must not share a name."""
    return f"test-{uuid.uuid4().hex}"


def _child(write: int, function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    try:
        answer = (True, function(*arguments))
    except BaseException:
        answer = (False, traceback.format_exc())
    with os.fdopen(write, "wb") as pipe:
        pickle.dump(answer, pipe)
    os._exit(0)


def start(function: Callable[..., Any], *arguments: Any) -> tuple[int, int]:
    """Forks a worker; gives its process id and where to read its answer."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(read)
        _child(write, function, arguments)
    os.close(write)
    return pid, read


def _read_all(reads: list[int], deadline: float) -> list[bytes]:
    texts = dict.fromkeys(reads, b"")
    open_reads = set(reads)
    while open_reads and time.monotonic() < deadline:
        for read in select.select(list(open_reads), [], [], 0.5)[0]:
            part = os.read(read, 1 << 20)
            texts[read] += part
            if not part:
                open_reads.discard(read)
    return [texts[read] for read in reads]


def gather(workers: list[tuple[int, int]], seconds: float = 100) -> list[Any]:
    """What each worker answered; (False, why) where it failed. None stays behind."""
    texts = _read_all([read for _, read in workers], time.monotonic() + seconds)
    for pid, read in workers:
        os.close(read)
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    return [pickle.loads(text) if text else (False, "no answer in time") for text in texts]


def apart(function: Callable[..., Any], *arguments: Any) -> Any:
    """What function(*arguments) gives, in a process of its own: after threads have computed, MKL's
    locks may be taken in processes that are forked later, which then hang."""

    def alone() -> Any:
        torch.set_num_threads(1)  # makes torch's pool anew before threads ask for it at once
        return function(*arguments)

    fine, value = gather([start(alone)], 40)[0]
    if not fine:
        raise WorkerFailed(value)
    return value


def run(
    size: int, function: Callable[..., Any], *arguments: Any, seconds: float = 100
) -> list[Any]:
    """function(engine, *arguments) on `size` workers joined by shared memory; their answers."""
    job = job_name()

    def worker(rank: int) -> Any:
        # On a busy machine a worker may get no time for seconds; that is no failure here.
        engine = riffle.shm_engine(job, rank, size, failure_timeout=30)
        return function(engine, *arguments)

    answers = gather([start(worker, rank) for rank in range(size)], seconds)
    failed = [f"rank {rank}: {value}" for rank, (fine, value) in enumerate(answers) if not fine]
    if failed:
        raise WorkerFailed(f"of {size} workers\n" + "\n".join(failed))
    return [value for _, value in answers]


def with_gloo(folder: str, rank: int, size: int, function: Callable[[], Any]) -> Any:
    """Calls it with a process group of torch.distributed: Gloo on loopback."""
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    store = dist.FileStore(os.path.join(folder, "store"), size)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=size)
    return function()


def run_with_gloo(
    size: int, function: Callable[..., Any], *arguments: Any, seconds: float = 100
) -> list[Any]:
    """As run, with such a process group besides the engine."""
    with tempfile.TemporaryDirectory() as folder:

        def worker(engine: riffle.Engine) -> Any:
            answer = with_gloo(folder, engine.rank, size, lambda: function(engine, *arguments))
            dist.destroy_process_group()
            return answer

        return run(size, worker, seconds=seconds)
