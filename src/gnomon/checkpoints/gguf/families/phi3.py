"""Phi-3: Llama with fused projections and LongRoPE."""

from gnomon.checkpoints.gguf.family import GATE_UP, LLAMA, PLAIN, QKV, Family

FAMILY = Family("phi3", "rope", {**LLAMA, **PLAIN}, fused={**QKV, **GATE_UP}, partial=True, longrope=True, rank=2)

__all__ = ["FAMILY"]
