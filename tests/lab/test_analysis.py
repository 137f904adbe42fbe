"""From numbers to words: kinds, places, orders."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gnomon.lab.analysis import bits_by_bucket, buckets, holds_until, kind_of, order, published_kind
from gnomon.lab.published import CURVES


@pytest.mark.parametrize(
    ("increase", "kind"),
    [
        (-0.3, "flat"),
        (0.0, "flat"),
        (0.05, "flat"),
        (0.051, "rises"),
        (0.199, "rises"),
        (0.2, "breaks"),
        (9.0, "breaks"),
        (None, "n/a"),
    ],
)
def test_an_increase_has_a_kind(increase, kind):
    assert kind_of(increase) == kind


def test_published_curves_have_the_kinds_that_the_literature_is_quoted_for():
    """ALiBi flat, T5 rising slowly, the others broken, at the sixteenfold length of the demonstration."""
    known = ("alibi", "t5", "rope", "sinusoidal", "none", "learned", "mine")
    kinds = {name: published_kind(name, 16) for name in known}
    assert kinds == {
        "alibi": "flat",
        "t5": "rises",
        "rope": "breaks",
        "sinusoidal": "breaks",
        "none": "breaks",
        "learned": "n/a",
        "mine": None,
    }


def test_the_nearest_published_length_is_found_in_octaves():
    """79.25 against 20.07 at 15512 and 512 tokens: ln 79.25 / ln 20.07 - 1 = 0.4579."""
    factor, increase = CURVES["rope"].nearest(31)
    assert factor == pytest.approx(15512 / 512)
    assert increase == pytest.approx(0.4579, abs=1e-4)
    assert CURVES["rope"].nearest(1)[0] == pytest.approx(1012 / 512)


@given(st.integers(1, 5000))
def test_buckets_cover_every_position_once(longest):
    edges = buckets(longest)
    assert edges[0] == 0
    assert edges[-1] == longest
    assert all(a < b for a, b in pairwise(edges))
    assert all(b <= 2 * a for a, b in pairwise(edges) if a > 1)  # two to each doubling


def test_the_training_length_is_an_edge():
    assert 64 in buckets(1024)
    assert 16 in buckets(256)


def test_buckets_weigh_by_bytes_and_together_give_the_whole():
    rng = np.random.default_rng(0)
    nats, n_bytes = rng.uniform(1, 9, 32), rng.integers(1, 5, 32).astype(float)
    edges = buckets(32)
    parts = bits_by_bucket(nats, n_bytes, edges)
    weights = [n_bytes[a:b].sum() for a, b in pairwise(edges)]
    assert np.dot(parts, weights) == pytest.approx(nats.sum())


@pytest.mark.parametrize("reach", [8, 9, 32])
def test_buckets_past_the_reach_of_an_encoding_are_empty(reach):
    """Also the one that its last position falls into, of which it has only a part."""
    parts = bits_by_bucket(np.ones(reach), np.ones(32), buckets(32))
    assert [part is None for part in parts] == [edge > reach for edge in buckets(32)[1:]]


@pytest.mark.parametrize(
    ("curve", "until"),
    [
        ([3.0, 2.0, 2.0, 2.0, 2.0], None),
        ([3.0, 2.0, 1.5, 1.4, 1.3], None),
        ([3.0, 2.0, 2.0, 2.2, 2.5], 16),
        ([3.0, 2.0, 2.2, 2.0, 2.0], 8),
        ([9.0, 2.0, None, None, None], None),
    ],
)
def test_where_a_curve_leaves_the_loss_of_training(report, curve, until):
    """Edges 0, 4, 8, 16, 32, 64; trained on 8: compared with the bucket that ends at 8; 5 % are allowed."""
    row = replace(report.rows[0], curve=curve)
    assert holds_until(row, [0, 4, 8, 16, 32, 64], 8) == until


def test_the_order_leaves_out_what_has_no_number(report):
    first, last = order(report.rows, 0), order(report.rows, 2)
    assert len(first) == len(report.rows)
    assert [row.label for row in last] == sorted(
        (row.label for row in report.rows if row.label != "learned"), key=lambda label: report.row(label).bits[2].value
    )
