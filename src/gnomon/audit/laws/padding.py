"""Laws of batches: padding, packing and the other rows change nothing."""

from collections.abc import Callable
from contextlib import suppress

import torch

from gnomon.audit.law import Evidence, Law, law
from gnomon.audit.perturbation import changed_tokens, perturb, vector_tables
from gnomon.audit.target import NotApplicable, Target
from gnomon.shapes import Bool, Float, Int

Side = Callable[[Target, int], Bool]


def rows_alone(t: Target, ids: Int, mask: Bool) -> Float:
    """Logits (B, T, V) of each row's real tokens by themselves, put back in their places; 0 at padding."""
    rows = [t.logits(ids[b, mask[b]][None])[0] for b in range(len(ids))]
    out = rows[0].new_zeros(*ids.shape, rows[0].shape[-1])
    for b, row in enumerate(rows):
        out[b, mask[b]] = row
    return out


def real(x: Float, mask: Bool) -> Float:
    """x (B, T, V) with 0 at padding: what stands there is nobody's business."""
    return x.masked_fill(~mask[..., None], 0.0)


def left_padding_mask(t: Target, n: int) -> Bool:
    """(3, n + 1): rows with none, one and half of their tokens missing at the left."""
    missing = torch.tensor([[0], [1], [max(1, n // 2)]], device=t.device)
    return torch.arange(n + 1, device=t.device) >= missing


def right_padding_mask(t: Target, n: int) -> Bool:
    """The same, missing at the right."""
    return left_padding_mask(t, n).flip(1)


def interior_padding_mask(t: Target, n: int) -> Bool:
    """(3, n + 2): rows with none, one and two tokens missing after their first."""
    slots = torch.arange(n + 2, device=t.device)
    return (slots == 0) | (slots > torch.arange(3, device=t.device)[:, None])


def count_positions(mask: Bool) -> Int:
    """Positions (B, T) counted in real tokens, as users give them: cumsum(mask) - 1, and 0 before the first."""
    return (mask.long().cumsum(1) - 1).clamp(min=0)


def padding_law(where: str, name: str, side: Side, given: bool, source: str, hint: str) -> Law:
    """Padding at this side changes nothing, with positions counted by the target or `given` by the user."""
    beside = ", positions counted in real tokens given" if given else ""

    def check(t: Target, n: int) -> Evidence:
        mask = side(t, n)
        ids, got, want = _ask_padded(t, mask, given)
        unseen = where == "right" and t.causal  # nobody looks at padding there, masked or not
        # of real tokens in all places: an id of padding may hide itself
        fault = None if unseen else real(t.logits(t.ids(*mask.shape)), mask)
        if not given and not is_close(t, got, want):
            require_counted_positions(t, where, n)
        return Evidence(got, want, fault, ids, cause=lambda: _explain(t, ids, mask, got, want, given))

    check.__doc__ = f"A row padded {name} gives the logits of the row alone{beside}."
    title = f"{where} padding{' with positions' if given else ''} changes nothing"
    return law(title, "placed mask" if given else "mask", source=source, hint=hint)(check)


def _ask_padded(t: Target, mask: Bool, given: bool) -> tuple[Int, Float, Float]:
    """ids padded where mask is False, the logits of their real tokens, and those of each row alone."""
    ids = t.fill_padding(t.ids(mask.shape[0], mask.shape[1]), mask)
    got = real(t.logits(ids, mask=mask, positions=count_positions(mask) if given else None), mask)
    return ids, got, rows_alone(t, ids, mask)


def is_close(t: Target, got: Float, want: Float) -> bool:
    """Whether they are of one shape and differ by no more than is tolerated."""
    return got.shape == want.shape and float((got - want).abs().nan_to_num(nan=1e9).amax()) <= t.tolerance(want)


def require_counted_positions(t: Target, where: str, n: int) -> None:
    """Raise NotApplicable where padding moves tokens, but is hidden itself, on a side where nobody says that the target
    is padded: a hole in a text is excused wherever padding in front of it is, or is right."""
    if where not in t.slots:
        return
    mask = {"left": left_padding_mask, "interior": interior_padding_mask}[where](t, n)
    ids = t.fill_padding(t.ids(*mask.shape), mask)
    seen = padding_is_seen(t, lambda: t.logits(ids, mask=mask), ids, mask)
    elsewhere = [] if where == "left" or "left" in t.slots else [left_padding_mask]
    elsewhere += [right_padding_mask] if seen is None else []
    if not seen and all(is_close(t, *_ask_padded(t, at(t, n), False)[1:]) for at in elsewhere):
        raise NotApplicable(slots_count(t))


def slots_count(t: Target) -> str:
    """Why padding that takes positions is excused."""
    return f"padding is hidden; here it takes positions, but nobody says that {t.name} is padded here"


def padding_is_seen(t: Target, ask: Callable[[], Float], ids: Int, mask: Bool) -> bool | None:
    """Whether the logits (B, T, V) of real tokens, or all those of another text, change with the vectors of padding,
    where mask (B, S) of ids is False; None where that cannot be told."""
    if "module" not in t.can:
        return None
    tables = vector_tables(t.module)
    with suppress(NotApplicable):
        tables += [t.embedding()] if t.embedding() not in tables else []
    before = ask()
    with perturb(tables, ids, ~mask, t.rng(21)) as met:
        after = ask()
    others = changed_tokens(before, after)
    return bool((others & mask if others.shape == mask.shape else others).any()) if met else None


def _explain_nan(t: Target, ids: Int, mask: Bool, given: bool) -> str:
    """Why real tokens get NaN. Where padding stands in front of a text it sees nothing; at its end it sees the text."""
    behind = mask.sort(1, descending=True).values
    finite = t.logits(ids, mask=behind, positions=count_positions(behind) if given else None).isfinite().all()
    if t.causal and bool(finite):
        return (
            "a row that sees nothing gives NaN, which spreads to real tokens: for padding in front of a text all keys "
            "are filled with -inf. Fill with the smallest number, or let padding see itself"
        )
    return "real tokens get NaN where padding is masked: a softmax over nothing but -inf, or an infinity times 0"


def _explain(t: Target, ids: Int, mask: Bool, got: Float, want: Float, given: bool) -> str:
    """What the numbers say about padding that changes something."""
    at = count_positions(mask) if given else None

    def like(other: Float, wanted: Float = want) -> bool:
        return float((real(other, mask) - wanted).abs().nan_to_num(nan=1e9).amax()) <= t.tolerance(want)

    if not bool(got.isfinite().all()):
        return _explain_nan(t, ids, mask, given)
    seen = padding_is_seen(t, lambda: t.logits(ids, mask=mask, positions=at), ids, mask)
    if seen and _answers(lambda: _rows_are_hidden(t)):
        return (
            "the rows of padding are masked, and its columns are not: it sees nothing itself and is seen by others, so "
            "the mask lies along the queries (unsqueeze(-1)) where the keys are meant (unsqueeze(-2))"
        )
    plain = like(t.logits(ids), got) or (given and "positions" in t.can and like(t.logits(ids, positions=at), got))
    if plain and seen is not False:
        return "the mask changes nothing: it does not arrive where attention is computed"
    if _answers(lambda: like(t.logits(ids, mask=~mask, positions=at))):
        return "right once the mask is turned round: True is taken for padding"
    if (
        not given
        and "placed mask" in t.can
        and _answers(lambda: like(t.logits(ids, mask=mask, positions=count_positions(mask))))
    ):
        return (
            "padding is hidden, but takes positions: right once positions cumsum(mask) - 1 are given, counted in slots "
            "without them"
        )
    other = torch.where(mask, ids, t.fill_padding(t.other(ids), mask))
    if seen is None and t.pad is None:
        seen = not like(t.logits(other, mask=mask, positions=at), got)
    if seen:
        return "what stands in padded places is seen: padding is not masked out as a key"
    if given:
        unused = _answers(lambda: like(t.logits(ids, mask=mask), got))
        return "padding is hidden as a key, but positions that are given are not the ones used" if unused else ""
    if seen is None:
        return ""
    return "padding is hidden as a key, but counts: positions, or a length, are counted in slots, not in real tokens"


def _rows_are_hidden(t: Target) -> bool:
    """Whether, in a causal text padded on the right, a padded token sees one that comes after it: all its keys are
    masked alike, so that it sees all of them alike."""
    T = t.nearest(8)
    if not t.causal or T < 4:
        return False
    mask = torch.arange(T, device=t.device).expand(2, -1) < T - 2
    ids = t.fill_padding(t.ids(2, T), mask)
    last = torch.arange(T, device=t.device).expand(2, -1) == T - 1
    before = t.logits(ids, mask=mask)
    with perturb(vector_tables(t.module), ids, last, t.rng(22), mask) as met:
        after = t.logits(ids, mask=mask)
    return bool(met) and bool(changed_tokens(before, after)[:, T - 2].all())


def _answers(ask: Callable[[], bool]) -> bool:
    """What a model answers to an odd question; False where it refuses."""
    try:
        return ask()
    except Exception:
        return False


LEFT = "GPT-2's positions counted in slots; padding seen by its neighbours"
COUNT = "positions must be counted in real tokens, cumsum(mask) - 1, and padding must be masked out as a key"
HIDE = "padding must be masked out as a key, and positions that are given must be the ones used"
left_padding = padding_law("left", "on the left", left_padding_mask, False, LEFT, COUNT)
left_padding_placed = padding_law("left", "on the left", left_padding_mask, True, LEFT, HIDE)
right_padding = padding_law("right", "on the right", right_padding_mask, False, "attention over padding", COUNT)
right_padding_placed = padding_law("right", "on the right", right_padding_mask, True, "attention over padding", HIDE)
interior_padding = padding_law("interior", "inside", interior_padding_mask, False, "positions counted in slots", COUNT)
interior_padding_placed = padding_law(
    "interior", "inside", interior_padding_mask, True, "positions counted in slots", HIDE
)


#: what is said of a model that takes rows for tokens
SWAPPED = (
    "rows see each other at the same token, and tokens of a row do not: attention reads (T, B), so that "
    "batch_first=True, or a transpose, is missing"
)


@law(
    "batch mates change nothing",
    source="statistics, lengths or random numbers shared by the rows of a batch",
    hint="no number may be taken over the batch: look for norms, lengths and positions that see other rows",
)
def batch_mates(t: Target, n: int) -> Evidence:
    """A row gives the same logits alone and among other rows."""
    ids = t.ids(3, n)
    got, want = t.logits(ids), torch.cat([t.logits(row[None]) for row in ids])
    turned = n > 1 and not is_close(t, got, want) and _is_transposed(t, ids)
    return Evidence(got, want, None, ids, cause=SWAPPED if turned else "")


def _is_transposed(t: Target, ids: Int) -> bool:
    """Whether a token of ids (B, T) changes the same token of all rows and no other token."""
    changed = ids.clone()
    changed[0, 0] = t.other(ids)[0, 0]
    before, after = t.logits(ids), t.logits(changed)
    moved = ((after - before).abs() > t.tolerance(before)).any(-1)
    return bool(moved[:, 0].all()) and not bool(moved[:, 1:].any())


@law(
    "packed = separate",
    "packed",
    source="documents packed into a row that see one another, or whose positions go on",
    hint="a token sees its own document alone, and every document starts at position 0",
)
def packed_is_separate(t: Target, n: int) -> Evidence:
    """Documents packed into one row give the logits they give in rows of their own."""
    first = max(1, n // 3)
    docs = (torch.arange(n + 1, device=t.device) >= first).long().expand(2, -1)
    ids = t.ids(2, n + 1)
    got = t.logits(ids, docs=docs)
    want = torch.cat([t.logits(ids[:, :first]), t.logits(ids[:, first:])], 1)
    changed = torch.cat([t.other(ids)[:, :first], ids[:, first:]], 1)
    reached = float((t.logits(changed, docs=docs) - got)[:, first:].abs().nan_to_num(nan=1e9).amax())
    leaks = reached > t.tolerance(want)
    cause = "a document sees the one before it" if leaks else "documents are apart, but do not start at position 0 each"
    return Evidence(got, want, t.logits(ids), ids, cause=cause)


@law(
    "an empty row is harmless",
    "mask",
    source="softmax over nothing is NaN, and spreads",
    hint="a row without a real token gives finite numbers: mask with the smallest number, or let padding see itself",
)
def an_empty_row_is_harmless(t: Target, n: int) -> Evidence:
    """A row whose mask is all False gives finite numbers and changes no other row."""
    mask = torch.ones(3, n, dtype=torch.bool, device=t.device)
    mask[1] = False
    ids = t.fill_padding(t.ids(3, n), mask)
    got = t.logits(ids, mask=mask)
    cause = "" if bool(got[1].isfinite().all()) else "the empty row gives NaN: softmax over nothing"
    got[1] = got[1] - got[1]  # 0 where it is finite
    others = torch.tensor([0, 2], device=t.device)
    want = torch.zeros_like(got)
    want[others] = t.logits(ids[others])
    return Evidence(got, want, None, ids, cause=cause)


@law(
    "masked tokens get no gradient",
    "mask",
    "module",
    source="padding that trains the model",
    hint="padding must be masked out as a key, in every layer and head",
)
def masked_tokens_get_no_gradient(t: Target, n: int) -> Evidence:
    """The logits of real tokens send no gradient to padding, nor to other documents of a packed row."""
    mask = left_padding_mask(t, n) if t.causal else left_padding_mask(t, n) & right_padding_mask(t, n)
    text = t.ids(3, n + 1)  # of real tokens in all places: an id of padding may hide itself
    ids = t.fill_padding(text, mask)
    padded = _expect_no_gradient(t, ids, mask, _gradient(t, ids, mask, mask=mask), _gradient(t, text, mask))
    if "packed" not in t.can or n < 2 or not padded.holds(t):
        return padded
    second = (torch.arange(n + 1, device=t.device) > n // 2).expand(3, -1)
    got, fault = _gradient(t, text, second, docs=second.long()), _gradient(t, text, second)
    packed = _expect_no_gradient(t, text, second, got, fault)
    return padded if packed.holds(t) else packed


def _expect_no_gradient(t: Target, ids: Int, seen: Bool, got: Float, fault: Float) -> Evidence:
    """That no gradient (B, T, D) comes where `seen` (B, T) is False."""
    if not bool(got.isfinite().all()):
        raise NotApplicable(f"padding makes {t.name} give NaN: see whether an empty row is harmless")
    hidden, tolerance = seen[..., None], t.tolerance(got)
    return Evidence(got.masked_fill(hidden, 0.0), torch.zeros_like(got), fault.masked_fill(hidden, 0.0), ids, tolerance)


def _gradient(t: Target, ids: Int, seen: Bool, **given: Int | Bool) -> Float:
    """What the logits of tokens that are `seen` (B, T) send to the vectors (B, T, D) of ids; `given`: the mask, or the
    documents."""
    leaves: list[Float] = []

    def cut(_: object, __: object, out: Float) -> Float:
        leaves.append(out.detach().requires_grad_())
        return leaves[-1].clone()

    handle = t.embedding().register_forward_hook(cut)
    try:
        with torch.enable_grad():
            logits = t.logits(ids, **given)
            weight = torch.randn(logits.shape, generator=t.rng(9)).to(logits)
            if not logits.requires_grad:
                raise NotApplicable(f"{t.name} records no gradients")
            ours = [x for x in leaves if x.shape[:2] == ids.shape]
            if not ours:
                raise NotApplicable(f"{t.name} does not embed its tokens as (B, T, D)")
            (grad,) = torch.autograd.grad(real(logits * weight, seen).sum(), ours[-1])
    finally:
        handle.remove()
    return grad


__all__ = [
    "SWAPPED",
    "an_empty_row_is_harmless",
    "batch_mates",
    "count_positions",
    "interior_padding",
    "interior_padding_placed",
    "is_close",
    "left_padding",
    "left_padding_mask",
    "left_padding_placed",
    "masked_tokens_get_no_gradient",
    "packed_is_separate",
    "padding_is_seen",
    "real",
    "require_counted_positions",
    "right_padding",
    "right_padding_mask",
    "right_padding_placed",
    "rows_alone",
    "slots_count",
]
