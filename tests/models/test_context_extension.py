"""Extending a model keeps what it knows."""

import pytest
import torch

import gnomon as gn
from gnomon.models.context_extension import ROPE_METHODS, TABLE_METHODS, extend
from gnomon.positions.scaling import scaling

SIZES = {"vocab_size": 30, "d_model": 16, "n_layers": 2, "n_heads": 2}


def model(position="rope", **changes):
    return gn.DecoderOnly(**SIZES, position=position, **{"max_positions": 32, **changes}).eval()


def same_but_position(old, new):
    ours, theirs = old.state_dict(), new.state_dict()
    return all(torch.equal(ours[name], x) for name, x in theirs.items() if name in ours and "position" not in name)


@pytest.mark.parametrize("method", ROPE_METHODS)
def test_rope_is_scaled_by_how_much_further_it_shall_read(method):
    old = model()
    done = extend(old, 128, method)
    [position] = done.model.stack.positions
    assert position.scaling == scaling(
        {"kind": method, "factor": 4.0, **({} if method in ("linear", "ntk") else {"original_length": 32})}
    )
    assert done.model.config.max_positions == 128
    assert same_but_position(old, done.model)
    assert (done.removed, done.added) == ({}, {})
    assert gn.models.build(gn.ModelConfig.from_dict(done.model.config.to_dict())).config == done.model.config


def test_dynamic_scaling_leaves_texts_within_the_trained_length_as_they_were():
    old, ids = model(), torch.randint(30, (1, 32))
    assert torch.equal(extend(old, 64, "dynamic").model(ids), old(ids))


def test_only_the_layers_that_rotate_are_scaled():
    old = model(["rope", "none"])
    new = extend(old, 64, "yarn", beta_fast=8.0).model
    assert [spec.options.get("scaling", {}).get("beta_fast") for spec in new.config.position] == [8.0, None]


NEAR, FAR = gn.positions.get("rope"), gn.positions.get("rope", base=1e6)


@pytest.mark.parametrize(
    ("position", "window", "scaled"),
    [
        ([NEAR, FAR], [4, None], [False, True]),  # as in Gemma 3
        ([FAR, NEAR], [None, 4], [True, False]),
        ([FAR, FAR], [4, None], [True, True]),  # one encoding for both
        ([NEAR, FAR], 4, [True, True]),  # no layer sees all
        (["none", NEAR], [None, 4], [False, True]),
    ],
)
def test_what_only_layers_with_a_window_have_stays_as_it_was_trained(position, window, scaled):
    new = extend(model(position, window=window), 64, "linear").model
    assert ["scaling" in spec.options for spec in new.config.position] == scaled


@pytest.mark.parametrize("how", TABLE_METHODS)
def test_a_learned_table_grows(how):
    old, ids = model("learned"), torch.randint(30, (1, 32))
    done = extend(old, 80, how)
    table = done.model.input.position
    assert table.max_positions == 80
    assert torch.equal(table.weight, old.input.position.grow(80, how).weight)
    assert same_but_position(old, done.model)
    if how != "interpolate":
        assert torch.equal(done.model(ids), old(ids))
    assert done.model(torch.randint(30, (1, 80))).isfinite().all()


def test_both_tables_of_an_encoder_decoder_grow():
    old = gn.EncoderDecoder(**SIZES, position="learned", max_positions=9, source_positions=True)
    new = extend(old, 20, "tile").model
    assert [layer.position.max_positions for layer in (new.input, new.source_input)] == [20, 20]


@pytest.mark.parametrize(
    ("position", "to", "method", "message"),
    [
        ("rope", 32, "yarn", "changes nothing"),
        ("rope", 64, "yarm", "did you mean 'yarn'"),
        ("rope", 64, "tile", "way to extend rope"),
        ("learned", 64, "yarn", "way to grow a learned table"),
        ("alibi", 64, "yarn", "alibi has no length to scale"),
        ("none", 64, "yarn", "none has no length to scale"),
    ],
)
def test_what_cannot_be_extended_says_why(position, to, method, message):
    with pytest.raises(gn.BadValue, match=message):
        extend(model(position), to, method)


def test_a_model_that_is_scaled_already_is_not_scaled_twice():
    with pytest.raises(gn.BadValue, match="scaled already"):
        extend(extend(model(), 64, "ntk").model, 128, "ntk")


def test_somebody_has_to_say_the_trained_length():
    with pytest.raises(gn.BadValue, match="pass trained"):
        extend(model(max_positions=None), 64, "ntk")
    assert extend(model(max_positions=None), 64, "ntk", trained=16).model.stack.positions[0].scaling.factor == 4.0
