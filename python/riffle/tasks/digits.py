"""digits: which digit is it? MNIST, or generated glyphs of the same shape."""

import struct
from pathlib import Path

import torch
from torch import Tensor, nn

from riffle._core import UsageError
from riffle.data import fetch
from riffle.data.sets import MNIST
from riffle.tasks.task import (
    Loaded,
    Table,
    Task,
    classification_loss,
    classification_result,
    generator,
    measure_classification,
    momentum,
)

SIDE = 28
CLASSES = 10


def cnn() -> nn.Module:
    """Two convolutions and a linear layer, 20 746 weights."""
    return nn.Sequential(
        nn.Conv2d(1, 16, 5, stride=2, padding=2),
        nn.ReLU(),
        nn.Conv2d(16, 32, 3, stride=2, padding=1),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(32 * 7 * 7, CLASSES),
    )


def mlp() -> nn.Module:
    """784-64-10, the model of the accuracy studies."""
    return nn.Sequential(
        nn.Flatten(), nn.Linear(SIDE * SIDE, 64), nn.ReLU(), nn.Linear(64, CLASSES)
    )


def _prepare(pixels: Tensor) -> Tensor:
    return (pixels.float().unsqueeze(1) / 255 - 0.1307) / 0.3081  # MNIST's mean and deviation


def read_idx(path: Path) -> Tensor:
    """A file in MNIST's format: two zero bytes, type (8: bytes), rank, sizes, values."""
    content = path.read_bytes()
    if len(content) < 4 or content[:3] != b"\0\0\x08":
        raise UsageError(f"{path}: is no idx file of bytes")
    rank = content[3]
    start = 4 + 4 * rank
    if len(content) < start:
        raise UsageError(f"{path}: cut off in its head")
    sizes = struct.unpack(f">{rank}I", content[4:start])
    values = torch.frombuffer(bytearray(content[start:]), dtype=torch.uint8)
    if values.numel() != torch.Size(sizes).numel():
        raise UsageError(f"{path}: {values.numel()} values, its head says {tuple(sizes)}")
    return values.view(sizes)


def _mnist(files: dict[str, Path]) -> Loaded:
    def part(name: str) -> Table:
        images = read_idx(files[f"{name}-images-idx3-ubyte"])
        labels = read_idx(files[f"{name}-labels-idx1-ubyte"])
        return Table(images, labels.long(), _prepare)

    return Loaded(part("train"), part("t10k"), "MNIST")


def _glyphs(seed: int, count: int, stream: int) -> Table:
    """Ten smooth random shapes, each moved, dimmed and covered with noise."""
    shapes = torch.rand(CLASSES, 1, 5, 5, generator=generator(seed, 0))
    shapes = nn.functional.interpolate(shapes, size=(20, 20), mode="bicubic").clamp(0, 1)
    shapes = torch.where(shapes > 0.5, shapes, torch.zeros(())).squeeze(1)
    random = generator(seed, stream)
    labels = torch.randint(0, CLASSES, (count,), generator=random)
    moves = torch.randint(0, SIDE - 20 + 1, (count, 2), generator=random)
    light = 0.4 + 0.6 * torch.rand(count, 1, 1, generator=random)
    images = 0.5 * torch.rand(count, SIDE, SIDE, generator=random)
    rows, columns = (moves[:, i, None] + torch.arange(20) for i in (0, 1))
    each = torch.arange(count)[:, None, None]
    images[each, rows[:, :, None], columns[:, None, :]] += light * shapes[labels]
    return Table((images.clamp(0, 1) * 255).to(torch.uint8), labels, _prepare)


def load(data: str, seed: int) -> Loaded:
    """MNIST ("real"), generated glyphs ("synthetic"), or the four idx files of a folder."""
    if data == "synthetic":
        return Loaded(_glyphs(seed, 20_000, 1), _glyphs(seed, 4_000, 2), "generated glyphs")
    if data == "real":
        return _mnist(fetch(MNIST))
    files = {file.name: Path(data) / file.name for file in MNIST.files}
    for path in files.values():
        if not path.is_file():
            raise UsageError(f"{path}: is missing; digits needs {', '.join(files)}")
    return _mnist(files)


DIGITS = Task(
    name="digits",
    summary="handwritten digits, small CNN (or mlp)",
    metric="accuracy",
    higher_is_better=True,
    models={"cnn": cnn, "mlp": mlp},
    optimizer=momentum,
    learning_rate=0.05,
    batch=32,
    steps=None,
    epochs=2,
    load=load,
    loss=classification_loss,
    measure=measure_classification,
    result=classification_result,
)
