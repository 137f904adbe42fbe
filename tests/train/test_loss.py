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
    ids = torch.tensor(data.draw(st.lists(st.lists(st.integers(0, V - 1), min_size=at.shape[1], max_size=at.shape[1]),
                                          min_size=len(lengths), max_size=len(lengths))))  # fmt: skip
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
