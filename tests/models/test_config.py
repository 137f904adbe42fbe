"""Settings of a model: there and back as plain data, and every mistake named."""

import json

import pytest

import gnomon as gn
from gnomon.models.config import as_position
from gnomon.models.presets import PRESETS, preset

SIZES = {"vocab_size": 50, "d_model": 32, "n_layers": 2, "n_heads": 2}


@pytest.mark.parametrize(
    "position",
    ["none", "sinusoidal", gn.positions.get("rope", base=5e5, pairing="interleaved"), ["rope", "none"]],
)
def test_a_config_survives_json(position):
    config = gn.DecoderOnly(**SIZES, position=position, norm="rmsnorm", window=8).config
    again = gn.ModelConfig.from_dict(json.loads(json.dumps(config.to_dict())))
    assert again == config
    assert gn.DecoderOnly.from_config(again).config == config


@pytest.mark.parametrize("name", PRESETS)
def test_presets_are_complete_and_take_changes(name):
    assert preset(name, dropout=0.25).dropout == 0.25
    assert preset(name, position="alibi").position == gn.positions.get("alibi")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({**SIZES, "n_head": 2}, "unknown key of a model config 'n_head': did you mean 'n_heads'"),
        ({"vocab_size": 50}, "needs d_model, n_layers, n_heads"),
        ({**SIZES, "d_model": "32"}, "d_model must be a whole number between 1 and .*got '32'"),
        ({**SIZES, "n_layers": 2.5}, "n_layers must be a whole number between 0 and 10000, got 2.5"),
        ({**SIZES, "tied": 1}, "tied must be true or false, got 1"),
        ({**SIZES, "n_layers": True}, "n_layers must be a whole number between 0 and 10000, got True"),
        ({**SIZES, "d_ff": "none"}, "d_ff must be a whole number .* or none, got 'none'"),
        ({**SIZES, "embed_scale": "sqr"}, "must be 'sqrt' or 'rounded sqrt' or a number or none"),
        ({**SIZES, "activation": "gleu"}, "unknown activation 'gleu': did you mean 'gelu'"),
        ({**SIZES, "placement": "pro"}, "unknown placement 'pro': did you mean 'pre'"),
        ({**SIZES, "position": "rop"}, "unknown position encoding 'rop': did you mean 'rope'"),
        ({**SIZES, "position": {"name": "rope", "bass": 1e6}}, "unknown option of rope 'bass': did you mean 'base'"),
        ({**SIZES, "position": []}, "position must be a name"),
        ({**SIZES, "position": 3}, "position must be a name"),
    ],
)
def test_a_mistake_in_a_config_is_named(data, message):
    with pytest.raises(gn.BadValue, match=message):
        gn.ModelConfig.from_dict(data)


def test_an_unknown_preset_names_the_nearest():
    with pytest.raises(gn.BadValue, match="unknown preset 'mini-gtp': did you mean 'mini-gpt'"):
        preset("mini-gtp")


def test_whole_numbers_are_taken_where_a_number_is_asked():
    assert gn.ModelConfig.from_dict({**SIZES, "dropout": 0}).dropout == 0


def test_a_list_of_positions_is_one_per_layer():
    assert as_position(["rope", "none"]) == (gn.positions.get("rope"), gn.positions.get("none"))
    with pytest.raises(gn.BadValue, match="lists 3 encodings for 2 layers"):
        gn.DecoderOnly(**SIZES, position=["rope"] * 3)
    with pytest.raises(gn.BadValue, match="sinusoidal acts at the input, not in a layer"):
        gn.DecoderOnly(**SIZES, position=["rope", "sinusoidal"])


# ------------------------------------------------------------------ windows


def test_all_stands_for_no_window():
    """TOML has no null."""
    assert gn.DecoderOnly(**SIZES, window=[4, "all"]).config.window == (4, None)


def test_a_pattern_of_windows_repeats_over_the_layers_and_survives_json():
    config = gn.DecoderOnly(**{**SIZES, "n_layers": 5}, window=[4, None], sink_tokens=1).config
    assert config.windows(5) == [4, None, 4, None, 4]
    assert gn.ModelConfig.from_dict(json.loads(json.dumps(config.to_dict()))) == config


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"window": [4, 0]}, "a whole number between 1 and .* or none or a list of these, got a tuple of 2 int"),
        ({"n_types": -1}, "n_types must be a whole number between 0"),
        ({"n_decoder_layers": -1}, "n_decoder_layers must be a whole number between 0"),
        ({"head_scale": float("inf")}, "head_scale must be a number, got inf"),
        ({"window": []}, "a whole number, none, or a list"),
        ({"window": "4"}, "a whole number, none, or a list"),
        ({"window": [True]}, "a whole number, none, or a list"),
        ({"sink_tokens": 2}, "give a window"),
        ({"sink_tokens": -1, "window": 4}, "sink_tokens must be a whole number between 0"),
        ({"softcap": 0.0}, "softcap must be a number above 0"),
        ({"residual": "parallel", "placement": "post"}, "'pre' or 'sandwich'"),
        ({"residual": "one norm", "placement": "sandwich"}, "for placement 'pre'; got"),
        ({"residual_scale": float("nan")}, "residual_scale must be a number"),
        ({"head_softcap": -1.0}, "head_softcap must be a number above 0"),
        ({"residual": "beside"}, "sequential"),
    ],
)
def test_settings_of_blocks_that_mean_nothing_are_refused(settings, message):
    with pytest.raises(gn.BadValue, match=message):
        gn.DecoderOnly(**SIZES, **settings)


def test_only_a_model_whose_layers_all_have_windows_can_roll():
    with pytest.raises(gn.BadValue, match="still attends to"):
        gn.DecoderOnly(**SIZES, window=[4, None]).cache("rolling")
    cache = gn.DecoderOnly(**SIZES, window=[4, 6], sink_tokens=2).cache("rolling")
    assert (cache.window, cache.sink_tokens) == (6, 2)


# ------------------------------------------------------------------ a schedule over the layers


@pytest.mark.parametrize(
    "position", ["rope, rope, none", "[rope, rope, none]", ["rope", "rope", "none"], {"name": "rope, rope, none"}]
)
def test_a_list_of_encodings_repeats_over_the_layers(position):
    config = gn.ModelConfig(30, 16, 7, 2, position=position, window=[4, 4, None])
    assert [spec.name for spec in config.per_layer(7)] == ["rope", "rope", "none"] * 2 + ["rope"]
    assert config.windows(7) == [4, 4, None] * 2 + [4]
    assert gn.ModelConfig.from_dict(json.loads(json.dumps(config.to_dict()))) == config


@pytest.mark.parametrize(
    ("position", "message"),
    [
        ("rope, rope, none, alibi", "lists 4 encodings for 3 layers: give fewer"),
        ("rope, , none", "lists a name that is empty"),
        ("rope, sinusoidal", "sinusoidal acts at the input"),
        ({"name": "rope, none", "base": 3.0}, "options of several encodings are written in their list"),
        ({"name": "rope(base=3.0)", "bas": 3.0}, "did you mean 'base'"),
    ],
)
def test_a_schedule_that_no_model_could_have_is_named(position, message):
    with pytest.raises(gn.BadValue, match=message):
        gn.DecoderOnly(30, 16, 3, 2, position=position)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["SmolLM3", "Cohere2", "Llama4Text"])
def test_schedules_are_those_of_transformers(name):
    """Which layers turn queries, and which see a window, of models of eight layers."""
    import transformers

    theirs = getattr(transformers, f"{name}Config")(num_hidden_layers=8)
    ours = gn.ModelConfig(30, 16, 8, 2, position="rope, rope, rope, none", window=[4096, 4096, 4096, None])
    turned = [spec.name == "rope" for spec in ours.per_layer(8)]
    if name == "Cohere2":
        windows = [4096 if kind == "sliding_attention" else None for kind in theirs.layer_types]
        assert windows == ours.windows(8)
        assert turned == [window is not None for window in windows]  # rope where attention slides
        assert theirs.sliding_window == 4096
    else:
        assert turned == [bool(on) for on in theirs.no_rope_layers]
