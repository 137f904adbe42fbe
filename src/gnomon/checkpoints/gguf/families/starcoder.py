"""StarCoder: GPT-2 in which all heads may share one key."""

from gnomon.checkpoints.gguf.family import GPT, QKV, Family

FAMILY = Family("starcoder", "learned", GPT, fused=QKV, rank=2)

__all__ = ["FAMILY"]
