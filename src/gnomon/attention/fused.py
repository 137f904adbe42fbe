"""What fused kernels share: torch's own attention under a mask, and what layers of one forward make only once."""

from collections.abc import Callable
from typing import Any, TypeVar

import torch
from torch.nn import functional as F

from gnomon.layout import Layout
from gnomon.shapes import Float

T = TypeVar("T")


def fused_attention(q: Float, k: Float, v: Float, mask: Float | None, scale: float, dropout: float = 0.0) -> Float:
    """torch's own attention under a mask (B or 1, H or 1, T, S). Of one query (T = 1) the heads that share keys and
    values are rows of one product with them, which spares copies of both."""
    (B, H, n, C), K = q.shape, k.shape[1]
    if K < H:
        assert n == 1
        q = q.reshape(B, K, H // K, C)
        if mask is not None and mask.shape[1] > 1:
            mask = mask.reshape(mask.shape[0], K, H // K, mask.shape[3])
    out = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, dropout_p=dropout, scale=scale)
    return out if K == H else out.reshape(B, H, n, v.shape[3])


def memoize_small(k_at: Layout, at: Layout, key: Any, make: Callable[..., T], *given: Any) -> T:
    """What `make(*given)` is of the layouts of all tokens and of these, or of the newest: once a forward, where a model
    keeps notes. It must be small: it stays until the forward ends, and with gradients as long as these."""
    mine = at is k_at or at is k_at.newest
    if not mine or k_at.notes is None or torch.compiler.is_compiling():
        return make(*given)
    key = (*key, torch.is_grad_enabled())
    if key not in k_at.notes:
        k_at.notes[key] = make(*given)
    return k_at.notes[key]


def memoize(k_at: Layout, at: Layout, key: Any, make: Callable[..., T], *given: Any) -> T:
    """What `make(*given)` is of the layouts of all tokens and of the newest one: once a forward, without gradients.

    Of several new tokens every layer makes it anew: it would be large.
    """
    alone = at is k_at.newest and at.shape[1] == 1
    if not alone or k_at.notes is None or torch.is_grad_enabled() or torch.compiler.is_compiling():
        return make(*given)
    if key not in k_at.notes:
        k_at.notes[key] = make(*given)
    return k_at.notes[key]


__all__ = ["fused_attention", "memoize", "memoize_small"]
