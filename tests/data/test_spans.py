"""Spans are labels of tokens and back, labels never say what cannot be, and only exact spans count."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gnomon.data import Tokenizer
from gnomon.data.spans import Span, SpanCounts, best_labels, count_spans, kinds_of, label_names, to_labels, to_spans
from gnomon.tasks.spans import tokenize

KINDS = ("name", "number")
TEXT = "abcdefghijklmnop"


@st.composite
def spans(draw):
    """Spans that do not overlap, some of them touching, in a text without blanks."""
    cuts = sorted(draw(st.sets(st.integers(0, len(TEXT)), min_size=1)))
    kinds = draw(st.lists(st.sampled_from([*KINDS, None]), min_size=len(cuts), max_size=len(cuts)))
    return [Span(a, b, kind) for a, b, kind in zip(cuts, cuts[1:], kinds, strict=False) if kind]


@given(spans())
def test_spans_become_labels_of_characters_and_the_same_spans_again(given_spans):
    at = np.arange(len(TEXT))
    assert to_spans(to_labels(given_spans, TEXT, at, KINDS), TEXT, at, KINDS) == given_spans


@given(spans())
def test_the_labels_of_spans_are_the_best_labels_for_themselves(given_spans):
    labels = to_labels(given_spans, TEXT, np.arange(len(TEXT)), KINDS)
    assert best_labels(np.eye(5)[labels]).tolist() == labels.tolist()


def test_labels_are_those_of_the_definition():
    """0 outside, 1 + 2k begins kind k, 2 + 2k goes on with it; spans that touch are told apart."""
    found = to_labels([Span(1, 3, "name"), Span(3, 4, "name"), Span(4, 6, "number")], "abcdefg", np.arange(7), KINDS)
    assert found.tolist() == [0, 1, 2, 1, 3, 4, 0]
    assert label_names(KINDS) == ("O", "B-name", "I-name", "B-number", "I-number")
    assert kinds_of(label_names(KINDS)) == list(KINDS)


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ([2, 2, 0], [Span(0, 2, "name")]),  # goes on with nothing
        ([1, 4, 4], [Span(0, 1, "name"), Span(1, 3, "number")]),  # goes on with another kind
        ([1, 0, 2], [Span(0, 1, "name"), Span(2, 3, "name")]),
        ([0, 0, 0], []),
        ([], []),
    ],
)
def test_any_labels_are_read_as_some_spans(labels, expected):
    text = "abc"[: len(labels)]
    assert to_spans(np.array(labels, dtype=int), text, np.arange(len(labels)), KINDS) == expected


@given(st.integers(1, 4), st.integers(0, 10_000))
def test_the_best_labels_are_the_best_of_all_that_can_be(n, seed):
    """Against enumeration of every sequence in which 2 follows 1 or 2 alone, and 4 follows 3 or 4."""
    scores = np.random.default_rng(seed).normal(size=(n, 5))

    def can_be(labels):
        return all(
            now in (0, 1, 3) or before in (now - 1, now) for before, now in zip((0, *labels), labels, strict=False)
        )

    best = max(filter(can_be, product(range(5), repeat=n)), key=lambda labels: scores[range(n), labels].sum())
    assert best_labels(scores).tolist() == list(best)


def test_no_tokens_have_no_labels():
    assert best_labels(np.zeros((0, 5))).tolist() == []


@pytest.mark.parametrize(
    ("predicted", "gold", "expected"),
    [
        ([Span(0, 2, "name")], [Span(0, 2, "name")], (1, 1, 1)),
        ([Span(0, 3, "name")], [Span(0, 2, "name")], (0, 1, 1)),  # one character too many
        ([Span(1, 2, "name")], [Span(0, 2, "name")], (0, 1, 1)),  # overlap counts nothing
        ([Span(0, 2, "number")], [Span(0, 2, "name")], (0, 0, 1)),  # another kind
        ([], [Span(0, 2, "name")], (0, 0, 1)),
        ([Span(0, 1, "name"), Span(1, 2, "name")], [Span(0, 2, "name")], (0, 2, 1)),  # cut in two
        ([], [], (0, 0, 0)),
    ],
)
def test_a_span_is_found_where_both_ends_and_the_kind_are_right(predicted, gold, expected):
    found = count_spans(predicted, gold, KINDS)
    assert tuple(int(x[0]) for x in found) == expected


def test_f1_is_the_harmonic_mean_of_precision_and_recall():
    """3 hits, 4 predicted, 6 gold: precision 3/4, recall 1/2, F1 2 x 3/4 x 1/2 / (5/4) = 0.6. Nothing to find: 0."""
    found = SpanCounts(np.array([3, 0]), np.array([4, 0]), np.array([6, 0]))
    assert found.f1.tolist() == pytest.approx([0.6, 0.0])


def test_byte_pair_tokens_are_labelled_by_their_first_visible_character():
    tokenizer = Tokenizer.bpe(["if value: return value"] * 50, 280)
    text = "if value: return value"
    ids, starts = tokenize(text, tokenizer)
    pieces = [text[a:b] for a, b in zip(starts, [*starts[1:], len(text)], strict=True)]
    assert "".join(pieces) == text
    assert pieces == [tokenizer.decode([i]) for i in ids]
    assert " value" in pieces  # the blank comes with the word
    words = [Span(0, 2, "number"), Span(3, 8, "name"), Span(10, 16, "number"), Span(17, 22, "name")]
    assert to_spans(to_labels(words, text, starts, KINDS), text, starts, KINDS) == words


@pytest.mark.parametrize("tokenizer", [Tokenizer.bytes(), Tokenizer.bpe(["año niño"] * 9, 262)])
def test_characters_of_several_bytes_keep_their_places(tokenizer):
    text = "niño = '→' # año"
    ids, starts = tokenize(text, tokenizer)
    assert len(ids) == len(starts)
    spans = [Span(0, 4, "name"), Span(7, 10, "number"), Span(11, 16, "name")]
    assert to_spans(to_labels(spans, text, starts, KINDS), text, starts, KINDS) == spans
