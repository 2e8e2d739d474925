"""A BERT-style encoder that tells four generated languages apart; delayed averaging (dasgd).

    torchrun --nproc-per-node 4 bert.py         (or mpirun, srun, riffle launch, or plain python)

Averages travel while the next steps are computed, so nobody waits for the network. It also shows
parameter groups and gradient accumulation.
"""

import argparse

import torch
from torch import nn

import riffle
from riffle.tasks.chars import CHARS, CONTEXT, SYMBOLS

LANGUAGES = 4


class Encoder(nn.Module):
    """Embeddings, two layers of torch's own transformer, a score for each language."""

    def __init__(self, width: int = 48) -> None:
        super().__init__()
        self.symbols = nn.Embedding(SYMBOLS, width)
        self.places = nn.Parameter(0.1 * torch.randn(CONTEXT, width))
        layer = nn.TransformerEncoderLayer(
            width, 4, 4 * width, dropout=0.0, activation="gelu", batch_first=True, norm_first=True
        )
        self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.scores = nn.Linear(width, LANGUAGES)

    def forward(self, text: torch.Tensor) -> torch.Tensor:
        """(batch, CONTEXT) to (batch, LANGUAGES)."""
        return self.scores(self.layers(self.symbols(text) + self.places).mean(1))


parser = argparse.ArgumentParser()
parser.add_argument("--strategy", default="dasgd:tau=4,delay=1")
parser.add_argument("--steps", type=int, default=60)
arguments = parser.parse_args()

torch.manual_seed(0)
texts = [CHARS.load("synthetic", seed=language).train for language in range(LANGUAGES)]


def batch(count: int, random: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
    """Pieces of text and their languages."""
    labels = torch.arange(count) % LANGUAGES
    place = torch.randint(0, len(texts[0]) // 2, (count,), generator=random)
    pieces = [texts[k].take(place[i : i + 1])[0] for i, k in enumerate(labels.tolist())]
    return torch.cat(pieces), labels


model = Encoder()
plain = [p for p in model.parameters() if p.ndim == 1]
decayed = [p for p in model.parameters() if p.ndim > 1]
optimizer = torch.optim.AdamW(
    [{"params": decayed, "weight_decay": 0.01}, {"params": plain, "weight_decay": 0.0}], lr=3e-3
)
loss_of = nn.CrossEntropyLoss()

with riffle.sync(model, optimizer, strategy=arguments.strategy) as session:
    random = torch.Generator().manual_seed(1 + session.rank)
    for _ in range(arguments.steps):
        optimizer.zero_grad()
        first, second = batch(8, random), batch(8, random)
        with session.no_sync():
            (loss_of(model(first[0]), first[1]) / 2).backward()
        (loss_of(model(second[0]), second[1]) / 2).backward()
        optimizer.step()

if session.rank == 0:
    x, y = batch(400, torch.Generator().manual_seed(0))
    model.eval()
    with torch.no_grad():
        accuracy = (model(x).argmax(1) == y).float().mean()
    print(f"{session.size} workers: {accuracy:.1%} of the texts recognized")
