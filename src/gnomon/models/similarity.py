"""Similarity: which tokens, or which sentences, a model keeps close to one another.

Two vectors are as near as the cosine of the angle between them. Tokens are rows of the model's own table, as it was
learned; a sentence is the model's vectors for its tokens, pooled.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch.nn import functional as F

from gnomon.attention import Memory
from gnomon.data import Tokenizer
from gnomon.data.tokenizer import UNKNOWN
from gnomon.errors import BadValue, check_arguments, each_text, unknown
from gnomon.generate import evaluation_mode
from gnomon.layout import Layout
from gnomon.models.decoder_only import DecoderOnly
from gnomon.models.encoder_decoder import EncoderDecoder
from gnomon.models.encoder_only import EncoderOnly
from gnomon.models.heads import PooledHead, pool
from gnomon.models.inputs import pad_rows
from gnomon.models.model import Model
from gnomon.shapes import Float, Int
from gnomon.stored import matrix

AT_ONCE = 64  # sentences read in one batch


class Neighbor(NamedTuple):
    """One that is near: what it is, its place in the table or list, and the cosine."""

    text: str
    place: int
    cosine: float


@check_arguments
def neighbors(model: Model, word: str, top: int = 10) -> list[Neighbor]:
    """The tokens nearest to `word` in the model's table, the nearest first; without its own, control tokens and bytes
    that are no character by themselves. A word of several tokens is the mean of their vectors.

    Raises BadValue for a word that the model cannot read.
    """
    tokenizer, own = require_tokenizer(model), word_ids(model, word)
    others = [i for i in printable_tokens(tokenizer) if i not in own]
    table = token_vectors(model)
    names = tokenizer.tokens(others)
    return [Neighbor(names[n], others[n], cosine) for n, cosine in nearest(word_vector(table, own), table[others], top)]


def printable_tokens(tokenizer: Tokenizer) -> list[int]:
    """The ids of tokens that are text by themselves."""
    ids = [i for i in range(tokenizer.vocab_size) if i not in tokenizer.control_ids]
    return [i for i in ids if UNKNOWN not in tokenizer.decode([i])]


def token_vectors(model: Model) -> Float:
    """(V, D) the token table, a row for each token of the tokenizer."""
    return matrix(model.input.tokens.weight).detach()[: require_tokenizer(model).vocab_size].float().cpu()


def word_ids(model: Model, word: str) -> list[int]:
    """The ids of a word: one where it is one token by itself or after a blank, as words in a text are; else as it is
    read by itself. Raises BadValue for a word without tokens, or with one that the vocabulary does not know."""
    tokenizer = require_tokenizer(model)
    read = [ids for text in (word, f" {word}") if word.strip() and (ids := tokenizer.encode(text))]
    known = [ids for ids in read if tokenizer.unk_id is None or tokenizer.unk_id not in ids]
    if not known:
        tokens = " | ".join(tokenizer.tokens(tokenizer.encode(word))) or "nothing"
        raise BadValue(f"this model cannot read {word!r}, which is {tokens} to it: give another word")
    return next((ids for ids in known if len(ids) == 1), known[0])


def word_vector(table: Float, ids: Sequence[int]) -> Float:
    """(D,) the mean of the rows of the tokens of a word."""
    return table[list(ids)].mean(0)


@check_arguments
def sentence_vectors(model: Model, texts: Sequence[str], unit: bool = False, prompt: str | None = None) -> Float:
    """(N, D) a vector for each text: from an encoder's own pooling where its head has one, else the mean over the last
    hidden states of the tokens. An encoder-decoder reads texts as sources. The control ids that the tokenizer expects
    around a text ([CLS], [SEP], begin-of-text) are put there. unit: bring each to length 1.

    prompt: the name of one of model.prompts, which is put before each text ("query" or "passage", as the model was
    trained); default the usual one, where the model has one. A text is never cut off."""
    tokenizer, before_each = require_tokenizer(model), _prompt(model, prompt)
    rows = tokenizer.encode_batch([before_each + text for text in each_text("texts", texts)])
    for n, row in enumerate(rows):
        if not row:
            raise BadValue(f"text {n + 1} has no tokens: leave empty lines out")
    before, after = tokenizer.frame
    rows = [[*before, *row, *after] for row in rows]
    device, found = next(model.parameters()).device, []
    with evaluation_mode(model), torch.no_grad():
        for first in range(0, len(rows), AT_ONCE):
            ids, at = pad_rows(rows[first : first + AT_ONCE])
            at = Layout.dense(*ids.shape) if at is None else at
            model.check(at)
            found.append(_pooled(model, ids.to(device), at.to(device)).float().cpu())
    vectors = torch.cat(found)
    return F.normalize(vectors, dim=-1) if unit else vectors


def _prompt(model: Model, name: str | None) -> str:
    if name is not None and name not in model.prompts:
        raise unknown("prompt of this model", name, [known for known in model.prompts if known])
    return model.prompts.get(name or "", "")


def nearest(query: Float, vectors: Float, top: int) -> list[tuple[int, float]]:
    """The `top` of vectors (N, D) nearest to query (D,) as (row, cosine), the nearest first; of equals the first. A
    vector of length 0 is at cosine 0 from all."""
    cosines = F.normalize(vectors, dim=-1) @ F.normalize(query, dim=-1)
    order = cosines.argsort(descending=True, stable=True)[:top]
    return [(int(i), float(cosines[i])) for i in order]


def plane(vectors: Float) -> tuple[Float, Float]:
    """vectors (N, D) -> their places (N, 2) on a map, and the shares (2,) of the variance that it shows.

    The map is the plane of largest variance of the vectors brought to length 1 (principal components, exactly, by
    singular value decomposition). Each axis points to where its longest loading is positive, so a map has one result.
    """
    if len(vectors) < 3:
        raise BadValue(f"a map needs at least three vectors, got {len(vectors)}")
    x = F.normalize(vectors.cpu().double(), dim=-1)  # some devices have no float64
    x = x - x.mean(0)
    _, sizes, axes = torch.linalg.svd(x, full_matrices=False)
    axes = axes[:2]
    heads = axes.gather(1, axes.abs().argmax(1, keepdim=True))
    places = x @ (axes * torch.where(heads < 0, -1.0, 1.0)).T
    places = F.pad(places, (0, 2 - places.shape[1]))
    shares = F.pad(sizes**2, (0, 2))[:2] / (sizes**2).sum().clamp(min=np.finfo(float).tiny)
    return places, shares


def require_tokenizer(model: Model) -> Tokenizer:
    """The model's tokenizer; BadValue where it has none."""
    if model.tokenizer is None:
        raise BadValue("this model has no tokenizer, so it knows ids and no words")
    return model.tokenizer


def _pooled(model: Model, ids: Int, at: Layout) -> Float:
    match model:
        case EncoderOnly(head=PooledHead() as head):
            return head.vector(model.encode(ids, at))
        case EncoderOnly() | EncoderDecoder():
            return pool(model.encode(ids, at))
        case DecoderOnly():
            return pool(Memory(model.hidden(ids, at), at))
    raise BadValue(f"no sentence vectors are known of a model that is {model.architecture}")


__all__ = [
    "Neighbor",
    "nearest",
    "neighbors",
    "plane",
    "printable_tokens",
    "require_tokenizer",
    "sentence_vectors",
    "token_vectors",
    "word_ids",
    "word_vector",
]
