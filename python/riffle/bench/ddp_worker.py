"""One worker of `riffle bench ddp`: `python -m riffle.bench.ddp_worker FOLDER` with the environment
of torchrun or of a lab.

Every worker trains the same model under all contenders in turns of a few steps, so that whatever
else the machine does hits all of them alike: unmodified DistributedDataParallel on Gloo and on
riffle, and the model alone, which exchanges nothing. Seconds per step of each turn are written to
rank<R>.json in the folder.
"""

import argparse
import json
import os
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

import riffle.distributed  # noqa: F401
from riffle import emulated
from riffle.bench import CONTENDERS
from riffle.bench.models import MODELS
from riffle.train.checkpoint import write_whole

WARM_UP = 4  # steps of each contender; DDP makes its buckets anew after the first
TIMEOUT = timedelta(seconds=300)
APART = 1e-2  # what weights on Gloo and on riffle may differ by, relative


def as_gloo(is_gloo: bool) -> None:
    """Gloo's thread spins for whole ticks where it shares cores with threads of ordinary priority;
    threads are made with the policy of who makes them."""
    os.sched_setscheduler(0, os.SCHED_BATCH if is_gloo else os.SCHED_OTHER, os.sched_param(0))


class Contender:
    """A model being trained."""

    def __init__(self, name: str, model: str, group: Any) -> None:
        self.name = name
        torch.manual_seed(1)
        self._random = torch.Generator().manual_seed(dist.get_rank())
        self._data = None
        if model in MODELS:
            make, self._data = MODELS[model]
            self._model = make()
        else:
            self._model = emulated.Model(model)
        if name != "alone":
            self._model = DistributedDataParallel(self._model, process_group=group)
        self._optimizer = torch.optim.SGD(self._model.parameters(), lr=0.01, momentum=0.9)

    def _loss(self) -> torch.Tensor:
        if self._data is None:
            return self._model()
        x, y = self._data(self._random)
        return torch.nn.functional.cross_entropy(self._model(x), y)

    def turn(self, steps: int) -> float:
        """Seconds per step."""
        as_gloo(self.name == "gloo")
        began = time.perf_counter()
        for _ in range(steps):
            self._optimizer.zero_grad()
            self._loss().backward()
            self._optimizer.step()
        seconds = (time.perf_counter() - began) / steps
        as_gloo(False)
        return seconds

    def weights(self) -> torch.Tensor:
        """All of them, in one vector."""
        return torch.cat([p.detach().flatten() for p in self._model.parameters()])


def check_same(a: torch.Tensor, b: torch.Tensor) -> None:
    """Both have seen the same batches."""
    apart = ((a - b).norm() / a.norm().clamp(min=1)).item()
    if not apart < APART:
        raise RuntimeError(f"weights on Gloo and on riffle are {apart:.2g} apart")


def run(model: str, turns: int, steps: int) -> dict[str, list[float]]:
    """Seconds per step of every turn, by contender."""
    torch.set_num_threads(1)
    dist.init_process_group("riffle", timeout=TIMEOUT)
    as_gloo(True)
    gloo = dist.new_group(backend="gloo", timeout=TIMEOUT)
    as_gloo(False)
    groups = {"gloo": gloo, "riffle": None, "alone": None}
    contenders = [Contender(name, model, groups[name]) for name in CONTENDERS]
    for contender in contenders:
        contender.turn(WARM_UP)
    times: dict[str, list[float]] = {name: [] for name in CONTENDERS}
    for turn in range(turns):
        first = turn % len(contenders)
        for contender in contenders[first:] + contenders[:first]:
            dist.barrier()
            times[contender.name].append(contender.turn(steps))
    check_same(contenders[0].weights(), contenders[1].weights())
    dist.barrier()  # nobody leaves while another still exchanges with it
    return times


def main() -> None:
    """Raises where it fails."""
    parser = argparse.ArgumentParser(prog="riffle.bench.ddp_worker")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--model", required=True, help="cnn, gpt, deepfm or a trace")
    parser.add_argument("--turns", type=int, required=True)
    parser.add_argument("--steps", type=int, required=True)
    given = parser.parse_args()
    times = run(given.model, given.turns, given.steps)
    write_whole(given.folder / f"rank{dist.get_rank()}.json", json.dumps(times).encode())
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
