"""The picture of what encodings that act in attention add: drawn texts, by distance."""

import pytest

import gnomon as gn
from gnomon import plots


def test_past_the_clip_all_distances_add_alike():
    shaw = gn.positions.get("shaw", clip=3).build(d_head=8, n_heads=2)
    facts = plots.added(shaw, length=8).facts
    assert facts["gap"] == list(range(9))
    for head in (1, 2):
        line = facts[f"spread_{head}"]
        assert line[3:] == pytest.approx([line[3]] * 6)
        assert line[2] != pytest.approx(line[3], rel=1e-3)


def test_both_sides_are_drawn_where_both_are_seen():
    assert plots.added("shaw", length=4, n_heads=2, causal=False).facts["gap"] == list(range(-4, 5))
