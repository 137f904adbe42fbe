"""GPT-2: learned positions."""

from gnomon.checkpoints.gguf.family import GPT, QKV, Family

FAMILY = Family("gpt2", "learned", GPT, fused=QKV)

__all__ = ["FAMILY"]
