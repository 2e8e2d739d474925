"""images: ten classes of 32 x 32 colour pictures, WideResNet. CIFAR-10 where the user points to
its binary files, else generated textures."""

from pathlib import Path

import torch
from torch import Tensor, nn

from riffle._core import UsageError
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

SIDE = 32
CLASSES = 10
RECORD = 1 + 3 * SIDE * SIDE  # CIFAR-10: label, then planes of red, green, blue


class WideBlock(nn.Module):
    """Two convolutions with BatchNorm before them, and a way around."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.norm1 = nn.BatchNorm2d(inputs)
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.norm2 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        same = inputs == outputs and stride == 1
        self.around = None if same else nn.Conv2d(inputs, outputs, 1, stride, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """Half the side where stride is 2."""
        active = torch.relu(self.norm1(x))
        y = self.conv2(torch.relu(self.norm2(self.conv1(active))))
        return y + (x if self.around is None else self.around(active))


def wide_resnet(depth: int = 10, widen: int = 1) -> nn.Module:
    """WRN-depth-widen; depth is 6n + 4."""
    blocks = (depth - 4) // 6
    layers: list[nn.Module] = [nn.Conv2d(3, 16, 3, padding=1, bias=False)]
    inputs = 16
    for stage, outputs in enumerate((16 * widen, 32 * widen, 64 * widen)):
        for i in range(blocks):
            layers.append(WideBlock(inputs, outputs, 2 if stage > 0 and i == 0 else 1))
            inputs = outputs
    head = [nn.BatchNorm2d(inputs), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten()]
    return nn.Sequential(*layers, *head, nn.Linear(inputs, CLASSES))


def wrn_16_2() -> nn.Module:
    """Depth 16, twice as wide: 0.7 million weights."""
    return wide_resnet(16, 2)


def _prepare(pixels: Tensor) -> Tensor:
    return (pixels.float() / 255 - 0.47) / 0.25


def _textures(seed: int, count: int, stream: int) -> Table:
    """Waves of a direction, length and colour for each class, with a random phase, in noise."""
    own = generator(seed, 0)
    angle = torch.arange(CLASSES) * torch.pi / CLASSES
    length = 3 + 6 * torch.rand(CLASSES, generator=own)
    colour = torch.rand(CLASSES, 3, generator=own)
    random = generator(seed, stream)
    labels = torch.randint(0, CLASSES, (count,), generator=random)
    turn = angle[labels] + 0.15 * torch.randn(count, generator=random)
    place = torch.arange(SIDE, dtype=torch.float32)
    along = turn.cos().view(-1, 1, 1) * place.view(1, 1, -1)
    along = along + turn.sin().view(-1, 1, 1) * place.view(1, -1, 1)
    phase = 2 * torch.pi * torch.rand(count, 1, 1, generator=random)
    wave = torch.sin(2 * torch.pi * along / length[labels].view(-1, 1, 1) + phase)
    tint = colour[labels] + 0.3 * torch.randn(count, 3, generator=random)
    images = 0.5 + 0.2 * wave.unsqueeze(1) * tint.view(-1, 3, 1, 1)
    images = images + 0.25 * torch.randn(count, 3, SIDE, SIDE, generator=random)
    return Table((images.clamp(0, 1) * 255).to(torch.uint8), labels, _prepare)


def _cifar(folder: Path, names: list[str]) -> Table:
    parts = []
    for name in names:
        path = folder / name
        if not path.is_file():
            raise UsageError(f"{path}: is missing; images takes CIFAR-10's binary version")
        content = path.read_bytes()
        if not content or len(content) % RECORD:
            raise UsageError(f"{path}: {len(content)} bytes are no whole records of {RECORD}")
        parts.append(torch.frombuffer(bytearray(content), dtype=torch.uint8).view(-1, RECORD))
    records = torch.cat(parts)
    if records[:, 0].max() >= CLASSES:
        raise UsageError(f"{folder}: a label above {CLASSES - 1}; is it CIFAR-100?")
    return Table(records[:, 1:].reshape(-1, 3, SIDE, SIDE), records[:, 0].long(), _prepare)


def load(data: str, seed: int) -> Loaded:
    """Textures, or the folder of CIFAR-10's binary files."""
    if data in ("real", "synthetic"):
        return Loaded(_textures(seed, 8_000, 1), _textures(seed, 2_000, 2), "generated textures")
    folder = Path(data)
    train = _cifar(folder, [f"data_batch_{i}.bin" for i in range(1, 6)])
    return Loaded(train, _cifar(folder, ["test_batch.bin"]), "CIFAR-10")


IMAGES = Task(
    name="images",
    summary="colour pictures, WideResNet",
    metric="accuracy",
    higher_is_better=True,
    models={"wrn-10-1": wide_resnet, "wrn-16-2": wrn_16_2},
    optimizer=momentum,
    learning_rate=0.1,
    batch=16,
    steps=None,
    epochs=3,
    load=load,
    loss=classification_loss,
    measure=measure_classification,
    result=classification_result,
)
