"""Hard-ALiBi: windows by head beside heads without position."""

import numpy as np
import pytest
import torch

import gnomon as gn
from gnomon.attention import attend, watch
from gnomon.positions.hard_alibi import HardALiBi

PLACES = [0, 1, 2, 3, 5, 6, 90, 256, 257, 131_071]


def test_each_head_sees_what_the_paper_gives_it():
    """Head h of the first three sees offsets 0 to h, written out in numpy; the other two see everything."""
    pos = np.array(PLACES)
    gap = np.abs(pos[:, None] - pos[None, :])
    want = np.stack([np.where((h < 3) & (gap > h), -np.inf, 0.0) for h in range(5)])
    got = HardALiBi(5, windows=3).bias_tensor(gn.Layout.placed(PLACES))[0]
    np.testing.assert_array_equal(got.numpy(), want)


def test_attention_is_that_of_windows_and_of_no_position():
    """The first head repeats its own values, the second averages as a window of 2, the last is causal attention."""
    at, nothing = gn.Layout.dense(1, 12), gn.positions.get("none").build()
    q, k, v = torch.randn(3, 1, 4, 12, 8)
    out = attend(q, k, v, HardALiBi(4), at, at)
    torch.testing.assert_close(out[:, 0], v[:, 0])
    torch.testing.assert_close(out[:, 1], attend(q, k, v, nothing, at, at, window=2)[:, 1])
    torch.testing.assert_close(out[:, 2:], attend(q, k, v, nothing, at, at)[:, 2:])


def test_the_kernel_that_stores_no_square_takes_it():
    at, encoding = gn.Layout.dense(1, 30), HardALiBi(3)
    q, k, v = torch.randn(3, 1, 3, 30, 4)
    with watch() as ran:
        out = attend(q, k, v, encoding, at, at)
    assert ran == ["toeplitz"]
    torch.testing.assert_close(out, attend(q, k, v, encoding, at, at, kernel="dense"))


@pytest.mark.parametrize(("heads", "windows"), [(1, 1), (2, 1), (5, 3), (8, 4)])
def test_half_of_the_heads_have_a_window(heads, windows):
    assert HardALiBi(heads).windows == windows


@pytest.mark.parametrize("windows", [0, -1, 2.0, "all"])
def test_windows_that_no_model_could_have_are_named_where_they_are_chosen(windows):
    for build in (lambda: HardALiBi(4, windows), lambda: gn.positions.get("hard-alibi", windows=windows)):
        with pytest.raises(gn.BadValue, match="windows"):
            build()


def test_more_windows_than_heads_are_named():
    with pytest.raises(gn.BadValue, match="from 1 to n_heads=4; got 5"):
        gn.positions.get("hard-alibi", windows=5).build(n_heads=4)
