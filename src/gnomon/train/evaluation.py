"""How well a model guesses held-out text: nats per token, perplexity, and bits per byte, fair to any tokenizer."""

import math
from dataclasses import dataclass

import torch
from torch import nn

from gnomon.data import EvalWindows, bits_per_byte
from gnomon.generate import evaluating
from gnomon.train.loss import window_loss
from gnomon.train.step import mixed


@dataclass(frozen=True)
class Evaluation:
    """What a model paid for some text."""

    nats: float  # over all targets
    targets: int
    n_bytes: int  # of UTF-8 that the targets stand for

    @property
    def loss(self) -> float:
        """Nats per token: the mean over all targets, whatever batches they came in."""
        return self.nats / self.targets

    @property
    def perplexity(self) -> float:
        """exp(loss)."""
        return math.exp(self.loss) if self.loss < 700 else math.inf

    @property
    def bits_per_byte(self) -> float:
        """Bits per UTF-8 byte of the text: comparable between tokenizers."""
        return bits_per_byte(self.nats, self.n_bytes)

    def as_metrics(self) -> dict[str, float]:
        """The three numbers under the names they have in metrics.jsonl."""
        return {
            "valid_loss": self.loss,
            "valid_perplexity": self.perplexity,
            "valid_bits_per_byte": self.bits_per_byte,
        }

    def __str__(self) -> str:
        return f"loss {self.loss:.4f}, perplexity {self.perplexity:.2f}, {self.bits_per_byte:.4f} bits per byte"


@torch.no_grad()
def evaluate(
    model: nn.Module, windows: EvalWindows, batch_size: int = 32, dtype: torch.dtype = torch.float32
) -> Evaluation:
    """Measure a model on windows of text, without dropout; the model comes back in the mode it was in."""
    device = next(model.parameters()).device
    nats, targets = 0.0, 0
    with evaluating(model):
        for start in range(0, len(windows.ids), batch_size):
            ids = torch.from_numpy(windows.ids[start : start + batch_size].astype("int64")).to(device)
            with mixed(device, dtype):
                loss = window_loss(model, ids)
            nats, targets = nats + loss.total.item(), targets + int(loss.count)
    return Evaluation(nats, targets, int(windows.n_bytes.sum()))


__all__ = ["Evaluation", "evaluate"]
