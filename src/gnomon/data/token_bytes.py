"""What each token id adds to a text: bytes.

A text is the concatenation of its tokens' bytes, read as UTF-8. Decoding, streaming and bits per byte all follow
from this one table. Most tokens always add the same bytes; where a vocabulary marks the start of words (the
``▁`` of SentencePiece, the ``##`` of WordPiece), the first token of a text adds one space less, so there are two
columns.

The byte-level alphabet is GPT-2's (Radford et al. 2019, section 2.2, and the code released with it): every byte
is written as a printable character, so that a vocabulary of byte strings can be stored as text.
"""

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import tokenizers

from gnomon.errors import BadInput

# Decoders of the tokenizers library whose output is one piece per token, so that a table can stand for them.
CONCATENATING = {"ByteFallback", "ByteLevel", "Fuse", "Metaspace", "Replace", "Strip", "WordPiece"}
BYTE_TOKEN = re.compile(r"<0x([0-9A-Fa-f]{2})>")


def _byte_alphabet() -> list[str]:
    """The character that stands for each byte: itself where printable, else the next free one from U+0100 on."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    letters = {byte: chr(byte) for byte in printable} | {byte: chr(0x100 + i) for i, byte in enumerate(others)}
    return [letters[byte] for byte in range(256)]


BYTE_ALPHABET = _byte_alphabet()
BYTE_OF = {letter: byte for byte, letter in enumerate(BYTE_ALPHABET)}


@dataclass(frozen=True)
class TokenBytes:
    """The bytes each id adds: ``first[i]`` at the start of a text, ``rest[i]`` anywhere else."""

    first: list[bytes]
    rest: list[bytes]

    def join(self, ids: Sequence[int]) -> bytes:
        """The bytes of a whole text."""
        return b"".join([self.first[i] for i in ids[:1]] + [self.rest[i] for i in ids[1:]])


def decoder_steps(spec: dict[str, Any]) -> list[str]:
    """The types of a ``tokenizer.json``'s decoders, in order; BadInput for one that no table can stand for."""
    decoder = spec["decoder"]
    parts = [] if decoder is None else decoder["decoders"] if decoder["type"] == "Sequence" else [decoder]
    for part in parts:
        if part["type"] not in CONCATENATING or part.get("stop"):
            raise BadInput(
                f"this tokenizer decodes with {part['type']!r}, which does not work token by token; "
                f"supported decoders: {', '.join(sorted(CONCATENATING))}"
            )
    return [part["type"] for part in parts]


def tabulate(core: tokenizers.Tokenizer, size: int, control: frozenset[int]) -> TokenBytes:
    """Tabulate what each of ``size`` ids adds to a text; a control id has its name here, for whoever asks to see it."""
    spec = json.loads(core.to_str())
    steps = decoder_steps(spec)
    literal = control | ({token["id"] for token in spec["added_tokens"]} if "ByteLevel" in steps else set())
    decode: Callable[[list[str]], str] = core.decoder.decode if core.decoder is not None else " ".join

    def piece(i: int, name: str, before: list[str]) -> bytes:
        if i in literal:
            return name.encode()
        if "ByteLevel" in steps:
            return _byte_level(name)
        if "ByteFallback" in steps and (byte := BYTE_TOKEN.fullmatch(name)) and int(byte[1], 16) >= 0x80:
            return bytes.fromhex(byte[1])  # part of a character: the decoder alone would make it U+FFFD
        return decode([*before, name])[len(decode(before)) :].encode()

    first, rest = [b""] * size, [b""] * size  # ids without a token stay empty
    for name, i in core.get_vocab(with_added_tokens=True).items():
        first[i], rest[i] = piece(i, name, []), piece(i, name, ["x"])
    return TokenBytes(first, rest)


def _byte_level(name: str) -> bytes:
    """The bytes a token spells in the byte alphabet; a name with any other character is literal text."""
    if all(letter in BYTE_OF for letter in name):
        return bytes(BYTE_OF[letter] for letter in name)
    return name.encode()
