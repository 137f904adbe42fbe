"""Laws of batches: padding, packing and the other rows change nothing."""

import torch

from gnomon.audit.outside.rule import Evidence, rule
from gnomon.audit.outside.target import Target
from gnomon.shapes import Bool, Float, Int


def alone(t: Target, ids: Int, mask: Bool) -> Float:
    """Logits (B, T, V) of each row's real tokens by themselves, put back in their places; 0 at padding."""
    rows = [t.logits(ids[b, mask[b]][None])[0] for b in range(len(ids))]
    out = rows[0].new_zeros(*ids.shape, rows[0].shape[-1])
    for b, row in enumerate(rows):
        out[b, mask[b]] = row
    return out


def real(x: Float, mask: Bool) -> Float:
    """x (B, T, V) with 0 at padding: what stands there is nobody's business."""
    return x.masked_fill(~mask[..., None], 0.0)


@rule(
    "left padding changes nothing",
    source="GPT-2's positions counted in slots; padding seen by its neighbours",
    hint="positions must be counted in real tokens, cumsum(mask) - 1, and padding must be masked out as a key",
)
def left_padding(t: Target, n: int) -> Evidence:
    """A row padded on the left gives the logits of the row alone."""
    t.need("mask")
    missing = torch.tensor([[0], [1], [max(1, n // 2)]], device=t.device)
    mask = torch.arange(n + 1, device=t.device) >= missing
    ids = t.ids(3, n + 1)
    return Evidence(real(t.logits(ids, mask=mask), mask), alone(t, ids, mask), real(t.logits(ids), mask), ids)


__all__ = ["alone", "left_padding", "real"]
