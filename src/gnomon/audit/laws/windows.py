"""Laws of the sliding window: as wide as it says, with a cache and without one."""

import torch

from gnomon.audit.law import Evidence, law
from gnomon.audit.laws.caches import for_each_cache, read_in_chunks
from gnomon.audit.laws.influence import first_layer, influenced_tokens
from gnomon.audit.laws.order import SHORT
from gnomon.audit.target import NotApplicable, Target

LONGEST = 1100  #: tokens of a text that is still read to reach the edge of a window


def width(t: Target) -> int:
    """Of the window, if there is one that a text of an audit fills."""
    if t.window is None:
        raise NotApplicable(f"{t.name} has no sliding window in every layer")
    if t.window + 4 > LONGEST:
        raise NotApplicable(f"the window of {t.name} is {t.window} tokens wide: too long a text for an audit")
    return t.window


@law(
    "a window is as wide as it says",
    "causal",
    source="Beltagy et al. 2020, section 3.1; Jiang et al. 2023, section 2.1: a window of W tokens includes the token",
    hint="distance < W, not <= W: the window counts the token itself",
    shrinks=False,
)
def a_window_is_as_wide_as_it_says(t: Target, n: int) -> Evidence:
    """In a layer with a window of W tokens, a token sees itself and the W - 1 before it, and no others."""
    W = width(t)
    ids = t.ids(2, W + 3)
    try:
        first_layer(t, ids)
    except (NotApplicable, IndexError) as why:
        raise NotApplicable(f"{t.name} does not show what its first layer makes: {why}") from why
    seen = max(influenced_tokens(t, W + 3, source=0, tokens=ids))
    cause = f"influence reaches {seen} tokens back, so the window is {seen + 1} wide, not {W}"
    return Evidence(torch.tensor([seen + 1.0]), torch.tensor([float(W)]), None, None, 0.5, cause)


@law(
    "windows reach as far as their layers",
    "causal",
    source="Jiang et al. 2023, section 2.1: L layers of a window W reach L (W - 1) tokens back",
    hint="distance < W, not <= W, in every layer",
    shrinks=False,
)
def windows_reach_as_far_as_their_layers(t: Target, n: int) -> Evidence:
    """A token beyond the reach of all layers' windows changes no logits."""
    W = width(t)
    reach = t.layers * (W - 1)
    if reach + 2 > LONGEST:
        raise NotApplicable(f"its {t.layers} windows of {W} reach {reach} tokens back: too long a text for an audit")
    ids = t.ids(1, reach + 2)
    changed = torch.cat([t.other(ids)[:, :1], ids[:, 1:]], 1)
    return Evidence(t.logits(changed)[:, -1:], t.logits(ids)[:, -1:], None, None)


@law(
    "the cache keeps the window",
    "cache",
    "causal",
    source="rolling caches that lose or keep one token too many at the edge, or number tokens by slot",
    hint="a cache of a window keeps the last W - 1 keys before a step, each at the position it was read at",
    shrinks=False,
)
@for_each_cache
def the_cache_keeps_the_window(t: Target, n: int) -> Evidence:
    """Reading on past the width of the window, in steps or chunks, gives the logits of one read at once."""
    W = width(t)
    if W > SHORT:
        raise NotApplicable(f"the window of {t.name} is {W} tokens wide: too many steps for an audit")
    ids = t.ids(1, 2 * W + 3)
    got = torch.cat(
        [read_in_chunks(t, ids, chunks) for chunks in ([1] * (2 * W + 3), [W - 1, 2, W + 1, 1], [W + 1, W + 2])]
    )
    return Evidence(got, t.logits(ids).expand(3, -1, -1), None, None)


__all__ = [
    "a_window_is_as_wide_as_it_says",
    "the_cache_keeps_the_window",
    "windows_reach_as_far_as_their_layers",
]
