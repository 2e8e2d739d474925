"""What is trained: a built-in task with real compute, or a trace whose times are slept."""

import json
from typing import Protocol

import torch
import torch.distributed as dist

from riffle import emulated
from riffle._core import load_trace
from riffle.data import SETS, is_cached
from riffle.peers.race import Race
from riffle.tasks import Loaded, task_named
from riffle.train.batches import Batches, share


class Work(Protocol):
    """The same for every peer; `module` is what it wraps."""

    module: torch.nn.Module
    is_emulated: bool
    shrink: float  # how many times smaller messages are than the model's
    steps: int  # that count

    def optimizer(self, model: torch.nn.Module) -> torch.optim.Optimizer: ...

    def loss(self, model: torch.nn.Module, step: int) -> torch.Tensor: ...

    def compute_seconds(self) -> float | None:
        """What forward, backward and update of the step before took, where they are emulated."""

    def evaluate(self) -> float:
        """The accuracy of the average over all workers, who all call it; of a task."""


class Emulated:
    """A trace."""

    is_emulated = True

    def __init__(self, race: Race) -> None:
        trace = load_trace(str(race.trace))
        self._update = json.loads(trace.to_json()).get("optimizer_step", 0.0)
        self._device = emulated.Device(seed=race.seed)
        self.module = emulated.Model(trace, self._device)
        self._elements = sum(p.numel() for p in self.module.parameters())
        self._compute = trace.compute
        self.shrink = self._device.shrink
        self.steps = race.steps or 0
        self._rate = race.learning_rate or 0.1

    def optimizer(self, model: torch.nn.Module) -> torch.optim.Optimizer:
        """Its share of the time of an update is taken before it."""
        parameters = list(model.parameters())
        seconds = self._update * sum(p.numel() for p in parameters) / self._elements
        optimizer = torch.optim.SGD(parameters, lr=self._rate)
        if seconds > 0:
            optimizer.register_step_pre_hook(lambda *_: self._device.take(seconds))
        return optimizer

    def loss(self, model: torch.nn.Module, step: int) -> torch.Tensor:
        return model()

    def compute_seconds(self) -> float | None:
        return self._compute * self._device.factor * self._device.dilate

    def evaluate(self) -> float:
        raise NotImplementedError("a trace learns nothing")


class Training:
    """A task, with the weights at the start and the batches of `riffle train`."""

    is_emulated = False
    shrink = 1.0

    def __init__(self, race: Race, rank: int, size: int) -> None:
        self._task = task_named(str(race.task))
        self._data = _load(race)
        self._rank, self._size = rank, size
        torch.manual_seed(race.seed)
        self._make = next(iter(self._task.models.values()))
        self.module = self._make()
        torch.manual_seed(race.seed + 7919 * (rank + 1))  # dropout differs by rank
        batch = race.batch or self._task.batch
        self._batches = Batches(self._data.train, batch, rank, size, race.seed)
        epochs = race.epochs or 1
        self.steps = race.steps or max(1, round(epochs * self._batches.per_epoch))
        self._rate = race.learning_rate or self._task.learning_rate

    def optimizer(self, model: torch.nn.Module) -> torch.optim.Optimizer:
        return self._task.optimizer(model, self._rate)

    def loss(self, model: torch.nn.Module, step: int) -> torch.Tensor:
        return self._task.loss(model, self._batches.at(step))

    def compute_seconds(self) -> float | None:
        return None

    def evaluate(self) -> float:
        random = torch.get_rng_state()
        judged = self._make()
        torch.set_rng_state(random)
        judged.load_state_dict(self.averaged())
        judged.eval()
        total: torch.Tensor | float = 0.0
        with torch.no_grad():
            for batch in share(self._data.test, self._rank, self._size):
                total = total + self._task.measure(judged, batch).double()
        return self._task.result(self.summed(torch.as_tensor(total)))[self._task.metric]

    def averaged(self) -> dict[str, torch.Tensor]:
        """The weights to judge."""
        return averaged(self.module)

    def summed(self, values: torch.Tensor) -> torch.Tensor:
        """Over all workers."""
        dist.all_reduce(values)
        return values


def averaged(module: torch.nn.Module) -> dict[str, torch.Tensor]:
    """The average over workers, the module undisturbed."""
    state = {name: tensor.detach().clone() for name, tensor in module.state_dict().items()}
    floats = [tensor for tensor in state.values() if tensor.is_floating_point()]
    together = torch.cat([tensor.flatten().double() for tensor in floats])
    dist.all_reduce(together)
    together /= dist.get_world_size()
    parts = together.split([tensor.numel() for tensor in floats])
    for tensor, part in zip(floats, parts, strict=True):
        tensor.copy_(part.view_as(tensor))
    return state


def _load(race: Race) -> Loaded:
    """`auto`: the real data where it was fetched; a host of a lab has no way out to fetch it."""
    data = race.data
    if data == "auto":
        here = all(is_cached(each) for each in SETS.values() if each.task == race.task)
        data = "real" if here else "synthetic"
    return task_named(str(race.task)).load(data, race.seed)


def work_of(race: Race, rank: int, size: int) -> Work:
    """What the race is about."""
    return Emulated(race) if race.trace is not None else Training(race, rank, size)
