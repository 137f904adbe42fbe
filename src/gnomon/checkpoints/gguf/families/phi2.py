"""Phi-2: both sublayers behind one norm, a part of each head turns, and a bias for each token."""

from gnomon.checkpoints.gguf.family import GPT, Family

FAMILY = Family(
    "phi2",
    "rope",
    {**GPT, "residual": "one norm", "head_bias": True},
    partial=True,
    tied=False,
)

__all__ = ["FAMILY"]
