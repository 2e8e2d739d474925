"""One worker of a race under one of our strategies, with real compute:
`python -m riffle.race.worker` with RIFFLE_RACE set, in a lab. It reports as peers do
(riffle/peers/race.py)."""

import json
import os
import sys
from pathlib import Path
from typing import Any

import torch

import riffle
from riffle._core import Cluster, CommError, Trace, UsageError
from riffle.peers.race import VARIABLE, Lines, Race, from_environment
from riffle.peers.work import Training
from riffle.peers.worker import Clock
from riffle.race.timeline import Recording
from riffle.train.checkpoint import write_whole


class Ours(Training):
    """Evaluated through the session."""

    session: Any = None

    def averaged(self) -> dict[str, torch.Tensor]:
        return self.session.averaged()

    def summed(self, values: torch.Tensor) -> torch.Tensor:
        return torch.tensor(self.session.average(*values.tolist())).double() * self.session.size


def _rehearse(work: Ours, passes: int) -> None:
    """Nothing is learned before the clock starts."""
    for step in range(passes):
        work.loss(work.module, step).backward()
    work.module.zero_grad()


def _begin(race: Race, work: Ours, optimizer: torch.optim.Optimizer) -> Any:
    """Plans for the network and the times as they are emulated."""
    order = json.loads(Path(os.environ[VARIABLE]).read_text())
    cluster = Cluster.from_json(json.dumps(order["emulated_cluster"]))
    trace = Trace.from_json(json.dumps(order["compute"]))
    return riffle.sync(
        work.module, optimizer, race.contender, cluster=cluster, trace=trace, record=True
    )


def _step(work: Ours, optimizer: torch.optim.Optimizer, step: int, recording: Recording) -> float:
    recording.begin(step)
    optimizer.zero_grad()
    loss = work.loss(work.module, step)
    recording.reached("forward")
    loss.backward()
    recording.reached("backward")
    optimizer.step()
    recording.reached("optimizer")
    return loss.item()


def _exposed(session: Any) -> float:
    stats = session.stats()
    return stats.exposed_communication * stats.steps


def _is_reached(race: Race, work: Ours, lines: Lines, step: int, seconds: float) -> bool:
    """Off the clock."""
    accuracy = work.evaluate()
    if work.session.rank == 0:
        lines.write(evaluated=step, seconds=seconds, accuracy=accuracy)
    return race.target is not None and accuracy is not None and accuracy >= race.target


def _train(race: Race, work: Ours, optimizer: torch.optim.Optimizer, lines: Lines) -> None:
    session = work.session
    recording = Recording(session.rank)
    session.average(0.0)  # all are here
    exposed, end, clock = _exposed(session), "steps", Clock()
    for step in range(1, work.steps + 1):
        loss = _step(work, optimizer, step - 1, recording)
        now = clock.stop()
        before, exposed = exposed, _exposed(session)
        lines.write(step=step, seconds=now, exposed=exposed - before, loss=loss)
        if (step % race.evaluate == 0 or step == work.steps) and _is_reached(
            race, work, lines, step, now
        ):
            end = "target"
            break
        exposed = _exposed(session)
        clock.go_on()
    file = Path(race.folder) / f"rank{session.rank}.timeline.json"
    write_whole(file, json.dumps(recording.timeline(session)).encode())
    lines.write(end=end, steps=step, seconds=clock.seconds, timeline=str(file))
    session.average(0.0)  # nobody leaves while another still exchanges with it


def run() -> None:
    """Raises where it fails."""
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
    race = from_environment()
    rank, size = riffle.rank(), riffle.world_size()
    lines = Lines(race.folder, rank)
    work = Ours(race, rank, size)
    _rehearse(work, race.warmup)
    optimizer = work.optimizer(work.module)
    work.session = _begin(race, work, optimizer)
    try:
        _train(race, work, optimizer, lines)
    finally:
        work.session.close()


def main() -> int:
    """The exit code."""
    try:
        run()
    except (UsageError, CommError) as error:
        print(f"riffle: {error}", file=sys.stderr)
        return 2 if isinstance(error, UsageError) else 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
