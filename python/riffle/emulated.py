"""A model that takes a trace's times instead of computing, for labs.

    model = riffle.emulated.Model("resnet50")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with riffle.sync(model, optimizer, model.strategy("ddp")): ...

A torch module with a module and a parameter per layer of the trace, of the trace's sizes; forward
and backward sleep for the trace's times, layer by layer, so gradients become ready one after the
other as those of the real model do, under any library. In `riffle lab` times are dilated and sizes
shrunk as the lab says, and this worker has the speed, jitter, stragglers and events of the cluster.
"""

import json
import os
import random
import time
from collections.abc import Mapping

import torch

from riffle._core import Layer as Times
from riffle._core import NamedStrategy, Trace, load_trace
from riffle.strategy import make

_AT_ONCE = 1e-4  # seconds; a caller that comes back so soon has waited for nothing


class Device:
    """What takes time: the factor of a step, and sleeping that does not add up its errors."""

    def __init__(self, environment: Mapping[str, str] = os.environ, seed: int = 1):
        self.dilate = float(environment.get("RIFFLE_LAB_DILATE", "1"))
        self.shrink = float(environment.get("RIFFLE_LAB_SHRINK", "1"))
        self.start = int(environment.get("RIFFLE_LAB_START", "0")) * 1e-9
        self.host = int(environment.get("GROUP_RANK", "0"))
        cluster = json.loads(environment.get("RIFFLE_LAB_CLUSTER", "{}"))
        workers = cluster.get("workers", [])
        self.slow = workers[self.host].get("slow", 1.0) if self.host < len(workers) else 1.0
        self.jitter = cluster.get("jitter", 0.0)
        straggle = cluster.get("straggle", {})
        self.straggle = straggle.get("probability", 0.0), straggle.get("factor", 1.0)
        changes = _slow_changes(environment.get("RIFFLE_LAB_EVENTS", ""), self.host)
        self.changes = sorted(changes, key=lambda change: change[0])  # the last one counts
        self.seed = seed
        self.factor = self.slow
        self._returned = 0.0
        self._overslept = 0.0

    def begin_step(self, step: int) -> None:
        """Draws how fast this step is."""
        now = (time.monotonic() - self.start) / self.dilate
        self.factor = self.slow
        for at, slow in self.changes:
            if at <= now:
                self.factor = slow
        draw = random.Random(f"{self.seed}/{self.host}/{step}")
        self.factor *= max(0.05, 1 + self.jitter * draw.gauss(0, 1))
        if draw.random() < self.straggle[0]:
            self.factor *= self.straggle[1]

    def take(self, seconds: float) -> None:
        now = time.monotonic()
        begin = now - self._overslept if now - self._returned < _AT_ONCE else now
        end = begin + seconds * self.factor * self.dilate
        if end > now:
            time.sleep(end - now)
        self._returned = time.monotonic()
        self._overslept = max(0.0, self._returned - end)


def _slow_changes(events: str, host: int):
    """(seconds, factor) of the events that make this worker slow or fast."""
    units = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}
    for event in events.split():
        fields = dict(field.partition("=")[::2] for field in event.split(","))
        if fields.get("worker") != str(host):
            continue
        number = fields["at"].rstrip("nums")
        yield float(number) * units[fields["at"][len(number) :]], float(fields["slow"])


class _Compute(torch.autograd.Function):
    @staticmethod
    def forward(context, value, parameter, layer):  # type: ignore[override]
        context.layer = layer
        layer.device_model.take(layer.times.forward)
        return value.clone()

    @staticmethod
    def backward(context, gradient):  # type: ignore[override]
        layer = context.layer
        layer.device_model.take(layer.times.backward)
        return gradient, layer.gradient(), None


class Layer(torch.nn.Module):
    """One parameter, and the times of a layer."""

    def __init__(self, times: Times, device: Device):
        super().__init__()
        self.times, self.device_model = times, device
        elements = max(1, round(times.elements / device.shrink))
        self.weight = torch.nn.Parameter(torch.zeros(elements))
        self._ones: torch.Tensor | None = None

    def gradient(self) -> torch.Tensor:
        """Ones, made once: making them must not take time of its own."""
        if self._ones is None:
            self._ones = torch.ones(self.weight.shape)
        return self._ones.clone()

    def forward(self, value: torch.Tensor) -> torch.Tensor:
        """The value, later."""
        return _Compute.apply(value, self.weight, self)


class Model(torch.nn.Module):
    """trace: as on the command line, a name or a file; or one that is loaded."""

    def __init__(self, trace: str | Trace, device: Device | None = None):
        super().__init__()
        self.layers = (load_trace(trace) if isinstance(trace, str) else trace).layers
        self.device_model = device or Device()
        self.steps = 0
        for index, times in enumerate(self.layers):
            self.add_module(f"layer{index}", Layer(times, self.device_model))

    def strategy(self, spec: str) -> NamedStrategy:
        """For riffle.sync. Under --shrink its buckets hold the layers that they hold without."""
        elements = [layer.elements for layer in self.layers]
        return make(spec).with_true_sizes(elements, self.device_model.shrink)

    def forward(self, value: torch.Tensor | None = None) -> torch.Tensor:
        """A number to call backward() on."""
        self.device_model.begin_step(self.steps)
        self.steps += 1
        value = torch.zeros(1, requires_grad=True) if value is None else value
        for layer in self.children():
            value = layer(value)
        return value.sum()
