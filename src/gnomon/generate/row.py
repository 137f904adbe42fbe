"""Row: one text while it is written, and when it ends."""

from collections.abc import Iterable, Sequence
from copy import copy, deepcopy
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import torch

from gnomon.data import TextStream, Tokenizer
from gnomon.errors import BadValue
from gnomon.generate.logits import History
from gnomon.generate.tree import Tree

Finish = Literal["eos", "stop", "length", "positions"]
Top = tuple[tuple[int, float], ...]


class Token(NamedTuple):
    """One token as it is written. The pieces of a row add up to its text."""

    row: int  #: the number of its prompt
    id: int
    piece: str  #: what it adds to the text that can be shown: often a word; nothing within a character or a stop string
    logprob: float  #: natural logarithm of the probability that the model gave it, before any reshaping
    finish_reason: Finish | None  #: why the row ends with this token; None while it goes on
    top: Top = ()  #: on request, the tokens most probable to the model here and their log-probabilities, best first


@dataclass(frozen=True)
class Generation:
    """What was written after one prompt."""

    prompt_ids: list[int]
    ids: list[int]  #: the new tokens, the one that ended the row included
    text: str  #: their text, without an end token or a stop string; "" where the model has no tokenizer
    finish_reason: Finish  #: an end token, a stop string, max_new_tokens, or no position left (a full learned table)
    logprobs: list[float]  #: of each new token, see Token
    seed: int  #: with which this row alone gives the same tokens again
    score: float | None = None  #: of a beam: the sum of log-probabilities / (number of new tokens)^length_penalty
    alternatives: tuple["Generation", ...] = ()  #: of a beam: the next best ones, n_best - 1 of them if there are
    tree: Tree | None = field(default=None, repr=False)  #: of a beam: what it looked into, see `gnomon.generate.draw`
    top_logprobs: tuple[Top, ...] = ()  #: on request, of each new token, see Token

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Ends:
    """When a row ends."""

    eos_ids: frozenset[int]
    stop: tuple[str, ...]
    min_new_tokens: int
    max_new_tokens: int

    def __post_init__(self) -> None:
        if not 0 <= self.min_new_tokens <= self.max_new_tokens or self.max_new_tokens < 1:
            raise BadValue(
                f"max_new_tokens must be at least 1 and at least min_new_tokens, which must be at least 0; got "
                f"max_new_tokens={self.max_new_tokens} and min_new_tokens={self.min_new_tokens}"
            )
        if not all(self.stop):
            raise BadValue("a stop string must not be empty: it would be found before the first token")


class UntilStop:
    """Text that comes in pieces, up to the first stop string; what may be the beginning of one is held back.

    The first stop string to be complete ends the text, read letter by letter; of those complete with the same letter,
    the longest. So the result does not depend on how a text is split into pieces.

    >>> until = UntilStop(["END"])
    >>> [until.push(piece) for piece in ["one E", "ND two"]], until.stopped
    (['one ', ''], True)
    """

    def __init__(self, stop: Iterable[str]) -> None:
        self.stop = tuple(stop)
        self.stopped = False
        self._held = ""  # the longest end of the text with which a stop string begins

    def push(self, piece: str, stops: bool = True) -> str:
        """The text that is certain after one more piece; without `stops`, a stop string that this piece completes is
        ordinary text."""
        text = self._held + piece
        found = self._completed(text, len(self._held)) if stops else None
        self.stopped = found is not None
        certain = len(text) - self._beginning(text) if found is None else found
        self._held = text[certain:] if found is None else ""
        return text[:certain]

    def flush(self) -> str:
        """The text held back, when no more comes."""
        held, self._held = self._held, ""
        return held

    def _completed(self, text: str, known: int) -> int | None:
        """Where the first stop string begins that is complete after more than `known` letters."""
        found = ((stop, text.find(stop, max(0, known + 1 - len(stop)))) for stop in self.stop)
        ends = [(at + len(stop), at) for stop, at in found if at >= 0]
        return min(ends)[1] if ends else None

    def _beginning(self, text: str) -> int:
        """The length of the longest end of `text` with which a stop string begins."""
        longest = max(map(len, self.stop), default=1) - 1
        lengths = range(min(longest, len(text)), 0, -1)
        return next((n for n in lengths if any(len(stop) > n and stop.startswith(text[-n:]) for stop in self.stop)), 0)


class Row:
    """One prompt, the tokens written after it, and the generator that their draws come from."""

    def __init__(
        self,
        number: int,
        prompt_ids: Sequence[int],
        seed: int,
        ends: Ends,
        tokenizer: Tokenizer | None,
        source_ids: Sequence[int] = (),
    ) -> None:
        self.number, self.prompt_ids, self.seed, self.ends = number, list(prompt_ids), seed, ends
        self.source_ids, self.tokenizer = list(source_ids), tokenizer
        self.rng = torch.Generator().manual_seed(seed)
        self.ids: list[int] = []
        self.logprobs: list[float] = []
        self.tops: list[Top] = []
        self.finish_reason: Finish | None = None
        self.score: float | None = None
        self.alternatives: tuple[Generation, ...] = ()
        self.tree: Tree | None = None
        self._pieces: list[str] = []
        self._stream = None if tokenizer is None else TextStream(tokenizer, after=prompt_ids)
        self._until = UntilStop(ends.stop)

    def history(self, more: Sequence[int] = ()) -> History:
        """What stands before its next token, if `more` is written first."""
        return History(self.number, self.prompt_ids, [*self.ids, *more])

    def branch(self) -> "Row":
        """Another row that has written the same so far."""
        twin = copy(self)
        twin.ids, twin.logprobs, twin.tops = list(self.ids), list(self.logprobs), list(self.tops)
        twin._pieces, twin._until = list(self._pieces), copy(self._until)
        twin._stream = deepcopy(self._stream, {id(self.tokenizer): self.tokenizer})
        return twin

    def take(self, token: int, logprob: float, full: bool, top: Top = ()) -> Token:
        """Write one more token; `full` says that the model could not read it."""
        self.ids.append(token)
        self.logprobs.append(logprob)
        self.tops.append(top)
        ended = token in self.ends.eos_ids
        piece = "" if ended or self._stream is None else self._stream.push(token)
        piece = self._until.push(piece, stops=len(self.ids) >= self.ends.min_new_tokens)
        self.finish_reason = self._reason(ended, full)
        if self.finish_reason not in (None, "stop"):
            piece += self._rest()
        self._pieces.append(piece)
        return Token(self.number, token, piece, logprob, self.finish_reason, top)

    def _reason(self, ended: bool, full: bool) -> Finish | None:
        if ended:
            return "eos"
        if self._until.stopped:
            return "stop"
        if len(self.ids) == self.ends.max_new_tokens:
            return "length"
        return "positions" if full else None

    def _rest(self) -> str:
        """What was held back, and the mark of a character that was never completed."""
        return self._until.flush() + ("" if self._stream is None else self._stream.flush())

    def generation(self) -> Generation:
        """The finished row."""
        assert self.finish_reason is not None
        text, tops = "".join(self._pieces), tuple(self.tops) if any(self.tops) else ()
        return Generation(
            self.prompt_ids,
            self.ids,
            text,
            self.finish_reason,
            self.logprobs,
            self.seed,
            self.score,
            self.alternatives,
            self.tree,
            tops,
        )


__all__ = ["Ends", "Finish", "Generation", "Row", "Token", "Top", "UntilStop"]
