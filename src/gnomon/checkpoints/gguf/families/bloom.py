"""BLOOM: ALiBi, and a norm over the token vectors."""

from gnomon.checkpoints.gguf.family import GPT, QKV, Family

FAMILY = Family("bloom", "alibi", {**GPT, "input_norm": "layernorm"}, fused=QKV)

__all__ = ["FAMILY"]
