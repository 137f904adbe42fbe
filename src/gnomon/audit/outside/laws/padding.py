"""Laws of batches: padding, packing and the other rows change nothing."""

from collections.abc import Callable

import torch

from gnomon.audit.outside.rule import Evidence, Rule, rule
from gnomon.audit.outside.target import Target
from gnomon.audit.subject import NotApplicable
from gnomon.shapes import Bool, Float, Int

Side = Callable[[Target, int], Bool]


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


def on_the_left(t: Target, n: int) -> Bool:
    """(3, n + 1): rows with none, one and half of their tokens missing at the left."""
    missing = torch.tensor([[0], [1], [max(1, n // 2)]], device=t.device)
    return torch.arange(n + 1, device=t.device) >= missing


def on_the_right(t: Target, n: int) -> Bool:
    """The same, missing at the right."""
    return on_the_left(t, n).flip(1)


def inside(t: Target, n: int) -> Bool:
    """(3, n + 2): rows with none, one and two tokens missing after their first."""
    slots = torch.arange(n + 2, device=t.device)
    return (slots == 0) | (slots > torch.arange(3, device=t.device)[:, None])


def counted(mask: Bool) -> Int:
    """Positions (B, T) counted in real tokens, as users give them: cumsum(mask) - 1, and 0 before the first."""
    return (mask.long().cumsum(1) - 1).clamp(min=0)


def padding_law(where: str, name: str, side: Side, given: bool, source: str, hint: str) -> Rule:
    """Padding at this side changes nothing, with positions counted by the target or `given` by the user."""
    beside = ", positions counted in real tokens given" if given else ""

    def check(t: Target, n: int) -> Evidence:
        t.need("placed mask" if given else "mask")
        mask = side(t, n)
        ids, got, want = _asked(t, mask, given)
        unseen = where == "right" and t.causal  # nobody looks at padding there, masked or not
        fault = None if unseen else real(t.logits(ids), mask)
        right = near(t, got, want)
        if not right and not given and where != "right":
            elsewhere = [on_the_right, on_the_left] if where == "interior" and t.causal else [on_the_right]
            must_not_count_slots(t, where, lambda: all(near(t, *_asked(t, at(t, n), given)[1:]) for at in elsewhere))
        return Evidence(got, want, fault, ids, cause="" if right else _why(t, ids, mask, got, want, given))

    check.__doc__ = f"A row padded {name} gives the logits of the row alone{beside}."
    title = f"{where} padding{' with positions' if given else ''} changes nothing"
    return rule(title, source, hint)(check)


def _asked(t: Target, mask: Bool, given: bool) -> tuple[Int, Float, Float]:
    """ids padded where mask is False, the logits of their real tokens, and those of each row alone."""
    ids = t.padded(t.ids(mask.shape[0], mask.shape[1]), mask)
    got = real(t.logits(ids, mask=mask, positions=counted(mask) if given else None), mask)
    return ids, got, alone(t, ids, mask)


def near(t: Target, got: Float, want: Float) -> bool:
    """Whether they are of one shape and differ by no more than is tolerated."""
    return got.shape == want.shape and float((got - want).abs().nan_to_num(nan=1e9).amax()) <= t.tolerance(want)


def must_not_count_slots(t: Target, where: str, right_elsewhere: Callable[[], bool]) -> None:
    """Raise NotApplicable where padding moves tokens, but on a side where the target may have it so alone."""
    if where in t.slots and right_elsewhere():
        raise NotApplicable(
            f"padding elsewhere changes nothing; here it takes positions, but nobody says that {t.name} is padded here"
        )


def _why(t: Target, ids: Int, mask: Bool, got: Float, want: Float, given: bool) -> str:
    """What the numbers say about padding that changes something."""
    at = counted(mask) if given else None

    def like(other: Float, wanted: Float = want) -> bool:
        return float((real(other, mask) - wanted).abs().nan_to_num(nan=1e9).amax()) <= t.tolerance(want)

    if like(t.logits(ids), got) or (given and "positions" in t.can and like(t.logits(ids, positions=at), got)):
        return "the mask changes nothing: it does not arrive where attention is computed"
    if _answers(lambda: like(t.logits(ids, mask=~mask, positions=at))):
        return "right once the mask is turned round: True is taken for padding"
    if (
        not given
        and "placed mask" in t.can
        and _answers(lambda: like(t.logits(ids, mask=mask, positions=counted(mask))))
    ):
        return (
            "padding is hidden, but takes positions: right once positions cumsum(mask) - 1 are given, counted in slots "
            "without them"
        )
    other = torch.where(mask, ids, t.padded(t.other(ids), mask))
    if t.pad is None and not like(t.logits(other, mask=mask, positions=at), got):
        return "what stands in padded places is seen: padding is not masked out as a key"
    if given:
        return "padding is hidden as a key, but positions that are given are not the ones used"
    return "padding is hidden as a key, but takes positions: they are counted in slots, not in real tokens"


def _answers(ask: Callable[[], bool]) -> bool:
    """What a model answers to an odd question; False where it refuses."""
    try:
        return ask()
    except Exception:
        return False


LEFT = "GPT-2's positions counted in slots; padding seen by its neighbours"
COUNT = "positions must be counted in real tokens, cumsum(mask) - 1, and padding must be masked out as a key"
HIDE = "padding must be masked out as a key, and positions that are given must be the ones used"
left_padding = padding_law("left", "on the left", on_the_left, False, LEFT, COUNT)
left_padding_placed = padding_law("left", "on the left", on_the_left, True, LEFT, HIDE)
right_padding = padding_law("right", "on the right", on_the_right, False, "attention over padding", COUNT)
right_padding_placed = padding_law("right", "on the right", on_the_right, True, "attention over padding", HIDE)
interior_padding = padding_law("interior", "inside", inside, False, "positions counted in slots", COUNT)
interior_padding_placed = padding_law("interior", "inside", inside, True, "positions counted in slots", HIDE)


#: what is said of a model that takes rows for tokens
TURNED = (
    "rows see each other at the same token, and tokens of a row do not: attention reads (T, B), so that "
    "batch_first=True, or a transpose, is missing"
)


@rule(
    "batch mates change nothing",
    source="statistics, lengths or random numbers shared by the rows of a batch",
    hint="no number may be taken over the batch: look for norms, lengths and positions that see other rows",
)
def batch_mates(t: Target, n: int) -> Evidence:
    """A row gives the same logits alone and among other rows."""
    ids = t.ids(3, n)
    got, want = t.logits(ids), torch.cat([t.logits(row[None]) for row in ids])
    turned = n > 1 and not near(t, got, want) and _is_turned(t, ids)
    return Evidence(got, want, None, ids, cause=TURNED if turned else "")


def _is_turned(t: Target, ids: Int) -> bool:
    """Whether a token of ids (B, T) changes the same token of all rows and no other token."""
    changed = ids.clone()
    changed[0, 0] = t.other(ids)[0, 0]
    before, after = t.logits(ids), t.logits(changed)
    moved = ((after - before).abs() > t.tolerance(before)).any(-1)
    return bool(moved[:, 0].all()) and not bool(moved[:, 1:].any())


@rule(
    "packed = separate",
    source="documents packed into a row that see one another, or whose positions go on",
    hint="a token sees its own document alone, and every document starts at position 0",
)
def packed_is_separate(t: Target, n: int) -> Evidence:
    """Documents packed into one row give the logits they give in rows of their own."""
    t.need("packed")
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


@rule(
    "an empty row is harmless",
    source="softmax over nothing is NaN, and spreads",
    hint="a row without a real token gives finite numbers: mask with the smallest number, or let padding see itself",
)
def an_empty_row_is_harmless(t: Target, n: int) -> Evidence:
    """A row whose mask is all False gives finite numbers and changes no other row."""
    t.need("mask")
    mask = torch.ones(3, n, dtype=torch.bool, device=t.device)
    mask[1] = False
    ids = t.padded(t.ids(3, n), mask)
    got = t.logits(ids, mask=mask)
    cause = "" if bool(got[1].isfinite().all()) else "the empty row gives NaN: softmax over nothing"
    got[1] = got[1] - got[1]  # 0 where it is finite
    others = torch.tensor([0, 2], device=t.device)
    want = torch.zeros_like(got)
    want[others] = t.logits(ids[others])
    return Evidence(got, want, None, ids, cause=cause)


@rule(
    "masked tokens get no gradient",
    source="padding that trains the model",
    hint="padding must be masked out as a key, in every layer and head",
)
def masked_tokens_get_no_gradient(t: Target, n: int) -> Evidence:
    """The logits of real tokens send no gradient to the vectors of padding."""
    t.need("mask", "module")
    mask = on_the_left(t, n) if t.causal else on_the_left(t, n) & on_the_right(t, n)
    ids = t.padded(t.ids(3, n + 1), mask)
    got, fault = (_gradient(t, ids, mask, given) for given in (mask, None))
    hidden = mask[..., None]
    tolerance = t.tolerance(got)
    return Evidence(got.masked_fill(hidden, 0.0), torch.zeros_like(got), fault.masked_fill(hidden, 0.0), ids, tolerance)


def _gradient(t: Target, ids: Int, mask: Bool, given: Bool | None) -> Float:
    """What the logits at real tokens send to the vectors (B, T, D) of ids."""
    leaves: list[Float] = []

    def cut(_: object, __: object, out: Float) -> Float:
        leaves.append(out.detach().requires_grad_())
        return leaves[-1].clone()

    handle = t.embedding().register_forward_hook(cut)
    try:
        with torch.enable_grad():
            logits = t.logits(ids, mask=given)
            weight = torch.randn(logits.shape, generator=t.rng(9)).to(logits)
            if not logits.requires_grad:
                raise NotApplicable(f"{t.name} records no gradients")
            ours = [x for x in leaves if x.shape[:2] == ids.shape]
            if not ours:
                raise NotApplicable(f"{t.name} does not embed its tokens as (B, T, D)")
            (grad,) = torch.autograd.grad(real(logits * weight, mask).sum(), ours[-1])
    finally:
        handle.remove()
    return grad


__all__ = [
    "TURNED", "alone", "an_empty_row_is_harmless", "batch_mates", "counted", "interior_padding",
    "interior_padding_placed", "left_padding", "left_padding_placed", "masked_tokens_get_no_gradient",
    "must_not_count_slots", "near", "on_the_left", "on_the_right", "packed_is_separate", "real", "right_padding",
    "right_padding_placed",
]  # fmt: skip
