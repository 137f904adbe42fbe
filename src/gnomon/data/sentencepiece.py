"""SentencePiece vocabularies (Kudo and Richardson 2018, arXiv:1808.06226): pieces with scores, from a .model file.

A space is written ▁, and with `prefix` one more stands before the text, so that a first word looks like any other. Two
ways to cut a text into pieces:

    bpe      merge the neighbours that make the piece with the best score, again and again
    unigram  the pieces whose scores sum to the most (Kudo 2018, arXiv:1804.10959)

What cannot be told apart afterwards: with `prefix`, "x" and " x" where the vocabulary has no piece for the space alone;
a ▁ of the text and a space; with `squeeze`, one space and several.
"""

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

import tokenizers
from tokenizers import AddedToken, Regex, decoders, models, normalizers

from gnomon.errors import BadInput

SPACE = "▁"
LONGEST_PIECE = 512  # letters, as SentencePiece's own trainer has it: what follows takes their square
NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = range(1, 7)  # SentencePiece's kinds of pieces, and ggml's
Kind = Literal["bpe", "unigram"]
_KINDS: dict[int, Kind] = {1: "unigram", 2: "bpe"}


class Piece(NamedTuple):
    """One entry of the vocabulary; its place in the list is its id."""

    text: str
    score: float
    kind: int = NORMAL


@dataclass(frozen=True)
class SentencePiece:
    """A vocabulary and what happens to a text before it is cut.

    prefix    a space is put before the text; squeeze: spaces at its ends go, and of several in a row one stays
    charsmap  SentencePiece's compiled table of replaced characters
    """

    pieces: Sequence[Piece]
    kind: Kind = "bpe"
    prefix: bool = True
    squeeze: bool = False
    charsmap: bytes = b""

    def core(self) -> tokenizers.Tokenizer:
        """The same for the tokenizers library. Raises BadInput for a vocabulary that it cannot have."""
        for i, piece in enumerate(self.pieces):
            if piece.kind == NORMAL and len(piece.text) > LONGEST_PIECE:
                raise BadInput(
                    f"piece {i} of this SentencePiece vocabulary has {len(piece.text)} letters, more than the "
                    f"{LONGEST_PIECE} that SentencePiece allows"
                )
        unknown = next((i for i, piece in enumerate(self.pieces) if piece.kind == UNKNOWN), None)
        fallback = any(piece.kind == BYTE for piece in self.pieces)
        try:
            core = tokenizers.Tokenizer(self._model(unknown, fallback))
            if steps := self._normalizers():
                core.normalizer = normalizers.Sequence(steps)
        except Exception as error:  # the library raises bare Exception
            raise BadInput(f"this SentencePiece vocabulary cannot be used: {error}") from error
        back = [decoders.Replace(SPACE, " "), decoders.ByteFallback(), decoders.Fuse()]
        core.decoder = decoders.Sequence([*back, decoders.Strip(" ", 1, 0)] if self.prefix else back)
        add_special_tokens(core, [piece.text for piece in self.pieces], [piece.kind for piece in self.pieces])
        return core

    def _model(self, unknown: int | None, fallback: bool) -> models.Model:
        if self.kind == "unigram":
            scored = [(piece.text, piece.score) for piece in self.pieces]
            return models.Unigram(scored, unk_id=unknown, byte_fallback=fallback)
        vocab: dict[str, int] = {}
        for i, piece in enumerate(self.pieces):
            vocab.setdefault(piece.text, i)
        mark = None if unknown is None else self.pieces[unknown].text
        return models.BPE(vocab, self._merges(vocab), unk_token=mark, fuse_unk=True, byte_fallback=fallback)

    def _merges(self, vocab: dict[str, int]) -> list[tuple[str, str]]:
        """Every way to make a piece of two others, the pieces with the best scores first."""
        made = [(piece.score, i, piece.text) for i, piece in enumerate(self.pieces) if piece.kind == NORMAL]
        made.sort(key=lambda entry: (-entry[0], entry[1]))
        return [
            (text[:cut], text[cut:])
            for _, _, text in made
            for cut in range(1, len(text))
            if text[:cut] in vocab and text[cut:] in vocab
        ]

    def _normalizers(self) -> list[normalizers.Normalizer]:
        steps: list[normalizers.Normalizer] = []
        if self.charsmap:
            steps.append(normalizers.Precompiled(self.charsmap))
        if self.squeeze:
            steps += [normalizers.Strip(), normalizers.Replace(Regex(" {2,}"), " ")]
        if self.prefix:
            steps.append(normalizers.Prepend(SPACE))
        return [*steps, normalizers.Replace(" ", SPACE)]


def add_special_tokens(core: tokenizers.Tokenizer, tokens: Sequence[str], kinds: Sequence[int]) -> None:
    """Tell the library which tokens are control tokens, and which are found whole in a text before it is cut."""
    marked = list(zip(tokens, kinds, strict=True))
    core.add_special_tokens([AddedToken(text, normalized=False) for text, kind in marked if kind == CONTROL])
    core.add_tokens([AddedToken(text, normalized=False) for text, kind in marked if kind == USER_DEFINED])


# ------------------------------------------------------------------ the .model file, a protocol buffer


@dataclass(frozen=True)
class ModelFile:
    """What a .model file says. The ids are -1 where there is no such token."""

    vocabulary: SentencePiece
    bos_id: int = 1
    eos_id: int = 2


def read_model(path: str | Path) -> ModelFile:
    """Read a SentencePiece .model file. Raises BadInput for what is cut off or no such file."""
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise BadInput(f"cannot read {path}: {error.strerror}") from error
    try:
        return _model_file(data)
    except (ValueError, IndexError, struct.error, UnicodeDecodeError) as error:
        raise BadInput(f"{path} is cut off or no SentencePiece model: {error}") from error


def _model_file(data: bytes) -> ModelFile:
    pieces: list[Piece] = []
    trainer: dict[int, int | bytes] = {}
    normalizer: dict[int, int | bytes] = {}
    for field, value in _fields(data):
        if field == 1:
            pieces.append(_piece(_bytes(value)))
        elif field == 2:
            trainer = dict(_fields(_bytes(value)))
        elif field == 3:
            normalizer = dict(_fields(_bytes(value)))
    kind = _number(trainer.get(3, 1))
    if not pieces or kind not in _KINDS:
        raise ValueError(f"{len(pieces)} pieces of kind {kind}; kinds 1 (unigram) and 2 (bpe) are known")
    vocabulary = SentencePiece(
        pieces,
        _KINDS[kind],
        prefix=bool(normalizer.get(3, 1)),
        squeeze=bool(normalizer.get(4, 1)),
        charsmap=_bytes(normalizer.get(2, b"")),
    )
    return ModelFile(vocabulary, _signed(_number(trainer.get(41, 1))), _signed(_number(trainer.get(42, 2))))


def _piece(data: bytes) -> Piece:
    found = dict(_fields(data))
    (score,) = struct.unpack("<f", _bytes(found.get(2, bytes(4))))
    return Piece(_bytes(found.get(1, b"")).decode("utf-8"), score, _number(found.get(3, NORMAL)))


def _fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """The fields of a message: a number, or the bytes of a text, a message or a float."""
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        field, wire = tag >> 3, tag & 7
        if wire == 0:
            number, at = _varint(data, at)
            yield field, number
            continue
        if wire == 2:
            size, at = _varint(data, at)
        elif wire in (1, 5):
            size = 8 if wire == 1 else 4
        else:
            raise ValueError(f"a field of wire type {wire} at byte {at}")
        if size > len(data) - at:
            raise ValueError(f"{size} bytes announced at byte {at} of {len(data)}")
        yield field, data[at : at + size]
        at += size


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """A number in groups of 7 bits, lowest first; and where it ends."""
    number = 0
    for shift in range(0, 70, 7):
        byte = data[at]
        at += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number, at
    raise ValueError(f"a number of more than ten bytes at byte {at}")


def _bytes(value: int | bytes) -> bytes:
    if isinstance(value, int):
        raise ValueError("a number where a text was expected")
    return value


def _number(value: int | bytes) -> int:
    if isinstance(value, bytes):
        raise ValueError("a text where a number was expected")
    return value


def _signed(number: int) -> int:
    """Negative numbers are written as 64 bits."""
    return number - (1 << 64) if number >> 63 else number


__all__ = ["ModelFile", "Piece", "SentencePiece", "add_special_tokens", "read_model"]
