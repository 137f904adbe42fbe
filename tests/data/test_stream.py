"""Laws of streamed text: nothing broken, nothing lost, nothing late."""

import itertools

import pytest
import tokenizers
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import decoders, models

from gnomon.data import TextStream, Tokenizer
from gnomon.data.token_bytes import BYTE_ALPHABET
from gnomon.errors import BadValue

MIXED = [
    "é😀ď".encode(),
    b"A \xe4\xb8\x96\xe4b",  # a character, then the first byte of one that does not go on
    b"ok\xf0\x9f",  # stops within a character
    "a\ufffdb世".encode(),  # U+FFFD that belongs to the text
    b"\xff\xc3\xa9\x80\xf0\x9f\x98x",  # bytes that are never, or not here, UTF-8
]


def tokenizer_of_chunks(chunks: set[bytes]) -> Tokenizer:
    """A vocabulary with every chunk as one token, spelt in the byte alphabet."""
    names = ["".join(BYTE_ALPHABET[byte] for byte in chunk) for chunk in sorted(chunks)]
    core = tokenizers.Tokenizer(models.WordLevel({name: i for i, name in enumerate(names)}, unk_token=names[0]))
    core.decoder = decoders.ByteLevel()
    return Tokenizer(core.to_str())


def streamed(tokenizer: Tokenizer, ids: list[int]) -> list[str]:
    stream = TextStream(tokenizer)
    return [stream.push(i) for i in ids] + [stream.flush()]


@pytest.mark.parametrize("data", MIXED)
def test_every_way_of_cutting_bytes_into_tokens_gives_the_same_text(data: bytes) -> None:
    chunks = {data[i:j] for i, j in itertools.combinations(range(len(data) + 1), 2)}
    tokenizer = tokenizer_of_chunks(chunks)
    number = {piece: i for i, piece in enumerate(tokenizer.pieces.rest)}
    for cuts in itertools.product([False, True], repeat=len(data) - 1):
        places = [0, *(i for i, cut in enumerate(cuts, start=1) if cut), len(data)]
        ids = [number[data[i:j]] for i, j in itertools.pairwise(places)]
        assert "".join(streamed(tokenizer, ids)) == data.decode("utf-8", "replace") == tokenizer.decode(ids)


@pytest.mark.slow
@given(data=st.data())
@settings(max_examples=400, deadline=None)
def test_the_pieces_add_up_to_the_decoded_whole(families: dict[str, Tokenizer], data: st.DataObject) -> None:
    tokenizer = families[data.draw(st.sampled_from(sorted(families)))]
    ids = data.draw(st.lists(st.integers(0, tokenizer.vocab_size - 1)))
    assert "".join(streamed(tokenizer, ids)) == tokenizer.decode(ids)


@given(text=st.text(st.characters(exclude_categories=["Cs"]), min_size=1))
@settings(max_examples=200, deadline=None)
def test_each_character_appears_with_its_last_byte(text: str) -> None:
    """Also a U+FFFD of the text itself, which holds nothing up."""
    stream, shown = TextStream(Tokenizer.bytes()), ""
    data = text.encode()
    for end, byte in enumerate(data, start=1):
        shown += stream.push(byte)
        assert shown == data[:end].decode("utf-8", "ignore")
    assert stream.flush() == ""


def test_an_emoji_in_two_tokens_appears_with_the_second() -> None:
    tokenizer = tokenizer_of_chunks({b"\xf0\x9f", b"\x98\x80"})
    ids = [tokenizer.pieces.rest.index(piece) for piece in (b"\xf0\x9f", b"\x98\x80")]
    assert streamed(tokenizer, ids) == ["", "😀", ""]


@pytest.mark.parametrize("cut", [1, 2, 3])
def test_an_end_within_a_character_is_one_replacement_character(cut: int) -> None:
    assert streamed(Tokenizer.bytes(), list("a😀".encode())[: 1 + cut]) == ["a"] + [""] * cut + ["\ufffd"]


def test_control_ids_show_nothing(byte_level: Tokenizer) -> None:
    assert streamed(byte_level, [0xC3, 256, 0xA9]) == ["", "", "é", ""]


@given(data=st.data())
@settings(max_examples=200, deadline=None)
def test_a_stream_after_a_prompt_continues_its_text(families: dict[str, Tokenizer], data: st.DataObject) -> None:
    """In particular the space before a continuing word stays, in vocabularies that mark word starts."""
    tokenizer = families[data.draw(st.sampled_from(sorted(families)))]
    prompt = tokenizer.encode(data.draw(st.sampled_from(["the dog", "dog", "", "el perro mordió"])))
    ids = data.draw(st.lists(st.integers(0, tokenizer.vocab_size - 1)))
    stream = TextStream(tokenizer, after=prompt)
    text = "".join([stream.push(i) for i in ids] + [stream.flush()])
    assert tokenizer.decode(prompt) + text == tokenizer.decode(prompt + ids)


def test_an_id_outside_the_vocabulary_is_refused() -> None:
    with pytest.raises(BadValue, match="257"):
        TextStream(Tokenizer.bytes()).push(257)
