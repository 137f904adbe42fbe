"""Laws of bare position modules: rotations, biases and tables of vectors (`adapters.positions`)."""

from dataclasses import replace

import torch

from gnomon.audit.adapters.positions import Bare, Bias, Rotation, Table
from gnomon.audit.law import Evidence, law
from gnomon.audit.laws.earlier_calls import Call, accelerators, forgets, modes, with_gradient
from gnomon.audit.target import NotApplicable
from gnomon.shapes import Float, Int

SHIFTS = (1, 7, 100)  #: what positions are moved by
LONG = 512  #: positions of tables and biases that are looked at far away, if they go so far


def vectors(t: Rotation, T: int, stream: int) -> Float:
    """(1, H, T, C), drawn."""
    return torch.randn(1, t.heads, T, t.width, generator=t.rng(stream))


def last_position(t: Bare, least: int) -> int:
    """Positions to look at: LONG, if there are so many."""
    return LONG if t.limit is None else max(min(LONG, t.limit), least)


def rounding_tolerance(like: Float, roundings: float = 1e4) -> float:
    """What float32 tables may be off by: angles of some thousand radians are rounded in the seventh digit."""
    return roundings * torch.finfo(torch.float32).eps * max(1.0, float(like.abs().amax()))


# ---------------------------------------------------------------------- rotations


@law(
    "a rotation keeps lengths",
    Rotation,
    source="Su et al. 2021, arXiv:2104.09864, section 3.2.2: R is orthogonal",
    hint="a pair takes part in one rotation with cos and sin of one angle: look at how channels are paired",
    shrinks=False,
)
def keeps_lengths(r: Rotation, n: int) -> Evidence:
    """Turning a vector changes its length by the promised factor alone."""
    if r.key is not r.turn:
        raise NotApplicable(f"{r.name} scales queries up and keys down")
    x, positions = vectors(r, n, 1), torch.arange(n)
    return Evidence(
        r.turn(x, positions).norm(dim=-1)[0], r.scaled * x.norm(dim=-1)[0], tolerance=rounding_tolerance(x.norm(dim=-1))
    )


@law(
    "position 0 turns nothing",
    Rotation,
    source="Su et al. 2021, arXiv:2104.09864, equation 15",
    hint="positions start at 0",
    shrinks=False,
)
def zero_turns_nothing(r: Rotation, n: int) -> Evidence:
    """A vector at position 0 stays what it is, but for the promised factor."""
    if r.key is not r.turn:
        raise NotApplicable(f"{r.name} scales queries and keys by inverse factors (xPos): scores alone are promised")
    x = vectors(r, 1, 1)
    return Evidence(
        r.turn(x, torch.zeros(1, dtype=torch.long))[0], r.scaled * x[0], 2 * x[0], tolerance=rounding_tolerance(x)
    )


@law(
    "a rotation sees distance only",
    Rotation,
    source="Su et al. 2021, arXiv:2104.09864, equation 16",
    hint="queries and keys must be turned by the same frequencies, each at its own position",
    shrinks=False,
)
def sees_distance_only(r: Rotation, n: int) -> Evidence:
    """Moving query and key by the same amount changes no score."""
    positions = torch.arange(n)
    scores = [_scores(r, n, positions + moved) for moved in (0, *SHIFTS) if r.limit is None or moved + n <= r.limit]
    base = scores[0].expand(len(scores[1:]), -1, -1, -1)
    if not scores[1:]:
        raise NotApplicable(f"{r.name} ends at position {r.limit}")
    still = (vectors(r, n, 1) @ vectors(r, n, 2).mT)[0].expand_as(base)  # what is not turned at all sees no distance
    return Evidence(
        torch.stack(scores[1:]).flatten(0, 1),
        base.flatten(0, 1),
        still.flatten(0, 1),
        tolerance=rounding_tolerance(base),
    )


def _scores(r: Rotation, n: int, positions: Int) -> Float:
    """(H, T, S)"""
    return (r.turn(vectors(r, n, 1), positions) @ r.key(vectors(r, n, 2), positions).mT)[0]


@law(
    "a rotation forgets earlier calls",
    Rotation,
    source="tables kept from a longer call, or one in another dtype or mode; queries in bfloat16 round what is kept",
    hint="a table that is kept must be the one that would be made anew",
    shrinks=False,
)
def rotation_forgets(r: Rotation, n: int) -> Evidence:
    """A call before, longer, elsewhere, in another dtype or mode, changes nothing about a call after it."""
    m = last_position(r, n)
    short, long = vectors(r, n, 1), vectors(r, m, 1)

    def ask() -> Float:
        texts = [with_gradient(x, lambda leaf: r.turn(leaf, torch.arange(leaf.shape[2]))) for x in (short, long)]
        return torch.cat([text.flatten() for text in texts])

    def of(m: int, start: int = 0, dtype: torch.dtype = torch.float32, device: str = "cpu") -> Call:
        there = torch.arange(start, start + m, device=device)
        return lambda: r.turn(vectors(r, m, 3).to(device, dtype), there)

    calls = {f"of {m} tokens": of(m), f"at positions {m - n} to {m - 1}": of(n, m - n), "of one token": of(1)}
    calls |= {f"in {dtype}": of(m, dtype=dtype) for dtype in (torch.bfloat16, torch.float16, torch.float64)}
    calls |= {f"on {device}": of(m, device=device) for device in accelerators()}
    return forgets(r, ask, calls | modes(of(m)), rounding_tolerance(long, 8))


@law(
    "cached keys = whole",
    Rotation,
    source="queries that are turned or scaled from another middle than the keys before them",
    hint="queries at the end of kept keys are the last of as many tokens: their positions, and the scales of xPos, are "
    "those that they have in the whole text",
    shrinks=False,
)
def cached_keys_are_whole(r: Rotation, n: int) -> Evidence:
    """Scores of the last queries against kept keys are those of the whole text, near and far."""
    if r.cached is None:
        raise NotApplicable(f"{r.name} turns no queries beside kept keys")
    got, whole, still = [], [], []
    for length in sorted({n, last_position(r, n)}):
        positions, last = torch.arange(length), 2
        q, k = vectors(r, length, 1), vectors(r, length, 2)
        turned, keys = r.cached(q[:, :, -last:], k)
        got.append((turned @ keys.mT)[0].flatten(1))
        whole.append((r.turn(q, positions)[:, :, -last:] @ r.key(k, positions).mT)[0].flatten(1))
        still.append((r.turn(q[:, :, -last:], positions[:last]) @ r.key(k, positions).mT)[0].flatten(1))
    right = torch.cat(whole, 1)
    return Evidence(torch.cat(got, 1), right, torch.cat(still, 1), tolerance=rounding_tolerance(right))


@law(
    "a rotation keeps its precision",
    Rotation,
    source="EleutherAI/gpt-neox#1003: casting a module rounds its frequencies",
    hint="compute angles in float32 from frequencies that `.to(dtype)` cannot reach, and cast cos and sin alone",
    shrinks=False,
)
def rotation_is_precise(r: Rotation, n: int) -> Evidence:
    """Cast to bfloat16, a module turns far positions by the same angles, but for rounding of what comes out."""
    if r.cast is None:
        raise NotApplicable(f"{r.name} is not cast")
    m = last_position(r, n)
    x, positions = vectors(r, n, 1).bfloat16(), torch.arange(m - n, m)
    got, right = r.cast(torch.bfloat16)(x, positions).float(), r.turn(x.float(), positions)
    return Evidence(got[0], right[0], tolerance=4 * 2.0**-8 * float(x.abs().amax()) * 2)


# ---------------------------------------------------------------------- biases


@law(
    "a bias sees distance only",
    Bias,
    source="Press et al. 2022, arXiv:2108.12409; Raffel et al. 2020, arXiv:1910.10683, section 2.1",
    hint="a bias is a function of query position minus key position",
    shrinks=False,
)
def bias_sees_distance_only(b: Bias, n: int) -> Evidence:
    """Moving query and key by the same amount changes no bias, up to what is the same for all keys of a query."""
    moves = [moved for moved in SHIFTS if b.limit is None or moved + n <= b.limit]
    if not moves:
        raise NotApplicable(f"{b.name} ends at position {b.limit}")
    base = _visible_bias(b, torch.arange(n))
    got = torch.stack([_visible_bias(b, torch.arange(n) + moved) for moved in moves])
    right = base.expand_as(got)
    return Evidence(
        got.flatten(0, 1),
        right.flatten(0, 1),
        torch.zeros_like(right).flatten(0, 1),
        tolerance=rounding_tolerance(base),
    )


def _visible_bias(b: Bias, positions: Int) -> Float:
    """(H, T, S), 0 on the diagonal, which a softmax cannot tell from any other constant of a query; 0 where no key is
    seen."""
    bias = b.of(positions, positions).float()
    bias = bias - bias.diagonal(dim1=-2, dim2=-1)[..., None]
    return bias.tril() if b.behind else bias


@law(
    "a bias forgets earlier calls",
    Bias,
    source="biases kept from a longer call, or one in another mode",
    hint="a table that is kept must be the one that would be made anew",
    shrinks=False,
)
def bias_forgets(b: Bias, n: int) -> Evidence:
    """A call before, longer, elsewhere or in another mode, changes nothing about a call after it."""
    positions, m = torch.arange(n), last_position(b, n)

    def of(first: int, last: int) -> Call:
        return lambda: b.of(torch.arange(first, last), torch.arange(first, last))

    calls = {f"of {m} tokens": of(0, m), f"at positions {m - n} to {m - 1}": of(m - n, m), "of one token": of(0, 1)}
    right = b.of(positions, positions)
    return forgets(b, lambda: b.of(positions, positions).float(), calls | modes(of(0, m)), rounding_tolerance(right, 8))


@law(
    "a bias falls with distance",
    Bias,
    source="Press et al. 2022, arXiv:2108.12409, section 3",
    hint="the slope is negative: -m (i - j), so that far keys get less",
    shrinks=False,
)
def bias_falls(b: Bias, n: int) -> Evidence:
    """The last query's bias never rises from a key to the one behind it, and falls in some head."""
    if not b.falls:
        raise NotApplicable(f"{b.name} does not promise to fall")
    last = torch.tensor([n - 1])
    row = b.of(last, torch.arange(n)).float()[..., -1, :]
    steps = row.diff(dim=-1)  # from a key to the next, which is nearer
    if bool((steps == 0).all()):
        return Evidence(steps, steps + 1, tolerance=0.5, cause="it is the same at all distances")
    rises = "it rises with distance: the sign of the slope is wrong" if bool((steps <= 0).all()) else ""
    return Evidence(steps, steps.clamp(min=0), None, None, rounding_tolerance(row, 8), rises)


@law(
    "a bias is as published",
    Bias,
    source="Press et al. 2022, arXiv:2108.12409; Raffel et al. 2020, arXiv:1910.10683",
    hint="compare slopes head by head, and buckets distance by distance",
    shrinks=False,
)
def bias_as_published(b: Bias, n: int) -> Evidence:
    """A bias is the promised function of positions, up to what is the same for all keys of a query."""
    if b.promised is None:
        raise NotApplicable(f"{b.name} does not say what it promises")
    positions = torch.arange(last_position(b, n))
    twin = Bias(b.name, b.promised, causal=b.behind)
    right = _visible_bias(twin, positions)
    return Evidence(
        _visible_bias(b, positions), right, torch.zeros_like(right), tolerance=rounding_tolerance(right, 64)
    )


# ---------------------------------------------------------------------- tables


@law(
    "a table is as published",
    Table,
    source="Vaswani et al. 2017, section 3.5",
    hint="one exponent 2i/d for the sine and cosine of pair i; sines and cosines side by side or in turn",
    shrinks=False,
)
def table_as_published(table: Table, n: int) -> Evidence:
    """Rows are those that the formula promises, for each position."""
    if table.promised is None:
        raise NotApplicable(f"{table.name} does not say what it promises")
    m = last_position(table, n)
    got, right = table.rows(m).float(), table.promised(m).float()
    permuted = got.shape == right.shape and bool(
        (got.sum(-1) - right.sum(-1)).abs().amax() <= rounding_tolerance(right)
    )
    cause = "the numbers are right, but channels stand in another order" if permuted else ""
    return Evidence(got, right, torch.zeros_like(right), None, rounding_tolerance(right, 1e3), cause)


@law(
    "a longer table begins alike",
    Table,
    source="tables that are scaled to, or kept from, one length",
    hint="a row depends on its position alone",
    shrinks=False,
)
def table_begins_alike(table: Table, n: int) -> Evidence:
    """The rows of a short text are the first ones of a long text's, before and after it was asked for."""
    m = last_position(table, n)
    before = table.rows(n)
    calls = {f"of {m} tokens": lambda: table.rows(m), "of one token": lambda: table.rows(1)}
    found = forgets(
        table, lambda: table.rows(n).float(), calls | modes(lambda: table.rows(m)), rounding_tolerance(before, 4)
    )
    long, right = table.rows(m)[:n].float(), before.float()
    return replace(found, got=torch.cat([found.got, long]), want=torch.cat([found.want, right]))


@law(
    "a table keeps its precision",
    Table,
    source="tables computed in the dtype of a module that was cast",
    hint="compute rows in float32 from frequencies that `.to(dtype)` cannot reach, and cast them at the end",
    shrinks=False,
)
def table_is_precise(table: Table, n: int) -> Evidence:
    """Cast to bfloat16, far rows are the same, but for rounding of what comes out."""
    if table.cast is None:
        raise NotApplicable(f"{table.name} is not cast")
    m = last_position(table, n)
    got, right = table.cast(torch.bfloat16)(m).float(), table.rows(m).float()
    return Evidence(got, right, tolerance=2 * 2.0**-8 * float(right.abs().amax()))


__all__ = [
    "bias_as_published",
    "bias_falls",
    "bias_sees_distance_only",
    "keeps_lengths",
    "rotation_forgets",
    "rotation_is_precise",
    "sees_distance_only",
    "table_as_published",
    "table_begins_alike",
    "table_is_precise",
    "zero_turns_nothing",
]
