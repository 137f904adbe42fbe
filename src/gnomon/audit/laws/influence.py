"""How laws find out what a model sees: what changes when a token does."""

from collections.abc import Callable
from typing import Any

import torch

from gnomon.audit.law import Evidence
from gnomon.audit.target import NotApplicable, Target
from gnomon.shapes import Float, Int


def demand_difference(
    t: Target, a: Float, b: Float, ids: Int | None = None, cause: str | Callable[[], str] = ""
) -> Evidence:
    """Evidence for a law that demands that a (B, ...) and b differ: 1 where they do.

    They are different if they differ by more than the tolerance. If not, fresh weights may be too small to show it: the
    law is not observable. With weights drawn larger, or where they cannot be drawn, logits that differ by no more than
    a few roundings are the same.
    """
    apart, tolerance = float((a - b).abs().nan_to_num().amax()), t.tolerance(b)
    one = torch.ones(1)
    if apart > tolerance:
        return Evidence(one, one, None, ids, 0.5)
    if apart > tolerance / 16 or t.can_redraw:
        return Evidence(one, one, one, ids, 0.5)
    return Evidence(0 * one, one, None, ids, 0.5, cause)


def first_mixing_part(t: Target, ids: Int) -> str:
    """Name and class of the first part without parts that makes other tokens' vectors (B, T, ..) of the last token's,
    as a norm over tokens or a convolution does; "" where tokens meet between parts, as in attention."""
    changed = ids.clone()
    changed[:, -1] = t.other(ids)[:, -1]
    (names, before), (_, after) = calls(t, ids), calls(t, changed)
    for name, (given, gave), (other_given, other_gave) in zip(names, before, after, strict=False):
        apart = [(a != b).flatten(2).any(-1)[:, :-1].any() for a, b in ((given, other_given), (gave, other_gave))]
        if apart[0]:
            return ""
        if apart[1]:
            return f"{name} ({type(t.module.get_submodule(name)).__name__})"
    return ""


def calls(t: Target, ids: Int) -> tuple[list[str], list[tuple[Float, Float]]]:
    """Parts without parts, in the order in which they are called, and what each was given and gave, if (B, T, ..)."""
    names: list[str] = []
    seen: list[tuple[Float, Float]] = []

    def note(name: str) -> Callable[..., None]:
        def hook(_: object, args: tuple[Any, ...], out: Any) -> None:
            if args and all(isinstance(x, torch.Tensor) and x.shape[:-1] == ids.shape for x in (args[0], out)):
                names.append(name)
                seen.append((args[0].detach(), out.detach()))

        return hook

    leaves = [(name, m) for name, m in t.module.named_modules() if name and next(m.children(), None) is None]
    handles = [m.register_forward_hook(note(name)) for name, m in leaves]
    try:
        t.logits(ids)
    finally:
        for handle in handles:
            handle.remove()
    return names, seen


def first_layer(t: Target, ids: Int) -> Float:
    """What the first layer makes of ids (B, T): the input (B, T, D) of the second one; of a single layer the logits."""
    blocks = t.blocks()
    if len(blocks) < t.layers:
        raise NotApplicable(f"the layers of {t.name} share their blocks")
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


def influenced_tokens(t: Target, T: int, source: int, tokens: Int | None = None) -> set[int]:
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


__all__ = ["calls", "demand_difference", "first_layer", "first_mixing_part", "influenced_tokens"]
