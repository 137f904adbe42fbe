"""Constraints: what a text must, may and must not hold, whatever strategy writes it."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from math import isfinite

from gnomon.data import Tokenizer
from gnomon.errors import BadValue, check_arguments, wrong
from gnomon.generate.logits import (
    History,
    forbid_incomplete,
    force,
    no_repeat,
    presence_frequency,
    repetition,
    restrict,
)
from gnomon.shapes import Float

#: given the number of a row and its ids so far, prompt included: the ids that may follow, or None for all of them
Allowed = Callable[[int, list[int]], Iterable[int] | None]


@check_arguments
@dataclass(frozen=True)
class Constraints:
    """Penalties and bans on what is written; by default there are none.

    repetition_penalty   above 1 makes tokens of the prompt and the text less likely, once each
    presence_penalty     taken from the logit of each token that was written already
    frequency_penalty    the same for each time it was
    no_repeat_ngram      no n tokens in a row occur twice, the prompt included
    bad_words            texts, or lists of ids, that are never written; a text is banned as its tokens stand alone, so
                         give "word" and " word" where the tokenizer tells them apart
    allowed              called with (row, ids so far), prompt included; returns the ids that may follow, or None
    prefix               a text, or ids, with which every continuation begins; it overrules the bans

    Penalties reshape the distribution, which is normalised again; bans only take tokens out. So the score of a beam is
    that of the reshaped distribution, and what bans and a prefix cost it is paid. `gnomon.generate.logits` defines each
    and says in which order they act.
    """

    repetition_penalty: float = 1.0
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    no_repeat_ngram: int | None = None
    bad_words: Sequence[str | Sequence[int]] = ()
    allowed: Allowed | None = None
    prefix: str | Sequence[int] = ()

    def __post_init__(self) -> None:
        """Raise BadValue for what cannot be right."""
        if not (isfinite(self.repetition_penalty) and self.repetition_penalty > 0):
            raise BadValue(
                f"repetition_penalty divides, so it is a number above 0 (1: none); got {self.repetition_penalty}"
            )
        for name in ("presence_penalty", "frequency_penalty"):
            if not isfinite(getattr(self, name)):
                raise BadValue(f"{name} is a finite number (0: none), got {getattr(self, name)}")
        if self.no_repeat_ngram is not None and self.no_repeat_ngram < 1:
            raise BadValue(f"no_repeat_ngram counts tokens, so it is at least 1; got {self.no_repeat_ngram}")
        if isinstance(self.bad_words, str):
            raise BadValue(f"bad_words is a list of texts or of lists of ids; for one text give [{self.bad_words!r}]")
        words: list[tuple[str, object]] = [("a bad word", word) for word in self.bad_words]
        for name, word in [*words, ("prefix", self.prefix)]:
            listed = isinstance(word, Sequence) and all(type(i) is int for i in word)
            if not isinstance(word, str) and not listed:
                raise wrong(name, word, "a text or a list of token ids")
        if not all(len(word) for word in self.bad_words):
            raise BadValue("a bad word must not be empty: everything ends with it")

    def bind(self, tokenizer: Tokenizer | None, vocab_size: int) -> "Constraints":
        """The same with texts read by this tokenizer; BadValue where there is none, or an id is no token."""
        return replace(
            self,
            bad_words=tuple(_ids("bad_words", word, tokenizer, vocab_size) for word in self.bad_words),
            prefix=_ids("prefix", self.prefix, tokenizer, vocab_size),
        )

    def reshape(self, logits: Float, histories: Sequence[History]) -> Float:
        """The penalties."""
        if self.repetition_penalty != 1:
            logits = repetition(logits, histories, self.repetition_penalty)
        if self.presence_penalty or self.frequency_penalty:
            logits = presence_frequency(logits, histories, self.presence_penalty, self.frequency_penalty)
        return logits

    def ban(self, logits: Float, histories: Sequence[History]) -> Float:
        """The bans but for those of `allowed`."""
        if self.no_repeat_ngram is not None:
            logits = no_repeat(logits, histories, self.no_repeat_ngram)
        return forbid_incomplete(logits, histories, self._words()) if self.bad_words else logits

    def choose_from(self, logits: Float, histories: Sequence[History]) -> Float:
        """The callback's ban."""
        if self.allowed is None:
            return logits
        answers = [self.asked(h) for h in histories]
        for h, ids in zip(histories, answers, strict=True):
            wrong = [i for i in ids or () if not 0 <= i < logits.shape[-1]]
            if wrong:
                raise BadValue(f"allowed returned the id {wrong[0]} for row {h.row}: ids run to {logits.shape[-1] - 1}")
        return restrict(logits, answers)

    def asked(self, history: History) -> list[int] | None:
        """What the callback lets follow this history; None: everything."""
        answer = None if self.allowed is None else self.allowed(history.row, history.ids)
        return None if answer is None else [int(i) for i in answer]

    def force(self, logits: Float, free: Float, histories: Sequence[History]) -> Float:
        """The prefix; `free` are the logits before the bans."""
        start = self.prefix
        due = [start[len(h.new)] if len(h.new) < len(start) else None for h in histories]
        if all(i is None for i in due):
            return logits
        return force(logits, free, due)  # type: ignore[arg-type]  # bind has made the prefix ids

    def _words(self) -> list[Sequence[int]]:
        return [word for word in self.bad_words if not isinstance(word, str)]


NO_CONSTRAINTS = Constraints()


def _ids(name: str, given: str | Sequence[int], tokenizer: Tokenizer | None, vocab_size: int) -> tuple[int, ...]:
    if isinstance(given, str) and given and tokenizer is None:
        raise BadValue(f"{name} holds the text {given!r}, and this model has no tokenizer: give ids")
    ids = tuple(given) if not isinstance(given, str) else () if tokenizer is None else tuple(tokenizer.encode(given))
    for i in ids:
        if not 0 <= i < vocab_size:
            raise BadValue(f"{name} holds {i}, which is not one of the {vocab_size} token ids, 0 to {vocab_size - 1}")
    return ids


__all__ = ["NO_CONSTRAINTS", "Allowed", "Constraints"]
