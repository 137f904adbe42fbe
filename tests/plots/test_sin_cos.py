"""Sine and cosine alone, and clock hands: the numbers of the tables themselves."""

import math

import numpy as np
import pytest

import gnomon as gn
from gnomon import plots
from gnomon.plots.sin_cos import AT


def test_curves_are_columns_of_the_sinusoidal_table():
    facts = plots.curves(length=30, d_model=16).facts
    table = gn.positions.sinusoidal_table(30, 16)
    for pair, sine, cosine in zip(facts["pairs"], facts["sines"], facts["cosines"], strict=True):
        np.testing.assert_allclose(sine, table[:, 2 * pair], atol=1e-12)
        np.testing.assert_allclose(cosine, table[:, 2 * pair + 1], atol=1e-12)
    assert (facts["pairs"][0], facts["pairs"][-1]) == (0, 7)


def test_hands_are_the_cosines_and_sines_that_rope_turns_by():
    facts = plots.clock("rope", d_head=16).facts
    cos, sin = gn.positions.get("rope").build(d_head=16).prepare(gn.Layout.placed(list(AT)))
    for pair, angles in zip(facts["pairs"], facts["angles"], strict=True):
        np.testing.assert_allclose(np.cos(angles), cos[0, 0, :, pair].numpy(), atol=1e-6)
        np.testing.assert_allclose(np.sin(angles), sin[0, 0, :, pair].numpy(), atol=1e-6)


def test_a_hand_ends_at_its_cosine_and_sine():
    picture = plots.clock("sinusoidal", d_model=4)
    angles = np.array(picture.facts["angles"]).ravel()
    assert len(picture.figure.axes) == len(angles)
    for axes, angle in zip(picture.figure.axes, angles, strict=True):
        assert axes.lines[-1].get_xydata()[0] == pytest.approx([math.cos(angle), math.sin(angle)])


@pytest.mark.parametrize("draw", [plots.curves, plots.clock])
@pytest.mark.parametrize(
    ("given", "message"),
    [({"position": "alibi"}, "no pair of its channels turns"), ({"position": "learned"}, "rope and sinusoidal do")],
)
def test_what_does_not_turn_is_refused(draw, given, message):
    with pytest.raises(gn.BadValue, match=message):
        draw(**given)
