"""A map of vectors: every dot is there, names do not stand on one another, and it is the same each time."""

import numpy as np
import pytest
import torch
from matplotlib.text import Annotation

import gnomon as gn
from gnomon.models.similarity import plane
from gnomon.plots.vector_map import vector_map


def drawn(n=30, groups=3):
    torch.manual_seed(0)
    return vector_map(torch.randn(n, 5), [f"word{i}" for i in range(n)], [i % groups for i in range(n)])


def test_dots_are_where_the_plane_puts_them():
    torch.manual_seed(0)
    vectors = torch.randn(6, 5)
    picture = vector_map(vectors, list("abcdef"), [0, 0, 1, 1, None, None])
    dots = np.concatenate([c.get_offsets() for c in picture.figure.axes[0].collections])
    expected = plane(vectors)[0][[4, 5, 0, 1, 2, 3]]  # plain ones are drawn first
    np.testing.assert_allclose(dots, expected.numpy())


def test_names_do_not_stand_on_one_another():
    picture = drawn()
    picture.figure.draw_without_rendering()
    boxes = [t.get_window_extent() for t in picture.figure.axes[0].texts if isinstance(t, Annotation)]
    assert len(boxes) == picture.facts["named"] > 15
    assert not any(a.overlaps(b) for i, a in enumerate(boxes) for b in boxes[:i])


def test_the_first_of_a_group_is_named_before_others():
    names = [t.get_text() for t in drawn().figure.axes[0].texts]
    assert names[:3] == ["word0", "word1", "word2"]


def test_a_map_is_the_same_each_time():
    assert drawn(12).render("svg") == drawn(12).render("svg")


def test_any_name_can_be_drawn_and_a_long_one_is_cut():
    picture = vector_map(torch.eye(3), ["$x$ \N{SNOWMAN} 漢", "y" * 80, "\n"], [0, 1, 2])
    assert picture.render()
    longest = max(len(t.get_text()) for t in picture.figure.axes[0].texts)
    assert longest < 40


def test_many_groups_have_colours_of_their_own():
    picture = drawn(30, groups=7)
    colours = {tuple(c.get_facecolor()[0]) for c in picture.figure.axes[0].collections if len(c.get_offsets())}
    assert len(colours) == 7


def test_as_many_names_as_vectors():
    with pytest.raises(gn.BadValue, match="3 vectors, 2 names and 3 groups"):
        vector_map(torch.eye(3), ["a", "b"], [0, 0, 0])
