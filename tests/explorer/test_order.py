"""Two words change places: what the explorer says of it is the law of equivariance, on any model."""

import pytest
import torch

import gnomon as gn
from gnomon.data import Tokenizer
from gnomon.errors import BadValue
from gnomon.explorer import Shelf
from gnomon.explorer.questions import answered

TEXT = "the dog bit the man"


def ask(kind, position, **values):
    torch.manual_seed(0)
    model = kind(vocab_size=257, d_model=16, n_layers=2, n_heads=2, position=position, max_positions=64, init_std=0.25)
    model.tokenizer = Tokenizer.bytes()
    shelf = Shelf([model])
    return answered(shelf, "order", {"model": shelf.names[0], "text": TEXT, **values}), model


@pytest.mark.parametrize("position", ["rope", "learned", "alibi", "t5"])
@pytest.mark.parametrize("kind", [gn.EncoderOnly, gn.DecoderOnly])
def test_without_position_and_mask_outputs_only_trade_places(kind, position):
    said, _ = ask(kind, position, both_sides=True)
    assert max(said["off"][name] for name in ("scores", "outputs", "pooled")) < 1e-5
    assert min(said["on"][name] for name in ("scores", "outputs")) > 1e-4


def test_a_causal_mask_tells_the_order_without_position():
    said, _ = ask(gn.DecoderOnly, "rope")
    assert said["causal"]
    assert said["off"]["scores"] < 1e-5
    assert said["off"]["outputs"] > 1e-3


def test_words_move_with_their_tokens_and_the_mask_comes_back():
    said, model = ask(gn.DecoderOnly, "rope", both_sides=True)
    assert said["words"] == TEXT.split()
    assert "".join(said["b"]).replace("␣", " ") == "the man bit the dog"
    assert [said["a"][n] for n in said["back"]] == said["b"]
    assert all(block.attention.settings.causal for block in model.stack.blocks)


@pytest.mark.parametrize(("first", "second"), [(1, 1), (0, 5), (-1, 2)])
def test_two_words_of_the_text_are_needed(first, second):
    with pytest.raises(BadValue, match="words 0 to 4: give two different ones"):
        ask(gn.DecoderOnly, "rope", first=first, second=second)
