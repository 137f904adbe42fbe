"""Streams: pieces that add up to the text and never show half a character or part of a stop string."""

from collections.abc import Iterator
from itertools import pairwise, product

import pytest
import torch

from gnomon.data import Tokenizer
from gnomon.errors import BadValue
from gnomon.generate import Sample, generate, stream

TEXTS = ["\N{GRINNING FACE}é", "ďA 世b", "\ufffd!", "a\u0301ñ", "x\N{FAMILY}\N{ZERO WIDTH JOINER}"]


def splits(text: bytes) -> Iterator[list[bytes]]:
    """All ways of cutting bytes into tokens, of which there are 2^(n-1)."""
    for cuts in product([False, True], repeat=len(text) - 1):
        edges = [0, *(i + 1 for i, cut in enumerate(cuts) if cut), len(text)]
        yield [text[a:b] for a, b in pairwise(edges)]


class Reciter:
    """A stand-in for a tokenizer whose ids are any byte strings: what TextStream needs of one, and no more."""

    def __init__(self, pieces: list[bytes]) -> None:
        class Columns:
            first = rest = pieces

        self.pieces, self.control_ids, self.eos_id, self.vocab_size = Columns, frozenset(), None, len(pieces)

    def check(self, ids: list[int]) -> list[int]:
        return list(ids)


@pytest.mark.parametrize("text", TEXTS)
def test_characters_split_over_tokens_in_any_way_come_whole(chain, text):
    data = text.encode()
    for tokens in splits(data):
        pieces = [b"", *tokens]  # id 0 is the prompt, and token i is followed by token i + 1
        model = chain({i: [i + 1] for i in range(len(tokens))}, size=len(pieces), tokenizer=Reciter(pieces))
        shown = list(stream(model, [0], max_new_tokens=len(tokens)))
        assert "".join(shown) == text
        assert all(shown)
        assert "".join(shown).count("\ufffd") == text.count("\ufffd")


@pytest.mark.parametrize("seed", range(8))
def test_pieces_add_up_to_the_text_of_the_ids(tiny, seed):
    """A random model over bytes writes broken UTF-8 of every kind."""
    model = tiny(vocab_size=257)
    model.tokenizer = Tokenizer.bytes()
    settings = {"strategy": Sample(2.0), "max_new_tokens": 40, "stop": ["\n", "ab"]}
    out = generate(model, "é", seed=seed, **settings)[0]
    pieces = list(stream(model, "é", seed=seed, **settings))
    assert "".join(pieces) == out.text
    if out.finish_reason != "stop":
        assert out.text == model.tokenizer.decode(out.ids)


def test_pieces_come_as_soon_as_they_are_certain(scripted):
    model = scripted(b"one <st>")
    reads = [(piece, len(model.reads)) for piece in stream(model, [0], stop="<stx")]
    assert reads == [("o", 1), ("n", 2), ("e", 3), (" ", 4), ("<st>", 8)]


def test_nothing_is_read_before_the_first_piece_is_asked_for(scripted):
    model = scripted(b"abc")
    pieces = stream(model, [0])
    assert model.reads == []
    assert next(pieces) == "a"
    assert len(model.reads) == 1


def test_a_stream_that_is_left_leaves_nothing_behind(tiny):
    model = tiny(vocab_size=257, dropout=0.5).train()
    model.tokenizer = Tokenizer.bytes()
    pieces = stream(model, "a", strategy=Sample(), seed=0)
    next(pieces)
    assert model.training  # also in between, while the reader has it
    assert torch.is_grad_enabled()


def test_mistakes_are_raised_at_once(chain, scripted):
    with pytest.raises(BadValue, match="a stream is text"):
        stream(chain({}), [1])
    with pytest.raises(BadValue, match="a stream has one prompt, got 2"):
        stream(scripted(b"abc"), [[1], [2]])
    with pytest.raises(BadValue, match="max_new_tokens"):
        stream(scripted(b"abc"), [1], max_new_tokens=0)
