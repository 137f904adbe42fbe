"""Labels are shifted once; a loss that is something else is not accused."""

import pytest
from torch.nn import functional as F
from variants import asked, student

from gnomon.audit import Torch

LAW = "labels are shifted once"
LOSS = "F.cross_entropy(logits.flatten(0, 1), labels.flatten())"
RIGHT = "logits, labels = self(ids[:, :-1])[0], ids[:, 1:]"


@pytest.mark.parametrize(
    ("edits", "says"),
    [
        ({RIGHT: "logits, labels = self(ids)[0], ids"}, "not shifted"),
        ({RIGHT: "logits, labels = self(ids)[0][:, :-2], ids[:, 2:]"}, "shifted twice"),
        ({RIGHT: "logits, labels = self(ids)[0][:, 1:], ids[:, :-1]"}, "shifted the wrong way"),
    ],
)
def test_every_other_shift_is_named(edits, says):
    found = asked(LAW, student(edits))
    assert found.verdict == "FAIL"
    assert found.note.startswith(says)


def test_a_loss_over_the_whole_text_is_the_same_one():
    assert asked(LAW, student({RIGHT: "logits, labels = self(ids)[0][:, :-1], ids[:, 1:]"})).verdict == "pass"


@pytest.mark.parametrize(
    "other",
    [
        LOSS.replace("))", "), label_smoothing=0.1)"),
        LOSS + " + 0.01 * logits.pow(2).mean()",
        LOSS.replace("))", "), reduction='sum')"),
    ],
)
def test_a_loss_with_another_term_is_not_accused(other):
    found = asked(LAW, student({LOSS: other}))
    assert found.verdict == "not applicable"
    assert "no plain mean cross-entropy" in found.note


def test_a_model_whose_predictions_are_alike_everywhere_cannot_show_it():
    found = asked(LAW, student({"return self.head(self.norm(x)), read": "return 0 * self.head(self.norm(x)), read"}))
    assert found.verdict == "not observable"


def test_a_model_without_a_loss_is_not_asked():
    assert asked(LAW, student({"loss=lambda gpt, ids: gpt.loss(ids)": ""})).note.endswith(
        "not told to compute a loss: Torch(model, loss=...)"
    )


# ------------------------------------------------------------------ padding

PADDED = "padding stays out of the loss"


def padded(loss):
    """A student who is trained on batches padded on the right: `loss` (logits, labels, real (B, T - 1)) -> scalar."""

    def of(model, ids, mask):
        logits = model(ids)[0]
        return loss(logits[:, :-1].transpose(1, 2), ids[:, 1:], mask)

    return Torch(student().model, padded_loss=of, masked=lambda model, ids, mask: model(ids))


def each(logits, labels):
    return F.cross_entropy(logits, labels, reduction="none")


def test_a_mean_over_real_tokens_passes():
    ignored = padded(lambda logits, ids, mask: F.cross_entropy(logits, ids.masked_fill(~mask[:, 1:], -100)))
    assert asked(PADDED, ignored).verdict == "pass"
    weighed = padded(lambda logits, ids, mask: (each(logits, ids) * mask[:, 1:]).sum() / mask[:, 1:].sum())
    assert asked(PADDED, weighed).verdict == "pass"


@pytest.mark.parametrize(
    ("loss", "says"),
    [
        (lambda logits, ids, mask: F.cross_entropy(logits, ids), "padding is predicted"),
        (lambda logits, ids, mask: (each(logits, ids) * mask[:, 1:]).mean(), "divided by all slots"),
        (
            lambda logits, ids, mask: (each(logits, ids) * mask[:, :-1]).sum() / mask[:, :-1].sum(),
            "asked to predict the padding after it",
        ),
    ],
)
def test_padding_in_the_mean_is_named(loss, says):
    found = asked(PADDED, padded(loss))
    assert found.verdict == "FAIL"
    assert says in found.note


def test_a_mean_of_rows_is_not_accused():
    rows = padded(lambda logits, ids, mask: ((each(logits, ids) * mask[:, 1:]).sum(1) / mask[:, 1:].sum(1)).mean())
    assert asked(PADDED, rows).verdict == "not applicable"
