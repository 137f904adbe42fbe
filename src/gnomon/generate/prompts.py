"""Prompts in any of the forms people have them in become rows of token ids."""

from collections.abc import Iterable, Mapping, Sequence
from operator import index
from typing import Any, Literal

from torch import Tensor

from gnomon.data import Tokenizer
from gnomon.errors import BadValue, wrong

Kind = Literal["prompt", "source"]
Prompts = str | Sequence[str] | Sequence[int] | Sequence[Sequence[int]] | Tensor


def encode_prompts(
    prompts: Prompts,
    tokenizer: Tokenizer | None,
    vocab_size: int,
    empty: bool = True,
    kind: Kind = "prompt",
    lead: Sequence[int] | None = None,
) -> list[list[int]]:
    """One list of ids per prompt, or per source.

    prompts    a text or a list of texts; the ids of one prompt, or a list of such lists of any lengths; or a tensor of
               ids, (T,) or (B, T). Ids are taken as they are; a text gets the control ids before it that the tokenizer
               expects there (begin-of-text), and a source those after it too
    tokenizer  reads texts; its end-of-text id, which stands between documents, is where an empty prompt starts
    empty      whether prompts begin a document, and an empty one may start there; an empty source never may
    lead       the ids that a text begins with where a prompt begins a document; None: those that the tokenizer expects

    Raises BadValue for anything else, and for an id outside the vocabulary, naming the id, its row and its place.
    """
    rows = [_ids(prompt, tokenizer, empty, kind, lead) for prompt in _as_list(prompts)]
    if not rows:
        raise BadValue(f"there are no {kind}s: give a text, a list of texts, a list of token ids, or lists of these")
    for row, ids in enumerate(rows):
        if not ids:
            if kind == "source":
                raise BadValue(f"source {row} is empty: there is nothing to write about. Give at least one token")
            ids.append(_start(row, tokenizer, empty))
        for place, i in enumerate(ids):
            if not 0 <= i < vocab_size:
                raise BadValue(
                    f"token id {i} (row {row}, place {place}) is outside the vocabulary of {vocab_size} tokens, 0 to "
                    f"{vocab_size - 1}: was the text tokenized with this model's tokenizer?"
                )
    return rows


def _as_list(prompts: Prompts) -> list[str | Sequence[int]]:
    if isinstance(prompts, str):
        return [prompts]
    if isinstance(prompts, Tensor):
        if prompts.dim() not in (1, 2) or prompts.is_floating_point() or prompts.is_complex():
            raise BadValue(
                f"a tensor of prompts holds whole numbers, (tokens,) or (batch, tokens); got {prompts.dtype} of shape "
                f"{tuple(prompts.shape)}"
            )
        return [row.tolist() for row in (prompts if prompts.dim() == 2 else prompts[None])]
    if not isinstance(prompts, Iterable):
        raise wrong("prompts", prompts, "a text, token ids, or a list of these")
    if isinstance(prompts, Mapping | set | frozenset | bytes):
        raise wrong("prompts", prompts, "a text, token ids, or a list of these, which has an order")
    try:
        items: list[Any] = list(prompts)
    except TypeError as error:  # an array of no axes is iterable in name only
        raise wrong("prompts", prompts, "a text, token ids, or a list of these") from error
    flat = items and not any(isinstance(item, Iterable) for item in items)
    return [items] if flat else items


def _ids(
    prompt: str | Sequence[int], tokenizer: Tokenizer | None, begins: bool, kind: Kind, lead: Sequence[int] | None
) -> list[int]:
    if isinstance(prompt, str):
        if tokenizer is None:
            raise BadValue("this model has no tokenizer to read a text with: give token ids, or set model.tokenizer")
        before, after = tokenizer.frame
        ids = tokenizer.encode(prompt)
        if kind == "source":
            return [*before, *ids, *after] if ids else []
        return [*(before if lead is None else lead), *ids] if begins else ids
    try:
        return [index(i) for i in prompt]
    except TypeError as error:
        raise wrong("a prompt", prompt, "a text or a list of token ids") from error


def _start(row: int, tokenizer: Tokenizer | None, empty: bool) -> int:
    if not empty:
        raise BadValue(f"row {row} gives the model no token to read; where a cache is given, give at least one")
    if tokenizer is None or tokenizer.eos_id is None:
        raise BadValue(
            f"prompt {row} is empty and there is no end-of-text token to start from: give at least one token"
        )
    return tokenizer.eos_id


__all__ = ["Prompts", "encode_prompts"]
