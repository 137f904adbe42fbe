"""How laws find out what a model sees: what changes when a token does."""

import torch

from gnomon.audit.outside.rule import Evidence
from gnomon.audit.outside.target import Target
from gnomon.audit.subject import NotApplicable
from gnomon.shapes import Float, Int


def told_apart(t: Target, a: Float, b: Float, ids: Int | None = None, cause: str = "") -> Evidence:
    """Evidence for a law that demands that a (B, ...) and b differ: 1 where they do.

    They are different if they differ by more than the tolerance. If not, fresh weights may be too small to show it: the
    law is not observable. With weights drawn larger, or where they cannot be drawn, logits that differ by no more than
    a few roundings are the same.
    """
    apart, tolerance = float((a - b).abs().nan_to_num().amax()), t.tolerance(b)
    one = torch.ones(1)
    if apart > tolerance:
        return Evidence(one, one, None, ids, 0.5)
    if apart > tolerance / 16 or t.can_be_redrawn:
        return Evidence(one, one, one, ids, 0.5)
    return Evidence(0 * one, one, None, ids, 0.5, cause)


def first_layer(t: Target, ids: Int) -> Float:
    """What the first layer makes of ids (B, T): the input (B, T, D) of the second one; of a single layer the logits."""
    blocks = t.blocks()
    if len(blocks) < 2:
        return t.logits(ids)
    given: list[Float] = []
    handle = blocks[1].register_forward_pre_hook(lambda _, args: given.append(args[0]))
    try:
        t.logits(ids)
    finally:
        handle.remove()
    x = given[-1]
    return x if x.shape[:2] == ids.shape else x.transpose(0, 1)


def attended_from(t: Target, T: int, source: int, tokens: Int | None = None) -> set[int]:
    """Tokens of a text of T whose outcome changes with the token at `source`: after the first layer, where that can be
    looked at, else in the logits."""
    ids = t.ids(2, T) if tokens is None else tokens
    changed = ids.clone()
    changed[:, source] = t.other(ids)[:, source]
    try:
        before, after = first_layer(t, ids), first_layer(t, changed)
    except (NotApplicable, IndexError):
        before, after = t.logits(ids), t.logits(changed)
    moved = (after - before).abs().amax(-1).amax(0) > 4 * torch.finfo(t.dtype).eps * before.abs().amax()
    return set(moved.nonzero().flatten().tolist())


__all__ = ["attended_from", "first_layer", "told_apart"]
