"""One worker of a race under a peer: `python -m riffle.peers.worker`, with RIFFLE_RACE set and the
environment of torchrun or of a lab.

Appends lines of JSON to rank<R>.jsonl in the race's folder. Seconds are real ones and begin with
the first counted step; evaluation is off the clock.
"""

import os
import sys
import time
from datetime import timedelta

DEADLINE = timedelta(seconds=300)  # of every exchange


class Clock:
    """Seconds since it was started, without those while it was stopped."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._since = time.perf_counter()

    def stop(self) -> float:
        """What it shows."""
        self.seconds += time.perf_counter() - self._since
        return self.seconds

    def go_on(self) -> None:
        """After a stop."""
        self._since = time.perf_counter()


def one_step(running, work, step: int) -> float | None:
    """Gradients are put to zero after forward: decent-dp's first update happens in the second."""
    loss = work.loss(running.model, step)
    running.model.zero_grad()
    loss.backward()
    running.step()
    return None if work.is_emulated else loss.item()


def warm_up(running, work, passes: int) -> None:
    """With a task nothing is learned before the clock starts."""
    if work.is_emulated:
        for step in range(passes):
            one_step(running, work, step)
        return
    running.rehearse(True)
    for step in range(passes):
        work.loss(running.model, step).backward()
        running.model.zero_grad()
    running.rehearse(False)


def train(race, running, work, lines, rank: int) -> None:
    """Counted steps, to the target or to the end."""
    import torch.distributed as dist

    dist.barrier()
    clock, before, end = Clock(), 0.0, "steps"
    for step in range(1, work.steps + 1):
        loss = one_step(running, work, step - 1)
        now = clock.stop()
        compute = work.compute_seconds()
        exposed = None if compute is None else max(0.0, now - before - compute)
        before = now
        lines.write(step=step, seconds=now, exposed=exposed, loss=loss)
        if not work.is_emulated and (step % race.evaluate == 0 or step == work.steps):
            accuracy = work.evaluate()
            if rank == 0:
                lines.write(evaluated=step, seconds=now, accuracy=accuracy)
            if race.target is not None and accuracy >= race.target:
                end = "target"
        if end == "target":
            break
        clock.go_on()
    lines.write(end=end, steps=step, seconds=clock.seconds, timeline=None)
    dist.barrier()  # nobody leaves while another still exchanges with it


def run() -> None:
    """Raises where it fails."""
    # Gloo's thread spins for whole ticks where it shares cores with workers of ordinary priority.
    os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
    from riffle.peers import peer_of
    from riffle.peers.race import Lines, from_environment

    race = from_environment()
    peer, options = peer_of(race.contender)
    import torch
    import torch.distributed as dist
    import torch.distributed.nn  # noqa: F401  later it would keep the group, and its threads, for ever

    from riffle.peers.work import work_of

    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
    dist.init_process_group("gloo", timeout=DEADLINE)
    rank, size = dist.get_rank(), dist.get_world_size()
    lines = Lines(race.folder, rank)
    work = work_of(race, rank, size)
    running = peer.start(work, options)
    warm_up(running, work, race.warmup)
    train(race, running, work, lines, rank)
    running.close()
    dist.destroy_process_group()


def _first_line(error: BaseException) -> str:
    text = str(error).strip()
    return text.splitlines()[0][:300] if text else type(error).__name__


def main() -> int:
    """The exit code."""
    from riffle._core import UsageError

    try:
        run()
    except UsageError as error:
        print(f"riffle: {error}", file=sys.stderr)
        return 2
    except Exception as error:
        print(f"riffle: rank {os.environ.get('RANK')}: {_first_line(error)}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)  # libraries leave threads that would hold up the end
