"""Sources: what an encoder-decoder reads before it writes."""

from collections.abc import Sequence

import torch

from gnomon.attention import Cache, Memory
from gnomon.errors import BadValue
from gnomon.generate.decoding_batch import evaluation_mode
from gnomon.generate.model import LanguageModel, ReadsSource, SourceSizes
from gnomon.generate.prompts import Prompts, encode_prompts
from gnomon.layout import Layout


def encode_sources(model: LanguageModel, source: Prompts | None, cache: Cache | None) -> list[list[int]] | None:
    """One list of ids per source, or None for a model that has none, or one whose source the cache holds already."""
    if not isinstance(model, ReadsSource):
        if source is not None:
            raise BadValue("this model has no encoder to read a source with: give the text as a prompt")
        return None
    if cache is not None and cache.memory is not None:
        if source is not None:
            raise BadValue("the cache holds an encoded source already: leave `source` out, or give a new cache")
        return None
    if source is None:
        raise BadValue(
            "an encoder-decoder writes about a source: give source=..., a text or token ids. A prompt is how its own "
            "text begins"
        )
    own = model.config.source_vocab_size if isinstance(model.config, SourceSizes) else None
    tokenizer = model.tokenizer if own is None else None  # which knows the target's ids
    rows = encode_prompts(source, tokenizer, own or model.config.vocab_size, kind="source")
    _check(model, rows)
    return rows


def read_sources(model: LanguageModel, rows: Sequence[Sequence[int]], device: torch.device) -> Memory:
    """Encode all sources in one forward; padding is told by their lengths, whatever id stands there."""
    assert isinstance(model, ReadsSource)
    ids = torch.full((len(rows), max(map(len, rows))), model.config.padding_id or 0)
    for n, row in enumerate(rows):
        ids[n, : len(row)] = torch.tensor(row)
    with torch.no_grad(), evaluation_mode(model):
        return model.encode(ids.to(device), _layout(rows).to(device))


def _layout(rows: Sequence[Sequence[int]]) -> Layout:
    """Where the tokens of sources of any lengths sit: padding is on the right."""
    S = max(map(len, rows))
    if all(len(row) == S for row in rows):
        return Layout.dense(len(rows), S)
    return Layout.padded(torch.arange(S) < torch.tensor([[len(row)] for row in rows]))


def _check(model: LanguageModel, rows: Sequence[Sequence[int]]) -> None:
    device = next((weight.device for weight in model.parameters()), torch.device("cpu"))
    for n, row in enumerate(rows):
        try:
            model.check(Layout.dense(1, len(row), device))
        except BadValue as error:
            raise BadValue(f"source {n} is too long, it has {len(row)} tokens: {error}") from error


__all__ = ["encode_sources", "read_sources"]
