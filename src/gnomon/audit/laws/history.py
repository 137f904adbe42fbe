"""Laws of repetition: the same question gets the same answer, whatever came before."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext

import torch
from torch import nn

from gnomon.audit.answers import one_line, refusal
from gnomon.audit.law import Evidence, law
from gnomon.audit.laws.influence import calls, first_layer
from gnomon.audit.laws.order import SHORT
from gnomon.audit.laws.padding import left_padding_mask
from gnomon.audit.laws.randomness import explain_randomness
from gnomon.audit.target import NotApplicable, Target
from gnomon.shapes import Int

LONG = 300  #: tokens of a text that no table is long enough for that was made before


@law(
    "logits are numbers",
    source="NaN and infinity, which hide whatever else is wrong",
    hint="a division by zero, a softmax over nothing, or weights that were never filled",
    basic=True,
)
def logits_are_numbers(t: Target, n: int) -> Evidence:
    """A text gives a finite number for each entry of the vocabulary at each token."""
    ids = t.ids(2, n)
    if instead := refusal(t, 2, n):
        return Evidence(torch.tensor(torch.nan), torch.tensor(0.0), None, ids, 0.0, _describe_refusal(t, n, instead))
    logits = t.logits(ids)
    cause = "" if bool(logits.isfinite().all()) else _not_finite(t, ids)
    return Evidence(logits - logits, torch.zeros_like(logits), None, ids, tolerance=0.0, cause=cause)


def _describe_refusal(t: Target, n: int, instead: str) -> str:
    """What a model does that does not answer two rows, and whether it answers less."""
    less = [(rows, m) for rows, m in ((1, n), (2, 1)) if (rows, m) != (2, n)]
    answered = [f"{_size(rows, m)}: {'no answer either' if refusal(t, rows, m) else 'answered'}" for rows, m in less]
    parts = t.module.modules() if "module" in t.can else ()
    turned = any(isinstance(part, nn.MultiheadAttention) and not part.batch_first for part in parts)
    hint = "; its nn.MultiheadAttention, made without batch_first=True, reads (T, B, D)" if turned else ""
    return f"for {_size(2, n)} it {instead} ({'; '.join(answered)}){hint}"


def _size(rows: int, n: int) -> str:
    return f"{rows} row{'s' * (rows > 1)} of {n} token{'s' * (n > 1)}"


def _not_finite(t: Target, ids: Int) -> str:
    """Where NaN and infinities come from, where that can be told."""
    if broken := t.broken_weight():
        return f"the weight {broken} is not finite: it was never filled, or training ran away"
    try:
        made = first_layer(t, ids)
    except (NotApplicable, IndexError):
        made = t.logits(ids)
    T, without = ids.shape[1], (~made.isfinite()).any(-1).any(0).nonzero().flatten().tolist()
    at = _where_first(t, ids)
    if not 0 < len(without) < T:
        lost = f"numbers are lost{at}: a division by zero, a softmax over nothing, or weights never filled"
        return lost if at and T > 1 else ""
    if without == [0]:
        return (
            f"the first token alone gets NaN{at}: a softmax over nothing, where it may not see even itself (< for <=), "
            "or a division by its position"
        )
    return f"tokens {without} get NaN{at} and the others do not: all their keys are hidden, softmax over nothing"


def _where_first(t: Target, ids: Int) -> str:
    """Between which parts numbers are lost."""
    try:
        names, seen = calls(t, ids)
    except NotApplicable:
        return ""
    for i, (given, gave) in enumerate(seen):
        if not bool(given.isfinite().all()):
            return f" before {names[i]}" + (f", after {names[i - 1]}" if i else "")
        if not bool(gave.isfinite().all()):
            return f" in {names[i]}"
    return ""


@law(
    "evaluation is deterministic",
    source="dropout that is on in evaluation: a functional dropout without training=self.training",
    hint="two like calls differ: look for what is drawn (dropout, layers made in forward) and for what is kept",
)
def evaluation_is_deterministic(t: Target, n: int) -> Evidence:
    """Two calls in evaluation mode give the same bits: nothing is drawn."""
    ids = t.ids(2, n)
    want, got = t.logits(ids), t.logits(ids)
    if not bool((got.isfinite() & want.isfinite()).all()):
        raise NotApplicable(f"logits of {t.name} are not finite: see whether logits are numbers")
    return Evidence(got, want, None, ids, tolerance=0.0, cause=lambda: explain_randomness(t, ids))


@law(
    "call history",
    source="tables, masks and angles kept from a longer call, or one in another mode: dynamic NTK's angles, biases "
    "kept by shape, cosines made in bfloat16 or in inference mode",
    hint="what a call computes for its own length or dtype must not be kept in the module for calls of another one",
    shrinks=False,
)
def call_history(t: Target, n: int) -> Evidence:
    """A long call, or one at other positions or in another mode, changes no bit of the calls after it."""
    with t.editable() if "module" in t.can else nullcontext(t) as asked:
        return _history(asked, n)


def _history(t: Target, n: int) -> Evidence:
    found = _ask_again(t, t.ids(2, n), None, [])
    if "module" in t.can:  # first of all: a table that is long already is not made anew in another mode
        found = _after_modes(t, t.ids(2, n)) or found
    found = found if found.cause else _ask_again(t, t.ids(2, n), None, list(_calls(t, n)))
    if not found.cause and t.limit is not None and not t.table_ends and "positions" in t.can:
        beyond = torch.arange(t.limit, t.limit + n, device=t.device).expand(2, -1)
        farther = "one at positions farther past the limit", lambda: t.logits(t.ids(1, n), positions=4 * beyond[:1])
        found = _ask_again(t, t.ids(2, n), beyond, [farther])
    return found if found.cause else _compare_with_fresh(t, t.ids(2, n)) or found


def _compare_with_fresh(t: Target, ids: Int) -> Evidence | None:
    """The logits at positions 0, 2, 4, .. after all these calls, where a model that was never called gives others."""
    fresh = t.fresh()
    if fresh is None or "positions" not in t.can or ids.shape[1] < 2:
        return None
    at = 2 * torch.arange(ids.shape[1], device=t.device).expand_as(ids)
    if t.limit is not None and int(at.max()) >= t.limit:
        return None
    want, got = fresh.logits(ids, positions=at), t.logits(ids, positions=at)
    cause = "after other calls one at positions 0, 2, 4, .. differs from what a model gives that was never called"
    return None if torch.equal(got, want) else Evidence(got, want, None, ids, tolerance=0.0, cause=cause)


def _after_modes(t: Target, ids: Int) -> Evidence | None:
    """The logits of a short call before and after a long one in another mode, where they differ. Gradients that could
    be taken before are still to be had: a table that was made in inference mode refuses them."""
    long, want = t.ids(1, min(LONG, t.limit or LONG)), t.logits(ids)
    with t.editable() as asked:  # twice: a cache that keeps the graph of one call refuses the next
        learns = _learns(asked, ids) or _learns(asked, ids)
    with t.editable() as asked:
        try:
            asked.logits(long)
        except Exception:  # so long a text has other laws
            return None
        if not torch.equal(asked.logits(ids), want):
            return None  # it is the length that is kept
    modes: dict[str, Callable[[], AbstractContextManager[object]]] = {
        "under bfloat16 autocast": lambda: torch.autocast(t.device.type, torch.bfloat16),
        "in inference mode": torch.inference_mode,
        "that records gradients": torch.enable_grad,
    }
    for said, mode in modes.items():
        with t.editable() as asked:
            try:
                with mode():
                    asked.logits(long)
            except Exception:  # what it refuses has other laws
                continue
            got, after = asked.logits(ids), "" if learns else _learns(asked, ids)
        if not torch.equal(got, want):
            cause = f"the calls after one of {long.shape[1]} tokens {said} differ from those before it"
            return Evidence(got, want, None, ids, tolerance=0.0, cause=cause)
        if after:
            cause = f"after a call of {long.shape[1]} tokens {said} no gradient can be taken: {after}"
            return Evidence(torch.full_like(want, torch.nan), want, None, ids, tolerance=0.0, cause=cause)
    return None


def _learns(t: Target, ids: Int) -> str:
    """What computing with gradients raises; "" where nothing does."""
    weights = [w for w in t.module.parameters() if w.requires_grad]
    try:
        with torch.enable_grad():
            logits = t.logits(ids)
            if logits.requires_grad and weights:
                torch.autograd.grad(logits.sum(), weights[:1], allow_unused=True)
    except Exception as raised:  # whatever a model raises in training
        return f"{type(raised).__name__}: {one_line(str(raised))}"
    return ""


Call = tuple[str, Callable[[], object]]


def _ask_again(t: Target, ids: Int, positions: Int | None, calls: list[Call]) -> Evidence:
    """The logits of a short call before and after these calls, up to the first that changes them."""
    want = t.logits(ids, positions=positions)
    if not bool(want.isfinite().all()):
        raise NotApplicable(f"logits of {t.name} are not finite: see whether logits are numbers")
    if not torch.equal(t.logits(ids, positions=positions), want):
        raise NotApplicable(f"two calls of {t.name} in a row differ already")
    got, where = want, "" if positions is None else ", asked past the limit,"
    for said, call in calls:
        try:
            call()
        except Exception:  # what it refuses has other laws
            continue
        got = t.logits(ids, positions=positions)
        if not torch.equal(got, want):
            cause = f"the calls{where} after {said} differ from those before it"
            return Evidence(got, want, None, ids, tolerance=0.0, cause=cause)
    return Evidence(got, want, None, ids, tolerance=0.0)


def _calls(t: Target, n: int) -> Iterator[Call]:
    """Calls that may leave something behind, each with words for it."""
    room = t.limit if t.limit is not None else SHORT
    longer = min(4 * n, room)
    yield f"one of {longer} tokens", lambda: t.logits(t.ids(1, longer))
    if longer < room <= SHORT:
        yield f"one of {room} tokens, all there are positions for", lambda: t.logits(t.ids(1, room))
    if t.limit is not None and not t.table_ends and t.limit + n <= SHORT:
        yield f"one of {t.limit + n} tokens, past the limit of {t.limit}", lambda: t.logits(t.ids(1, room + n))
    if "positions" in t.can:
        last = torch.arange(room - n, room, device=t.device)
        yield f"one at positions up to {room - 1}", lambda: t.logits(t.ids(1, n), positions=last[None])
        if t.limit is not None and not t.table_ends:
            yield (
                f"one at positions past the limit of {t.limit}",
                lambda: t.logits(t.ids(1, n), positions=last[None] + n),
            )
    if "mask" in t.can:
        mask = left_padding_mask(t, n)
        yield "one of a padded batch", lambda: t.logits(t.fill_padding(t.ids(3, n + 1), mask), mask=mask)
    if "cache" in t.can and t.causal:
        yield "one through a cache", lambda: t.step(t.step(None, t.ids(2, n))[1], t.ids(2, 1))
    yield "one of a single token", lambda: t.logits(t.ids(1, 1))


__all__ = ["call_history", "evaluation_is_deterministic", "logits_are_numbers"]
