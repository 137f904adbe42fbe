"""What every encoding can be built with, by its class as by its Spec."""

import pytest
import torch

import gnomon as gn
from gnomon.positions.spec import parameters_of

SIZES = {"d_model": 16, "d_head": 4, "n_heads": 2, "n_layers": 2, "max_positions": 16}
WHOLE = [
    (name, option)
    for name in gn.positions.names()
    for option in parameters_of(gn.positions.encoding(name))
    if option in SIZES
]


def built(name: str, **changes: object) -> gn.PositionEncoding:
    cls = gn.positions.encoding(name)
    return cls(**{**{k: v for k, v in SIZES.items() if k in parameters_of(cls)}, **changes})


@pytest.mark.parametrize(("name", "option"), WHOLE)
@pytest.mark.parametrize("value", [10**15, 2**62, -1])
def test_an_absurd_size_is_an_error_before_memory_is_filled(name, option, value):
    with pytest.raises(gn.BadValue, match=option):
        built(name, **{option: value})


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("learned", {"d_model": 2**20, "max_positions": 2**30}),
        ("shaw", {"clip": 2**39}),
        ("cope", {"rows": 2**39}),
        ("transformer-xl", {"d_model": 2**20, "d_head": 2**20, "n_heads": 2**16}),
    ],
)
def test_more_memory_than_there_is_is_an_error_that_says_how_much(name, changes):
    with pytest.raises(gn.BadValue, match="TB of memory, more than there is here"):
        built(name, **changes)


def test_a_standard_deviation_below_zero_is_an_error():
    for name in gn.positions.names():
        if "std" in parameters_of(gn.positions.encoding(name)):
            with pytest.raises(gn.BadValue, match="std must be at least 0, got -1"):
                built(name, std=-1.0)


def test_an_encoding_of_ones_own_is_asked_the_same(monkeypatch):
    from gnomon.positions import base

    monkeypatch.setattr(base, "_REGISTRY", dict(base._REGISTRY))

    class Mine(gn.PositionEncoding):
        name = "mine-of-sizes"
        acts = "score"

        def __init__(self, n_heads: int) -> None:
            super().__init__()
            self.slopes = torch.nn.Parameter(torch.ones(n_heads))

        def bias(self, h, q, k):
            return self.slopes[h] * (q - k)

    assert Mine(3).slopes.shape == (3,)
    with pytest.raises(gn.BadValue, match="n_heads must be at most 65536"):
        Mine(2**17)
