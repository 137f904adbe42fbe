"""The same targets at every length, with as much context as the length promises."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import gnomon as gn
from gnomon.data import Corpus, Tokenizer, TokenStore
from gnomon.errors import BadInput
from gnomon.lab import protocols
from gnomon.lab.protocols import (
    choose_targets,
    document_nats,
    far_attention,
    has_positions,
    nats_by_position,
    nats_per_token,
)
from gnomon.layout import Layout

BYTES = Tokenizer.bytes()


def model(position, **sizes):
    torch.manual_seed(0)
    return gn.DecoderOnly(
        vocab_size=300, d_model=16, n_layers=2, n_heads=2, position=position, init_std=0.25, **sizes
    ).eval()


@pytest.fixture
def targets(store):
    return choose_targets(store, 8, (1, 2, 4), per_document=2)


@given(
    train_length=st.integers(4, 12),
    factors=st.sets(st.integers(1, 9), min_size=1, max_size=4),
    many=st.integers(1, 3),
)
@settings(max_examples=60, deadline=None)
def test_every_length_is_asked_for_the_same_tokens_once_each(train_length, factors, many):
    """Whatever the lengths: the targets of each length are the last n tokens of every block, in whatever windows."""
    factors = sorted({1, *factors})
    text = bytes(range(1, 128)).decode() * 2
    store = TokenStore.open(Corpus.from_texts([text, text[3:]]), BYTES)
    chosen = choose_targets(store, train_length, factors, many)
    asked = {}

    def note(model, rows, last, shift=0):
        assert rows.shape[1] - 1 == length
        assert last <= max(1, length // 4) or last == chosen.n
        asked[length] += rows[:, -last:].ravel().tolist()
        return np.ones((len(rows), last))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(protocols, "nats_per_token", note)
        for length in [train_length * f for f in factors]:
            asked[length] = []
            counted = document_nats(None, chosen, length)
            assert counted.sum() == chosen.n_tokens  # one nat each
    expected = sorted(chosen.windows[:, -chosen.n :].ravel().tolist())
    assert all(sorted(tokens) == expected for tokens in asked.values())


def test_targets_have_at_least_three_quarters_of_the_window_in_front_of_them(targets):
    for length in (8, 16, 32):
        assert length - targets.stride(length) + 1 > 3 * length / 4


def test_targets_are_the_ends_of_long_documents(store, targets):
    long = [store.document(i) for i in range(store.n_documents) if len(store.document(i)) > 32]
    assert targets.n_documents == len(long)
    last_blocks = targets.windows[np.flatnonzero(np.diff(targets.document, prepend=-1))]
    assert [row.tolist() for row in last_blocks] == [document[-33:].tolist() for document in long]
    twice = [document[-2 * targets.n :] for document in long if len(document) > 32 + targets.n]
    sizes = [store.byte_lengths[tail].sum() for tail in twice]
    two = np.bincount(targets.document) == 2
    assert targets.bytes_of_documents[two].tolist() == [float(size) for size in sizes]


@pytest.mark.parametrize("position", ["none", "sinusoidal", "rope", "alibi", "t5"])
def test_the_price_of_a_target_is_that_of_reading_its_window_alone(corpus, tokenizer, position):
    """An oracle: each window in a batch of its own, all of its logits, the targets picked out by hand."""
    m = model(position)
    targets = choose_targets(TokenStore.open(Corpus(corpus.documents[:4], "few"), tokenizer), 8, (1, 2, 4), 2)
    for length in (8, 16, 32):
        step, end = targets.stride(length), targets.windows.shape[1]
        expected = np.zeros(targets.n_documents)
        for document, row in zip(targets.document, targets.windows, strict=True):
            for stop in range(end - targets.n + step, end + 1, step):
                ids = torch.from_numpy(row[stop - length - 1 : stop])
                paid = -m(ids[None, :-1])[0].detach().log_softmax(-1)[torch.arange(length), ids[1:]]
                expected[document] += float(paid[length - step :].sum())
        assert document_nats(m, targets, length) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("position", ["none", "rope", "alibi", "t5"])
def test_moving_a_window_changes_nothing_for_relative_encodings(targets, position):
    m = model(position)
    assert document_nats(m, targets, 8, shift=24) == pytest.approx(document_nats(m, targets, 8), rel=1e-5)


def test_moving_a_window_changes_what_absolute_encodings_pay(targets):
    m = model("sinusoidal")
    assert np.abs(document_nats(m, targets, 8, shift=24) / document_nats(m, targets, 8) - 1).max() > 1e-3


def test_a_learned_table_has_no_meaning_past_its_end():
    m = model("learned", max_positions=8)
    assert has_positions(m, 8)
    assert not has_positions(m, 9)
    assert not has_positions(m, 8, shift=1)
    assert has_positions(model("rope"), 10_000)


def test_windows_in_one_piece_pay_at_each_place_what_the_logits_say(targets):
    m = model("alibi")
    rows = torch.from_numpy(targets.windows[:, :17])
    direct = -m(rows[:, :-1]).detach().log_softmax(-1).gather(-1, rows[:, 1:, None])[..., 0].double()
    assert nats_by_position(m, targets, 16) == pytest.approx(direct.numpy(), rel=1e-5)


@pytest.mark.parametrize("factors", [(1,), (1, 3), (1, 2, 4)])
@pytest.mark.parametrize("length", [4, 7, 8])
def test_windows_in_one_piece_hold_the_surprise_at_the_longest_length(store, factors, length):
    m, targets = model("rope"), choose_targets(store, length, factors, 2)
    assert targets.of(nats_by_position(m, targets, targets.longest)) == pytest.approx(
        document_nats(m, targets, targets.longest), rel=1e-5
    )


def test_attention_that_is_spread_evenly_goes_far_by_counting(targets):
    """With q = 0 a query at place t (from 1) spreads evenly over t keys, t - near of them at least `near` back."""
    m = model("none")
    for block in m.stack.blocks:
        torch.nn.init.zeros_(block.attention.q.weight)
    places = range(targets.longest - targets.n + 1, targets.longest + 1)
    assert far_attention(m, targets, near=8) == pytest.approx(np.mean([(t - 8) / t for t in places]), rel=1e-5)
    assert far_attention(m, targets, near=targets.longest) == 0


def test_measuring_leaves_dropout_out_and_the_model_in_its_mode(targets):
    m = model("rope", dropout=0.5).train()
    first = nats_per_token(m, targets.windows, 4)
    assert np.array_equal(first, nats_per_token(m, targets.windows, 4))
    assert m.training


def test_batches_of_measuring_do_not_show(targets, monkeypatch):
    m = model("rope")
    whole = nats_per_token(m, targets.windows, 4)
    monkeypatch.setattr(protocols, "BATCH_TOKENS", 64)
    assert nats_per_token(m, targets.windows, 4) == pytest.approx(whole, abs=1e-5)


def test_text_without_long_documents_is_refused_with_ways_out():
    store = TokenStore.open(Corpus.from_texts(["a" * 60, "b" * 100]), BYTES)
    with pytest.raises(BadInput, match="longest of 2 has 100") as error:
        choose_targets(store, 8, (1, 2, 4, 16), 1)
    assert "only up to 4 times" in str(error.value)
    assert "at most 6" in str(error.value)
    choose_targets(store, 8, (1, 2, 4), 1)  # both ways lead out
    choose_targets(store, 6, (1, 2, 4, 16), 1)
    with pytest.raises(BadInput):
        choose_targets(store, 7, (1, 2, 4, 16), 1)


def test_the_layout_of_a_moved_window_is_dense_and_moved():
    at = protocols._placed(4, 6)
    assert at.kind == "dense"
    assert at.pos.tolist() == [[6, 7, 8, 9]]
    assert torch.equal(protocols._placed(4, 0).pos, Layout.dense(1, 4).pos)
