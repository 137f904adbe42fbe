"""Laws of the loss: each token is predicted from those before it, once, and padding is not predicted."""

import torch
from torch.nn import functional as F

from gnomon.audit.law import Evidence, law
from gnomon.audit.laws.padding import rows_alone
from gnomon.audit.target import NotApplicable, Target
from gnomon.shapes import Float, Int


@law(
    "labels are shifted once",
    "loss",
    "causal",
    source="next-token prediction; a data loader and a model that both shift, or neither",
    hint="logits[:, :-1] predict ids[:, 1:]: shift in the loader or in the model",
    shrinks=False,
)
def labels_are_shifted_once(t: Target, n: int) -> Evidence:
    """The loss is the mean cross-entropy of each token given those before it."""
    if t.architecture != "decoder-only":
        raise NotApplicable(f"{t.name} is told its labels apart from what it reads")
    ids = t.ids(2, max(n, 4))
    logits, got = t.logits(ids), t.loss(ids).detach().double()
    want = cross_entropy(logits, ids, 1)
    itself = "not shifted: the loss asks of each token that it predicts itself"
    wrong = [
        (cross_entropy(logits, ids, 0), itself),
        (cross_entropy(logits[:, :-1], ids[:, :-1], 0), itself),  # of a text cut for labels that are not looked at
        (
            cross_entropy(logits, ids, 2),
            "shifted twice: the loss asks of each token that it predicts the one after the next",
        ),
        (
            cross_entropy(logits, ids, -1),
            "shifted the wrong way: the loss asks of each token that it predicts the one before it",
        ),
    ]
    tolerance = t.tolerance(torch.cat([logits.flatten().double(), want[None]]))
    near, cause = min([(want, ""), *wrong], key=lambda said: float((got - said[0]).abs()))
    if not (got - near).abs() <= tolerance:
        raise NotApplicable(
            f"the loss of {t.name} is no plain mean cross-entropy: it is {float(got):.6g}, not {float(want):.6g}"
        )
    others = torch.stack([loss for loss, _ in wrong])
    nearest = others[(others - want).abs().argmin()]
    return Evidence(got, want, nearest, ids, tolerance, cause)


@law(
    "padding stays out of the loss",
    "padded loss",
    source="a mean over padded slots, which makes the loss depend on what a text is batched with",
    hint="give padding the label -100, or weigh it by 0, and divide by the number of labels that count",
    shrinks=False,
)
def padding_stays_out(t: Target, n: int) -> Evidence:
    """The loss of a padded batch is the mean over its real tokens, as if rows were read alone."""
    if t.architecture != "decoder-only":
        raise NotApplicable(f"{t.name} is told its labels apart from what it reads")
    T = max(n, 6)
    mask = torch.arange(T, device=t.device) < torch.tensor([[T], [T // 2]], device=t.device)
    ids = t.fill_padding(t.ids(2, T), mask)
    got = t.padded_loss(ids, mask).detach().double()
    logits = rows_alone(t, ids, mask)
    real = F.cross_entropy(logits[:, :-1].flatten(0, 1).double(), ids[:, 1:].flatten(), reduction="none").view(2, -1)
    counted = (real * mask[:, 1:]).sum()
    want, over_all = counted / mask[:, 1:].sum(), counted / mask[:, 1:].numel()
    edge = (real * mask[:, :-1]).sum() / mask[:, :-1].sum()
    said = [
        (over_all, "what real tokens lose is divided by all slots, padding included"),
        (edge, "the last token of each text is asked to predict the padding after it"),
    ]
    if "mask" in t.can:
        shown = t.logits(ids, mask=mask)[:, :-1].flatten(0, 1).double()
        said.append((F.cross_entropy(shown, ids[:, 1:].flatten()), "padding is predicted, and enters the mean"))
    tolerance = t.tolerance(torch.cat([logits.flatten().double(), want[None]]))
    cause = next((words for number, words in said if (got - number).abs() <= tolerance), "")
    if not cause and not (got - want).abs() <= tolerance:
        raise NotApplicable(f"the loss of {t.name} is no mean over real tokens, nor one that is known to be wrong")
    return Evidence(got, want, over_all, ids, tolerance, cause)


def cross_entropy(logits: Float, ids: Int, shift: int) -> Float:
    """The mean over tokens where the logits of token i predict token i + shift."""
    T = ids.shape[1]
    seen, labels = logits[:, max(0, -shift) : T - max(0, shift)], ids[:, max(0, shift) : T - max(0, -shift)]
    return F.cross_entropy(seen.flatten(0, 1).double(), labels.flatten())


__all__ = ["cross_entropy", "labels_are_shifted_once", "padding_stays_out"]
