"""Labelled: rows for an encoder whose head answers once for each token, or once for each row."""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import nn

from gnomon.errors import BadValue
from gnomon.layout import Layout
from gnomon.models import EncoderOnly, Model
from gnomon.shapes import Float, Int
from gnomon.train import Loss, TrainConfig
from gnomon.train.loss import IGNORE, cross_entropy, row_losses
from gnomon.train.task import check_made_for


@dataclass(frozen=True)
class Labelled:
    """Token ids and what is asked about them.

    labels  (B, T), one for each token, or (B, 1), one for each row; IGNORE where nothing is asked
    at      where the tokens sit; None for rows without padding
    """

    ids: Int  # (B, T)
    labels: Int
    at: Layout | None = None
    smoothing: float = 0.0

    @property
    def targets(self) -> int:
        """How many labels there are."""
        return int((self.labels != IGNORE).sum())

    def pieces(self, n: int) -> Iterator["Labelled"]:
        """The rows in `n` runs, or in as many as there are rows."""
        for index in torch.arange(len(self.ids), device=self.ids.device).tensor_split(min(n, len(self.ids))):
            at = None if self.at is None else self.at.rows(index)
            yield Labelled(self.ids[index], self.labels[index], at, self.smoothing)

    def to(self, device: torch.device) -> "Labelled":
        """The same batch on another device."""
        at = None if self.at is None else self.at.to(device)
        return Labelled(self.ids.to(device), self.labels.to(device), at, self.smoothing)

    def logits(self, model: nn.Module) -> Float:
        """(B, T, C) or (B, 1, C)."""
        answers: Float = model(self.ids, self.at)
        return answers if answers.dim() == 3 else answers.unsqueeze(1)

    def loss(self, model: nn.Module) -> Loss:
        """What the model pays for the labels."""
        return cross_entropy(self.logits(model), self.labels, self.smoothing)

    def losses(self, model: nn.Module) -> Loss:
        """The same for each row by itself, (B,)."""
        return row_losses(self.logits(model), self.labels)


def check_encoder(model: Model, made: TrainConfig, config: TrainConfig, head: str, n_tokens: int) -> None:
    """Raise BadValue for a model that is no encoder with this head, or that does not know all tokens of the data."""
    check_made_for(made, config)
    if not isinstance(model, EncoderOnly):
        raise BadValue(f"this task is for an encoder, which sees both ways; the model is {model.architecture}")
    if model.config.head not in head.split(" or "):
        raise BadValue(f"this task needs an encoder with a head of {head}; this one has {model.config.head}")
    if n_tokens > model.config.vocab_size:
        raise BadValue(
            f"the data have {n_tokens} different tokens, but the model knows {model.config.vocab_size}: "
            "build it with its tokenizer's vocab_size"
        )
    model.check(Layout.dense(1, config.length, next(model.parameters()).device))


__all__ = ["Labelled", "check_encoder"]
