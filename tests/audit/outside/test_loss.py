"""Labels are shifted once; a loss that is something else is not accused."""

import pytest
from variants import asked, student

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
    assert asked(LAW, student({"loss=lambda gpt, ids: gpt.loss(ids)": ""})).note == "GPT computes no loss"
