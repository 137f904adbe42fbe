"""Our use of the tokenizers library: what it cannot read is an error of ours, and what its files say is read here."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import tokenizers
from tokenizers import processors

from gnomon.errors import BadInput, BadValue, GnomonError

MOST_TOKENS = 2**24  # the library reserves room for all of them before it begins


@contextmanager
def translate_errors(what: str) -> Iterator[None]:
    """Turn what the library raises, bare Exceptions and its panics, into BadInput: `what` cannot be used."""
    try:
        yield
    except GnomonError:
        raise
    except BaseException as error:
        if isinstance(error, Exception) or type(error).__name__ == "PanicException":
            raise BadInput(f"{what}: {str(error)[:300]}") from error
        raise


def open_tokenizer(text: str, core: Any = None) -> tuple[str, tokenizers.Tokenizer]:
    """A ``tokenizer.json`` with every field there, and the library's object of it, both without the truncation and
    padding of its last use, which would change texts in silence. Raises BadInput for text that is none.

    core   the library's object where there is one already

    What it says as objects takes ten times the room of its text, so they are gone before the library has its own.
    """
    with translate_errors("not a tokenizer.json"):
        whole, added, odd = _complete(text)
        core = tokenizers.Tokenizer.from_str(whole) if core is None else core
        _check_added(added, core)
        if odd:
            spec = json.loads(whole)
            for field in ("post_processor", "decoder"):
                spec[field] = None if spec[field] is None else json.loads(getattr(core, field).__getstate__())
            whole = json.dumps(spec | {"model": json.loads(core.to_str())["model"]}, ensure_ascii=False)
    return whole, core


def _complete(text: str) -> tuple[str, list[dict[str, Any]], bool]:
    """The text with every field there, its added tokens, and whether it is an old one, which leaves out types where
    the library can tell them."""
    spec = json.loads(text)
    if not isinstance(spec, dict) or not isinstance(spec.get("model"), dict):
        raise BadInput("not a tokenizer.json: it has no model")
    _check_merges(spec["model"])
    blank = dict.fromkeys(("normalizer", "pre_tokenizer", "post_processor", "decoder"))
    added = spec.get("added_tokens") or []
    spec = {**blank, **spec, "added_tokens": added, "truncation": None, "padding": None}
    odd = not (
        _has_type(spec["post_processor"]) and _has_type(spec["decoder"]) and isinstance(spec["model"].get("type"), str)
    )
    return json.dumps(spec, ensure_ascii=False), added, odd


def _has_type(part: Any) -> bool:
    if part is None:
        return True
    parts = [*part.get("processors", []), *part.get("decoders", [])]
    return isinstance(part.get("type"), str) and all(map(_has_type, parts))


def _check_added(added: Sequence[Mapping[str, Any]], core: tokenizers.Tokenizer) -> None:
    """The library numbers added tokens itself, whatever a file says."""
    for token in added:
        if core.token_to_id(token["content"]) != token["id"]:
            raise BadInput(
                f"not a tokenizer.json: the added token {token['content'][:80]!r} is said to have the id "
                f"{token['id']}, but the vocabulary gives it {core.token_to_id(token['content'])}"
            )


def _check_merges(model: Mapping[str, Any]) -> None:
    """The library cuts a prefix off the second piece of each merge, and panics where it is not there."""
    prefix, merges = model.get("continuing_subword_prefix"), model.get("merges")
    if not prefix or not isinstance(merges, list):
        return
    for n, merge in enumerate(merges):
        pieces = merge.split(" ") if isinstance(merge, str) else merge
        if not isinstance(pieces, list) or len(pieces) != 2 or not str(pieces[1]).startswith(prefix):
            raise BadInput(f"not a tokenizer.json: merge {n}, {str(merge)[:80]!r}, does not continue with {prefix!r}")


def frame_of(post: Mapping[str, Any] | None) -> tuple[list[int], list[int]]:
    """The ids that a post-processor puts before and after a text."""
    kind = None if post is None else post["type"]
    if post is None or kind == "ByteLevel":
        return [], []
    if kind in ("BertProcessing", "RobertaProcessing"):
        return [post["cls"][1]], [post["sep"][1]]
    if kind == "Sequence":
        before: list[int] = []
        after: list[int] = []
        for part in post["processors"]:
            first, last = frame_of(part)
            before, after = first + before, after + last
        return before, after
    if kind != "TemplateProcessing":
        raise BadInput(f"the post-processor {kind!r} is not known: what it puts around a text cannot be read")
    return _around(post["single"], post["special_tokens"])


def _around(template: Sequence[Mapping[str, Any]], tokens: Mapping[str, Any]) -> tuple[list[int], list[int]]:
    places = [n for n, part in enumerate(template) if "Sequence" in part]
    if len(places) != 1:
        raise BadInput(f"the post-processor's template holds the text {len(places)} times: once was expected")

    def ids(parts: Sequence[Mapping[str, Any]]) -> list[int]:
        named = [part["SpecialToken"]["id"] for part in parts]
        if missing := [name for name in named if name not in tokens]:
            raise BadInput(f"the post-processor's template holds {missing}, which its special_tokens do not list")
        return [i for name in named for i in tokens[name]["ids"]]

    return ids(template[: places[0]]), ids(template[places[0] + 1 :])


def with_frame(core: tokenizers.Tokenizer, before: Sequence[str], after: Sequence[str] = ()) -> tokenizers.Tokenizer:
    """The same tokenizer, saying that texts stand between these control tokens."""
    named = [(mark, core.token_to_id(mark)) for mark in dict.fromkeys([*before, *after])]
    if missing := [mark for mark, i in named if i is None]:
        raise BadValue(f"texts are said to stand between {missing}, which are not in the vocabulary")
    single = [*before, "$A", *after]
    core.post_processor = processors.TemplateProcessing(single=single, special_tokens=named) if named else None
    return core


def hidden_name(i: int) -> str:
    """The name under which `encode` knows a control id; texts cannot hold it (U+10FFFF is no character)."""
    return f"\U0010ffff{i}\U0010ffff"


def without_controls(spec: dict[str, Any]) -> dict[str, Any]:
    """The same tokenizer with its control tokens under names that no text holds, so that a text cannot call them.

    It is not enough to tell the library that they are ordinary: a unigram or word vocabulary lists them among its
    words. The model finds its unknown token under the new name too.
    """
    names = {t["content"]: hidden_name(t["id"]) for t in spec["added_tokens"] if t["special"]}
    model, vocab = spec["model"], spec["model"]["vocab"]
    if isinstance(vocab, dict):
        renamed: Any = {names.get(name, name): i for name, i in vocab.items()}
    else:
        renamed = [[names.get(name, name), score] for name, score in vocab]
    added = [token | {"content": names.get(token["content"], token["content"])} for token in spec["added_tokens"]]
    unk = {"unk_token": names.get(model["unk_token"], model["unk_token"])} if "unk_token" in model else {}
    return spec | {"model": model | {"vocab": renamed} | unk, "added_tokens": added, "post_processor": None}


__all__ = [
    "MOST_TOKENS",
    "frame_of",
    "hidden_name",
    "open_tokenizer",
    "translate_errors",
    "with_frame",
    "without_controls",
]
