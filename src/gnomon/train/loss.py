"""Next-token loss. Labels are shifted once, here; targets come from the Layout, not from the ids.

    loss = sum over targets of -log p(id[t+1] | id[..t]);   the mean is over targets, never over rows or batches
"""

from typing import NamedTuple

import torch
from torch.nn import functional as F

from gnomon.layout import Layout
from gnomon.shapes import Bool, Float, Int

IGNORE = -100


class Loss(NamedTuple):
    """A sum in nats and how many targets it is over; two of them add up to the loss of both."""

    total: Float  # scalar
    count: Int  # scalar

    @property
    def mean(self) -> Float:
        """Nats per target; 0, with zero gradient, where there is none."""
        return self.total / self.count.clamp(min=1)


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
    """The loss of a language model on its own input."""
    return cross_entropy(logits, next_token_labels(ids, at))


__all__ = ["IGNORE", "Loss", "cross_entropy", "next_token_labels", "next_token_loss", "same_document"]
