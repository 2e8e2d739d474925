"""Small models of three kinds for benchmarks, with random data of their shapes."""

import torch

BATCH = 16


class SmallGpt(torch.nn.Module):
    """Four layers of width 128 over 96 characters."""

    def __init__(self):
        super().__init__()
        self.embedding = torch.nn.Embedding(96, 128)
        layer = torch.nn.TransformerEncoderLayer(128, 4, 512, 0.0, batch_first=True)
        self.body = torch.nn.TransformerEncoder(layer, 4, enable_nested_tensor=False)
        self.head = torch.nn.Linear(128, 96)
        self.register_buffer("mask", torch.nn.Transformer.generate_square_subsequent_mask(64))

    def forward(self, tokens):
        return self.head(self.body(self.embedding(tokens), mask=self.mask)).flatten(0, 1)


class DeepFm(torch.nn.Module):
    """26 fields, 10 000 values each, embeddings of 10, three layers of 400."""

    def __init__(self):
        super().__init__()
        self.first = torch.nn.Embedding(260_000, 1)
        self.embedding = torch.nn.Embedding(260_000, 10)
        widths = [260, 400, 400, 400]
        layers = [
            m
            for a, b in zip(widths, widths[1:], strict=False)
            for m in (torch.nn.Linear(a, b), torch.nn.ReLU())
        ]
        self.deep = torch.nn.Sequential(*layers, torch.nn.Linear(400, 1))

    def forward(self, fields):
        e = self.embedding(fields)
        pairs = 0.5 * (e.sum(1) ** 2 - (e**2).sum(1)).sum(1, keepdim=True)
        logit = self.first(fields).sum(1) + pairs + self.deep(e.flatten(1))
        return torch.cat([-logit, logit], 1)


def cnn():
    layers = []
    for a, b in ((1, 32), (32, 64), (64, 128)):
        layers += [torch.nn.Conv2d(a, b, 3, padding=1), torch.nn.ReLU(), torch.nn.MaxPool2d(2)]
    return torch.nn.Sequential(
        *layers,
        torch.nn.Flatten(),
        torch.nn.Linear(1152, 512),
        torch.nn.ReLU(),
        torch.nn.Linear(512, 10),
    )


def cnn_data(random):
    return torch.randn(BATCH, 1, 28, 28, generator=random), torch.randint(
        0, 10, (BATCH,), generator=random
    )


def gpt_data(random):
    text = torch.randint(0, 96, (4, 65), generator=random)
    return text[:, :-1], text[:, 1:].flatten()


def deepfm_data(random):
    fields = torch.randint(0, 10_000, (64, 26), generator=random) + torch.arange(26) * 10_000
    return fields, torch.randint(0, 2, (64,), generator=random)


MODELS = {"cnn": (cnn, cnn_data), "gpt": (SmallGpt, gpt_data), "deepfm": (DeepFm, deepfm_data)}
