"""Costs of encodings are counted: operations and bytes, not seconds."""

import pytest
import torch
from torch.nn import functional as F

from gnomon.models.position_cost import LENGTH, operations, position_cost
from gnomon.positions import PositionEncoding, encoding


def test_operations_are_those_of_the_textbook():
    a, b = torch.ones(3, 4), torch.ones(4, 5)
    q = torch.ones(1, 2, 6, 8)
    assert operations(lambda: a @ b) == 2 * 3 * 4 * 5
    assert operations(lambda: (a + 1).T.reshape(2, 6)) == 12 + 12  # a sum and a copy; a transpose is none
    assert operations(lambda: F.scaled_dot_product_attention(q, q, q)) == 2 * 2 * 6 * 6 * 16


def test_without_position_nothing_is_added():
    cost = position_cost(encoding("none"))
    assert (cost.parameters, cost.reading, cost.writing, cost.kernel) == (0, 0, 0, "causal")
    assert cost.cached == cost.cached_without == 2 * 512 * 4  # a key and a value of width 512 in float32


@pytest.mark.parametrize(("name", "kernel"), [("rope", "causal"), ("alibi", "toeplitz"), ("learned", "causal")])
def test_light_encodings_stay_below_a_percent(name, kernel):
    cost = position_cost(encoding(name))
    assert 0 < cost.of_reading < 0.01
    assert 0 < cost.of_writing < 0.01
    assert cost.kernel == kernel
    assert cost.cached == cost.cached_without


def test_features_of_twice_the_width_cost_what_such_heads_do():
    """PoPE: scores, and values padded to the width of queries: 2 x 2 x 512 operations more a pair of tokens."""
    cost = position_cost(encoding("pope"))
    pairs = 2 * 2 * 512 * LENGTH
    assert pairs < cost.reading < 1.05 * pairs
    assert cost.cached == cost.cached_without


def test_what_sizes_cannot_build_is_not_counted():
    class Needy(PositionEncoding):
        """Asks for more."""

        name = "needy"

        def __init__(self, secret):
            super().__init__()

    assert position_cost(Needy) is None
