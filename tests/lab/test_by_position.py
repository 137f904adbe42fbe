"""Loss by position against its definition."""

import numpy as np
import pytest
import torch

import gnomon as gn
from gnomon.data import Corpus
from gnomon.lab.by_position import beginnings, by_position, stretches

BYTES = gn.Tokenizer.bytes()


def model(position="rope", **changes):
    torch.manual_seed(0)
    return gn.DecoderOnly(257, 16, 1, 2, position=position, init_std=0.3, **changes).eval()


def corpus(n=6, length=300):
    rng = np.random.default_rng(0)
    return Corpus.from_texts([bytes(rng.integers(97, 123, length + 10 * i).tolist()).decode() for i in range(n)])


def test_stretches_double_and_cover_everything():
    assert stretches(1000) == [(0, 64), (64, 128), (128, 256), (256, 512), (512, 1000)]
    assert stretches(512)[0] == (0, 64)
    assert stretches(64) == [(0, 8), (8, 16), (16, 32), (32, 64)]
    assert stretches(10) == [(0, 1), (1, 2), (2, 4), (4, 8), (8, 10)]
    assert stretches(1) == [(0, 1)]


def test_each_stretch_is_the_mean_of_what_its_tokens_cost():
    m, rows = model(), beginnings(corpus(), BYTES, 200, 4)
    assert rows.shape == (4, 201)
    ids = torch.from_numpy(rows)
    with torch.no_grad():
        nats = -m(ids[:, :-1]).log_softmax(-1).gather(-1, ids[:, 1:, None])[..., 0]
    for found in by_position(m, rows):
        assert found.nats.value == pytest.approx(float(nats[:, found.start : found.stop].mean()), rel=1e-5)
        assert found.nats.low <= found.nats.value <= found.nats.high
        assert found.nats.count == 4


def test_the_head_answers_some_tokens_at_a_time_and_each_as_it_would_all(monkeypatch):
    """Logits of a whole long document would be its length times the vocabulary: gigabytes for a real model."""
    from gnomon.lab import protocols

    m, rows, asked = model(), np.random.default_rng(0).integers(0, 30, (2, 101)), []
    whole = protocols.nats_per_token(m, rows, 90)
    monkeypatch.setattr(protocols, "HEAD_TOKENS", 64)
    m.head.register_forward_pre_hook(lambda _, given: asked.append(given[0].shape[0]))
    np.testing.assert_allclose(protocols.nats_per_token(m, rows, 90), whole, rtol=1e-6)
    assert asked == [64, 64, 52]


def test_where_a_table_ends_there_is_no_number():
    m, rows = model("learned", max_positions=100), beginnings(corpus(), BYTES, 256, 2)
    assert [found.nats is None for found in by_position(m, rows)] == [False, False, True, True]


def test_documents_that_are_too_short_are_left_out_and_too_few_is_an_error():
    assert len(beginnings(corpus(6, 300), BYTES, 320, 6)) == 3
    with pytest.raises(gn.BadInput, match="of more than 345 tokens; the text has 1 of that length among 6"):
        beginnings(corpus(6, 300), BYTES, 345, 6)
    with pytest.raises(gn.BadValue, match="2 documents or more"):
        beginnings(corpus(), BYTES, 20, 1)


def test_the_same_documents_are_chosen_every_time():
    assert (beginnings(corpus(), BYTES, 100, 3) == beginnings(corpus(), BYTES, 100, 3)).all()


def test_progress_is_told_after_every_document():
    done = []
    by_position(model(), beginnings(corpus(), BYTES, 64, 5), lambda: done.append(1))
    assert len(done) == 5
