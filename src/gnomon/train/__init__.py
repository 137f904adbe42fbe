"""Training: loss, optimizer, schedule and the loop."""

from gnomon.train.loss import Loss, cross_entropy, next_token_loss
from gnomon.train.optim import adamw
from gnomon.train.schedule import warmup_cosine

__all__ = ["Loss", "adamw", "cross_entropy", "next_token_loss", "warmup_cosine"]
