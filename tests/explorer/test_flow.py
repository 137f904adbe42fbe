"""The explorer's flow: what a page shows of a model is what the library computes."""

import base64

import numpy as np
import pytest
import torch

import gnomon as gn
from gnomon.data import Tokenizer
from gnomon.errors import BadValue
from gnomon.explorer import Shelf
from gnomon.explorer.flow import OneLayer
from gnomon.explorer.questions import TOKENS, answered
from gnomon.plots import inspect

SIZES = {"vocab_size": 257, "d_model": 16, "n_layers": 3, "n_heads": 2}
MODELS = {"decoder-only": gn.DecoderOnly, "encoder-only": gn.EncoderOnly, "encoder-decoder": gn.EncoderDecoder}


def shelf(kind, position="alibi"):
    torch.manual_seed(0)
    model = MODELS[kind](**SIZES, position=position)
    model.tokenizer = Tokenizer.bytes()
    return Shelf([model]), model.eval()


def numbers(packed):
    values = np.frombuffer(base64.b64decode(packed["data"]), packed["dtype"])
    return torch.tensor(values.astype(np.float64)).reshape(packed["shape"])


@pytest.mark.parametrize("kind", MODELS)
def test_weights_and_answer_are_those_of_an_inspection(kind):
    models, model = shelf(kind)
    said = answered(models, "flow", {"model": kind, "text": "one two", "layer": 1, "head": 1})
    seen = inspect(model, "one two")
    assert said["tokens"] == seen.tokens
    torch.testing.assert_close(numbers(said["weights"]), seen.attention[1][1].double(), atol=1e-6, rtol=0)
    best = said["candidates"][0][0]
    assert best["token"] == seen.guesses[0].token
    assert best["p"] == pytest.approx(seen.guesses[0].probability, rel=1e-5)
    if kind == "encoder-decoder":
        torch.testing.assert_close(numbers(said["cross"]), seen.cross[1][1].double(), atol=1e-6, rtol=0)
        assert said["source"] == seen.source.tokens


@pytest.mark.parametrize("kind", MODELS)
def test_the_softmax_of_the_scores_is_the_weights(kind):
    said = answered(shelf(kind)[0], "flow", {"model": kind, "text": "one two", "layer": 2})
    torch.testing.assert_close(numbers(said["scores"]).softmax(-1), numbers(said["weights"]), atol=1e-6, rtol=0)
    if kind == "encoder-decoder":
        torch.testing.assert_close(numbers(said["cross_scores"]).softmax(-1), numbers(said["cross"]), atol=1e-6, rtol=0)


def test_what_the_sublayers_add_makes_the_stream():
    models, _ = shelf("decoder-only")
    ask = {"model": "decoder-only", "text": "abc", "token": 1, "layer": 0}
    of = {
        s: numbers(answered(models, "vector", {**ask, "stage": s})["values"])
        for s in ("input", "attention", "feed_forward", "layer")
    }
    torch.testing.assert_close(of["input"] + of["attention"] + of["feed_forward"], of["layer"], atol=1e-5, rtol=0)


def test_position_added_at_the_input_is_a_stage_of_its_own():
    models, _ = shelf("decoder-only", "sinusoidal")
    said = answered(models, "vector", {"model": "decoder-only", "text": "abc", "token": 2, "stage": "position"})
    table = gn.positions.sinusoidal_table(3, 16)[2]
    torch.testing.assert_close(numbers(said["values"]), torch.tensor(table), atol=1e-6, rtol=0)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"layer": 3}, "layers 0 to 2, got 3"),
        ({"head": 2}, "heads 0 to 1, got 2"),
        ({"text": ""}, "the text is empty"),
        ({"text": "a" * (TOKENS + 1)}, f"{TOKENS} at most"),
        ({"text": "a" * 9000}, "letters"),
        ({"text": 3}, "text"),
        ({"model": "other"}, "unknown model 'other'"),
        ({"model": "/etc/passwd"}, "unknown model"),
        ({"heads": 1}, "unknown value of the question flow 'heads': did you mean 'head'"),
    ],
)
def test_a_question_that_cannot_be_answered_says_why(values, message):
    models, _ = shelf("decoder-only")
    with pytest.raises(BadValue, match=message):
        answered(models, "flow", {"model": "decoder-only", "text": "abc", **values})


def test_another_head_of_the_same_reading_costs_no_forward(monkeypatch):
    models, model = shelf("decoder-only")
    forwards, hidden = [], type(model).hidden
    monkeypatch.setattr(type(model), "hidden", lambda *a, **k: forwards.append(1) or hidden(*a, **k))
    for head in (0, 1):
        answered(models, "flow", {"model": "decoder-only", "text": "abc", "layer": 1, "head": head})
    answered(models, "vector", {"model": "decoder-only", "text": "abc", "layer": 1, "stage": "layer", "token": 0})
    assert len(forwards) == 1
    answered(models, "flow", {"model": "decoder-only", "text": "abd", "layer": 1})
    assert len(forwards) == 2


def test_a_long_text_keeps_the_attention_of_one_layer_only():
    _, model = shelf("decoder-only")
    trace = OneLayer(layer=1)
    model.hidden(torch.zeros(1, 64, dtype=torch.long), trace=trace)
    assert [a.numel() for a in trace.attention] == [0, 2 * 64 * 64, 0]
    assert [s.numel() for s in trace.scores] == [0, 2 * 64 * 64, 0]
    assert len(trace.entropies) == 3


def test_a_model_is_left_as_it_was():
    models, model = shelf("decoder-only")
    answered(models, "flow", {"model": "decoder-only", "text": "abc"})
    assert not any(part._forward_hooks for part in model.modules())
