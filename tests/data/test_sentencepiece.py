"""SentencePiece vocabularies, against their definitions: the best merge again and again, and the best sum of scores."""

import struct
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gnomon.data import Tokenizer
from gnomon.data.sentencepiece import BYTE, CONTROL, UNKNOWN, USER_DEFINED, Piece, SentencePiece, read_model
from gnomon.errors import BadInput

MARKS = [Piece("<unk>", 0.0, UNKNOWN), Piece("<s>", 0.0, CONTROL), Piece("</s>", 0.0, CONTROL)]
BYTES = [Piece(f"<0x{byte:02X}>", 0.0, BYTE) for byte in range(256)]
MERGED = ["ab", "▁a", "abc", "bc", "▁ab", "cc", "▁▁", "b▁", "ca", "▁abca"]
LETTERS = ["a", "b", "c", "▁", "ñ"]
BPE = [*MARKS, *BYTES, *(Piece(text, -float(n)) for n, text in enumerate([*MERGED, *LETTERS]))]
UNIGRAM = [
    *MARKS,
    Piece("<0>", 0.0, USER_DEFINED),
    *(Piece(text, -1.5 * n - 0.37 * n * n) for n, text in enumerate([*LETTERS, *MERGED], 1)),
]
TEXT = st.text(alphabet="abc ñ", max_size=12)


def cut_by_merging(text: str, pieces: list[Piece]) -> list[str]:
    """The definition: the neighbours that make the best piece become one, the leftmost of equals first."""
    scores = {piece.text: piece.score for piece in pieces}
    cut = list(text)
    while True:
        pairs = [(scores[a + b], -i) for i, (a, b) in enumerate(pairwise(cut)) if a + b in scores]
        if not pairs:
            return cut
        i = -max(pairs)[1]
        cut[i : i + 2] = [cut[i] + cut[i + 1]]


def cut_by_score(text: str, pieces: list[Piece]) -> float:
    """The definition: the best sum of scores over all ways to cut a text into pieces."""
    scores = {piece.text: piece.score for piece in pieces}
    best = [0.0] + [float("-inf")] * len(text)
    for end in range(1, len(text) + 1):
        best[end] = max(best[start] + scores.get(text[start:end], float("-inf")) for start in range(end))
    return best[-1]


def tokenizer(vocabulary: SentencePiece) -> Tokenizer:
    return Tokenizer(vocabulary.core().to_str())


BPE_TOKENIZER, UNIGRAM_TOKENIZER = tokenizer(SentencePiece(BPE)), tokenizer(SentencePiece(UNIGRAM, "unigram"))


@given(TEXT)
def test_bpe_merges_the_best_neighbours_first(text: str) -> None:
    expected = cut_by_merging("▁" + text.replace(" ", "▁") if text else "", BPE)
    assert [BPE[i].text for i in BPE_TOKENIZER.encode(text)] == expected


@given(TEXT)
def test_unigram_has_the_best_sum_of_scores(text: str) -> None:
    ids = UNIGRAM_TOKENIZER.encode(text)
    spaced = "▁" + text.replace(" ", "▁") if text else ""
    assert "".join(UNIGRAM[i].text for i in ids) == spaced
    assert sum(UNIGRAM[i].score for i in ids) == pytest.approx(cut_by_score(spaced, UNIGRAM))


@given(st.text())
def test_with_bytes_to_fall_back_on_any_text_comes_back(text: str) -> None:
    """All but what the notation cannot tell apart: a ▁ of the text is read as a space."""
    assert BPE_TOKENIZER.decode(BPE_TOKENIZER.encode(text)) == text.replace("▁", " ")


@given(st.text(alphabet="ab <s>/", max_size=20))
def test_control_strings_stay_text(text: str) -> None:
    ids = BPE_TOKENIZER.encode(text)
    assert not {1, 2} & set(ids)
    assert BPE_TOKENIZER.decode(ids) == text


def test_spaces_are_squeezed_where_the_vocabulary_says_so() -> None:
    squeezing = tokenizer(SentencePiece(BPE, squeeze=True))
    assert squeezing.decode(squeezing.encode("  ab   c ")) == "ab c"
    plain = tokenizer(SentencePiece(BPE, prefix=False))
    assert (plain.decode(plain.encode(" ab")), [BPE[i].text for i in plain.encode("ab")]) == (" ab", ["ab"])


# ------------------------------------------------------------------ the .model file


def varint(number: int) -> bytes:
    number &= (1 << 64) - 1
    out = b""
    while number > 0x7F:
        out, number = out + bytes([number & 0x7F | 0x80]), number >> 7
    return out + bytes([number])


def message(fields: Iterable[tuple[int, object]]) -> bytes:
    out = b""
    for field, value in fields:
        match value:
            case float():
                out += varint(field << 3 | 5) + struct.pack("<f", value)
            case int():
                out += varint(field << 3) + varint(value)
            case bytes():
                out += varint(field << 3 | 2) + varint(len(value)) + value
    return out


def model_file(pieces: list[Piece], kind: int = 2, bos: int = 1, eos: int = 2, **normalizer: int) -> bytes:
    """A .model file, written by hand after sentencepiece_model.proto."""
    entries = [(1, message([(1, p.text.encode()), (2, p.score), (3, p.kind)])) for p in pieces]
    prefix, squeeze = normalizer.get("prefix", 1), normalizer.get("squeeze", 0)
    return message(
        [*entries, (2, message([(3, kind), (41, bos), (42, eos)])), (3, message([(3, prefix), (4, squeeze)])), (9, 1.5)]
    )


def test_a_model_file_is_read(tmp_path: Path) -> None:
    (tmp_path / "spiece.model").write_bytes(model_file(BPE, prefix=0))
    found = read_model(tmp_path / "spiece.model")
    assert found.vocabulary == SentencePiece(BPE, prefix=False)
    read = Tokenizer.load(tmp_path)
    assert (read.eos_id, read.frame) == (2, ([1], []))
    assert read.encode("abca b") == tokenizer(found.vocabulary).encode("abca b")
    assert Tokenizer.load(tmp_path / "spiece.model").sha256 == read.sha256


def test_what_a_config_beside_it_says_counts(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.model").write_bytes(model_file(BPE))
    (tmp_path / "tokenizer_config.json").write_text('{"eos_token": "<s>", "chat_template": "x"}')
    read = Tokenizer.load(tmp_path)
    assert (read.eos_id, read.chat_template) == (1, "x")


def test_no_begin_and_unigram(tmp_path: Path) -> None:
    (tmp_path / "x.model").write_bytes(model_file(UNIGRAM, kind=1, bos=-1))
    read = Tokenizer.load(tmp_path / "x.model")
    assert (read.kind, read.eos_id, read.frame) == ("unigram", 2, ([], []))
    assert read.encode("abcab ca") == UNIGRAM_TOKENIZER.encode("abcab ca")


def test_a_tokenizer_json_wins_over_a_model_beside_it(tmp_path: Path) -> None:
    Tokenizer.bytes().save(tmp_path)
    (tmp_path / "tokenizer.model").write_bytes(model_file(BPE))
    assert Tokenizer.load(tmp_path).kind == "bytes"


def test_a_damaged_model_file_is_named(tmp_path: Path) -> None:
    whole = model_file(BPE)
    path = tmp_path / "cut.model"
    for data in (whole[:-7], whole[:100], b"", b"\xff" * 30, b"GGUF" + bytes(40), model_file(BPE, kind=4)):
        path.write_bytes(data)
        with pytest.raises(BadInput, match="cut.model"):
            Tokenizer.load(path)
    with pytest.raises(BadInput, match="none.model"):
        read_model(tmp_path / "none.model")


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_a_piece_longer_than_sentencepiece_makes_any_is_refused(kind: str) -> None:
    """Its merges would take the square of its length."""
    SentencePiece([*BPE, Piece("a" * 512, -99.0)], kind).core()
    SentencePiece([*BPE, Piece("a" * 2000, -99.0, USER_DEFINED)], kind).core()
    with pytest.raises(BadInput, match="piece 274 .* has 400000 letters, more than the 512"):
        SentencePiece([*BPE, Piece("a" * 400_000, -99.0)], kind).core()
