"""Naive Bayes against a case worked by hand."""

import numpy as np
import pytest

from gnomon.data.bag_of_words import BagOfWords, words
from gnomon.data.table import Example
from gnomon.errors import BadInput

ROWS = [Example("red red sun", "warm"), Example("sun", "warm"), Example("blue", "cold")]


def test_probabilities_are_those_of_a_case_worked_by_hand():
    """Words red, sun, blue; a = 1. warm: n = 2, 2, 0 of 4, p = 3/7, 3/7, 1/7, prior 2/3; cold: 0, 0, 1 of 1,
    p = 1/4, 1/4, 2/4, prior 1/3. "red blue moon" (moon unknown): warm 2/3 x 3/7 x 1/7, cold 1/3 x 1/4 x 2/4."""
    bag = BagOfWords(ROWS, smoothing=1.0)
    warm, cold = 2 / 3 * 3 / 7 * 1 / 7, 1 / 3 * 1 / 4 * 2 / 4
    assert bag.labels == ("cold", "warm")
    found = np.exp(bag.log_probabilities("red blue moon"))
    assert found == pytest.approx([cold / (warm + cold), warm / (warm + cold)])
    assert bag.predict("red blue moon") == ("warm" if warm > cold else "cold")


def test_the_order_of_words_does_not_matter():
    bag = BagOfWords(ROWS)
    assert bag.log_probabilities("red sun blue") == pytest.approx(bag.log_probabilities("blue red sun"))


def test_without_known_words_the_most_frequent_class_wins():
    assert BagOfWords(ROWS).predict("") == "warm"


def test_a_long_text_does_not_underflow():
    assert np.isfinite(BagOfWords(ROWS).log_probabilities("blue " * 5000)).all()


def test_words_are_letters_and_digits_and_signs():
    assert words("self.is_open(x1)\n") == ["self", ".", "is", "_", "open", "(", "x1", ")"]


def test_nothing_to_count_is_named():
    with pytest.raises(BadInput, match="no examples"):
        BagOfWords([])
