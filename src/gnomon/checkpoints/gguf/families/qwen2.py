"""Qwen2: Llama with biases on queries, keys and values."""

from gnomon.checkpoints.gguf.family import LLAMA, PLAIN, Family

FAMILY = Family("qwen2", "rope", {**LLAMA, **PLAIN, "qkv_bias": True})

__all__ = ["FAMILY"]
