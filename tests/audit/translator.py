"""A small encoder-decoder as tutorials write it: masks made from the padding id, sinusoids counted in slots."""

import torch
from torch import nn
from torch.nn import functional as F

V, D, PAD, PLACES = 23, 16, 1, 64


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.k, self.v, self.o = (nn.Linear(D, D) for _ in range(4))

    def forward(self, x, y, visible):
        q, k, v = self.q(x), self.k(y), self.v(y)
        scores = (q @ k.mT / D**0.5).masked_fill(~visible, -1e9)
        return self.o(scores.softmax(-1) @ v)


class Block(nn.Module):
    def __init__(self, cross):
        super().__init__()
        self.own, self.cross = Attention(), Attention() if cross else None
        self.norms = nn.ModuleList(nn.LayerNorm(D) for _ in range(3))
        self.ffn = nn.Sequential(nn.Linear(D, 2 * D), nn.ReLU(), nn.Linear(2 * D, D))

    def forward(self, x, visible, memory=None, real=None):
        x = self.norms[0](x + self.own(x, x, visible))
        if self.cross is not None:
            x = self.norms[1](x + self.cross(x, memory, real))
        return self.norms[2](x + self.ffn(x))


class Translator(nn.Module):
    """forward(src, trg) -> logits (B, T, V)."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.source, self.target = nn.Embedding(V, D), nn.Embedding(V, D)
        self.encoder = nn.ModuleList(Block(False) for _ in range(2))
        self.decoder = nn.ModuleList(Block(True) for _ in range(2))
        self.head = nn.Linear(D, V)
        angles = torch.arange(PLACES)[:, None] * 100.0 ** (-torch.arange(0, D, 2) / D)
        self.register_buffer("places", torch.cat([angles.sin(), angles.cos()], -1))

    def forward(self, src, trg):
        return self.read(src, trg, src != PAD, trg != PAD)

    def order(self, T):
        """Which of the target's tokens come late enough for which (T, T)."""
        return torch.ones(T, T, dtype=torch.bool).tril()

    def real_target(self, real):
        """Which of the target's tokens are seen by whom (B, 1, T)."""
        return real[:, None]

    def read(self, source, ids, source_real, real):
        T = ids.shape[1]
        memory = self.source(source) + self.places[: source.shape[1]]
        x = self.target(ids) + self.places[:T]
        for block in self.encoder:
            memory = block(memory, source_real[:, None])
        visible = self.real_target(real) & self.order(T)
        for block in self.decoder:
            x = block(x, visible, memory, source_real[:, None])
        return self.head(x)

    def loss(self, source, ids):
        return F.cross_entropy(self(source, ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())


class Unhiding(Translator):
    """Padding of the target is never masked."""

    def real_target(self, real):
        return torch.ones_like(real)[:, None]


class WrongAxis(Translator):
    """Masked along the queries."""

    def real_target(self, real):
        return real[:, :, None]
