"""Laws of the two ends: a tie is one tensor and stays one, and rows stay what they are.

Whether ends are tied is seen by what they do: a row of the table that no input uses is nudged, and if the ends are tied
the logit of its token moves. That holds for a shared parameter, a shared module and a head that borrows the table in a
closure alike; a closure is where a deep copy goes wrong, since it still borrows from the model it was copied from.
"""

import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import torch

from gnomon.audit.law import Evidence, law
from gnomon.audit.target import NotApplicable, Target
from gnomon.shapes import Float, Int


@law(
    "ties are one tensor",
    source="Press & Wolf 2017, arXiv:1608.05859; Inan et al. 2017, arXiv:1611.01462",
    hint="assign the parameter itself, head.weight = embedding.weight, after everything that makes new parameters",
    shrinks=False,
)
def ties_are_one(t: Target, n: int) -> Evidence:
    """The table and the head are one tensor where they are meant to be, not two with the same numbers."""
    table, head = t.embedding_and_head()
    one, promised = share_memory(table, head), t.promises_tie
    equal = table.shape == head.shape and torch.equal(table, head)
    if not one and not equal and not promised:
        raise NotApplicable(f"the ends of {t.name} are two matrices, and nothing says that they should be one")
    if not one and promised is False:
        raise NotApplicable(f"{t.name} says that its ends are apart; they only begin alike")
    cause = "its ends are promised to be one tensor, but are two"
    if equal:
        cause = "a tied copy instead of a tied weight: two tensors with the same numbers, which training pulls apart"
    return Evidence(torch.tensor(1.0 if one else 2.0), torch.tensor(1.0), tolerance=0.0, cause=cause)


@law(
    "a tie stays a tie",
    source="accelerate#1204, huggingface/transformers#43207: weights that were one are two after copying or loading",
    hint="a tie must be a shared parameter; ties made by copies or by closures are cut by what makes new tensors",
    shrinks=False,
)
def a_tie_stays(t: Target, n: int) -> Evidence:
    """Ends that are tied still are after a deep copy, a cast, loading a state dict, saving and resizing."""
    ids = t.ids(1, 3).repeat(1, n)[:, :n]  # three tokens, so that others are left out
    if not torch.equal(t.logits(ids), t.logits(ids)):
        raise NotApplicable(f"two like calls of {t.name} differ: see whether evaluation is deterministic")
    if not are_tied(t, ids):
        raise NotApplicable(f"the ends of {t.name} are not tied")
    still, cut = [], []
    for how, other in treatments(t, ids):
        still.append(float(are_tied(other, ids)))
        if not still[-1]:
            cut.append(how)
    return Evidence(torch.tensor(still), torch.ones(len(still)), tolerance=0.0, cause=f"cut by: {', '.join(cut)}")


@law(
    "a saved model is the same",
    "save",
    source="a file that keeps one name of a shared pair, or a table that grew; huggingface/transformers#30202",
    hint="look for parameters that are made anew after loading, and for what is not in the file",
)
def saved_is_the_same(t: Target, n: int) -> Evidence:
    """Written and read again, a model gives the same logits."""
    ids = t.ids(2, n)
    with tempfile.TemporaryDirectory() as folder:
        got = t.save_and_load(Path(folder)).logits(ids)
    return Evidence(got, t.logits(ids), None, ids)


@law(
    "resizing keeps old rows",
    "resize",
    source="huggingface/transformers#35141: the head was initialised anew",
    hint="copy the rows that remain into both ends, and the bias of the head with them",
)
def resizing_keeps_rows(t: Target, n: int) -> Evidence:
    """A larger or smaller vocabulary leaves the rows that remain, bit for bit, and so the logits of their ids."""
    larger = _check_resized(t, n, t.vocab + 5)
    if not larger.holds(t):
        return larger
    try:
        smaller = _check_resized(t, n, t.vocab - 3)
    except Exception:  # where an id that is in use would be cut off
        return larger
    return larger if smaller.holds(t) else smaller


def _check_resized(t: Target, n: int, rows: int) -> Evidence:
    ids, other, kept = t.ids(2, n), t.resize(rows), min(rows, t.vocab)
    ids = torch.where(ids < kept, ids, ids.amin())
    with suppress(NotApplicable):
        for name, old, new in zip(("table", "head"), t.embedding_and_head(), other.embedding_and_head(), strict=True):
            if not torch.equal(old[:kept], new[:kept]):
                cause = f"rows of the {name} are not those it had"
                return Evidence(new[:kept], old[:kept], tolerance=0.0, cause=cause)
    return Evidence(other.logits(ids)[..., :kept], t.logits(ids)[..., :kept], None, ids)


def treatments(t: Target, ids: Int) -> Iterator[tuple[str, Target]]:
    """The target after each treatment that is known to cut ties, each done to a model whose ends are tied."""
    t.need("module")
    yield "a deep copy", t.copy()
    with t.editable() as loaded:
        loaded.module.load_state_dict(t.module.state_dict())
        yield "loading a state dict", loaded
    with t.editable() as cast:
        cast.module.to(torch.float64).to(t.dtype)  # and back: not every model computes in float64
        yield "a cast", cast
    if "save" in t.can:
        with tempfile.TemporaryDirectory() as folder:
            yield "saving and reading", t.save_and_load(Path(folder))
    if "resize" in t.can:
        yield "resizing", t.resize(t.vocab + 5)


def share_memory(a: Float, b: Float) -> bool:
    """Whether two tensors are one place in memory."""
    return a is b or (a.data_ptr() == b.data_ptr() and a.shape == b.shape and a.device.type != "meta")


@torch.no_grad()
def are_tied(t: Target, ids: Int) -> bool:
    """Whether nudging a row of the table that no input uses moves its own logit. The row is put back."""
    table = t.embedding().weight
    if not isinstance(table, torch.Tensor):
        raise NotApplicable(f"the table of {t.name} is no tensor")
    used = set(ids.flatten().tolist())
    unused = next((i for i in range(min(len(table), t.vocab) - 1, -1, -1) if i not in used), None)
    if unused is None:
        raise NotApplicable(f"{t.name} has {t.vocab} tokens, too few to leave one out")
    before, row = t.logits(ids), table[unused].clone()
    try:
        table[unused] = row + torch.randn(row.shape, generator=t.rng(3)).to(row)
        after = t.logits(ids)
    finally:
        table[unused] = row
    if before.shape[-1] <= unused:
        raise NotApplicable(f"{t.name} gives no logits of a vocabulary")
    return not torch.equal(before[..., unused], after[..., unused])


__all__ = [
    "a_tie_stays",
    "are_tied",
    "resizing_keeps_rows",
    "saved_is_the_same",
    "share_memory",
    "ties_are_one",
    "treatments",
]
