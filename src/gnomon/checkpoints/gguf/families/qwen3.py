"""Qwen3: Llama with RMSNorm on queries and keys."""

from gnomon.checkpoints.gguf.family import LLAMA, PLAIN, Family

FAMILY = Family("qwen3", "rope", {**LLAMA, **PLAIN, "qk_norm": True}, widths=True)

__all__ = ["FAMILY"]
