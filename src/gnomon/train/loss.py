"""Next-token loss. Labels are shifted once, here; which tokens have one is read from the Layout, not from the ids.

    loss = sum over targets of -log p(id[t+1] | id[..t]);   the mean is over targets, never over rows or batches

So an end-of-text id that doubles as padding is still a target where the text really ends, no row teaches another, and
losses of batches with different numbers of targets add up.
"""

from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional as F

from gnomon.errors import BadValue
from gnomon.layout import Layout
from gnomon.shapes import Bool, Float, Int

IGNORE = -100


@dataclass(frozen=True)
class Loss:
    """A sum in nats and how many targets it is over; two of them add up to the loss of both."""

    total: Float  # scalar
    count: Int  # scalar

    @property
    def mean(self) -> Float:
        """Nats per target; 0, with zero gradient, where there is none."""
        return self.total / self.count.clamp(min=1)

    def __add__(self, other: "Loss") -> "Loss":
        return Loss(self.total + other.total, self.count + other.count)

    def detach(self) -> "Loss":
        """The same numbers without their graph."""
        return Loss(self.total.detach(), self.count)


def next_token_labels(ids: Int, at: Layout) -> Int:
    """(B, T) labels: the next token of the same document, IGNORE where there is none (last token, padding)."""
    labels = torch.full_like(ids, IGNORE)
    labels[:, :-1] = torch.where(same_document(at), ids[:, 1:], IGNORE)
    return labels


def same_document(at: Layout) -> Bool:
    """(B, T-1): whether token t+1 continues the document of token t."""
    if at.doc is None:
        return torch.ones_like(at.pos[:, 1:], dtype=torch.bool)
    return (at.doc[:, 1:] == at.doc[:, :-1]) & (at.doc[:, 1:] >= 0)


def cross_entropy(logits: Float, labels: Int) -> Loss:
    """logits (B, T, V) against labels (B, T), IGNORE left out; computed in float32 or wider."""
    logits = logits if logits.dtype == torch.float64 else logits.float()
    total = F.cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=IGNORE, reduction="sum")
    return Loss(total, (labels != IGNORE).sum())


def next_token_loss(logits: Float, ids: Int, at: Layout) -> Loss:
    """The loss of a language model's logits (B, T, V) on the ids (B, T) it read."""
    return cross_entropy(logits, next_token_labels(ids, at))


def window_labels(ids: Int, at: Layout | None = None) -> Int:
    """(B, T) labels for the first T tokens of each row of ids (B, T + 1)."""
    if ids.dim() != 2 or ids.shape[1] < 2:
        raise BadValue(
            f"a training window has at least two tokens, one to read and one to guess; got shape {tuple(ids.shape)}"
        )
    at = Layout.dense(len(ids), ids.shape[1], ids.device) if at is None else at.expand(len(ids))
    return next_token_labels(ids, at)[:, :-1]


def window_loss(model: nn.Module, ids: Int, at: Layout | None = None) -> Loss:
    """The loss of a causal model on windows ids (B, T + 1): it reads the first T of each row, the last is only guessed.

    at: where the tokens sit, (B, T + 1) or one row for all; default 0..T
    """
    labels = window_labels(ids, at)
    return cross_entropy(model(ids[:, :-1], None if at is None else at.tokens(slice(None, -1))), labels)


__all__ = [
    "IGNORE", "Loss", "cross_entropy", "next_token_labels", "next_token_loss", "same_document", "window_labels",
    "window_loss",
]  # fmt: skip
