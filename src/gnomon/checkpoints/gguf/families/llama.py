"""Llama, with biases or without, whose queries and keys stand in pairs of neighbours."""

from gnomon.checkpoints.gguf.family import LLAMA, Family

FAMILY = Family("llama", "rope", LLAMA, rows="interleaved", rank=2)

__all__ = ["FAMILY"]
