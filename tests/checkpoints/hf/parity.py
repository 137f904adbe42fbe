"""How far our logits are from those of the transformers library on the same weights, check by check.

whole          one forward over LENGTH tokens (an encoder-decoder: that many of source, and a target)
left, right    rows of unlike lengths, padded on either side
cache          ours in pieces of several sizes with a cache, theirs whole
their cache    theirs in two pieces with its cache, ours whole
types          segments of a BERT
beams          the tokens of a beam search, 0 or 1
"""

import inspect
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from cases import Case, V

import gnomon as gn
from gnomon.checkpoints.hf import load
from gnomon.models import DecoderOnly, EncoderDecoder, EncoderOnly, Model

LENGTH = 64  # the trained length of all cases but those of LongRoPE, whose scaling changes past 16
LENGTHS = (1, 5, 16, LENGTH)
PIECES = (9, 1, 1, 5)  # and then the rest
CPU = torch.device("cpu")


@dataclass(frozen=True)
class Difference:
    """The largest |ours - theirs| of one check, and what is allowed: 1e-5 max(1, max|logit|)."""

    check: str
    largest: float
    allowed: float


def loaded(theirs: Any, folder: Path) -> Model:
    """A model of that library, saved by it and loaded by us."""
    theirs.save_pretrained(folder)
    return load(folder, CPU)


def differences(case: Case) -> list[Difference]:
    """Every check that this kind of model has."""
    theirs = case.model()
    with tempfile.TemporaryDirectory() as folder, torch.no_grad():
        ours = loaded(theirs, Path(folder))
        kind = {DecoderOnly: _decoder, EncoderOnly: _encoder, EncoderDecoder: _encoder_decoder}[type(ours)]
        return list(kind(theirs, ours, case))


def compare(check: str, ours: Any, theirs: Any, real: Any = None) -> Difference:
    """Of two (B, T, V), at the real tokens."""
    gap = (ours - theirs).abs()
    gap, size = (gap, theirs) if real is None else (gap[real], theirs[real])
    return Difference(check, gap.max().item(), 1e-5 * max(1.0, size.abs().max().item()))


def draw_ids(rows: int = len(LENGTHS), length: int = LENGTH) -> Any:
    return torch.randint(3, V, (rows, length), generator=torch.Generator().manual_seed(1))


def real_tokens(side: str, length: int = LENGTH) -> Any:
    """(B, T), true at the tokens of rows of unlike lengths."""
    lengths = torch.tensor([[min(n, length)] for n in LENGTHS])
    places = torch.arange(length)
    return places >= length - lengths if side == "left" else places < lengths


def where(model: Any, real: Any) -> dict[str, Any]:
    """The mask, and positions that skip padding, for a model of that library that takes them."""
    takes = "position_ids" in inspect.signature(model.forward).parameters
    return {"attention_mask": real.long()} | ({"position_ids": (real.cumsum(1) - 1).clamp(min=0)} if takes else {})


def going_on(model: Any, out: Any) -> dict[str, Any]:
    """The cache of a first call, for the next one; newer versions of that library name it anew."""
    name = "cache" if "cache" in inspect.signature(model.forward).parameters else "past_key_values"
    return {name: out.past_key_values, "use_cache": True}


def in_pieces(model: Any, ids: Any, cache: Any, at: Any = None, pieces: tuple[int, ...] = PIECES) -> Any:
    """Logits of all tokens, read piece by piece with a cache."""
    out, start = [], 0
    for size in (*pieces, ids.shape[1]):
        piece = slice(start, min(start + size, ids.shape[1]))
        if piece.start < piece.stop:
            out.append(model.head(model.hidden(ids[:, piece], None if at is None else at.tokens(piece), cache)))
        start = piece.stop
    return torch.cat(out, 1)


def _decoder(theirs: Any, ours: Any, case: Case) -> Iterator[Difference]:
    length = 16 if "LongRoPE" in case.what else LENGTH
    ids = draw_ids(length=length)
    want = theirs(ids).logits
    yield compare("whole", ours(ids), want)
    for side in ("left", "right"):
        real = real_tokens(side, length)
        padded = theirs(ids, **where(theirs, real)).logits
        yield compare(side, ours(ids, gn.Layout.padded(real)), padded, real)
        if side == "left":  # and the same in pieces: whole columns of padding come first
            read = in_pieces(ours, ids, ours.cache(), gn.Layout.padded(real))
            yield compare("left, cache", read, padded, real)
    yield compare("cache", in_pieces(ours, ids, ours.cache()), want)
    half = theirs(ids[:, : length // 2], use_cache=True)
    rest = theirs(ids[:, length // 2 :], **going_on(theirs, half))
    yield compare("their cache", ours(ids), torch.cat([half.logits, rest.logits], 1))


def _encoder(theirs: Any, ours: Any, case: Case) -> Iterator[Difference]:
    ids, body = draw_ids(), theirs.base_model
    yield compare("whole", ours(ids), _answer(theirs(ids)))
    for side in ("left", "right"):
        real = real_tokens(side)
        given, padded = where(theirs, real), ids
        if case.family in (
            "roberta",
            "xlm-roberta",
            "camembert",
            "mpnet",
        ):  # which tells padding by the id, not by the mask
            padded, given = ids.masked_fill(~real, 1), {"attention_mask": given["attention_mask"]}
        states = ours.encode(padded, gn.Layout.padded(real)).states
        yield compare(side, states, body(padded, **given).last_hidden_state, real)
    if case.family == "bert":
        types = (torch.arange(LENGTH) > 20).long().expand_as(ids)
        yield compare("types", ours(ids, types=types), _answer(theirs(ids, token_type_ids=types)))


def _answer(out: Any) -> Any:
    return out.logits if "logits" in out else out.get("pooler_output", out.last_hidden_state[:, 0])


def _encoder_decoder(theirs: Any, ours: Any, case: Case) -> Iterator[Difference]:
    source, target = draw_ids(), draw_ids(length=24).flip(0)
    want = theirs(input_ids=source, decoder_input_ids=target).logits
    yield compare("whole", ours(source, target), want)
    for side in ("left", "right"):
        real = real_tokens(side)
        if side == "right" or case.family in (
            "t5",
            "mt5",
            "umt5",
        ):  # the others of that library place padding on the left like tokens
            padded = theirs(input_ids=source, attention_mask=real.long(), decoder_input_ids=target).logits
            yield compare(side, ours(source, target, gn.Layout.padded(real)), padded)
    cache = ours.cache()
    cache.memory = ours.encode(source)
    yield compare("cache", in_pieces(ours, target, cache), want)
    encoded = theirs.get_encoder()(source)
    half = theirs(encoder_outputs=encoded, decoder_input_ids=target[:, :10], use_cache=True)
    rest = theirs(encoder_outputs=encoded, decoder_input_ids=target[:, 10:], **going_on(theirs, half))
    yield compare("their cache", ours(source, target), torch.cat([half.logits, rest.logits], 1))
    yield _beams(theirs, ours, source[:, :12])


def _beams(theirs: Any, ours: Any, source: Any) -> Difference:
    """The best of three beams of eight tokens, none of which ends early, so that both libraries rank alike."""
    start = theirs.config.decoder_start_token_id
    theirs.generation_config.eos_token_id = None
    theirs.generation_config.forced_eos_token_id = None
    want = theirs.generate(source, num_beams=3, max_new_tokens=8, do_sample=False, decoder_start_token_id=start)[:, 1:]
    found = ours.generate([[start]] * len(source), source=source, strategy=gn.Beam(3), max_new_tokens=8, eos_ids=None)
    return Difference("beams", float([row.ids for row in found] != want.tolist()), 0.0)
