"""One worker of a run: the loop, its evaluations and its checkpoints.

The loop itself is ordinary: forward, backward, step. About once a second workers average a few
numbers, for progress and to agree whether somebody was asked to stop.
"""

import copy
import dataclasses
import io
import json
import math
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

import riffle
from riffle._core import Engine, UsageError
from riffle.tasks import Loaded, task_named
from riffle.train import checkpoint
from riffle.train.batches import Batches, share
from riffle.train.events import Event, Sink
from riffle.train.options import Options

REPORT_SECONDS = 1.0
WARM_UP = 0.05  # of all steps


class Stopped(Exception):
    """The run was asked to end early; what there is was saved, where there was a place for it."""


class Worker:
    """Make one on every rank, then `run` it."""

    def __init__(
        self, options: Options, data: Loaded, sinks: list[Sink], engine: Engine | None = None
    ) -> None:
        self.options, self.settings, self.data = options, options.settings, data
        self.task = task_named(self.settings.task)
        self._sinks = sinks
        self._engine = engine
        torch.manual_seed(self.settings.seed)
        self.model = self.task.models[self.settings.model]()
        self.optimizer = self.task.optimizer(self.model, self.settings.learning_rate)
        self.step = 0
        self._training = 0.0  # seconds, evaluation and checkpoints left out
        self._asked_to_stop = False
        self.after_step: Callable[[int], None] = lambda _: None

    # --- The run.

    def run(self) -> dict[str, Any]:
        """Trains to the end; the event of the end. Stopped where a signal came before."""
        rank, size = _place(self._engine)
        torch.manual_seed(self.settings.seed + 7919 * (rank + 1))  # dropout differs by rank
        state = self._restore(rank, size) if self.options.resume else None
        batches = Batches(self.data.train, self.settings.batch, rank, size, self.settings.seed)
        self.steps = self.settings.steps or max(
            1, round((self.settings.epochs or 1) * batches.per_epoch)
        )
        usual = self.steps if self.steps < 4 else min(batches.per_epoch, math.ceil(self.steps / 4))
        self._evaluate_every = self.options.evaluate_every or usual
        averaged = math.ceil(self.steps * (self.settings.swa or 0))
        self._swa_from = self.steps - averaged
        self.session = riffle.sync(
            self.model,
            self.optimizer,
            self.settings.strategy,
            engine=self._engine,
            cluster=self.settings.cluster,
            plan=self.settings.plan if state is None else None,
            swa=averaged > 0,
            swa_from=self._swa_from,
            record=self.options.timeline is not None,
            resume=state,
        )
        self._first_step = self.step
        try:
            self._check_same_data()
            self._report_start()
            self._loop(batches)
            return self._end(batches)
        finally:
            self.session.close()

    def _loop(self, batches: Batches) -> None:
        self._since = _Since(self.step)
        self._next_report = self.step + 1
        while self.step < self.steps:
            started = time.perf_counter()
            loss = self._train_on(batches.at(self.step))
            self.step += 1
            self._training += time.perf_counter() - started
            self._since.add(loss)
            self.after_step(self.step)
            if self.step >= self._next_report or self.step == self.steps:
                self._report()
            if self.step % self._evaluate_every == 0 and self.step < self.steps:
                self._evaluate(self.session.averaged())
            if self._is_time_to_save():
                self._save(stopped=False)

    def _train_on(self, batch: tuple[torch.Tensor, ...]) -> float:
        rate = self._rate()
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        self.optimizer.zero_grad()
        loss = self.task.loss(self.model, batch)
        loss.backward()
        self.optimizer.step()
        return loss.item()

    def _rate(self) -> float:
        """Up over the first steps, then down towards a hundredth by a straight line; constant
        while weights are averaged."""
        warm_up = max(1.0, WARM_UP * self.steps)
        fall = 1 - 0.99 * min(self.step, self._swa_from) / self.steps
        return self.settings.learning_rate * min(1.0, (self.step + 1) / warm_up) * fall

    # --- What people see.

    def _send(self, kind: str, **fields: Any) -> Event:
        event: Event = {"event": kind, "step": self.step, "steps": self.steps, **fields}
        if self.session.rank == 0:
            for sink in self._sinks:
                sink(event)
        return event

    def _report_start(self) -> None:
        self._send(
            "start",
            **{
                **dataclasses.asdict(self.settings),
                "steps": self.steps,
                "data": self.data.what,
                "strategy": self.session.strategy.spec,
            },
            engine=self.options.engine,
            parameters=sum(p.numel() for p in self.model.parameters()),
        )

    def _report(self) -> None:
        """All ranks do this at the same step, which they agree on by the times they measure."""
        since, self._since = self._since, _Since(self.step)
        loss, stop, seconds, exposed = self.session.average(
            since.loss / since.steps,
            float(self._asked_to_stop),
            (self._since.clock - since.clock) / since.steps,
            self.session.stats().exposed_communication,
        )
        self._next_report = self.step + max(1, min(1000, int(REPORT_SECONDS / max(seconds, 1e-6))))
        self._send(
            "progress",
            loss=loss,
            learning_rate=self.optimizer.param_groups[0]["lr"],
            steps_per_second=1 / seconds,
            examples_per_second=self.session.size * self.settings.batch / seconds,
            exposed_communication_seconds=exposed,
        )
        if stop > 0 and self.step < self.steps:
            if self.options.checkpoint:
                self._save(stopped=True)
            raise Stopped

    def _evaluate(self, weights: dict[str, torch.Tensor], of: str = "") -> dict[str, float]:
        judged = copy.deepcopy(self._bare_model())
        judged.load_state_dict(weights)
        judged.eval()
        total: torch.Tensor | float = 0.0
        with torch.no_grad():
            for batch in share(self.data.test, self.session.rank, self.session.size):
                total = total + self.task.measure(judged, batch).double()
        sums = torch.tensor(self.session.average(*torch.as_tensor(total).tolist()))
        result = self.task.result(sums.double())
        self._send("evaluation", **result, of=of)
        self._since = _Since(self.step)  # off the clock
        return result

    def _bare_model(self) -> torch.nn.Module:
        """Another model of the same kind, without hooks; random state left as it was."""
        random = torch.get_rng_state()
        model = self.task.models[self.settings.model]()
        torch.set_rng_state(random)
        return model

    def _evaluate_swa(self, batches: Batches) -> dict[str, float]:
        """The average over steps and workers, its BatchNorm by one pass over the data."""
        if self.settings.swa is None:
            return {}
        averaged = self.steps - self._swa_from
        count = min(averaged, batches.per_epoch)
        weights = self.session.swa(batches.at(step) for step in range(count))
        result = self._evaluate(weights, of=f"average over {averaged} steps: ")
        if self.options.checkpoint and self.session.rank == 0:
            _save_model(Path(self.options.checkpoint) / "swa.pt", weights)
        return {f"swa_{name}": value for name, value in result.items()}

    def _end(self, batches: Batches) -> dict[str, Any]:
        """All ranks take part: one exact average is what was trained."""
        self._write_timeline()
        stats = self.session.stats()
        distance = self.session.consensus_distance()
        self.session.finish()
        weights = {name: t.detach().clone() for name, t in self.model.state_dict().items()}
        result = self._evaluate(weights)
        if self.options.checkpoint and self.session.rank == 0:
            _save_model(Path(self.options.checkpoint) / "model.pt", weights)
        result |= self._evaluate_swa(batches)
        steps = self.step - self._first_step
        seconds = max(self._training, 1e-9)
        return self._send(
            "end",
            **result,
            task=self.task.name,
            workers=self.session.size,
            strategy=self.session.strategy.spec,
            best=self.data.best,
            seconds=self._training,
            steps_per_second=steps / seconds,
            examples_per_second=steps * self.session.size * self.settings.batch / seconds,
            exposed_communication_seconds=stats.exposed_communication,
            consensus_distance=distance,
        )

    # --- What is kept.

    def stop_on_signals(self) -> None:
        """SIGINT and SIGTERM end the run at the next report, all ranks at the same step."""

        def ask(*_: object) -> None:
            self._asked_to_stop = True

        if self.options.checkpoint:
            for number in (signal.SIGINT, signal.SIGTERM):
                signal.signal(number, ask)

    def _is_time_to_save(self) -> bool:
        if not self.options.checkpoint:
            return False
        every = self.options.checkpoint_every or self._evaluate_every
        return self.step % every == 0 or self.step == self.steps

    def _save(self, stopped: bool) -> None:
        folder = str(self.options.checkpoint)
        session = self.session.state_dict()  # first: it settles what is due before the next forward
        header = {
            "step": self.step,
            "rank": self.session.rank,
            "workers": self.session.size,
            "settings": dataclasses.asdict(self.settings),
        }
        state = {
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "session": torch.frombuffer(bytearray(session["session"] or b"\0"), dtype=torch.uint8),
            "random": torch.get_rng_state(),
            "swa": session["swa"],
        }
        checkpoint.save(folder, header, state)
        self.session.average(0.0)  # all ranks have saved
        if self.session.rank == 0:
            checkpoint.publish(folder, self.step)
        self._send("checkpoint", folder=folder, stopped=stopped)
        self._since = _Since(self.step)

    def _restore(self, rank: int, size: int) -> dict[str, Any]:
        header, state = checkpoint.load(str(self.options.resume), rank, size)
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        torch.set_rng_state(state["random"])
        self.step = header["step"]
        session = bytes(state["session"].tolist())
        return {"rank": rank, "size": size, "session": session, "swa": state.get("swa")}

    def _write_timeline(self) -> None:
        """Of this rank; `local.py` joins them. One worker exchanges nothing and has none."""
        if self.options.timeline is not None and self.session.size > 1:
            path = Path(timeline_part(self.options.timeline, self.session.rank))
            checkpoint.write_whole(path, json.dumps(self.session.timeline()).encode())

    def _check_same_data(self) -> None:
        """Workers that loaded other data than the rest would train nonsense."""
        size = float(len(self.data.train))
        if self.session.average(size) != [size]:
            raise UsageError(
                f"rank {self.session.rank} has {self.data.what}, others have other data; "
                "fetch it on all hosts, or pass --data synthetic to all"
            )


class _Since:
    """Sums since a step."""

    def __init__(self, step: int) -> None:
        self.step, self.steps, self.loss = step, 0, 0.0
        self.clock = time.perf_counter()

    def add(self, loss: float) -> None:
        self.steps += 1
        self.loss += loss


def timeline_part(path: str, rank: int) -> str:
    """Where a rank writes its timeline."""
    return f"{path}.rank-{rank}"


def _place(engine: Engine | None) -> tuple[int, int]:
    if engine is not None:
        return engine.rank, engine.size
    return riffle.rank(), riffle.world_size()


def _save_model(path: Path, weights: dict[str, torch.Tensor]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    stream = io.BytesIO()
    torch.save(weights, stream)
    checkpoint.write_whole(path, stream.getvalue())
