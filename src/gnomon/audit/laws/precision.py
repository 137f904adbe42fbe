"""Laws of dtypes: positions stay exact where the model is rounded."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

import torch

from gnomon.audit.compare import difference
from gnomon.audit.law import Evidence, Law, law
from gnomon.audit.target import NotApplicable, Target
from gnomon.shapes import Float, Int

FARTHEST = 8192  #: positions beyond which float32 itself begins to drift
NEAR = (0, 2, 4, 6)  #: where near positions start
HALVINGS = 12  #: of a change of weights, which halve what it does to logits unless they jump
Ask = Callable[[Int, Int], Float]
Lowered = Callable[[Target], AbstractContextManager[Ask]]
SOURCE = "angles or positions held in the model's dtype: bfloat16 counts to 256, float16 to 2048"


def cast(dtype: torch.dtype) -> Lowered:
    """How to ask a target in this dtype."""

    @contextmanager
    def lower(t: Target) -> Iterator[Ask]:
        t.need("module")
        with t.editable(dtype) as rounded:
            yield lambda ids, positions: rounded.logits(ids, positions=positions)

    return lower


@contextmanager
def autocast(t: Target) -> Iterator[Ask]:
    """How to ask a target under bfloat16 autocast. What its calls keep of it is forgotten."""
    with t.editable() if "module" in t.can else nullcontext(t) as asked, torch.autocast(t.device.type, torch.bfloat16):
        yield lambda ids, positions: asked.logits(ids, positions=positions)


def precision_law(name: str, sentence: str, dtype: torch.dtype, lower: Lowered) -> Law:
    """The law that far positions drift no more than near ones when the model computes in `dtype`."""

    def check(t: Target, n: int) -> Evidence:
        if torch.finfo(t.dtype).eps > torch.finfo(torch.float32).eps:
            raise NotApplicable(f"{t.name} is in {t.dtype} already: its float32 original is needed beside it")
        if t.routed:
            raise NotApplicable(f"{t.name} sends tokens to experts: in {dtype} roundings alone send some elsewhere")
        ids = t.ids(2, n)
        layouts = _layouts(t, n)
        try:
            with lower(t) as ask:
                low = [ask(ids, at).float() for at in layouts]
            drift = [rounded - t.logits(ids, positions=at).float() for rounded, at in zip(low, layouts, strict=True)]
        except (RuntimeError, TypeError, ValueError) as why:  # it says so itself: nothing drifts in silence
            raise NotApplicable(f"{t.name} does not compute in {dtype}: {str(why).splitlines()[0][:150]}") from why
        near, far = torch.cat(drift[:-2]), torch.cat(drift[-2:])
        tolerance = 4 * float(near.abs().amax())
        if not near.isfinite().all():
            raise NotApplicable(f"in {dtype} the logits overflow at near positions already")
        if not far.abs().amax() <= tolerance:
            require_continuity(t, ids, layouts[-2])
        rounded = [
            t.logits(ids, positions=_round_positions(at, dtype)) - t.logits(ids, positions=at) for at in layouts[-2:]
        ]
        return Evidence(far, torch.zeros_like(far), torch.cat(rounded), ids, tolerance, cause=_cause(t, dtype, drift))

    check.__doc__ = sentence
    hint = "angles and positions must be computed in float32 from integers, whatever the dtype of the model"
    shown_by = "every encoding but none, at positions the dtype cannot count"
    return law(name, source=SOURCE, hint=hint, shown_by=shown_by, shrinks=False)(check)


def _layouts(t: Target, n: int) -> list[Int]:
    """Positions (2, n): near ones, several times, since a deep model's drift is another one in each place by chance;
    all far; half near and half far. Where none are taken there is nothing to ask."""
    t.need("positions")
    end = min(FARTHEST, t.limit or FARTHEST)
    if end < 2 * n + NEAR[-1]:
        raise NotApplicable(f"{t.name} has no far positions: {end} in all")
    near = torch.arange(n, device=t.device)
    far = near + end - n
    places = [*(near + step for step in NEAR), far, torch.where(near < n // 2, near, far)]
    return [x.expand(2, -1) for x in places]


def _round_positions(at: Int, dtype: torch.dtype) -> Int:
    """Positions as the dtype would hold them and, where it holds them exactly, moved by its half rounding."""
    held = at.to(dtype).long().clamp(max=int(at.max()))  # rounded up, the last one may have no row
    return held if not torch.equal(held, at) else at - (at * torch.finfo(dtype).eps / 2).ceil().long()


def require_continuity(t: Target, ids: Int, at: Int) -> None:
    """Raise NotApplicable for a model with a choice in it, such as attention to the best key alone or experts: a
    rounding may turn it, wherever tokens sit. A change of the weights is halved, always to the half that does more."""
    if "module" not in t.can:
        return
    with t.editable() as asked:
        whole, last = _halve_change(asked, ids, at)
    if last > whole / 16:
        raise NotApplicable(f"logits of {t.name} jump where weights hardly change: roundings turn a choice in it")


def _halve_change(t: Target, ids: Int, at: Int) -> tuple[float, float]:
    """What a change of the weights of a lent target does to logits, and what the last of its halves does."""
    rng = t.rng(9)
    weights = [(w, w.detach().clone()) for w in t.module.parameters() if w.is_floating_point()]
    nudges = [w / 8 * (torch.randint(0, 2, w.shape, generator=rng) * 2 - 1).to(w) for _, w in weights]

    def logits(part: float) -> Float:
        for (weight, was), nudge in zip(weights, nudges, strict=True):
            weight.data.copy_(was + part * nudge)
        return t.logits(ids, positions=at).float()

    (a, low), (b, high) = (0.0, logits(0.0)), (1.0, logits(1.0))
    whole = difference(low, high)
    for _ in range(HALVINGS):
        middle = (a + b) / 2
        between = logits(middle)
        if difference(low, between) > difference(between, high):
            b, high = middle, between
        else:
            a, low = middle, between
    return whole, difference(low, high)


def _cause(t: Target, dtype: torch.dtype, drift: list[Float]) -> str:
    parts = (torch.cat(drift[:-2]), drift[-2], drift[-1])
    near, far, apart = (float(x.abs().nan_to_num(nan=1e9).amax()) for x in parts)
    if far > 4 * near:
        return f"positions are held in {dtype}, or angles made in it: neighbours that are far from the start drift"
    if apart > 4 * near:
        return f"the rates of the angles are rounded to {dtype}: far distances drift, neighbours do not"
    return ""


bfloat16 = precision_law(
    "bfloat16 moves no position",
    "Cast to bfloat16, a model drifts no more at far positions than at near ones.",
    torch.bfloat16,
    cast(torch.bfloat16),
)
float16 = precision_law(
    "float16 moves no position",
    "Cast to float16, a model drifts no more at far positions than at near ones.",
    torch.float16,
    cast(torch.float16),
)
under_autocast = precision_law(
    "autocast moves no position",
    "Under bfloat16 autocast, a model drifts no more at far positions than at near ones.",
    torch.bfloat16,
    autocast,
)

__all__ = ["autocast", "bfloat16", "cast", "float16", "precision_law", "require_continuity", "under_autocast"]
