"""Laws of places: a position reaches attention, and no two places of a text are one.

That order is seen does not show it. From the second layer on a causal mask alone tells it, since each token has summed
up another beginning (Kazemnejad et al. 2023, arXiv:2305.19466). So attention is looked at block by block: without
positions the last token is given the same whatever the order of those before it.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn

from gnomon.audit.law import Evidence, law
from gnomon.audit.laws.embedding import first_block_input
from gnomon.audit.laws.heads import differing_first_tokens, require_unmixed
from gnomon.audit.target import NotApplicable, Target
from gnomon.shapes import Float, Int

#: names of parts for positions; not "decomposition", "expose" or "property"
POSITIONAL = re.compile(
    r"(?<!com)position|rotary|alibi|sinusoid|(^|[._\d])(pos|w?pe|rope|timing)(?![a-z])|(^|[._])pos_?(emb|enc)",
    re.IGNORECASE,
)
LONGEST = 128  #: tokens of a text whose places are compared


@law(
    "a position reaches attention",
    "causal",
    "module",
    source="Kazemnejad et al. 2023: a causal mask tells order even where no position does",
    hint="the model has a part for positions, but the order of tokens reaches no block: the part is not called, not "
    "added, called with ids or zeros in place of positions",
    shrinks=False,
)
def a_position_reaches_attention(t: Target, n: int) -> Evidence:
    """In some block the last token is given something else when those before it change places."""
    ids = t.ids(2, max(n, 4))
    turned = torch.cat([ids[:, :-1].flip(1), ids[:, -1:]], 1)
    with open_gates(t) as asked:
        first, *others = asked.blocks()
        reached = differ(last_token_after(asked, first, turned), last_token_after(asked, first, ids))
        reached = reached or any(
            differ(last_token_after(asked, b, ids, turned=True), last_token_after(asked, b, ids)) for b in others
        )
        chained = reached or is_a_chain(asked, ids)
        other = torch.cat([t.other(ids)[:, :-1], ids[:, -1:]], 1)
        seen = reached or differ(last_token_after(asked, first, other), last_token_after(asked, first, ids))
    if not seen:
        raise NotApplicable(f"the last token of {t.name} sees none before it: see whether the past is seen")
    if not reached and not (part := positional(t)):
        raise NotApplicable(f"{t.name} has no part that is named after positions: the mask alone tells it order")
    if not chained:
        raise NotApplicable(f"something comes in between the blocks of {t.name}: it may be positions")
    cause = "" if reached else f"{part} is there, but the order of tokens reaches no block"
    return Evidence(torch.tensor(float(reached)), torch.ones(()), None, turned, 0.5, cause)


@contextmanager
def open_gates(t: Target) -> Iterator[Target]:
    """The target with weights drawn anew while a `with` lasts, its gates open: those that begin at 0, as ReZero's do
    (Bachlechner et al. 2021, arXiv:2003.04887), hide all that is behind them."""
    with t.redraw() as asked:
        for weight in asked.module.parameters():
            if weight.dim() < 2 and weight.is_floating_point() and not weight.any():
                weight.data.fill_(0.5)
        yield asked


def positional(t: Target) -> str:
    """Name of a part, weight or buffer that is called after positions; "" where there is none."""
    m = t.module
    names = (name for kind in (m.named_parameters(), m.named_buffers(), m.named_modules()) for name, _ in kind)
    return next((name for name in names if POSITIONAL.search(name)), "")


def last_token_after(t: Target, block: nn.Module, ids: Int, turned: bool = False) -> Float:
    """What a block makes of the last token (B, D), the vectors of those before it in their order or turned round."""
    out: list[Float] = []

    def is_vectors(x: object) -> bool:
        if not isinstance(x, torch.Tensor) or x.dim() != 3 or not x.is_floating_point():
            return False
        return x.shape[:2] == ids.shape and x.shape[2] != ids.shape[1]  # else it may be a mask (B, T, T)

    def turn(_: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        given = dict(enumerate(args)) | kwargs
        at = next((key for key, x in given.items() if is_vectors(x)), None)
        if at is None:
            raise NotApplicable(f"the blocks of {t.name} are given no vectors (B, T, D)")
        given[at] = torch.cat([given[at][:, :-1].flip(1), given[at][:, -1:]], 1)
        return tuple(given[i] for i in range(len(args))), {key: given[key] for key in kwargs}

    def keep(_: nn.Module, args: object, made: Any) -> None:
        out.extend(x for x in (made if isinstance(made, tuple) else (made,))[:1] if is_vectors(x))

    handles = [block.register_forward_hook(keep)]
    if turned:
        handles.append(block.register_forward_pre_hook(turn, with_kwargs=True))
    try:
        t.logits(ids)
    finally:
        for handle in handles:
            handle.remove()
    if not out:
        raise NotApplicable(f"the blocks of {t.name} make no vectors (B, T, D)")
    return out[-1][:, -1]


def is_a_chain(t: Target, ids: Int) -> bool:
    """Whether each block is given what the one before it made."""
    made: list[Any] = []
    chained: list[bool] = []

    def look(_: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        given = (*args, *kwargs.values())
        chained.append(not made or any(isinstance(x, torch.Tensor) and torch.equal(x, made[-1]) for x in given))

    def keep(_: nn.Module, args: object, out: Any) -> None:
        made.append(out[0] if isinstance(out, tuple) else out)

    handles = [block.register_forward_pre_hook(look, with_kwargs=True) for block in t.blocks()]
    handles += [block.register_forward_hook(keep) for block in t.blocks()]
    try:
        t.logits(ids)
    finally:
        for handle in handles:
            handle.remove()
    return all(chained)


def differ(a: Float, b: Float) -> bool:
    """Whether vectors differ by more than roundings."""
    return bool((a - b).abs().amax() > 64 * torch.finfo(b.dtype).eps * b.abs().amax())


@law(
    "no two places are one",
    source="positions taken modulo a number, cut off at one, or halved",
    hint="look for %, clamp or // in what makes positions, and for a table that is shorter than the text",
    shrinks=False,
)
def no_two_places_are_one(t: Target, n: int) -> Evidence:
    """Where positions are added to token vectors, one token is given another vector at each place."""
    T = LONGEST if t.limit is None else min(LONGEST, t.limit)
    require_unmixed(t, differing_first_tokens(t, T))
    ids = t.ids(1, 1).expand(1, T).contiguous()
    x = first_block_input(t, ids)[0].detach().double()
    alike = (x[:, None] - x[None]).abs().amax(-1) <= 1e-6 * x.abs().amax()
    if bool(alike.all()):
        raise NotApplicable(f"{t.name} adds no positions to its token vectors")
    first = alike.int().argmax(1)  # of each place: the first place that is the same
    again = int((first != torch.arange(T, device=first.device)).sum())
    return Evidence(
        torch.tensor(float(again)), torch.zeros(()), None, None, 0.0, _describe_repeats(first) if again else ""
    )


def _describe_repeats(first: Int) -> str:
    """In what way places come again, told by the first place (T) that each is the same as."""
    places = torch.arange(len(first), device=first.device)
    n = int(first.amax()) + 1
    if torch.equal(first, places % n):
        return f"positions come again after {n} tokens: they are taken modulo {n}"
    if torch.equal(first, places.clamp(max=n - 1)):
        return f"all tokens from {n - 1} on stand at one position: positions are cut off there"
    i = int((first != places).int().argmax())
    return f"tokens {int(first[i])} and {i} stand at one position"


__all__ = ["a_position_reaches_attention", "is_a_chain", "no_two_places_are_one", "open_gates"]
