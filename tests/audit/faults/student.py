"""A small GPT, as one writes it after a tutorial: scaled token vectors, rotated queries and keys, a cache, a tied head.

gnomon audit student.py:GPT        the model by itself
gnomon audit student.py:audited    with its cache and its loss
"""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from gnomon.audit import Torch

Past = tuple[Tensor, Tensor]  # keys and values (B, H, S, C) of the tokens read so far


class Embedding(nn.Module):
    """ids (B, T) -> vectors (B, T, D), times sqrt(D)."""

    def __init__(self, vocab: int, d_model: int) -> None:
        super().__init__()
        self.table = nn.Embedding(vocab, d_model)
        self.scale = math.sqrt(d_model)

    def forward(self, ids: Tensor) -> Tensor:
        """Look them up."""
        vectors: Tensor = self.table(ids)
        return vectors * self.scale


def rotated(x: Tensor, positions: Tensor) -> Tensor:
    """x (..., T, C), its pairs of channels turned by position times frequency."""
    half = x.shape[-1] // 2
    angles = positions[:, None] * 10000.0 ** (-torch.arange(half, device=x.device) / half)
    a, b = x.chunk(2, dim=-1)
    return torch.cat([a * angles.cos() - b * angles.sin(), a * angles.sin() + b * angles.cos()], dim=-1)


class Attention(nn.Module):
    """Causal self-attention of several heads."""

    def __init__(self, d_model: int, n_heads: int, dropout: float) -> None:
        super().__init__()
        self.n_heads = n_heads
        self.q, self.k, self.v = (nn.Linear(d_model, d_model, bias=False) for _ in range(3))
        self.o = nn.Linear(d_model, d_model, bias=False)
        self.drop = nn.Dropout(dropout)

    def heads(self, x: Tensor) -> Tensor:
        """(B, T, D) -> (B, H, T, C)."""
        return x.view(*x.shape[:2], self.n_heads, -1).transpose(1, 2)

    def forward(self, x: Tensor, past: Past | None) -> tuple[Tensor, Past]:
        """x (B, T, D) after what was read before -> the same shape, and what has been read by now."""
        T, start = x.shape[1], 0 if past is None else past[0].shape[2]
        positions = torch.arange(start, start + T, device=x.device)
        q, k, v = self.heads(self.q(x)), self.heads(self.k(x)), self.heads(self.v(x))
        q, k = rotated(q, positions), rotated(k, positions)
        if past is not None:
            k, v = torch.cat([past[0], k], dim=2), torch.cat([past[1], v], dim=2)
        visible = torch.ones(T, start + T, dtype=torch.bool, device=x.device).tril(start)
        scores = (q @ k.mT / math.sqrt(q.shape[-1])).masked_fill(~visible, -math.inf)
        y = self.drop(scores.softmax(dim=-1)) @ v
        return self.o(y.transpose(1, 2).flatten(2)), (k, v)


class Block(nn.Module):
    """x + attention(norm(x)), then x + ffn(norm(x))."""

    def __init__(self, d_model: int, n_heads: int, dropout: float) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)
        self.attention = Attention(d_model, n_heads, dropout)
        self.drop = nn.Dropout(dropout)
        wide = 4 * d_model
        self.ffn = nn.Sequential(nn.Linear(d_model, wide), nn.GELU(), nn.Linear(wide, d_model), nn.Dropout(dropout))

    def forward(self, x: Tensor, past: Past | None) -> tuple[Tensor, Past]:
        """x (B, T, D) -> the same shape, and what attention has read."""
        y, past = self.attention(self.norm1(x), past)
        x = x + self.drop(y)
        return x + self.ffn(self.norm2(x)), past


class GPT(nn.Module):
    """ids (B, T) -> logits (B, T, V), and what each block has read."""

    def __init__(
        self, vocab: int = 65, d_model: int = 32, n_heads: int = 4, n_layers: int = 2, dropout: float = 0.1
    ) -> None:
        super().__init__()
        self.embedding = Embedding(vocab, d_model)
        self.drop = nn.Dropout(dropout)
        self.blocks = nn.ModuleList(Block(d_model, n_heads, dropout) for _ in range(n_layers))
        self.norm = nn.LayerNorm(d_model)
        self.head = nn.Linear(d_model, vocab, bias=False)
        nn.init.normal_(self.head.weight, std=0.05)
        self.embedding.table.weight = self.head.weight

    def forward(self, ids: Tensor, pasts: list[Past] | None = None) -> tuple[Tensor, list[Past]]:
        """Read ids after what has been read."""
        x, read = self.drop(self.embedding(ids)), []
        for i, block in enumerate(self.blocks):
            x, past = block(x, None if pasts is None else pasts[i])
            read.append(past)
        return self.head(self.norm(x)), read

    def loss(self, ids: Tensor) -> Tensor:
        """Every token is predicted from those before it."""
        logits, labels = self(ids[:, :-1])[0], ids[:, 1:]
        return F.cross_entropy(logits.flatten(0, 1), labels.flatten())


def audited() -> Torch:
    """The model, how it goes step by step, what it is trained on, and that both its ends are meant to be one matrix."""
    torch.manual_seed(0)
    return Torch(GPT(), tied=True, stepped=lambda gpt, read, ids: gpt(ids, read), loss=lambda gpt, ids: gpt.loss(ids))
