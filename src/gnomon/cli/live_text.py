"""LiveText: the texts of one generation on the terminal, while they are written and afterwards."""

import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from gnomon.glossary import translate, words

if TYPE_CHECKING:
    from gnomon.data import Tokenizer
    from gnomon.generate import Generation, Token


class LiveText:
    """What has been written so far. The first text is shown while it grows, the others after it."""

    def __init__(
        self, head: str, count: int, seed: int, live: bool, quiet: bool, tokenizer: "Tokenizer", lang: str
    ) -> None:
        """head: what a text is shown to follow; live: whether anything is shown at all."""
        self.head, self.seed, self.live, self.quiet, self.tokenizer = head, seed, live, quiet, tokenizer
        self.w = words("write", lang)
        self.tokens: list[list[Token]] = [[] for _ in range(count)]
        self.results: Sequence[Generation] = ()
        self.started = time.perf_counter()

    def take(self, token: "Token") -> None:
        """One more token of one of the texts."""
        if token.row == 0:
            self._show(token.piece if self.tokens[0] else self._head(0) + token.piece)
        self.tokens[token.row].append(token)

    def close(self, results: Sequence["Generation"] = (), tree: bool = False, top: int | None = None) -> None:
        """Show the rest: the other texts, the next best ones, the tree, the log-probabilities, and how long it took.
        results: none after an interruption."""
        self.results = results
        if not self.tokens[0]:
            return  # interrupted before the first token
        self._show("\n")
        for row in range(1, len(self.tokens)):
            self._show(self._head(row) + self.text(row) + "\n")
        for row, result in enumerate(results):
            for place, other in enumerate(result.alternatives, 2):
                assert other.score is not None
                score = "" if self.quiet else f"#{place}  {self.w.number(other.score, '+.3f')}  "
                self._show(f"{score}{other.text}\n")
            if tree and result.tree is not None:
                self._show(("" if self.quiet else "\n") + self._drawn(result) + "\n")
            if top is not None:
                self._show("\n" + self._table(row) + "\n")
        if self.live and not self.quiet:
            n, seconds = sum(map(len, self.tokens)), self.seconds()
            reasons = sorted({self.reason(row) for row in range(len(self.tokens))})
            ends = ", ".join(translate(reason, self.w.lang) for reason in reasons)
            click.echo(self.w("ended", n=n, seconds=seconds, speed=n / seconds, ends=ends), err=True)

    def text(self, row: int) -> str:
        """What has been written of this text."""
        return "".join(token.piece for token in self.tokens[row])

    def reason(self, row: int) -> str:
        """Why this text ended."""
        return (self.tokens[row][-1].finish_reason if self.tokens[row] else None) or "interruption"

    def seconds(self) -> float:
        """Since it began."""
        return time.perf_counter() - self.started

    def report(self, tree: bool = False) -> list[dict[str, Any]]:
        """The texts for programs."""
        texts: list[dict[str, Any]] = [
            {
                "text": self.text(row),
                "ids": [token.id for token in tokens],
                "logprobs": [token.logprob for token in tokens],
                "finish_reason": self.reason(row),
                "seed": self.seed + row,
            }
            for row, tokens in enumerate(self.tokens)
        ]
        for text, tokens in zip(texts, self.tokens, strict=True):
            if any(token.top for token in tokens):
                text["top_logprobs"] = [[self._likely(i, logprob) for i, logprob in token.top] for token in tokens]
        for text, result in zip(texts, self.results, strict=False):
            if result.score is not None:
                text["score"] = result.score
                text["alternatives"] = [_plain(other) for other in result.alternatives]
            if tree and result.tree is not None:
                text["tree"] = [asdict(node) for node in result.tree.nodes]
        return texts

    def _likely(self, i: int, logprob: float) -> dict[str, Any]:
        return {"id": i, "token": self.tokenizer.tokens([i])[0], "logprob": logprob}

    def _drawn(self, result: "Generation") -> str:
        from gnomon.generate import draw

        assert result.tree is not None
        return draw(result.tree, self.tokenizer, ascii=not _unicode(), lang=self.w.lang)

    def _table(self, row: int) -> str:
        """A line for each token: its log-probability, and what was most probable there."""
        lines = []
        shown, number = self.tokenizer.tokens, self.w.number
        for token in self.tokens[row]:
            likely = "  ".join(f"{shown([i])[0]} {number(logprob, '.2f')}" for i, logprob in token.top)
            line = f"{number(token.logprob, '>8.3f')}  {shown([token.id])[0]:<12}  {likely}"
            lines.append(line.rstrip())
        return "\n".join(lines)

    def _head(self, row: int) -> str:
        if self.quiet:
            return ""
        many = len(self.tokens) > 1
        line = self.w("of_seed", n=row + 1, count=len(self.tokens), seed=str(self.seed + row))
        return (f"{line}\n" if many else "") + self.head

    def _show(self, text: str) -> None:
        if self.live and text:
            click.echo(text, nl=False)


def _plain(result: "Generation") -> dict[str, Any]:
    return {
        "text": result.text,
        "ids": result.ids,
        "logprobs": result.logprobs,
        "finish_reason": result.finish_reason,
        "score": result.score,
    }


def _unicode() -> bool:
    """Whether what is printed can hold the strokes of a tree."""
    return (sys.stdout.encoding or "").lower().replace("-", "").startswith("utf")


__all__ = ["LiveText"]
