"""Numbers that no model can have are refused by name before anything is built."""

import math

import pytest

import gnomon as gn


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("vocab_size", 0), ("d_model", 10**11), ("n_layers", -1), ("n_layers", 10**7), ("d_ff", -1), ("d_head", 0),
        ("window", 0), ("dropout", math.nan), ("dropout", 1.0), ("norm_eps", -1.0), ("init_std", -1.0),
        ("init_std", math.nan), ("embed_scale", math.nan), ("position_dim", 0), ("n_kv_heads", 0),
    ],
)  # fmt: skip
def test_an_impossible_setting_is_named(name, value):
    sizes = {"vocab_size": 30, "d_model": 16, "n_layers": 1, "n_heads": 2}
    with pytest.raises(gn.BadValue, match=name):
        gn.ModelConfig.from_dict({**sizes, name: value})


@pytest.mark.parametrize("base", [0, -5, math.nan, math.inf, "abc", [1]])
@pytest.mark.parametrize("name", ["rope", "sinusoidal"])
def test_a_base_without_wavelengths_is_refused(name, base):
    with pytest.raises(gn.BadValue, match="base"):
        gn.positions.get(name, base=base).build(d_model=16, d_head=8)


def test_an_option_of_another_type_is_an_error_of_the_choice():
    with pytest.raises(gn.BadValue, match="max_positions must be a whole number, got '3'"):
        gn.positions.get("learned", max_positions="3").build(d_model=16)
