"""Laws of the cache: going step by step is never another computation."""

from functools import wraps

import torch

from gnomon.audit.law import Check, Evidence, law
from gnomon.audit.laws.order import SHORT, trained_end
from gnomon.audit.laws.padding import is_close, left_padding_mask, real, rows_alone
from gnomon.audit.target import NotApplicable, Target
from gnomon.shapes import Bool, Float, Int

FROM = 8  #: tokens of a text from which on a longer one is read too


def read_in_chunks(
    t: Target, ids: Int, chunks: list[int], mask: Bool | None = None, positions: Int | None = None
) -> Float:
    """Logits (B, T, V) of ids read in chunks through a cache."""
    state, out, start = None, [], 0
    for n in chunks:
        here, start = slice(start, start + n), start + n
        logits, state = t.step(
            state,
            ids[:, here],
            None if mask is None else mask[:, :start],
            None if positions is None else positions[:, here],
        )
        out.append(logits)
    return torch.cat(out, 1)


def for_each_cache(check: Check) -> Check:
    """The check of each kind of cache that a target has: the first evidence that is not tolerated, else the first."""

    @wraps(check)
    def asked(t: Target, n: int) -> Evidence:
        found = []
        for kind in t.by_cache():
            found.append(check(kind, n))
            if not found[-1].holds(kind):
                return found[-1]
        return found[0]

    return asked


@law(
    "cached = full",
    "cache",
    "causal",
    source="a cache that numbers new tokens from 0, or by its own length in slots",
    hint="a step must stand at the position after all tokens read before it, and see all of them",
)
@for_each_cache
def cached_is_full(t: Target, n: int) -> Evidence:
    """Reading token by token through the cache gives the logits of one read at once."""
    ids = t.ids(2, n)
    got, want, forgotten = read_in_chunks(t, ids, [1] * n), t.logits(ids), logits_without_context(t, ids)
    if n >= FROM and is_close(t, got, want) and (longer := _farther(t, n)) is not None:
        return longer
    return Evidence(got, want, forgotten, ids, cause=lambda: _explain_steps(t, ids, got, forgotten) if n > 1 else "")


def _farther(t: Target, n: int) -> Evidence | None:
    """The same of a text so long that what grows with distance shows; None where it is right, or there is no room."""
    length = t.nearest(min(8 * n, t.limit or 8 * n))
    if length <= n:
        return None
    ids, few = t.ids(1, length), t.ids(2, n)
    before = t.logits(few)
    got, want = read_in_chunks(t, ids, [1] * length), t.logits(ids)
    if not torch.equal(t.logits(few), before):
        return None  # what a long call leaves behind has a law of its own
    said = (
        f"steps are right in a text of {n} tokens and drift in one of {length}: look for what is counted or scaled by"
    )
    return None if is_close(t, got, want) else Evidence(got, want, None, ids, cause=f"{said} the length read so far")


def logits_without_context(t: Target, ids: Int) -> Float | None:
    """Logits (B, T, V) of tokens that see themselves alone or, in a model that does not read one token without its
    cache, one more and as few as it reads; None where a text is too short to show it."""
    for width in range(1, ids.shape[1]):
        try:
            seen = [t.logits(ids[:, max(0, i - width) : i])[:, -1:] for i in range(width, ids.shape[1] + 1)]
        except NotApplicable:
            raise
        except Exception:  # whatever a model raises at a text that is too short for it
            continue
        return torch.cat([t.logits(ids)[:, : width - 1], *seen], 1)
    return None


def _explain_steps(t: Target, ids: Int, got: Float, forgotten: Float | None) -> str:
    """Why going step by step differs."""
    if forgotten is not None and is_close(t, got, forgotten):
        return "each step sees itself alone: the keys and values kept do not arrive"
    same = ids[:, :1].expand(-1, ids.shape[1])
    if is_close(t, (stepped := read_in_chunks(t, same, [1] * same.shape[1])), stepped[:, :1].expand_as(stepped)):
        whole = t.logits(same)
        if not is_close(t, whole, whole[:, :1].expand_as(whole)):
            return "a token repeated gives the same logits at each step: every step stands at position 0"
    if "positions" in t.can:
        zero = torch.zeros_like(ids)
        if is_close(t, got, t.logits(ids, positions=zero)):
            return "these are the logits of tokens that all stand at position 0: every step stands at position 0"
        late = (torch.arange(ids.shape[1], device=t.device) - 1).clamp(min=0).expand_as(ids)
        if is_close(t, got, t.logits(ids, positions=late)):
            return "each step stands one position too early"
    return ""


@law(
    "chunks = whole",
    "cache",
    "causal",
    source="a chunk masked as if it was the first; a causal mask aligned with the wrong corner",
    hint="query i of a chunk after S tokens is token S + i: it sees keys 0 .. S + i, and stands at position S + i",
)
@for_each_cache
def chunks_are_whole(t: Target, n: int) -> Evidence:
    """A text read in chunks of any sizes through the cache gives the logits of one read at once."""
    ids = t.ids(2, n)
    want, fault = t.logits(ids), logits_without_context(t, ids)
    drawn = [_chunks(t, n, stream) for stream in range(3)]
    got = [read_in_chunks(t, ids, chunks) for chunks in drawn]

    def why() -> str:
        wrong = next(chunks for chunks, read in zip(drawn, got, strict=True) if not is_close(t, read, want))
        return _explain_chunks(t, ids, wrong)

    forgotten = None if fault is None else fault.repeat(3, 1, 1)
    return Evidence(torch.cat(got), want.repeat(3, 1, 1), forgotten, ids, cause=why)


def _chunks(t: Target, n: int, stream: int) -> list[int]:
    """Sizes, drawn, that sum to n: the first one leaves something to go on with."""
    left, sizes = n, []
    rng = t.rng(30 + stream)
    while left:
        sizes.append(int(torch.randint(1, max(2, min(left, n // 2) + 1), (1,), generator=rng)))
        left -= sizes[-1]
    return sizes


def _explain_chunks(t: Target, ids: Int, chunks: list[int]) -> str:
    """Why reading in chunks differs."""
    if not is_close(t, read_in_chunks(t, ids, [1] * ids.shape[1]), t.logits(ids)):
        return "single steps through the cache differ already"
    longer = [c for c in chunks[1:] if c > 1]
    if not longer:
        return ""
    start = chunks[0] + sum(c for c in chunks[1 : 1 + chunks[1:].index(longer[0])])
    end = start + longer[0]
    changed = ids.clone()
    changed[:, end - 1] = t.other(ids)[:, end - 1]
    before, after = read_in_chunks(t, ids, chunks), read_in_chunks(t, changed, chunks)
    if not is_close(t, after[:, start : end - 1], before[:, start : end - 1]):
        return "tokens of a chunk after the first see those behind them in the chunk: it has no causal mask"
    first = ids.clone()
    first[:, 0] = t.other(ids)[:, 0]
    if is_close(t, read_in_chunks(t, first, chunks)[:, start], before[:, start]):
        return "tokens of a chunk after the first do not see the text before it: the mask is aligned with its first key"
    return ""


@law(
    "a plain read leaves the cache alone",
    "cache",
    "causal",
    source="a cache kept inside the model, or its position, that a call without it sets back or writes into",
    hint="a call without the cache must neither write into it nor move its position",
    shrinks=False,
)
def a_plain_read_leaves_the_cache_alone(t: Target, n: int) -> Evidence:
    """A text read without the cache, between two steps, changes nothing of the second one."""
    t.must_read_apart()
    ids = t.ids(2, max(n, 2))

    def second(between: bool) -> Float:
        state = t.step(None, ids[:, :-1])[1]
        if between:
            t.logits(t.other(ids)[:, :-1])
        return t.step(state, ids[:, -1:])[0]

    want = second(False)
    return Evidence(second(True), want, t.step(None, ids[:, -1:])[0], ids)


def as_it_grew(t: Target, ids: Int, last: int, places: Int | None = None) -> Float:
    """Logits (B, last, V) of the last tokens, each read at once in a text that ends with it: angles that depend on the
    length of the text are then those that decoding has."""
    ends = range(ids.shape[1] - last + 1, ids.shape[1] + 1)
    return torch.cat(
        [t.logits(ids[:, :end], positions=None if places is None else places[:, :end])[:, -1:] for end in ends], 1
    )


@law(
    "crossing the limit in decoding",
    "cache",
    "causal",
    source="dynamic NTK and LongRoPE change their angles at the trained length; keys kept were turned by the old ones",
    hint="angles depend on the length of the text: keys in the cache must be turned anew, or the angles not change",
    shown_by="every encoding but none",
    shrinks=False,
)
def crossing_the_limit_in_decoding(t: Target, n: int) -> Evidence:
    """Decoding on past the trained or scaled length gives, at each step, the logits of reading all so far at once."""
    limit = trained_end(t)
    if limit + 4 <= SHORT:
        ids = t.ids(1, limit + 4)
        places = torch.arange(limit + 4, device=t.device)[None]
        got, want = read_in_chunks(t, ids, [limit - 2] + [1] * 6)[:, -6:], as_it_grew(t, ids, 6)
    else:
        t.need("positions", "cached positions")
        ids, places = t.ids(2, n), torch.arange(limit - n + 3, limit + 3, device=t.device).expand(2, n)
        got = read_in_chunks(t, ids, [n - 4] + [1] * 4, positions=places)[:, -4:]
        want = as_it_grew(t, ids, 4, places)
    fault = t.logits(ids, positions=places // 2)[:, -got.shape[1] :] if "positions" in t.can else None
    few, ways = t.ids(2, n, stream=4), [[1] * n] + [[n - 2, 1, 1]] * (n > 2)
    before = not is_close(t, got, want) and not all(
        is_close(t, read_in_chunks(t, few, way), t.logits(few)) for way in ways
    )
    cause = "the cache differs from a full read before the limit already" if before else ""
    return Evidence(got, want, fault, ids if ids.shape[1] == n else None, cause=cause)


@law(
    "padded rows decode at their own places",
    "cached mask",
    "causal",
    source="generation from padded batches whose new tokens are numbered by slots",
    hint="a row's next position is its count of real tokens, and the mask of the prompt holds for every later step",
)
@for_each_cache
def padded_rows_decode(t: Target, n: int) -> Evidence:
    """A batch padded on the left goes on with each row as if the row were alone."""
    return _decode_padded(t, n, left=True)


@law(
    "rows padded on the right decode at their own places",
    "cached mask",
    "causal",
    source="padding between the prompt and what follows it counted as text",
    hint="a row's next position is its count of real tokens, wherever its padding stands in the cache",
)
@for_each_cache
def right_padded_rows_decode(t: Target, n: int) -> Evidence:
    """A batch padded on the right goes on with each row as if the row were alone."""
    return _decode_padded(t, n, left=False)


def _decode_padded(t: Target, n: int, left: bool) -> Evidence:
    slots, new = torch.arange(n + 1, device=t.device), 3
    missing = torch.tensor([[0], [1], [max(1, n // 2)]], device=t.device)
    prompt = slots >= missing if left else slots < n + 1 - missing
    mask = torch.cat([prompt, prompt.new_ones(3, new)], 1)
    ids = t.fill_padding(t.ids(3, n + 1 + new), mask)
    got = real(read_in_chunks(t, ids, [n + 1] + [1] * new, mask), mask)
    want = rows_alone(t, ids, mask)
    if not is_close(t, got, want):  # through the cache then: whether that is right has other laws
        for b, kept in enumerate(mask):
            want[b, kept] = read_in_chunks(t, ids[b, kept][None], [int(prompt[b].sum())] + [1] * new)[0]
    try:
        fault = real(read_in_chunks(t, ids, [n + 1] + [1] * new), mask)
    except NotApplicable:
        fault = None
    cause = ""
    if not is_close(t, got, want) and is_close(t, got[:, : n + 1], want[:, : n + 1]):
        cause = "the prompt is read right: only the steps after it stand at other places or see padding"
    return Evidence(got, want, fault, ids, cause=cause)


@law(
    "reorder = rerun",
    "cache",
    "reorder",
    "causal",
    source="beams that swap while some part of the cache stays where it was",
    hint="every tensor of the cache is indexed by row, of every layer, cross-attention and the mask included",
    shrinks=False,
)
@for_each_cache
def reorder_is_rerun(t: Target, n: int) -> Evidence:
    """After its cache is reordered, each row goes on as if it had been read in its new order from the start."""
    ids, new, index = t.ids(3, n), t.ids(3, 2, stream=6), torch.tensor([2, 0, 0], device=t.device)
    plain = _check_reorder(t, ids, new, index, None)
    if n < 2 or "cached mask" not in t.can or not plain.holds(t):
        return plain
    mask = torch.cat([left_padding_mask(t, n - 1), torch.ones(3, 2, dtype=torch.bool, device=t.device)], 1)
    padded = _check_reorder(t, t.fill_padding(ids, mask[:, :n]), new, index, mask)
    return plain if padded.holds(t) else padded


def _check_reorder(t: Target, ids: Int, new: Int, index: Int, mask: Bool | None) -> Evidence:
    """Rows that are read, reordered and read on, where mask (B, T) says which of their tokens are real."""
    n, moved = ids.shape[1], None if mask is None else mask[index]
    before = after = t
    if "source" in t.can:
        source = t.ids(3, 7, stream=7)
        before, after = t.with_source(source), t.with_source(source[index])

    def until(end: int, mask: Bool | None) -> Bool | None:
        return None if mask is None else mask[:, :end]

    state = before.step(None, ids, until(n, mask))[1]
    state = before.reorder(state, index)
    first, state = after.step(state, new[:, :1], until(n + 1, moved))
    got = torch.cat([first, after.step(state, new[:, 1:], moved)[0]], 1)
    # read through the cache again: whether that gives the logits of one read at once has other laws
    want = read_in_chunks(after, torch.cat([ids[index], new], 1), [n, 1, 1], moved)[:, -2:]
    stayed = read_in_chunks(before, torch.cat([ids, new], 1), [n, 1, 1], mask)[:, -2:]
    cause = "the rows go on as if nothing had been reordered" if is_close(t, got, stayed) else ""
    return Evidence(got, want, stayed, ids, cause=cause)


@law(
    "beam with cache = beam without",
    "beam",
    "causal",
    source="beams that swap while some part of the cache stays where it was",
    hint="when beams swap, every tensor of the cache swaps with them, cross-attention and the mask included",
    shrinks=False,
)
def beam_with_cache_is_beam_without(t: Target, n: int) -> Evidence:
    """Beam search finds the same tokens with a cache as without one."""
    if torch.finfo(t.dtype).eps > torch.finfo(torch.float32).eps:
        raise NotApplicable(f"in {t.dtype} roundings alone swap beams")
    new = min(8, t.limit - n) if t.table_ends and t.limit is not None else 8
    ids = t.ids(6, n, stream=8)  # after one or two texts the best beams may never change places
    found = [t.beam(ids, 3, new, cached) for cached in (True, False)]
    width = max(len(row) for rows in found for row in rows)
    got, want = (torch.tensor([row + [-1] * (width - len(row)) for row in rows]).float() for rows in found)
    return Evidence(got, want, None, ids, tolerance=0.0)


__all__ = [
    "a_plain_read_leaves_the_cache_alone",
    "as_it_grew",
    "beam_with_cache_is_beam_without",
    "cached_is_full",
    "chunks_are_whole",
    "crossing_the_limit_in_decoding",
    "for_each_cache",
    "padded_rows_decode",
    "read_in_chunks",
    "reorder_is_rerun",
    "right_padded_rows_decode",
]
