"""Laws of order: who sees whom, and what a position changes."""

import torch

from gnomon.audit.law import Evidence, law
from gnomon.audit.laws.influence import demand_difference, first_mixing_part, influenced_tokens
from gnomon.audit.target import NotApplicable, Target
from gnomon.shapes import Bool, Int

SHORT = 256  #: tokens of a text that every model reads in a moment


@law(
    "causality",
    "causal",
    source="Vaswani et al. 2017, section 3.2.3",
    hint="a query sees keys behind it: look at the side of triu/tril, at <= against <, and whether the mask arrives "
    "where attention is computed",
)
def causality(t: Target, n: int) -> Evidence:
    """Changing a token changes no logits before it."""
    ids = t.ids(2, n + 1)
    changed = ids.clone()
    changed[:, -1:] = t.other(ids)[:, -1:]
    got, want = t.logits(changed)[:, :-1], t.logits(ids)[:, :-1]
    return Evidence(got, want, None, changed, cause=lambda: _looks_ahead(t))


def _looks_ahead(t: Target) -> str:
    """What kind of mask lets tokens look ahead, told by who sees the last token in the first layer."""
    T = t.nearest(8)
    ahead = influenced_tokens(t, T, source=T - 1) - {T - 1}
    if ahead == {T - 2}:
        return (
            "each token sees the next one: the diagonal of the mask is one too far (diagonal=1, or <= where < is meant)"
        )
    if ahead == {0}:
        return "only the first token looks ahead: with all its keys masked it sees all alike: < where <= is meant"
    if ahead == set(range(T - 1)) and not influenced_tokens(t, T, source=0) - {0}:
        return "a token sees those behind it and none before it: the mask is the wrong way round"
    if where := first_mixing_part(t, t.ids(2, t.nearest(7))):
        return f"tokens meet in {where}, which takes its numbers over the tokens of a text, those to come included"
    sees = who_sees_whom(t, t.nearest(33))
    if heads := count_merged_heads(sees):
        return (
            f"{heads} heads are put together as if they were tokens: (B, H, T, C) is viewed as (B, T, H C) without "
            "transpose(1, 2)"
        )
    if bool(sees.all()):
        return (
            "every token sees all others: no mask hides those to come where tokens meet (an encoder is meant to see "
            'them: architecture="encoder-only")'
        )
    return ""


def who_sees_whom(t: Target, T: int) -> Bool:
    """(T, T) of a text of T tokens: whether the first layer makes something else of the row's token when the column's
    token is another one."""
    sees = torch.zeros(T, T, dtype=torch.bool)
    for source in range(T):
        sees[list(influenced_tokens(t, T, source)), source] = True
    return sees


def count_merged_heads(sees: Bool) -> int:
    """How many heads were viewed as tokens after causal attention; 0 if what is seen does not look so. Token i is then
    made of rows i H .. i H + H - 1 of all heads' rows, of which row r is that of token r % T. In a decoder the queries
    of attention to the source go the same way once more."""
    T = len(sees)
    for H in range(2, T):
        rows = torch.arange(T * H).view(T, H) % T
        itself = torch.eye(T, dtype=torch.bool)
        once = (torch.arange(T) <= rows.amax(1)[:, None]) | itself
        moved = torch.zeros(T, T, dtype=torch.bool).scatter(1, rows, True) | itself
        if torch.equal(sees, once) or torch.equal(sees, moved.float() @ once.float() > 0):
            return int(H) if not bool(sees.all()) else 0
    return 0


@law(
    "the past is seen",
    source="Vaswani et al. 2017, section 3.2.3",
    hint="a mask that hides too much: its sides are swapped, True is taken for hidden, or attention is cut off",
    shrinks=False,
)
def the_past_is_seen(t: Target, n: int) -> Evidence:
    """Changing the token before the last changes the last logits."""
    ids = t.ids(2, n)
    changed = ids.clone()
    changed[:, -2] = t.other(ids)[:, -2]
    return demand_difference(t, t.logits(changed)[:, -1], t.logits(ids)[:, -1], changed, lambda: _explain_blindness(t))


def _explain_blindness(t: Target) -> str:
    """What is seen of the token before the last, in the first layer."""
    T = t.nearest(8)
    seen = influenced_tokens(t, T, source=T - 2) - {T - 2}
    if not seen:
        return "no token sees another one: attention is cut off, or all but the token itself is masked"
    if seen == set(range(T - 2)):
        return "a token sees those behind it and none before it: the mask is the wrong way round"
    return ""


@law(
    "prefix = beginning",
    "causal",
    source="positions counted from the length of the text; attention scaled by its length",
    hint="nothing may depend on how long the text is: look for positions or scales made from the length",
)
def prefix_is_beginning(t: Target, n: int) -> Evidence:
    """The logits of a text's beginning are those of the beginning alone, however long the text."""
    longest = 4 * n if t.limit is None else t.limit if t.limit <= SHORT else min(4 * n, t.limit)
    ids = t.ids(2, max(longest, 2))
    cuts = sorted({n, min(2 * n, ids.shape[1]), ids.shape[1] - 1})
    whole = t.logits(ids)
    got = torch.cat([whole[:, :k] for k in cuts], 1)
    return Evidence(got, torch.cat([t.logits(ids[:, :k]) for k in cuts], 1), None, ids)


@law(
    "prefix = beginning past the limit",
    "causal",
    source="dynamic NTK and LongRoPE choose their angles by the length of the text (Ding et al. 2024)",
    hint="angles chosen by the length of the text change the logits of its beginning when it grows",
    shown_by="every encoding but none",
    shrinks=False,
)
def prefix_is_beginning_past_the_limit(t: Target, n: int) -> Evidence:
    """A text longer than the model was made for changes no logits of its beginning."""
    limit = trained_end(t)
    n = min(n, limit)
    first = limit - 2 if 2 < limit <= SHORT - n else n  # tokens of the beginning, which ends before the limit
    if first == n:
        t.need("positions")
        return _beginning(t, torch.arange(limit - n - 2, limit + n, device=t.device), n)
    return _beginning(t, torch.arange(limit + n, device=t.device), first)


def _beginning(t: Target, positions: Int, first: int) -> Evidence:
    """The logits of the first tokens in a text at these positions, and those of these tokens alone."""
    ids, places = t.ids(1, len(positions)), positions[None]
    given = places if int(positions[0]) else None
    want = t.logits(ids[:, :first], positions=None if given is None else given[:, :first])
    got = t.logits(ids, positions=given)[:, :first]
    fault = t.logits(ids, positions=places // 2)[:, :first] if "positions" in t.can else None
    return Evidence(got, want, fault, ids if len(positions) <= 4 * first else None)


def trained_end(t: Target) -> int:
    """Where the target was made to end, if it can go on there."""
    if t.limit is None:
        raise NotApplicable(f"{t.name} has no end that anybody knows of")
    if t.table_ends:
        raise NotApplicable(f"{t.name} has {t.limit} positions and no further ones")
    return t.limit


@law(
    "order is seen",
    source="Vaswani et al. 2017, section 3.5: without positions attention is a bag of words",
    hint="the order of tokens changes nothing: a position is not added, not applied, or the same for all tokens",
    shrinks=False,
)
def order_is_seen(t: Target, n: int) -> Evidence:
    """The same earlier tokens in another order give other last logits."""
    ids = t.ids(2, max(n, 4))
    turned = torch.cat([ids[:, :-1].flip(1), ids[:, -1:]], 1)
    return demand_difference(t, t.logits(turned)[:, -1], t.logits(ids)[:, -1], turned, lambda: _explain_lost_order(t))


def _explain_lost_order(t: Target) -> str:
    """Whether one token, repeated, is read otherwise at another place: then positions are there, and lost later."""
    T = t.nearest(8)
    if T - 1 not in influenced_tokens(t, T, source=T - 2):
        return ""  # what is not seen at all has no order
    repeated = t.ids(1, 1).expand(1, T).contiguous()
    if not bool(((x := t.logits(repeated)[0]) - x[:1]).abs().amax() > t.tolerance(x)):
        return ""
    return (
        "places differ where one token is repeated, so positions are there; but what tokens are summed by does not "
        "tell them apart: a mean, or weights that are alike"
    )


@law(
    "every row has its own positions",
    "positions",
    source="positions read from the first row of a batch",
    hint="positions are (B, T): look for positions[0], or for a table of one row that is broadcast",
    shown_by="every encoding but none",
)
def every_row_has_its_own_positions(t: Target, n: int) -> Evidence:
    """In a batch of rows at different positions, each row gives the logits it gives alone."""
    ids, positions = t.ids(3, n), _spread_positions(t, n)
    want = torch.cat([t.logits(ids[b : b + 1], positions=positions[b : b + 1]) for b in range(3)])
    fault = t.logits(ids, positions=positions[:1].expand(3, -1))
    return Evidence(t.logits(ids, positions=positions), want, fault if n > 1 else None, ids)


def _spread_positions(t: Target, n: int) -> Int:
    """Positions (3, n) of rows whose tokens are 1, 2 and 3 apart, within the limit."""
    steps = torch.arange(1, 4, device=t.device)[:, None] * torch.arange(n, device=t.device)
    return steps if t.limit is None else steps % t.limit


@law(
    "shift",
    "positions",
    source="Su et al. 2021, equation 16: relative encodings see distances alone; Gehring et al. 2017: tables do not",
    hint="the encoding sees where tokens stand although it promises distances alone, or the reverse",
    shown_by="every encoding but none",
)
def shift(t: Target, n: int) -> Evidence:
    """Moving all positions by the same amount keeps the logits or changes them, as the encoding promises."""
    n = n if t.limit is None else max(1, min(n, t.limit // 3))
    room = 50 if t.limit is None else min(50, t.limit - 2 * n)
    if room < 1:
        raise NotApplicable(f"{t.name} has too few positions to move {n} tokens by one")
    ids, here = t.ids(2, n), torch.arange(n, device=t.device).expand(2, n)
    want = t.logits(ids, positions=here)
    if t.shift == "kept":
        got = torch.cat([t.logits(ids, positions=here + by) for by in t.moves(room)])
        ways = len(got) // len(want)
        fault = t.logits(ids, positions=2 * here).repeat(ways, 1, 1) if n > 1 else None
        return Evidence(got, want.repeat(ways, 1, 1), fault, ids)
    got = t.logits(ids, positions=here + room)
    if t.shift == "changed":
        return demand_difference(t, got.flatten(1), want.flatten(1), ids)
    moved = float((got - want).abs().amax())
    raise NotApplicable(
        f"nobody says what a shift does to {t.name}: by {room} positions it moves logits by {moved:.2g}"
    )


__all__ = [
    "SHORT",
    "causality",
    "every_row_has_its_own_positions",
    "order_is_seen",
    "prefix_is_beginning",
    "prefix_is_beginning_past_the_limit",
    "shift",
    "the_past_is_seen",
    "trained_end",
]
