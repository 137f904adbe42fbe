"""StarCoder2: GPT-2 with rotary positions."""

from gnomon.checkpoints.gguf.family import GPT, Family

FAMILY = Family("starcoder2", "rope", GPT)

__all__ = ["FAMILY"]
