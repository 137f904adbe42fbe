"""Chat: a conversation with a model that was trained for it, over one cache."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from gnomon.errors import BadValue
from gnomon.generate.constraints import NO_CONSTRAINTS, Constraints
from gnomon.generate.loop import Strategy, generate
from gnomon.generate.model import LanguageModel
from gnomon.generate.row import Generation, Token
from gnomon.generate.strategies import GREEDY

if TYPE_CHECKING:  # where no conversation is held, nobody waits for the language of templates
    from gnomon.data.chat import Message, Options


class Chat:
    """A conversation. `messages` is what was said so far; each answer equals that of a model which reads it all anew.

    >>> chat = Chat(gn.load("smollm2-135m-instruct"), system="You answer in one word.")        # doctest: +SKIP
    >>> chat.say("What is the capital of France?").text                                        # doctest: +SKIP
    'Paris.'
    """

    def __init__(self, model: LanguageModel, system: str | None = None, options: Options | None = None) -> None:
        """Begin one.

        system    what the model is told before anything is said
        options   what its chat template can be given besides: switches such as {"enable_thinking": False}, "tools" (a
                  list of JSON schemas) and "documents"

        Raises BadValue for a model without a chat template, and for an option that its template does not know.
        """
        if model.tokenizer is None:
            raise BadValue("this model has no tokenizer, so it can neither read nor write a text: set model.tokenizer")
        from gnomon.data.chat import end_of_turn

        self.model, self.tokenizer = model, model.tokenizer
        self.messages: list[Message] = [] if system is None else [{"role": "system", "content": system}]
        self.options: Options = options or {}
        self._ends = end_of_turn(self.tokenizer, self.options)
        self._cache = model.cache()
        self._read_ids: list[int] = []  # the ids of which the cache has read the first len(cache)

    def say(
        self,
        text: str,
        *,
        strategy: Strategy = GREEDY,
        max_new_tokens: int = 512,
        seed: int | None = None,
        constraints: Constraints = NO_CONSTRAINTS,
        on_token: Callable[[Token], None] | None = None,
    ) -> Generation:
        """Say something and get the model's answer. The arguments are those of `generate`.

        After an interruption (Ctrl-C) what was written up to then is the answer, and the conversation can go on.
        """
        from gnomon.data.chat import chat_ids

        asked: list[Message] = [*self.messages, {"role": "user", "content": text}]
        ids = chat_ids(self.tokenizer, asked, options=self.options)
        written: list[Token] = []

        def take(token: Token) -> None:
            written.append(token)
            if on_token is not None:
                on_token(token)

        unread = self._unread(ids)
        try:
            [answer] = generate(
                self.model,
                [unread],
                strategy=strategy,
                max_new_tokens=max_new_tokens,
                seed=seed,
                eos_ids=self._ends,
                constraints=constraints,
                cache=self._cache,
                on_token=take,
            )
        finally:
            self._read_ids = [*ids, *(token.id for token in written)]
            if written:
                text = "".join(token.piece for token in written)
                self.messages = [*asked, {"role": "assistant", "content": text}]
        return answer

    def _unread(self, ids: list[int]) -> list[int]:
        """What the cache has not read of these ids, at least the last; it goes back to where they part."""
        held = self._read_ids[: len(self._cache)]
        same = next((n for n, (a, b) in enumerate(zip(held, ids, strict=False)) if a != b), min(len(held), len(ids)))
        keep = min(same, len(ids) - 1)
        self._cache.crop(keep)
        return ids[keep:]


__all__ = ["Chat"]
