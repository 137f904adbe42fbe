"""help(gn.DecoderOnly) lists and explains the settings, from the fields of ModelConfig."""

import inspect
import pydoc
from dataclasses import fields

import pytest

import gnomon as gn

every = pytest.mark.parametrize("kind", [gn.DecoderOnly, gn.EncoderOnly, gn.EncoderDecoder])
SIZES = ("vocab_size", "d_model", "n_layers", "n_heads")


@every
def test_the_signature_of_a_model_is_its_settings_and_their_defaults(kind):
    signature = inspect.signature(kind)
    assert list(signature.parameters) == [f.name for f in fields(gn.ModelConfig) if f.name != "architecture"]
    assert [n for n, p in signature.parameters.items() if p.default is p.empty] == list(SIZES)
    bound = signature.bind(9, 16, 2, 4)
    bound.apply_defaults()
    assert kind(*bound.args, **bound.kwargs).config == kind(9, 16, 2, 4).config


@every
def test_the_help_explains_each_setting(kind):
    text = pydoc.render_doc(kind, renderer=pydoc.plaintext)
    for field in fields(gn.ModelConfig):
        if field.name != "architecture":
            assert field.name in inspect.getdoc(kind)
            assert f"{field.name}:" in text
    assert "max_positions      rows of a learned table" in text


@every
def test_a_model_itself_is_called_with_ids(kind):
    model = kind(9, 16, 1, 2)
    assert "vocab_size" not in inspect.signature(model).parameters
    assert "vocab_size" not in inspect.signature(model.forward).parameters


def test_a_constructor_of_ones_own_has_its_own_signature():
    class Mine(gn.DecoderOnly):
        """Mine."""

        def __init__(self, depth: int) -> None:
            super().__init__(9, 16, depth, 2)

    class Again(Mine):
        """Again."""

    for kind in (Mine, Again):
        assert list(inspect.signature(kind).parameters) == ["depth"]
        assert "max_positions" not in inspect.getdoc(kind)
    assert kind(2).config.n_layers == 2
