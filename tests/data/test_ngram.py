"""The trigram against the formula written out, and as a probability."""

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gnomon.data import Corpus, NGramBaseline
from gnomon.errors import BadValue

TEXTS = ["abracadabra", "el perro mordió al hombre", "the dog bit the man", "a"]


def slow(texts: list[bytes], context: bytes, byte: int) -> float:
    """Witten-Bell by recursion over counted strings."""
    grams = [text[i : i + len(context) + 1] for text in texts for i in range(len(text) - len(context))]
    after = Counter(gram[-1] for gram in grams if gram[:-1] == context)
    lower = slow(texts, context[1:], byte) if context else 1 / 256
    if not after:
        return lower
    return (after[byte] + len(after) * lower) / (after.total() + len(after))


@pytest.mark.parametrize("order", [1, 2, 3])
def test_bits_follow_the_formula(order: int) -> None:
    baseline = NGramBaseline(Corpus.from_texts(TEXTS), order)
    texts = [text.encode() for text in TEXTS]
    data = "the zebra mordió a \xff".encode()
    expected = [-math.log2(slow(texts, data[max(0, i - order + 1) : i], data[i])) for i in range(len(data))]
    np.testing.assert_allclose(baseline.bits(data), expected, rtol=1e-12)


@given(context=st.binary(min_size=2, max_size=2) | st.sampled_from([b"ab", b"th", b"a\xc3"]))
@settings(max_examples=50, deadline=None)
def test_probabilities_of_the_next_byte_add_up_to_one(context: bytes) -> None:
    grams = int.from_bytes(context) * 256 + np.arange(256)
    assert FITTED.probability(grams, 3).sum() == pytest.approx(1, abs=1e-12)
    assert FITTED.probability(grams, 3).min() > 0


FITTED = NGramBaseline(Corpus.from_texts(TEXTS))


@pytest.mark.parametrize("data", [b"", b"a", b"ab", b"abc"])
def test_every_byte_has_its_bits_in_the_shortest_documents(data: bytes) -> None:
    assert FITTED.bits(data).shape == (len(data),)


def test_bits_per_byte_are_the_mean_over_all_documents() -> None:
    corpus = Corpus.from_texts(["the man", "a dog bit"])
    bits = np.concatenate([FITTED.bits(b"the man"), FITTED.bits(b"a dog bit")])
    assert FITTED.bits_per_byte(corpus) == pytest.approx(bits.mean())


@pytest.mark.slow
def test_longer_contexts_predict_python_better() -> None:
    """The figure of a model of the standard library: near 2.5 bits per byte for trigrams, more for shorter ones."""
    train, valid = Corpus.open("stdlib").split()
    figures = [NGramBaseline(train, order).bits_per_byte(valid) for order in (1, 2, 3)]
    assert 8 > figures[0] > figures[1] > figures[2]
    assert 2.3 < figures[2] < 2.9


@pytest.mark.parametrize("order", [0, 4])
def test_an_order_without_a_table_is_refused(order: int) -> None:
    with pytest.raises(BadValue, match="1, 2 or 3"):
        NGramBaseline(Corpus.from_texts(["a"]), order)
