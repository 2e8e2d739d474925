"""A BERT-style encoder: masked characters are guessed from both sides; delayed averaging (dasgd).

    torchrun --nproc-per-node 4 bert.py         (or mpirun, srun, riffle launch, or plain python)

Averages travel while the next steps are computed, so nobody waits for the network. It also shows
parameter groups and gradient accumulation.
"""

import argparse

import torch
from torch import nn

import riffle
from riffle.tasks.chars import CHARS, CONTEXT, SYMBOLS
from riffle.train.batches import Batches, share

MASK = SYMBOLS  # one symbol more


class Encoder(nn.Module):
    """Embeddings, two layers of torch's own transformer, scores of every symbol."""

    def __init__(self, width: int = 64) -> None:
        super().__init__()
        self.symbols = nn.Embedding(SYMBOLS + 1, width)
        self.places = nn.Parameter(0.02 * torch.randn(CONTEXT, width))
        layer = nn.TransformerEncoderLayer(
            width, 4, 4 * width, dropout=0.0, activation="gelu", batch_first=True, norm_first=True
        )
        self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.scores = nn.Linear(width, SYMBOLS)

    def forward(self, text: torch.Tensor) -> torch.Tensor:
        """(batch, time) to (batch, time, SYMBOLS)."""
        return self.scores(self.layers(self.symbols(text) + self.places))


def masked_loss(model: nn.Module, text: torch.Tensor, random: torch.Generator) -> torch.Tensor:
    """Cross-entropy of a seventh of the symbols, which the model does not see."""
    hidden = torch.rand(text.shape, generator=random) < 0.15
    scores = model(text.masked_fill(hidden, MASK))
    return nn.functional.cross_entropy(scores[hidden], text[hidden])


parser = argparse.ArgumentParser()
parser.add_argument("--strategy", default="dasgd:tau=4,delay=1")
parser.add_argument("--steps", type=int, default=200)
arguments = parser.parse_args()

torch.manual_seed(0)
data = CHARS.load("synthetic", seed=0)
model = Encoder()
plain = [p for p in model.parameters() if p.ndim == 1]
decayed = [p for p in model.parameters() if p.ndim > 1]
optimizer = torch.optim.AdamW(
    [{"params": decayed, "weight_decay": 0.01}, {"params": plain, "weight_decay": 0.0}], lr=3e-3
)

with riffle.sync(model, optimizer, strategy=arguments.strategy) as session:
    batches = Batches(data.train, 8, session.rank, session.size, seed=0)
    random = torch.Generator().manual_seed(session.rank)
    for step in range(arguments.steps):
        optimizer.zero_grad()
        with session.no_sync():
            masked_loss(model, batches.at(2 * step)[0], random).backward()
        masked_loss(model, batches.at(2 * step + 1)[0], random).backward()
        optimizer.step()

if session.rank == 0:
    model.eval()
    text = next(share(data.test, 0, 8))[0]
    with torch.no_grad():
        loss = masked_loss(model, text, torch.Generator().manual_seed(99))
    print(f"{session.size} workers: perplexity of hidden characters {loss.exp():.2f}")
