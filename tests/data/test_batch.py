"""Laws of windows: every target once a pass, the same batch at the same step, held-out text untouched."""

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gnomon.data import Corpus, LMBatches, Tokenizer, TokenStore, bits_per_byte, long_documents, windows_for_eval
from gnomon.errors import BadInput, BadValue


def counting_store(n: int) -> TokenStore:
    """A stream 0, 1, 2, ..., so that a window shows where it was cut; id i weighs i bytes."""
    ids = np.arange(n)
    return TokenStore(ids, np.array([n - 1]), np.array([n - 1]), byte_lengths=ids, eos_id=n - 1)


@given(n=st.integers(2, 400), length=st.integers(1, 20), batch_size=st.integers(1, 9), seed=st.integers(0, 9))
@settings(deadline=None)
def test_in_one_pass_each_target_comes_once(n: int, length: int, batch_size: int, seed: int) -> None:
    if n <= length:
        return
    batches = LMBatches(counting_store(n), batch_size, length, seed)
    per_pass = batches.windows_per_pass
    rows = np.concatenate([batches.batch(step) for step in range(-(-2 * per_pass // batch_size))])
    assert (np.diff(rows) == 1).all()
    for number in range(2):
        targets = rows[number * per_pass : (number + 1) * per_pass, 1:].ravel()
        assert len(np.unique(targets)) == len(targets) == per_pass * length
        assert n - 1 - len(targets) < 2 * length


def test_every_token_is_a_target_sooner_or_later_and_every_cut_is_used() -> None:
    batches = LMBatches(counting_store(50), batch_size=1, length=8)
    rows = np.concatenate([batches.batch(step) for step in range(100 * batches.windows_per_pass)])
    assert set(rows[:, 1:].ravel()) == set(range(1, 50))
    assert set(rows[:, 0] % 8) == set(range(8))


@given(steps=st.lists(st.integers(0, 200), min_size=1, max_size=8), seed=st.integers(0, 9))
@settings(deadline=None)
def test_a_batch_depends_on_its_step_alone(steps: list[int], seed: int) -> None:
    """So training that stopped goes on with the batch it would have had."""
    store = counting_store(300)
    used = LMBatches(store, 4, 10, seed)
    for step in steps:
        assert np.array_equal(used.batch(step), LMBatches(store, 4, 10, seed).batch(step))


def test_seeds_and_passes_differ_in_order() -> None:
    batches = {seed: LMBatches(counting_store(1000), 8, 10, seed) for seed in range(3)}
    assert len({tuple(batches[seed].batch(0)[:, 0]) for seed in batches}) == 3
    per_pass = batches[0].windows_per_pass
    first, second = (LMBatches(counting_store(1000), per_pass, 10).batch(step)[:, 0] for step in range(2))
    assert not np.array_equal(first - first.min(), second - second.min())


def test_a_batch_is_int64_of_the_callers_own() -> None:
    store = TokenStore.open(Corpus.from_texts(["the dog bit the man"]), Tokenizer.bytes())
    batch = LMBatches(store, 3, 5).batch(0)
    assert (batch.shape, batch.dtype, batch.flags.writeable) == ((3, 6), np.int64, True)


def test_documents_in_a_window_have_end_of_text_between() -> None:
    store = TokenStore.open(Corpus.from_texts(["ab", "cd"]), Tokenizer.bytes())
    assert LMBatches(store, 1, 5).batch(0).tolist() == [[*b"ab", 256, *b"cd", 256]]


def test_training_windows_hold_no_held_out_text() -> None:
    texts = [chr(0x4E00 + i) * 50 for i in range(40)]
    train, valid = Corpus.from_texts(texts).split(0.2)
    tokenizer = Tokenizer.characters(texts)
    batches = LMBatches(TokenStore.open(train, tokenizer), 8, 16)
    seen = {i for step in range(batches.windows_per_pass) for i in batches.batch(step).ravel().tolist()}
    held_out = {i for text in valid.texts for i in tokenizer.encode(text)}
    assert not seen & held_out
    assert seen == {i for text in train.texts for i in tokenizer.encode(text)} | {tokenizer.eos_id}


@given(n=st.integers(2, 300), length=st.integers(1, 20))
def test_evaluation_windows_follow_each_other_and_know_their_bytes(n: int, length: int) -> None:
    if n <= length:
        return
    windows = windows_for_eval(counting_store(n), length)
    assert windows.ids[:, 1:].ravel().tolist() == list(range(1, 1 + (n - 1) // length * length))
    assert (windows.ids[:, 0] == np.arange(len(windows.ids)) * length).all()
    assert windows.n_bytes.tolist() == windows.ids[:, 1:].sum(axis=1).tolist()


def test_bytes_of_evaluation_windows_are_those_of_the_text(byte_level: Tokenizer) -> None:
    corpus = Corpus.from_texts(["el perro mordió al hombre", "世界 😀"])
    store = TokenStore.open(corpus, byte_level)
    whole = windows_for_eval(store, length=len(store.tokens) - 1)
    first = len(byte_level.pieces.rest[store.tokens[0]])
    assert whole.n_bytes.tolist() == [corpus.n_bytes - first]


@pytest.mark.parametrize(("limit", "kept"), [(1, [0]), (3, [0, 3, 6]), (10, range(10)), (99, range(10))])
def test_a_limit_keeps_windows_spread_over_the_text(limit: int, kept: list[int]) -> None:
    windows = windows_for_eval(counting_store(41), length=4, limit=limit)
    assert windows.ids[:, 0].tolist() == [4 * i for i in kept]
    assert len(windows.n_bytes) == len(kept)


def test_long_documents_are_those_with_enough_tokens_of_their_own(byte_level: Tokenizer) -> None:
    texts = ["the dog " * n for n in (3, 1, 40, 2)]
    store = TokenStore.open(Corpus.from_texts(texts), byte_level)
    lengths = [len(byte_level.encode(text)) for text in texts]
    for least in [0, 1, *lengths, *(length + 1 for length in lengths)]:
        assert long_documents(store, least).tolist() == [i for i, length in enumerate(lengths) if length >= least]


def test_a_uniform_guess_over_bytes_costs_eight_bits_a_byte() -> None:
    assert bits_per_byte(nats=10 * math.log(256), n_bytes=10) == pytest.approx(8)


def test_a_text_shorter_than_one_window_is_refused_and_one_as_long_is_not(tmp_path: Path) -> None:
    store = TokenStore.open(Corpus.from_texts(["abcd"]), Tokenizer.bytes(), tmp_path)
    for make in [lambda n: LMBatches(store, 1, n).batch(7), lambda n: windows_for_eval(store, n).ids]:
        assert make(4).tolist() == [[*b"abcd", 256]]
        with pytest.raises(BadInput, match=r"5 tokens, but one window of length 5 needs 6: .* at most 4"):
            make(5)


def test_counts_below_one_and_steps_below_zero_are_refused() -> None:
    store = counting_store(20)
    for call, name in [
        (lambda: LMBatches(store, 0, 4), "batch_size is 0"),
        (lambda: LMBatches(store, 2, 0), "length is 0"),
        (lambda: LMBatches(store, 2, 4).batch(-1), "step is -1"),
        (lambda: windows_for_eval(store, 0), "length is 0"),
        (lambda: windows_for_eval(store, 4, limit=0), "limit is 0"),
    ]:
        with pytest.raises(BadValue, match=name):
            call()
