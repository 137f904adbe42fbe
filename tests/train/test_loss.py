"""Which tokens are targets, and that a loss is a mean over them and nothing else."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn import functional as F

from gnomon.errors import BadValue
from gnomon.layout import Layout
from gnomon.models import DecoderOnly
from gnomon.train.loss import (
    IGNORE,
    Loss,
    cross_entropy,
    next_token_labels,
    next_token_loss,
    padding_of,
    row_losses,
    window_labels,
    window_loss,
)

V = 12
COUNTING = torch.tensor([[5, 6, 7, 8], [5, 6, 7, 8]])


def counts_up(ids: torch.Tensor, at: Layout | None = None) -> torch.Tensor:
    """A model that is sure that after t comes t + 1."""
    return 100.0 * F.one_hot((ids + 1) % V, V).float()


def test_labels_are_shifted_exactly_once():
    loss = next_token_loss(counts_up(COUNTING), COUNTING, Layout.dense(2, 4))
    assert loss.total.item() == pytest.approx(0, abs=1e-6)
    assert loss.count == 6


def test_a_row_of_four_has_three_targets_and_none_from_the_next_row():
    assert next_token_labels(COUNTING, Layout.dense(2, 4)).tolist() == [[6, 7, 8, IGNORE]] * 2


@given(st.lists(st.lists(st.integers(1, 4), min_size=1, max_size=4), min_size=1, max_size=3), st.data())
def test_every_token_of_a_packed_document_but_its_first_is_a_target_once(lengths, data):
    at = Layout.packed(lengths)
    ids = torch.tensor(
        data.draw(
            st.lists(
                st.lists(st.integers(0, V - 1), min_size=at.shape[1], max_size=at.shape[1]),
                min_size=len(lengths),
                max_size=len(lengths),
            )
        )
    )
    expected = torch.full_like(ids, IGNORE)
    for b, row in enumerate(lengths):
        start = 0
        for n in row:
            expected[b, start : start + n - 1] = ids[b, start + 1 : start + n]
            start += n
    assert next_token_labels(ids, at).equal(expected)


@pytest.mark.parametrize("left", [False, True])
def test_padding_is_known_by_length_so_an_end_token_with_its_id_is_still_learned(left):
    end = 2
    ids = torch.tensor([[end, end, 7, 8, end]] if left else [[7, 8, end, end, end]])
    mask = torch.tensor([[0, 0, 1, 1, 1]] if left else [[1, 1, 1, 0, 0]])
    labels = next_token_labels(ids, Layout.padded(mask))
    assert labels[labels != IGNORE].tolist() == [8, end]
    assert labels[0, 2 if left else 0] == 8


def test_no_targets_give_a_loss_of_zero_with_zero_gradient():
    logits = torch.randn(2, 3, V, requires_grad=True)
    loss = cross_entropy(logits, torch.full((2, 3), IGNORE))
    loss.mean.backward()
    assert loss.mean == 0
    assert loss.count == 0
    assert logits.grad.eq(0).all()


def test_losses_add_up_as_sums_not_as_means():
    both = Loss(torch.tensor(6.0), torch.tensor(3)) + Loss(torch.tensor(1.0), torch.tensor(1))
    assert both.mean == 1.75


def test_the_loss_of_a_batch_is_the_sum_over_its_rows_whatever_their_lengths():
    ids, mask = torch.randint(0, V, (3, 6)), torch.arange(6) < torch.tensor([[6], [2], [4]])
    logits = torch.randn(3, 6, V)
    whole = next_token_loss(logits, ids, Layout.padded(mask))
    parts = [next_token_loss(logits[b : b + 1], ids[b : b + 1], Layout.padded(mask[b : b + 1])) for b in range(3)]
    total = parts[0] + parts[1] + parts[2]
    assert whole.count == total.count == 5 + 1 + 3
    torch.testing.assert_close(whole.total, total.total)


def test_low_precision_logits_are_summed_in_float32():
    logits, labels = torch.randn(4, 64, V).bfloat16(), torch.randint(0, V, (4, 64))
    loss = cross_entropy(logits, labels).total
    assert loss.dtype == torch.float32
    torch.testing.assert_close(loss, cross_entropy(logits.double(), labels).total.float())


LAYOUTS = {
    "dense": Layout.dense(2, 6),
    "one row for all": Layout.dense(1, 6),
    "packed": Layout.packed([[3, 3], [1, 4]]),
    "padded left": Layout.padded(torch.tensor([[0, 0, 1, 1, 1, 1], [1, 1, 1, 1, 1, 1]])),
    "padded right": Layout.padded(torch.tensor([[1, 1, 1, 0, 0, 0], [1, 1, 1, 1, 1, 0]])),
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_not_reading_the_last_token_of_a_window_changes_nothing(name):
    torch.manual_seed(0)
    at, ids = LAYOUTS[name], torch.randint(0, V, (2, 6))
    model = DecoderOnly(V, 8, 2, 2, position="rope").double()
    whole, window = next_token_loss(model(ids, at), ids, at.expand(2)), window_loss(model, ids, at)
    assert window.count == whole.count
    torch.testing.assert_close(window.total, whole.total)


def test_a_window_has_one_target_for_each_token_read():
    ids = torch.randint(0, V, (2, 6))
    assert window_labels(ids).equal(ids[:, 1:])
    with pytest.raises(BadValue, match=r"at least two tokens.*\(2, 1\)"):
        window_labels(ids[:, :1])


# ------------------------------------------------------------------ smoothing


def distribution_from_gradient(label: int, smoothing: float, padding_id: int | None) -> list[float]:
    """The target distribution q, read from the gradient p - q at logits 0, where p is uniform."""
    logits = torch.zeros(1, 1, 5, dtype=torch.float64, requires_grad=True)
    cross_entropy(logits, torch.tensor([[label]]), smoothing, padding_id).total.backward()
    return (1 / 5 - logits.grad.flatten()).tolist()


@pytest.mark.parametrize(
    ("label", "padding_id", "expected"),
    [
        (2, 0, [0, 0.4 / 3, 0.6, 0.4 / 3, 0.4 / 3]),  # over V - 2 classes: neither padding nor the label
        (2, None, [0.1, 0.1, 0.6, 0.1, 0.1]),
        (2, 2, [0.1, 0.1, 0.6, 0.1, 0.1]),  # an end token that is the padding id too, and a target all the same
    ],
)
def test_smoothing_spreads_over_all_classes_but_the_label_and_padding(label, padding_id, expected):
    assert distribution_from_gradient(label, 0.4, padding_id) == pytest.approx(expected, abs=1e-12)


def test_smoothed_loss_is_the_cross_entropy_with_the_smoothed_distribution():
    torch.manual_seed(0)
    logits = torch.randn(1, 1, 5, dtype=torch.float64)
    q = torch.tensor([0, 0.4 / 3, 0.6, 0.4 / 3, 0.4 / 3], dtype=torch.float64)
    log_p = logits[0, 0].log_softmax(-1)
    found = cross_entropy(logits, torch.tensor([[2]]), 0.4, padding_id=0).total
    torch.testing.assert_close(found, -(q * log_p).sum())
    entropy = -torch.xlogy(q, q).sum()
    assert entropy.item() == pytest.approx(1.11245658)  # the constant between this form and the divergence KL(q, p)


def test_ignored_labels_pay_nothing_when_smoothed_and_have_zero_gradient():
    torch.manual_seed(0)
    logits, labels = torch.randn(2, 3, V, requires_grad=True), torch.full((2, 3), IGNORE)
    loss = cross_entropy(logits, labels, 0.1, padding_id=0)
    loss.mean.backward()
    assert loss.mean == 0
    assert logits.grad.eq(0).all()
    labels[0, 1] = 4
    alone = cross_entropy(logits[:1, 1:2], labels[:1, 1:2], 0.1, padding_id=0)
    both = cross_entropy(logits, labels, 0.1, padding_id=0)
    torch.testing.assert_close(both.total, alone.total)
    assert both.count == 1


def test_finite_logits_never_pay_infinitely_even_where_padding_is_impossible():
    logits = torch.full((1, 1, 5), -200.0).index_fill(2, torch.tensor([2]), 200.0)
    logits[..., 0] = -torch.inf  # as a model that rules padding out would have it
    loss = cross_entropy(logits.requires_grad_(), torch.tensor([[2]]), 0.4, padding_id=0)
    loss.total.backward()
    assert loss.total.isfinite()
    assert logits.grad.isfinite().all()


def test_no_smoothing_is_the_plain_loss():
    torch.manual_seed(0)
    logits, labels = torch.randn(2, 3, V), torch.randint(0, V, (2, 3))
    torch.testing.assert_close(cross_entropy(logits, labels, 1e-12).total, cross_entropy(logits, labels).total)


def test_the_padding_class_is_that_of_the_model_however_it_is_wrapped():
    model = DecoderOnly(V, 8, 2, 2, padding_id=3)
    assert padding_of(torch.nn.Sequential(model)) == padding_of(model) == 3
    assert padding_of(torch.nn.Linear(1, 1)) is None
    ids = torch.tensor([[3, 1, 2, 4]])
    smoothed = window_loss(model, ids, smoothing=0.3)
    torch.testing.assert_close(smoothed.total, cross_entropy(model(ids[:, :-1]), ids[:, 1:], 0.3, 3).total)


def test_rows_add_up_to_the_batch():
    torch.manual_seed(0)
    logits, labels = torch.randn(3, 4, V), torch.randint(0, V, (3, 4))
    labels[1, 2:], labels[2] = IGNORE, IGNORE
    rows = row_losses(logits, labels)
    torch.testing.assert_close(rows.total.sum(), cross_entropy(logits, labels).total)
    assert rows.count.tolist() == [4, 2, 0]
