"""chars: the next character of a play, by a small GPT."""

import math
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

from riffle._core import UsageError
from riffle.data import fetch
from riffle.data.sets import PLAYS
from riffle.tasks.task import Batch, Loaded, Task, adamw, generator

CONTEXT = 64
SYMBOLS = 96  # newline and printable ASCII


class Block(nn.Module):
    """Attention over what came before, then a perceptron; both added to the stream."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.perceptron = nn.Sequential(
            nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )

    def forward(self, x: Tensor) -> Tensor:
        """(batch, time, width) to the same."""
        batch, time, width = x.shape
        q, k, v = (
            part.view(batch, time, self.heads, width // self.heads).transpose(1, 2)
            for part in self.qkv(self.norm(x)).split(width, dim=2)
        )
        mixed = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, time, width))
        return x + self.perceptron(x)


class Gpt(nn.Module):
    """Characters in, scores of the next character out; the embedding is also the last layer."""

    def __init__(self, width: int = 96, layers: int = 2, heads: int = 4, dropout: float = 0.05):
        super().__init__()
        self.symbols = nn.Embedding(SYMBOLS, width)
        self.places = nn.Embedding(CONTEXT, width)
        self.dropout = nn.Dropout(dropout)
        self.blocks = nn.Sequential(*(Block(width, heads) for _ in range(layers)))
        self.norm = nn.LayerNorm(width)
        for embedding in (self.symbols, self.places):
            nn.init.normal_(embedding.weight, std=0.05)

    def forward(self, text: Tensor) -> Tensor:
        """(batch, time) to (batch, time, SYMBOLS)."""
        places = torch.arange(text.shape[1], device=text.device)
        x = self.dropout(self.symbols(text) + self.places(places))
        return self.norm(self.blocks(x)) @ self.symbols.weight.T


@dataclass(frozen=True)
class Windows:
    """Pieces of a text, CONTEXT characters each, every `stride` characters."""

    text: Tensor  # of uint8 symbols
    stride: int

    def __len__(self) -> int:
        return (len(self.text) - CONTEXT - 1) // self.stride + 1

    def take(self, indices: Tensor) -> Batch:
        """Windows and the same one character on."""
        piece = self.text[indices[:, None] * self.stride + torch.arange(CONTEXT + 1)].long()
        return piece[:, :-1], piece[:, 1:]


def encode(text: bytes, where: object) -> Tensor:
    """Newline is 0, printable ASCII follows."""
    raw = torch.frombuffer(bytearray(text), dtype=torch.uint8)
    symbols = torch.where(raw == ord("\n"), torch.tensor(31, dtype=torch.uint8), raw) - 31
    if len(raw) < 20 * CONTEXT or symbols.max() >= SYMBOLS:
        raise UsageError(f"{where}: wanted is plain ASCII text of at least {20 * CONTEXT} bytes")
    return symbols


def _words(seed: int, count: int) -> bytes:
    """A language of 50 words in which each word allows only four to follow."""
    random = generator(seed, 7)
    letters = torch.randint(97, 123, (50, 6), generator=random).tolist()
    lengths = torch.randint(2, 7, (50,), generator=random).tolist()
    words = [bytes(each[:length]) for each, length in zip(letters, lengths, strict=True)]
    follow = torch.randint(0, 50, (50, 4), generator=random).tolist()
    word, text = 0, []
    for choice in torch.randint(0, 4, (count,), generator=random).tolist():
        word = follow[word][choice]
        text.append(words[word])
    return b" ".join(text)


def load(data: str, seed: int) -> Loaded:
    """The plays ("real"), a generated language ("synthetic"), or a text file."""
    if data == "synthetic":
        symbols, what = encode(_words(seed, 80_000), "synthetic"), "a generated language"
    elif data == "real":
        path = fetch(PLAYS)["plays.txt"]
        symbols, what = encode(path.read_bytes(), path), "Shakespeare's plays"
    else:
        try:
            symbols, what = encode(Path(data).read_bytes(), data), data
        except OSError as error:
            raise UsageError(f"{data}: {error.strerror}; chars takes a text file") from None
    # The last twentieth is for the test; at most 2000 windows of it.
    cut = len(symbols) - len(symbols) // 20
    test = symbols[cut : cut + 2000 * CONTEXT + 1]
    return Loaded(Windows(symbols[:cut], CONTEXT // 4), Windows(test, CONTEXT), what)


def loss(model: nn.Module, batch: Batch) -> Tensor:
    """Mean cross-entropy per character."""
    return nn.functional.cross_entropy(model(batch[0]).flatten(0, 1), batch[1].flatten())


def measure(model: nn.Module, batch: Batch) -> Tensor:
    """Sums: cross-entropy, characters."""
    scores = model(batch[0]).flatten(0, 1)
    total = nn.functional.cross_entropy(scores, batch[1].flatten(), reduction="sum")
    return torch.stack([total.double(), torch.tensor(float(batch[1].numel()))])


def result(sums: Tensor) -> dict[str, float]:
    """Loss and perplexity per character."""
    total, count = sums.tolist()
    return {"loss": total / count, "perplexity": math.exp(min(total / count, 50.0))}


CHARS = Task(
    name="chars",
    summary="next character of plays, small GPT",
    metric="perplexity",
    higher_is_better=False,
    models={"gpt": Gpt},
    optimizer=adamw,
    learning_rate=3e-3,
    batch=8,
    steps=400,
    epochs=1,
    load=load,
    loss=loss,
    measure=measure,
    result=result,
)
