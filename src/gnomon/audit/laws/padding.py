"""Laws of batches: padding, packing and the other rows change nothing."""

from collections.abc import Callable
from dataclasses import replace

import torch

from gnomon.audit.law import Evidence, law
from gnomon.audit.laws.caches import POSITIONAL, paddings
from gnomon.audit.subject import VOCAB, Subject, alone, at_real, joined
from gnomon.layout import Layout
from gnomon.shapes import Bool

Spoil = Callable[[Layout], Layout]


def padded(s: Subject, mask: Bool, spoil: Spoil) -> Evidence:
    """A padded batch against its rows alone; `spoil` puts the fault into its layout."""
    model, ids, at = s.model(), s.ids(*mask.shape), Layout.padded(mask)
    wrong = at_real(model(ids, spoil(at)), at)
    return Evidence(at_real(model(ids, at), at), alone(model, ids, at), wrong)


def all_seen(at: Layout) -> Layout:
    """The fault: padding is attended to, or documents see one another."""
    return replace(at, doc=torch.zeros_like(at.pos), kind="custom")


def by_slot(at: Layout) -> Layout:
    """The fault: positions are counted in slots, padding included."""
    return replace(at, pos=torch.arange(at.shape[1]).expand(at.shape), kind="custom")


def steps_by_slot(at: Layout) -> Layout:
    """The fault: windows are measured in slots, padding included."""
    return replace(at, step=torch.arange(at.shape[1]).expand(at.shape), kind="custom")


@law("left padding is hidden")
def left_padding_is_hidden(s: Subject) -> Evidence:
    """A row padded on the left gives the logits of the row alone: nobody sees the padding."""
    return padded(s, paddings()[0], all_seen)


@law("left padding takes no position", shown_by="sinusoidal, learned")
def left_padding_takes_no_position(s: Subject) -> Evidence:
    """A row padded on the left starts at position 0."""
    return padded(s, paddings()[0], by_slot)


@law("right padding is hidden")
def right_padding_is_hidden(s: Subject) -> Evidence:
    """A row padded on the right gives the logits of the row alone."""
    return padded(s, paddings()[1], all_seen)


@law("interior padding is hidden")
def interior_padding_is_hidden(s: Subject) -> Evidence:
    """Holes inside a row change nothing."""
    return padded(s, paddings()[2], all_seen)


@law("interior padding takes no position", shown_by=POSITIONAL)
def interior_padding_takes_no_position(s: Subject) -> Evidence:
    """Positions go on after a hole as if it were not there."""
    return padded(s, paddings()[2], by_slot)


@law("padding takes no place in a window")
def padding_takes_no_place_in_a_window(s: Subject) -> Evidence:
    """A window counts tokens, not slots."""
    return padded(replace(s, window=2), paddings()[2], steps_by_slot)


@law("packed = separate")
def packed_is_separate(s: Subject) -> Evidence:
    """Documents packed into a row give the logits of each alone: none sees another."""
    model, ids, at = s.model(), s.ids(2, 12), Layout.packed([[5, 3, 4], [7, 2]])
    return Evidence(at_real(model(ids, at), at), alone(model, ids, at), at_real(model(ids, all_seen(at)), at))


@law("packed documents start at position 0", shown_by="sinusoidal, learned")
def packed_documents_start_at_0(s: Subject) -> Evidence:
    """Positions start again with every document of a packed row."""
    model, ids, at = s.model(), s.ids(2, 12), Layout.packed([[5, 3, 4], [7, 2]])
    return Evidence(at_real(model(ids, at), at), alone(model, ids, at), at_real(model(ids, by_slot(at)), at))


@law("batch mates change nothing")
def batch_mates_change_nothing(s: Subject) -> Evidence:
    """A row's logits do not depend on what else is in the batch, in training mode neither."""
    model, ids = s.model(), s.ids(4, 9)
    alone_, together = torch.cat([model(row[None]) for row in ids]), model(ids)
    model.train()
    return Evidence(joined(together, model(ids)), joined(alone_, alone_))


@law("every row has its own positions", shown_by=POSITIONAL)
def every_row_has_its_own_positions(s: Subject) -> Evidence:
    """In a batch whose rows sit at different positions, each row's own count."""
    model, ids = s.model(), s.ids(3, 9)
    at = Layout.randomized(9, max=32, rng=s.rng(), batch=3)
    want = torch.cat([model(ids[b : b + 1], at.rows(torch.tensor([b]))) for b in range(3)])
    return Evidence(model(ids, at), want, model(ids, at.rows(torch.tensor([0, 0, 0]))))


@law("masked tokens get no gradient")
def masked_tokens_get_no_gradient(s: Subject) -> Evidence:
    """Padding, other documents and (when causal) tokens to come receive exactly no gradient."""
    model, inside = s.model(tied=False), slice(2, 7)
    slot = torch.arange(8)[None]
    cases = [(Layout.padded((slot >= 2) & (slot < 7)), inside), (Layout.packed([[2, 5, 1]]), inside)]
    if s.causal:
        cases.append((Layout.dense(1, 8), slice(0, 7)))
    got = []
    for at, seen in cases:
        ids = torch.full((1, 8), VOCAB - 1)  # a token that stands only where nothing may come from
        ids[:, seen] = s.ids(1, 8)[:, seen] % (VOCAB - 1)
        model.zero_grad()
        with torch.enable_grad():
            torch.autograd.backward(model(ids, at)[:, seen].square().sum())
        sent = model.input.tokens.weight.grad
        assert sent is not None
        got += [sent[VOCAB - 1].abs().amax(), (sent.abs().amax() > 0).float()]
    return Evidence(torch.stack(got), torch.tensor([0.0, 1.0] * len(cases)), slack=0.0)


@law("an empty row is harmless")
def an_empty_row_is_harmless(s: Subject) -> Evidence:
    """A row of nothing but padding gives finite numbers and gradients, and leaves the other rows as they were."""
    model, ids, mask = s.model(), s.ids(3, 7), paddings()[0].clone()
    mask[1] = False
    with torch.enable_grad():
        logits = model(ids, Layout.padded(mask))
        torch.autograd.backward(logits.square().sum())
    finite = [logits.isfinite().all(), *(p.grad.isfinite().all() for p in model.parameters() if p.grad is not None)]
    others = torch.tensor([0, 2])
    want = model(ids[others], Layout.padded(mask[others]))
    got = joined(logits[others], torch.stack(finite).all().float())
    return Evidence(got, joined(want, torch.ones(())))
