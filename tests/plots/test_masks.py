"""Masks as pictures: what is drawn is what `visible` says."""

from itertools import combinations

import pytest
import torch

import gnomon as gn
from gnomon import plots
from gnomon.plots.masks import KINDS, layout_of_kinds


def by_hand(kinds, length, window=3):
    """The mask of the combination, from its words alone: True where query i may look at key j."""
    pad = length // 4 if "padding" in kinds else 0
    second = pad + (length - pad) // 2 if "packed" in kinds else length
    n = max(2, (length - pad) // (6 if "packed" in kinds else 3)) if "prefix" in kinds else 0
    causal = "bidirectional" not in kinds

    def may(i, j):
        if (i >= second) != (j >= second) or j < pad or i < pad:
            return False
        start = second if i >= second else pad
        time = [max(x - start, n - 1) if n else x - start for x in (i, j)]
        gap = time[0] - time[1]
        near = "window" not in kinds or abs(gap) < window
        return near and (gap >= 0 or not causal)

    return [[int(may(i, j)) for j in range(length)] for i in range(length)]


COMBINATIONS = [
    kinds
    for size in (1, 2, 3, 4)
    for kinds in combinations(KINDS, size)
    if not {"causal", "bidirectional"} <= set(kinds)
]


@pytest.mark.parametrize("kinds", COMBINATIONS, ids="+".join)
def test_each_combination_of_kinds_is_the_mask_its_words_say(kinds):
    at = layout_of_kinds(kinds, 12)
    seen = at.mask(causal="bidirectional" not in kinds, window=3 if "window" in kinds else None)[0, 0].int()
    real = at.real[0]
    assert (seen * real[:, None]).tolist() == by_hand(kinds, 12)


def test_a_prefix_is_the_one_of_layout():
    ours, theirs = layout_of_kinds(["prefix"], 12), gn.Layout.prefix(4, 12)
    assert torch.equal(ours.step, theirs.step)
    assert torch.equal(ours.pos, theirs.pos)


def test_packed_documents_are_those_of_layout():
    ours, theirs = layout_of_kinds(["packed"], 12), gn.Layout.packed([[6, 6]])
    for name in ("pos", "step", "doc", "length"):
        assert torch.equal(getattr(ours, name), getattr(theirs, name)), name


def test_the_picture_shows_the_mask_of_a_layout_of_ones_own():
    at = gn.Layout.packed([[2, 3]])
    picture = plots.mask(at, window=2)
    (facts,) = picture.facts["masks"]
    assert facts["mask"] == at.mask(window=2)[0, 0].int().tolist()
    assert facts["positions"] == [0, 1, 0, 1, 2]
    cells = picture.figure.axes[0].images[0].get_array()
    assert (cells == 2).tolist() == at.mask(window=2)[0, 0].tolist()


@pytest.mark.slow
@pytest.mark.parametrize(("lang", "word"), [("en", "padding"), ("es", "relleno"), ("pt", "preenchimento")])
def test_without_a_kind_all_are_drawn(lang, word):
    picture = plots.mask(lang=lang)
    titles = [axes.get_title(loc="left") for axes in picture.figure.axes]
    assert len(titles) == 8
    assert any(word in title for title in titles)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"of": "causl"}, "did you mean 'causal'"),
        ({"of": ["causal", "bidirectional"]}, "causal or bidirectional: name one"),
        ({"length": 3}, "at least 4 tokens, got 3"),
        ({"of": "window", "window": 0}, "must be at least 1"),
        ({"length": 10**9}, "choose smaller sizes"),
    ],
)
def test_what_cannot_be_drawn_is_said(given, message):
    with pytest.raises(gn.BadValue, match=message):
        plots.mask(**given)
