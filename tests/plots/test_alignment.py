"""The picture of cross-attention shows the model's own weights, each row under the word it writes."""

import numpy as np
import pytest
import torch

from gnomon.data import Tokenizer
from gnomon.errors import BadValue
from gnomon.models import EncoderDecoder
from gnomon.plots import alignment
from gnomon.trace import Trace


@pytest.fixture
def translator() -> EncoderDecoder:
    torch.manual_seed(0)
    model = EncoderDecoder(257, 16, 2, 4, dropout=0.5)
    model.tokenizer = Tokenizer.bytes()
    return model


@pytest.mark.slow
def test_the_weights_are_those_of_the_forward_that_writes_the_target(translator):
    facts = alignment(translator, "abc", "xy").facts
    trace = Trace()
    translator.eval()(torch.tensor([[97, 98, 99]]), torch.tensor([[256, 120, 121]]), trace=trace)
    expected = torch.stack(trace.cross)[:, 0].mean((0, 1))
    np.testing.assert_allclose(facts["weights"], expected, rtol=1e-5)
    np.testing.assert_allclose(np.sum(facts["weights"], axis=1), 1, rtol=1e-5)
    assert (facts["source"], facts["target"]) == (["a", "b", "c"], ["x", "y", "(end)"])
    assert facts["looked_at"] == ["abc"[i] for i in expected.argmax(1)]


def test_without_a_target_it_is_what_the_model_writes_and_the_model_stays_as_it_was(translator):
    translator.train()
    written = translator.generate(source=["abc"], max_new_tokens=64)[0].ids
    if len(written) > 40:
        with pytest.raises(BadValue, match="the target has 64 tokens"):
            alignment(translator, "abc")
    else:
        assert len(alignment(translator, "abc").facts["target"]) == len(written)
    assert translator.training


def test_every_head_of_every_layer_has_its_panel_under_its_name(translator):
    picture = alignment(translator, "abc", "xy", lang="es")
    titles = [axes.get_title(loc="left") for axes in picture.figure.axes]
    for layer in (1, 2):
        for head in (1, 2, 3, 4):
            assert f"capa {layer}, cabezal {head}" in titles
    assert picture.render("png").startswith(b"\x89PNG")
    assert "abc" in picture.alt.replace(" ", "")


@pytest.mark.parametrize(
    ("source", "target", "message"),
    [("", "x", "the source is empty"), ("a" * 41, "x", "the source has 41 tokens"), ("a", "x" * 41, "the target has")],
)
def test_what_cannot_be_drawn_is_said(translator, source, target, message):
    with pytest.raises(BadValue, match=message):
        alignment(translator, source, target)


def test_a_model_of_bare_ids_is_refused(translator):
    translator.tokenizer = None
    with pytest.raises(BadValue, match="needs a model with a tokenizer"):
        alignment(translator, "a", "b")
