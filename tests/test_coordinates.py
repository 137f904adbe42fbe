"""Tokens at several coordinates: pictures and boards in a Layout, and text beside them."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch.utils._pytree import tree_flatten, tree_unflatten

from gnomon import BadValue, Layout, visible

ROW = [[0, 0], [0, 1], [0, 2], [1, 0], [1, 1], [1, 2]]


def test_a_grid_is_read_row_by_row_and_counts_like_a_text():
    at = Layout.grid(2, 3, batch=2)
    assert at.coords.tolist() == [ROW] * 2
    assert (at.kind, at.shape) == ("dense", (2, 6))
    assert at.pos.tolist() == at.step.tolist() == [list(range(6))] * 2
    assert Layout.grid(2, 1, 2).coords[0].tolist() == [[0, 0, 0], [0, 0, 1], [1, 0, 0], [1, 0, 1]]


def test_a_class_token_sits_at_coordinates_0():
    assert Layout.grid(2, 3, before=1).coords[0].tolist() == [[0, 0], *ROW]


def test_an_extent_puts_pictures_of_all_sizes_between_the_same_ends():
    small, large = (Layout.grid(n, 2 * n, extent=1.0).coords[0] for n in (1, 4))
    assert small.tolist() == [[0.0, -0.5], [0.0, 0.5]]
    assert large.amax(0).tolist() == [0.75, 0.875]
    assert large.mean(0).tolist() == [0.0, 0.0]


def test_text_has_its_position_as_every_coordinate():
    at = Layout.packed([[3, 2], [4]])
    assert torch.equal(at.axes(3), at.pos[..., None].expand(-1, -1, 3))


def test_pictures_and_text_follow_one_another_at_the_next_coordinate():
    """2 tokens, a picture of 1 x 2 x 3, 2 tokens: the text goes on after the largest coordinate, 4."""
    at = Layout.mixed([[2, (1, 2, 3), 2], [3]])
    picture = [[2, 2 + h, 2 + w] for h, w in ROW]
    assert at.coords[0].tolist() == [[0] * 3, [1] * 3, *picture, [5] * 3, [6] * 3]
    assert at.pos[0].tolist() == [0, 1, 2, 3, 4, 3, 3, 4, 5, 6]
    assert at.length[0, 0] == 7
    assert at.step[0].tolist() == list(range(10))
    assert at.real.sum(1).tolist() == [10, 3]
    assert at.then(2).axes(3)[:, :, 0].tolist() == at.then(2).pos.tolist() == [[7, 8], [3, 4]]


def test_the_axes_of_hugging_face_are_those_of_the_layout():
    at = Layout.mixed([[2, (1, 2, 3), 2], [3]])
    again = Layout.from_hf(at.real, at.coords.permute(2, 0, 1))
    for name in ("pos", "step", "length", "coords"):
        assert torch.equal(getattr(again, name)[at.real], getattr(at, name)[at.real])
    assert Layout.from_hf(position_ids=at.coords.permute(2, 0, 1)).real.all()


INDEX = torch.tensor([[3, 0], [1, 1]])


@pytest.mark.parametrize(
    ("part", "numpy"),
    [
        (lambda at: at.tokens(slice(1, 4)), lambda x: x[:, 1:4]),
        (lambda at: at.rows(torch.tensor([1, 1, 0])), lambda x: x[[1, 1, 0]]),
        (lambda at: at.slots(INDEX), lambda x: np.stack([x[b, INDEX[b].numpy()] for b in range(2)])),
        (lambda at: at.tokens(slice(0, 2)).cat(at.tokens(slice(2, None))), lambda x: x),
        (lambda at: at.rows(torch.tensor([0])).expand(3), lambda x: x[[0, 0, 0]]),
        (lambda at: tree_unflatten(*tree_flatten(at)), lambda x: x),
    ],
)
def test_coordinates_go_where_their_tokens_go(part, numpy):
    at = Layout.mixed([[2, (2, 2)], [(1, 3)]])
    found = part(at)
    np.testing.assert_array_equal(found.coords.numpy(), numpy(at.coords.numpy()))
    np.testing.assert_array_equal(found.pos.numpy(), numpy(at.pos.numpy()))


def test_text_after_a_picture_is_laid_beside_it():
    both = Layout.grid(2, 3).cat(Layout.grid(2, 3).then(2))
    assert both.kind == "dense"
    assert both.coords[0].tolist() == [*ROW, [6, 6], [7, 7]]


def test_a_mask_reads_time_and_not_coordinates():
    at = Layout.grid(3, 3)
    assert torch.equal(visible(at, at), visible(Layout.dense(1, 9), Layout.dense(1, 9)))


def test_rows_at_coordinates_of_their_own_are_not_alike():
    coords = torch.randint(9, (2, 4, 2))
    assert Layout.dense(2, 4).at_coords(coords).kind == "placed"
    assert Layout.dense(2, 4).at_coords(coords[0]).kind == "dense"
    assert replace(Layout.packed([[2, 2]])).at_coords(coords[:1]).kind == "packed"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Layout.grid(), "a grid's cells along each axis"),
        (lambda: Layout.grid(3, 0), "whole numbers from 1"),
        (lambda: Layout.grid(3, 2.5), "whole numbers from 1"),
        (lambda: Layout.grid(3, 2, before=-1), "at least 0; got -1"),
        (lambda: Layout.mixed([[(1, 2), (1, 2, 3)]]), "as many axes each"),
        (lambda: Layout.mixed([[]]), "rows of pieces"),
        (lambda: Layout.dense(1, 4).at_coords(torch.zeros(3, 2)), r"coordinates \(4, axes\) or \(1, 4, axes\)"),
        (lambda: Layout.grid(2, 2).axes(3), "along 2 axes, but 3 are read"),
    ],
)
def test_coordinates_that_place_nothing_are_named(make, message):
    with pytest.raises(BadValue, match=message):
        make()
