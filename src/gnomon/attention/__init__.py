"""Attention: one dense meaning, several kernels, and the cache."""

from gnomon.attention.attend import KERNELS, attend, choose, watch
from gnomon.attention.cache import Cache, GrowingCache, PreallocatedCache, RollingCache
from gnomon.attention.cross import CrossAttention
from gnomon.attention.dense import AttentionSettings, Content, dense, masked_softmax, weights
from gnomon.attention.memory import Memory
from gnomon.attention.multihead import MultiHeadAttention

__all__ = [
    "KERNELS",
    "AttentionSettings",
    "Cache",
    "Content",
    "CrossAttention",
    "GrowingCache",
    "Memory",
    "MultiHeadAttention",
    "PreallocatedCache",
    "RollingCache",
    "attend",
    "choose",
    "dense",
    "masked_softmax",
    "watch",
    "weights",
]
