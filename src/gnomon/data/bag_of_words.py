"""The bag of words a classifier is held against: multinomial naive Bayes, which sees words and not their order.

    log p(c | text) = log p(c) + sum over words w of log p(w | c) + constant
    p(w | c) = (n(w, c) + a) / (n(c) + a V)        p(c): the share of training texts

n counts words in the training texts of a class, V the different words in all of them; words never seen are passed over
(Manning, Raghavan and Schuetze 2008, "Introduction to Information Retrieval", section 13.2, where a is 1).
"""

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from gnomon.data.table import Example
from gnomon.errors import BadInput

Floats = np.ndarray[Any, np.dtype[np.float64]]
_WORD = re.compile(r"[^\W_]+|_|[^\w\s]")


def words(text: str) -> list[str]:
    """Runs of letters and digits, and every other visible character by itself.

    >>> words("not self.is_open()")
    ['not', 'self', '.', 'is', '_', 'open', '(', ')']
    """
    return _WORD.findall(text)


class BagOfWords:
    """A classifier fitted on examples; its `labels` are in alphabetical order."""

    def __init__(self, examples: Sequence[Example], smoothing: float = 0.1) -> None:
        """Count words by class. smoothing: a above; less than 1 does better where classes have few texts."""
        if not examples:
            raise BadInput("there are no examples to count words in")
        self.labels: tuple[str, ...] = tuple(sorted({label for _, label in examples}))
        counts = {label: Counter[str]() for label in self.labels}
        for text, label in examples:
            counts[label].update(words(text))
        vocabulary = sorted(set().union(*counts.values()))
        self._row = {word: i for i, word in enumerate(vocabulary)}
        n = np.array([[counts[label][word] for word in vocabulary] for label in self.labels], np.float64) + smoothing
        self._log_word: Floats = np.log(n / n.sum(1, keepdims=True)).T  # (V, C)
        texts = Counter(label for _, label in examples)
        self._log_class: Floats = np.log([texts[label] / len(examples) for label in self.labels])  # (C,)

    def log_probabilities(self, text: str) -> Floats:
        """(C,) of each label."""
        rows = [self._row[word] for word in words(text) if word in self._row]
        scores = self._log_class + self._log_word[rows].sum(0)
        top = scores.max()
        return np.asarray(scores - top - np.log(np.exp(scores - top).sum()))

    def predict(self, text: str) -> str:
        """The most probable label; of equals the first."""
        return self.labels[int(self.log_probabilities(text).argmax())]


__all__ = ["BagOfWords", "words"]
