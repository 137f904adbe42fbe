"""The law of the loss: each token is predicted from those before it, once."""

import torch
from torch.nn import functional as F

from gnomon.audit.outside.rule import Evidence, rule
from gnomon.audit.outside.target import Target
from gnomon.audit.subject import NotApplicable
from gnomon.shapes import Float, Int


@rule(
    "labels are shifted once",
    source="next-token prediction; a data loader and a model that both shift, or neither",
    hint="logits[:, :-1] predict ids[:, 1:]: shift in the loader or in the model",
    shrinks=False,
)
def labels_are_shifted_once(t: Target, n: int) -> Evidence:
    """The loss is the mean cross-entropy of each token given those before it."""
    t.need("loss")
    t.must_be_causal()
    if t.architecture != "decoder-only":
        raise NotApplicable(f"{t.name} is told its labels apart from what it reads")
    ids = t.ids(2, max(n, 4))
    logits, got = t.logits(ids), t.loss(ids).detach().double()
    # what is predicted from the logits of token i: the token itself, the next, the one after it
    found = {shift: cross_entropy(logits, ids, shift) for shift in (0, 1, 2, -1)}
    want = found[1]
    tolerance = t.tolerance(torch.cat([logits.flatten().double(), want[None]]))
    said = {
        0: "not shifted: the loss asks of each token that it predicts itself",
        2: "shifted twice: the loss asks of each token that it predicts the one after the next",
        -1: "shifted the wrong way: the loss asks of each token that it predicts the one before it",
    }
    near = min(found, key=lambda shift: float((got - found[shift]).abs()))
    if not (got - found[near]).abs() <= tolerance:
        raise NotApplicable(
            f"the loss of {t.name} is no plain mean cross-entropy: it is {float(got):.6g}, not {float(want):.6g}"
        )
    others = torch.stack([found[shift] for shift in said])
    nearest = others[(others - want).abs().argmin()]
    return Evidence(got, want, nearest, ids, tolerance, said.get(near, ""))


def cross_entropy(logits: Float, ids: Int, shift: int) -> Float:
    """The mean over tokens where the logits of token i predict token i + shift."""
    T = ids.shape[1]
    seen, told = logits[:, max(0, -shift) : T - max(0, shift)], ids[:, max(0, shift) : T - max(0, -shift)]
    return F.cross_entropy(seen.flatten(0, 1).double(), told.flatten())


__all__ = ["cross_entropy", "labels_are_shifted_once"]
