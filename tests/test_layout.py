"""Where tokens sit and who may see whom. Masks are compared with the rule written out in Python loops."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils._pytree import tree_flatten, tree_map, tree_unflatten

import gnomon as gn
from gnomon import BadValue, Layout, visible

few = settings(max_examples=40, deadline=None, derandomize=True, database=None)
masks = st.lists(st.lists(st.booleans(), min_size=7, max_size=7), min_size=1, max_size=3).map(torch.tensor)
documents = st.lists(st.lists(st.integers(1, 4), min_size=1, max_size=3), min_size=1, max_size=3)


def fields(at: Layout) -> tuple[list[list[int]] | None, ...]:
    return tuple(None if x is None else x.tolist() for x in (at.pos, at.step, at.doc, at.length))


def seen(at: Layout, k_at: Layout | None = None, causal: bool = True, window: int | None = None) -> torch.Tensor:
    return visible(at, at if k_at is None else k_at, causal, window)[:, 0]


# ------------------------------------------------------------------ constructors


def test_dense_counts_from_0_in_every_row():
    at = Layout.dense(2, 3)
    assert fields(at) == ([[0, 1, 2]] * 2, [[0, 1, 2]] * 2, None, [[3] * 3] * 2)
    assert (at.kind, at.shape) == ("dense", (2, 3))
    assert bool(at.real.all())


def test_padding_on_either_side_is_skipped():
    mask = torch.tensor([[0, 0, 1, 1, 1], [1, 1, 1, 0, 0], [1, 0, 1, 0, 1]])
    at = Layout.padded(mask)
    assert at.pos.masked_fill(~at.real, -1).tolist() == [[-1, -1, 0, 1, 2], [0, 1, 2, -1, -1], [0, -1, 1, -1, 2]]
    assert at.real.tolist() == mask.bool().tolist()
    assert at.length.tolist() == [[3] * 5] * 3
    assert fields(Layout.padded(mask.bool())) == fields(at)


@few
@given(masks)
def test_real_tokens_of_a_padded_row_count_up_by_one(mask):
    at = Layout.padded(mask)
    for b in range(len(mask)):
        assert at.pos[b, mask[b]].tolist() == at.step[b, mask[b]].tolist() == list(range(int(mask[b].sum())))


@pytest.mark.parametrize(
    ("mask", "message"),
    [
        (torch.tensor([[0.0, 1.0]]), "float32"),  # an additive mask of 0 and -inf would read the wrong way round
        (torch.tensor([[0, 2]]), "from 0 to 2"),
        (torch.tensor([1, 1]), r"shape \(batch, tokens\), got \(2,\)"),
    ],
)
def test_what_is_no_padding_mask_is_refused(mask, message):
    with pytest.raises(BadValue, match=message):
        Layout.padded(mask)


def test_packed_documents_start_at_0_and_their_tail_is_padding():
    at = Layout.packed([[3, 2], [4]])
    assert at.pos.tolist() == [[0, 1, 2, 0, 1], [0, 1, 2, 3, 0]]
    assert at.step.tolist() == [[0, 1, 2, 3, 4], [0, 1, 2, 3, 0]]
    assert at.doc.tolist() == [[0, 0, 0, 1, 1], [0, 0, 0, 0, -1]]
    assert at.length[0].tolist() == [3, 3, 3, 2, 2]


def test_each_packed_token_sees_its_own_document_only():
    mask = seen(Layout.packed([[3, 2]]))[0].int().tolist()
    assert mask == [[1, 0, 0, 0, 0], [1, 1, 0, 0, 0], [1, 1, 1, 0, 0], [0, 0, 0, 1, 0], [0, 0, 0, 1, 1]]


@pytest.mark.parametrize("lengths", [[], [[3, 0]], [[-1]]])
def test_a_document_without_tokens_is_refused(lengths):
    with pytest.raises(BadValue, match="positive document lengths"):
        Layout.packed(lengths)


def test_a_prefix_sees_itself_and_the_rest_looks_back():
    mask = seen(Layout.prefix(2, 4))[0].int().tolist()
    assert mask == [[1, 1, 0, 0], [1, 1, 0, 0], [1, 1, 1, 0], [1, 1, 1, 1]]
    assert Layout.prefix([0, 4], 4).step.tolist() == [[0, 1, 2, 3], [3, 3, 3, 3]]
    assert Layout.prefix(2, 4).pos.tolist() == [[0, 1, 2, 3]]


@pytest.mark.parametrize("n", [5, -1, [2, 5]])
def test_a_prefix_longer_than_its_row_is_refused(n):
    with pytest.raises(BadValue, match="between 0 and T=4"):
        Layout.prefix(n, 4)


def test_randomized_positions_are_sorted_distinct_and_drawn_per_row():
    at = Layout.randomized(9, 50, torch.Generator().manual_seed(0), batch=4)
    again = Layout.randomized(9, 50, torch.Generator().manual_seed(0), batch=4)
    assert bool((at.pos.diff(dim=1) > 0).all())
    assert int(at.pos.min()) >= 0
    assert int(at.pos.max()) < 50
    assert len({tuple(row) for row in at.pos.tolist()}) == 4
    assert fields(at) == fields(again)
    assert at.length[:, 0].tolist() == (at.pos[:, -1] + 1).tolist()
    assert Layout.randomized(5, 5).pos.tolist() == [[0, 1, 2, 3, 4]]
    with pytest.raises(BadValue, match="5 distinct positions from 4"):
        Layout.randomized(5, 4)


def test_the_two_tensors_of_hugging_face_make_a_layout():
    mask, ids = torch.tensor([[0, 1, 1], [1, 1, 1]]), torch.tensor([[0, 5, 9], [2, 3, 4]])
    assert fields(Layout.from_hf(mask)) == fields(Layout.padded(mask))
    both = Layout.from_hf(mask, ids)
    assert both.pos.tolist() == ids.tolist()
    assert both.length.tolist() == [[10] * 3, [5] * 3]
    assert seen(both).tolist() == seen(Layout.padded(mask)).tolist()
    assert Layout.from_hf(position_ids=ids).real.all()
    with pytest.raises(BadValue, match="got neither"):
        Layout.from_hf()
    with pytest.raises(BadValue, match=r"\(2, 2\).*\(2, 3\)"):
        Layout.from_hf(mask, ids[:, :2])


def test_positions_that_begin_again_are_packed_documents_whatever_the_mask_says():
    """[0, 1, 2, 0, 1] in a mask of ones: positions that restart where the mask does not would let texts mix."""
    ids, ones = torch.tensor([[0, 1, 2, 0, 1]]), torch.ones(1, 5, dtype=torch.long)
    packed = Layout.packed([[3, 2]])
    for at in (Layout.from_hf(position_ids=ids), Layout.from_hf(ones, ids)):
        assert (at.kind, at.pos.tolist(), at.length.tolist()) == ("packed", ids.tolist(), packed.length.tolist())
        assert seen(at).tolist() == seen(packed).tolist()
    tail = Layout.from_hf(torch.tensor([[0, 1, 1, 1, 0]]), torch.tensor([[0, 0, 0, 1, 0]]))  # of one token, and of two
    assert tail.doc.tolist() == [[-1, 0, 1, 1, -1]]
    assert tail.length[0, 1:4].tolist() == [1, 2, 2]
    half = Layout.from_hf(position_ids=torch.tensor([[2.5, 4.0, 0.0, 0.5]]))
    assert half.doc.tolist() == [[0, 0, 1, 1]]
    assert half.length.tolist() == [[5.0, 5.0, 1.5, 1.5]]


# ------------------------------------------------------------------ the mask


@few
@given(documents, st.booleans(), st.sampled_from([None, 1, 2, 3]))
def test_visible_is_the_rule_written_out(lengths, causal, window):
    at = Layout.packed(lengths)
    mask = seen(at, causal=causal, window=window)
    for b in range(at.shape[0]):
        for i in range(at.shape[1]):
            for j in range(at.shape[1]):
                gap = int(at.step[b, i] - at.step[b, j])
                may = int(at.doc[b, i]) == int(at.doc[b, j]) >= 0 and (gap >= 0 or not causal)
                may = may and (window is None or abs(gap) < window)
                assert bool(mask[b, i, j]) == may, (b, i, j)


def test_a_window_counts_the_token_itself():
    at = Layout.dense(1, 4)
    assert seen(at, window=1)[0].int().tolist() == torch.eye(4).int().tolist()
    assert seen(at, window=2)[0].sum(1).tolist() == [1, 2, 2, 2]
    assert seen(at, window=2, causal=False)[0].sum(1).tolist() == [2, 3, 3, 2]
    with pytest.raises(BadValue, match="at least 1; got 0"):
        visible(at, at, window=0)


def test_a_chunk_sees_the_whole_past():
    """Three tokens held, two new: the triangle ends at the last key, it does not begin at the first."""
    at = Layout.dense(1, 5)
    assert seen(at.tokens(slice(3, None)), at)[0].int().tolist() == [[1, 1, 1, 1, 0], [1, 1, 1, 1, 1]]


def test_memory_order_means_nothing():
    at, order = Layout.padded(torch.tensor([[0, 1, 1, 1, 1]])), torch.tensor([[3, 0, 4, 1, 2]])
    assert torch.equal(seen(at, at.slots(order)), seen(at)[:, :, order[0]])


def test_packed_keys_need_queries_with_documents():
    with pytest.raises(BadValue, match="give the queries a doc"):
        visible(Layout.dense(1, 5), Layout.packed([[3, 2]]))
    assert seen(Layout.dense(1, 3), Layout.padded(torch.tensor([[0, 1, 1]])))[0].int().tolist()[-1] == [0, 1, 1]


# ------------------------------------------------------------------ going on


@pytest.mark.parametrize("start", [Layout.dense(2, 3), Layout.prefix(2, 3), Layout.randomized(3, 9, batch=2)])
def test_tokens_go_on_after_the_last_position(start):
    after = start.then(2)
    assert after.pos.tolist() == [[p + 1, p + 2] for p in start.pos[:, -1].tolist()]
    assert after.step.tolist() == [[3, 4]] * start.shape[0]
    assert after.length[:, 0].tolist() == (after.pos[:, -1] + 1).tolist()


def test_padding_does_not_hold_up_what_comes_next():
    mask = torch.tensor([[0, 0, 1, 1, 1], [1, 1, 0, 0, 0], [0, 0, 0, 0, 0], [0, 1, 0, 1, 0]])
    assert Layout.padded(mask).then(2).pos.tolist() == [[3, 4], [2, 3], [0, 1], [2, 3]]
    assert bool(Layout.padded(mask).then(2).real.all())


def test_packed_rows_go_on_with_their_last_document():
    after = Layout.packed([[3, 2], [4]]).then(2)
    assert after.pos.tolist() == [[2, 3], [4, 5]]
    assert after.step.tolist() == [[5, 6], [4, 5]]
    assert after.doc.tolist() == [[1, 1], [0, 0]]


@few
@given(masks, st.integers(1, 3), st.integers(1, 3))
def test_going_on_twice_is_going_on_once(mask, n, m):
    for at in (Layout.padded(mask), Layout.dense(len(mask), 7), Layout.packed([[4, 3]] * len(mask))):
        once, first = at.then(n + m), at.then(n)
        second = at.cat(first).then(m)
        assert first.pos.tolist() == once.pos[:, :n].tolist()
        assert second.pos.tolist() == once.pos[:, n:].tolist()
        assert second.step.tolist() == once.step[:, n:].tolist()


def test_dense_and_its_continuation_is_dense():
    both, whole = Layout.dense(2, 3).cat(Layout.dense(2, 3).then(2)), Layout.dense(2, 5)
    assert both.kind == "dense"
    assert fields(both) == fields(whole)


def test_padding_and_its_continuation_is_padded():
    mask = torch.tensor([[0, 1, 1], [1, 1, 1]])
    both = Layout.padded(mask).cat(Layout.padded(mask).then(2))
    whole = Layout.padded(torch.cat([mask, torch.ones(2, 2, dtype=torch.long)], 1))
    assert both.kind == "padded"
    assert seen(both).tolist() == seen(whole).tolist()
    assert both.pos.tolist() == whole.pos.tolist()


# ------------------------------------------------------------------ views


def test_a_layout_is_a_pytree_whose_kind_is_static():
    at = Layout.packed([[2, 1], [3]])
    leaves, tree = tree_flatten(at)
    assert len(leaves) == 4
    assert fields(tree_unflatten(leaves, tree)) == fields(at)
    moved = tree_map(lambda x: x + 1, Layout.dense(1, 2))
    assert (moved.pos.tolist(), moved.kind, moved.doc) == ([[1, 2]], "dense", None)


def test_parts_of_a_layout_keep_their_places():
    at = Layout.padded(torch.tensor([[0, 1, 1, 1], [1, 1, 1, 1]]))
    assert at.tokens(slice(1, 3)).pos.tolist() == [[0, 1], [1, 2]]
    assert at.rows(torch.tensor([1, 1, 0])).pos.tolist() == [[0, 1, 2, 3]] * 2 + [[0, 0, 1, 2]]
    assert at.slots(torch.tensor([[3, 1], [0, 2]])).pos.tolist() == [[2, 0], [0, 2]]
    assert at.pair(torch.tensor(0), torch.tensor(3)).pos == 2
    assert at.one_row() is at
    assert Layout.dense(4, 3).one_row().shape == (1, 3)
    assert (at.as_queries().pos.shape, at.as_keys().pos.shape) == ((2, 1, 4, 1), (2, 1, 1, 4))


def test_tokens_with_gaps_between_them_are_not_called_dense():
    """Kernels take a dense layout at its word: distances of 2 would be read as 1."""
    at = Layout.dense(1, 9)
    for some in (at.tokens(slice(0, None, 2)), at.slots(torch.tensor([[0, 2, 4, 6, 8]]))):
        q, k, v = torch.randn(3, 1, 2, 5, 4)
        alibi = gn.positions.get("alibi").build(n_heads=2)
        got, want = (gn.attend(q, k, v, alibi, some, some, kernel=kernel) for kernel in (None, "dense"))
        torch.testing.assert_close(got, want)
        assert some.pos.tolist() == [[0, 2, 4, 6, 8]]
    assert at.tokens(slice(2, 5)).kind == "dense"


def test_one_row_stretches_over_a_batch_and_two_do_not():
    assert Layout.prefix(2, 4).expand(3).pos.tolist() == [[0, 1, 2, 3]] * 3
    at = Layout.dense(2, 4)
    assert at.expand(2) is at
    with pytest.raises(BadValue, match="2 rows but the batch has 3"):
        at.expand(3)


def test_a_layout_moves_to_a_device_and_stays_where_it_is():
    at = Layout.padded(torch.tensor([[0, 1]]))
    assert at.to("cpu") is at
    assert at.to("meta").device.type == "meta"
    assert at.to("meta").doc.device.type == "meta"
    assert replace(at, kind="custom").to("meta").kind == "custom"


# ------------------------------------------------------------------ as a plain mask, and from plain positions


@few
@given(masks, st.booleans(), st.sampled_from([None, 1, 3]))
def test_a_mask_is_what_visible_says(mask, causal, window):
    at = Layout.padded(mask)
    assert torch.equal(at.mask(causal=causal, window=window), visible(at, at, causal, window))


def test_a_mask_serves_torchs_own_attention():
    torch.manual_seed(0)
    at, x = Layout.packed([[3, 2], [4]]), torch.randn(2, 5, 16)
    q = x.unflatten(2, (4, 4)).transpose(1, 2)
    ours = gn.attend(q, q, q, gn.positions.get("none").build(), at, at)
    theirs = torch.nn.functional.scaled_dot_product_attention(q, q, q, attn_mask=at.mask())
    assert torch.allclose(ours[:, :, :4], theirs[:, :, :4], atol=1e-6)  # the last place of row 1 is padding
    layer = torch.nn.MultiheadAttention(16, 4, batch_first=True).eval()
    alone = layer(x[:1, :3], x[:1, :3], x[:1, :3], attn_mask=~Layout.dense(1, 3).mask()[0, 0])[0]
    packed = layer(x[:1], x[:1], x[:1], attn_mask=~at.mask()[0, 0])[0]
    assert torch.allclose(packed[:, :3], alone, atol=1e-6)


def test_a_mask_of_queries_over_other_keys_has_their_widths():
    long = Layout.dense(2, 6)
    last = long.tokens(slice(4, None))
    assert torch.equal(last.mask(long), long.mask()[:, :, 4:])


@pytest.mark.parametrize("given", [5, [5], [[5]], torch.tensor(5), torch.tensor([5], dtype=torch.int32)])
def test_one_position_is_a_row_of_one_token(given):
    assert fields(Layout.placed(given)) == ([[5]], [[0]], None, [[6]])


def test_placed_tokens_follow_one_another_in_time_wherever_they_sit():
    at = Layout.placed([[5, 6, 9], [0, 40, 2]])
    assert fields(at) == ([[5, 6, 9], [0, 40, 2]], [[0, 1, 2]] * 2, None, [[10] * 3, [41] * 3])
    assert Layout.placed([0.5, 1.5]).pos.tolist() == [[0.5, 1.5]]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (torch.tensor([[True, False]]), r"positions must be numbers, got a torch tensor.*gn\.Layout\.padded\(mask\)"),
        ("rope", "positions must be one number.*got 'rope'"),
        ([[1, 2], [3]], "positions must be one number.*list of 2 list"),
        (torch.zeros(1, 2, 3), r"shape \(1, 2, 3\)"),
        ([], r"positions must be one number, \(tokens,\) or \(batch, tokens\) of them"),
        (Layout.dense(1, 2), "a Layout already"),
    ],
)
def test_what_are_no_positions_is_refused_with_the_way_to_make_them(given, message):
    with pytest.raises(BadValue, match=message):
        Layout.placed(given)


@pytest.mark.parametrize("mask", [[[1, 0]], [[True, False]], np.array([[1, 0]]), np.array([[True, False]])])
def test_a_padding_mask_may_be_an_array_or_rows(mask):
    assert fields(Layout.padded(mask)) == fields(Layout.padded(torch.tensor([[True, False]])))


@pytest.mark.parametrize("lengths", [[3, 2], "x", 3, torch.tensor([3, 2]), [[1.5]], None])
def test_packed_lengths_are_rows_of_whole_numbers(lengths):
    with pytest.raises(BadValue, match=r"rows of document lengths.*Layout\.packed\(\[\[3, 2\]\]\)"):
        Layout.packed(lengths)


@pytest.mark.parametrize("number", [math.nan, math.inf, 1j])
def test_positions_are_real_and_finite(number):
    """With others every logit would be NaN without a word."""
    for build in (
        lambda: Layout.placed([0.0, number]),
        lambda: Layout.placed(torch.tensor([0.0, number])),
        lambda: Layout.dense(1, 2).at_coords([[number, 0.0], [0.0, 0.0]]),
        lambda: Layout.from_hf(None, torch.full((3, 1, 4), number)),
        lambda: Layout.grid(2, 2, extent=number),
    ):
        with pytest.raises(BadValue, match="finite|extent must be"):
            build()


@pytest.mark.parametrize(
    "build",
    [
        lambda: Layout.grid(2**20, 2**20),
        lambda: Layout.mixed(5),
        lambda: Layout.mixed([[math.nan]]),
        lambda: Layout.dense(1, 3).at_coords(torch.zeros(3, 0)),
        lambda: Layout.dense(1, 3).at_coords([[True, False]] * 3),
    ],
)
def test_grids_and_coordinates_that_nothing_can_sit_at_are_refused(build):
    with pytest.raises(BadValue):
        build()
