"""Rules: from the logits of a model to what may be written next, and what it is worth."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch

from gnomon.errors import BadInput, BadValue
from gnomon.generate.constraints import Constraints
from gnomon.generate.logits import History, forbid, force
from gnomon.generate.model import LanguageModel
from gnomon.generate.row import Ends
from gnomon.shapes import Float


@dataclass(frozen=True)
class View:
    """What may follow each of N histories, as logits (N, V)."""

    own: Float  #: the model's, without ids that stand for no token
    reshaped: Float  #: after the penalties
    allowed: Float  #: after the bans too: -inf is never chosen
    top: int  #: how many of the most probable tokens are reported with each token

    def logprobs(self) -> Float:
        """(N, V) log-probabilities of the model."""
        return self.own.log_softmax(-1)

    def scores(self) -> Float:
        """(N, V) log-probabilities after the penalties; what is banned is at -inf, the rest is as it was."""
        return self.allowed - self.reshaped.logsumexp(-1, keepdim=True)

    def best(self) -> list[tuple[tuple[int, float], ...]]:
        """Of each history the `top` tokens most probable to the model, with their log-probabilities."""
        if self.top == 0:
            return [()] * len(self.own)
        found = self.logprobs().topk(min(self.top, self.own.shape[-1]))
        return [
            tuple(zip(ids, values, strict=True))
            for ids, values in zip(found.indices.tolist(), found.values.tolist(), strict=True)
        ]


class Rules:
    """The order of all that acts before a strategy chooses; `gnomon.generate.logits` lists it."""

    def __init__(
        self,
        model: LanguageModel,
        ends: Ends,
        constraints: Constraints,
        top: int,
        device: torch.device,
        first: int | None = None,
    ) -> None:
        """top: how many alternatives are reported with each token; first: the token that begins every text, certain to
        the model: it costs a beam nothing."""
        V, padding, tokenizer = model.config.vocab_size, model.config.padding_id, model.tokenizer
        never = set() if tokenizer is None else set(range(tokenizer.vocab_size, V))
        never |= set() if padding is None else {padding}
        if not 0 <= top <= V:
            raise BadValue(f"top_logprobs counts tokens, from 0 to the {V} of the vocabulary; got {top}")
        bound = constraints.bind(tokenizer, V)
        self.constraints = bound if first is None else replace(bound, prefix=(first, *bound.prefix))
        self.top, self._first = top, first
        for i in self.constraints.prefix:
            if i in never:
                raise BadValue(f"the prefix holds {i}, the padding id or one without text, which is never written")
        self._least = ends.min_new_tokens
        self._never, self._ends = (torch.tensor(sorted(ids), device=device) for ids in (never, ends.eos_ids))

    def apply(self, logits: Float, histories: Sequence[History]) -> View:
        """Apply everything to logits (N, V). BadInput where the model's own are broken: a maximum shows NaN too."""
        own = forbid(logits, self._never)
        _check(
            own,
            histories,
            "the logits hold NaN or infinity, or every token is forbidden. The weights may be "
            "damaged, or numbers may have overflowed in float16: try float32",
        )
        if self._first is not None and not all(h.new for h in histories):
            own = force(own, own, [None if h.new else self._first for h in histories])
        reshaped = self.constraints.reshape(own, histories)
        allowed = self._not_yet(self.constraints.ban(reshaped, histories), histories)
        allowed = self.constraints.choose_from(allowed, histories)
        return View(own, reshaped, self.constraints.force(allowed, reshaped, histories), self.top)

    def apply_strictly(self, logits: Float, histories: Sequence[History]) -> View:
        """The same where each history has to go on: BadInput where the constraints leave it no token."""
        view = self.apply(logits, histories)
        check_choice(view.allowed, histories)
        return view

    def admitted(self, history: History, ids: Sequence[int]) -> int:
        """How many of `ids`, one after another, the callback lets follow: it is never asked about a text with a token
        that it forbade."""
        for n, i in enumerate(ids):
            following = self.constraints.asked(History(history.row, history.prompt, [*history.new, *ids[:n]]))
            if following is not None and i not in following:
                return n
        return len(ids)

    def _not_yet(self, logits: Float, histories: Sequence[History]) -> Float:
        """No end token before the least length."""
        if self._least == 0:
            return logits
        early = torch.tensor([len(h.new) < self._least for h in histories], device=logits.device)
        return torch.where(early[:, None], forbid(logits, self._ends), logits) if bool(early.any()) else logits


def check_choice(allowed: Float, histories: Sequence[History]) -> None:
    """BadInput where a history has no token to go on with."""
    _check(allowed, histories, STUCK)


def no_token_error(history: History) -> BadInput:
    """The error of a history that has no token to go on with."""
    return _at(history, STUCK)


STUCK = "the constraints leave no token to choose; loosen them"


def _check(logits: Float, histories: Sequence[History], says: str) -> None:
    broken = ~logits.amax(-1).isfinite()
    if bool(broken.any()):
        raise _at(histories[int(broken.nonzero()[0])], says)


def _at(history: History, says: str) -> BadInput:
    return BadInput(f"row {history.row}, new token {len(history.new) + 1}: {says}")


__all__ = ["Rules", "View", "check_choice", "no_token_error"]
