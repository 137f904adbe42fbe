"""What each recipe draws, against its formula."""

from collections import Counter

import numpy as np
import pytest
import torch

import gnomon as gn
from gnomon.positions import CAPE, Abacus, Randomized, RandomStart

PACKED = gn.Layout.packed([[5, 3], [7]])
PADDED = gn.Layout.padded(torch.tensor([[0, 0, 1, 1, 1], [1, 1, 1, 1, 1]]))
IDS = torch.zeros(2, 8, dtype=torch.long)


def of_documents(at):
    """The positions of every document, as lists."""
    doc = torch.where(at.real, 0, -1) if at.doc is None else at.doc
    return [at.pos[b][doc[b] == d].tolist() for b in range(len(doc)) for d in range(int(doc[b].max()) + 1)]


# ------------------------------------------------------------------ randomized


@pytest.mark.parametrize("at", [gn.Layout.dense(2, 8), PACKED, PADDED], ids=["dense", "packed", "padded"])
@pytest.mark.parametrize("per", ["row", "batch"])
def test_randomized_positions_are_a_sorted_sample_of_each_document(at, per):
    there = Randomized(20, per).train(IDS, at)
    for before, after in zip(of_documents(at), of_documents(there), strict=True):
        assert after == sorted(set(after))
        assert len(after) == len(before)
        assert all(0 <= p < 20 for p in after)
    assert torch.equal(there.step, at.step)
    if at.doc is not None:
        assert torch.equal(there.doc, at.doc)
    for row in range(2):
        for d in range(int(at.doc[row].max()) + 1 if at.doc is not None else 1):
            mine = at.real[row] if at.doc is None else at.doc[row] == d
            assert set(there.length[row][mine].tolist()) == {int(there.pos[row][mine].max()) + 1}


def test_every_sample_is_as_likely_as_any_other():
    """2 of 4 positions: six samples, 200 of each expected in 1200 rows; also of a row whose batch mate is longer."""
    torch.manual_seed(0)
    at = gn.Layout.padded(torch.tensor([[1, 1, 0], [1, 1, 1]]).repeat(600, 1))
    there = Randomized(4).train(IDS, at)
    short = Counter(map(tuple, there.pos[::2, :2].tolist()))
    assert len(short) == 6
    assert max(abs(n - 100) for n in short.values()) < 45


def test_rows_draw_apart_or_together():
    at = gn.Layout.dense(3, 8)
    assert len({tuple(row) for row in Randomized(99).train(IDS, at).pos.tolist()}) == 3
    assert len({tuple(row) for row in Randomized(99, "batch").train(IDS, at).pos.tolist()}) == 1


def test_a_sampled_reading_depends_on_the_length_and_the_seed_alone():
    sampled = Randomized(50, reading="sampled")
    there = sampled.read(IDS, PACKED)
    five, three, seven = of_documents(there)
    assert of_documents(sampled.read(IDS, gn.Layout.dense(1, 5))) == [five]
    assert of_documents(sampled.read(IDS, gn.Layout.padded([[0, 1, 1, 1]]))) == [three]
    assert seven == sorted(set(seven)) != list(range(7))
    assert of_documents(Randomized(50, reading="sampled", seed=1).read(IDS, PACKED)) != [five, three, seven]


def test_a_text_longer_than_its_positions_is_named():
    with pytest.raises(gn.BadValue, match="from 6 positions, but a text has 8 tokens"):
        Randomized(6).train(IDS, gn.Layout.dense(1, 8))
    with pytest.raises(gn.BadValue, match="has 6 positions, but a text reaches 8"):
        RandomStart(6).train(IDS, gn.Layout.dense(1, 8))
    with pytest.raises(gn.BadValue, match="along one axis"):
        Randomized(9).train(IDS, gn.Layout.grid(2, 2))


# ------------------------------------------------------------------ random start


@pytest.mark.parametrize("per", ["row", "batch"])
def test_every_document_starts_elsewhere_and_ends_within_reach(per):
    torch.manual_seed(1)
    starts = set()
    for _ in range(60):
        there = RandomStart(9, per).train(IDS, PACKED)
        documents = of_documents(there)
        assert [[p - d[0] for p in d] for d in documents] == of_documents(PACKED)
        assert max(map(max, documents)) < 9
        starts.add(tuple(d[0] for d in documents))
    assert (len({len(set(s)) for s in starts}) == 1) is (per == "batch")
    assert {s[2] for s in starts} == {0, 1, 2}


def test_a_picture_starts_elsewhere_along_every_axis():
    grid = gn.Layout.grid(2, 3)
    there = RandomStart(50).train(IDS, grid)
    assert len((there.coords - grid.coords).unique()) == 1


# ------------------------------------------------------------------ cape


def test_a_text_is_shifted_jittered_and_scaled():
    """(p + D + e) exp(l) with one D and l for each text: differences lie within the jitter, times the scale."""
    torch.manual_seed(2)
    at = gn.Layout.dense(400, 6)
    pos = CAPE(shift=10.0, local=0.25, scale=2.0).train(IDS, at).pos
    scale = (pos[:, -1] - pos[:, 0]) / 5
    assert scale.min() > 0.5 * 0.9
    assert scale.max() < 2.0 * 1.1
    assert (scale.log().mean().abs() < 0.1) & (scale.log().std() > 0.3)
    shift = pos.mean(1) / scale - 2.5
    assert -10.5 < shift.min() < -8
    assert 8 < shift.max() < 10.5
    assert (pos.diff(dim=1) > 0).all()
    jitter = pos / scale[:, None] - pos[:, :1] / scale[:, None] - at.pos
    assert 0.3 < jitter.abs().max() < 0.6


def test_nothing_moved_is_where_it_was():
    for at in (gn.Layout.dense(2, 5), gn.Layout.grid(2, 3)):
        there = CAPE(0.0, 0.0, 1.0).train(IDS, at)
        assert torch.equal(there.pos, at.coords.amax(-1).double() if at.coords is not None else at.pos.double())


def test_a_picture_is_shifted_along_each_axis_and_scaled_once():
    grid = gn.Layout.grid(4, 4, extent=1.0)
    coords = CAPE(shift=3.0, local=0.0, scale=2.0).train(IDS, grid).coords[0]
    y, x = coords[:, 0].view(4, 4), coords[:, 1].view(4, 4)
    torch.testing.assert_close(y[1:] - y[:-1], (x[:, 1:] - x[:, :-1]).T)  # one scale
    assert (y[0, 0] - x[0, 0]).abs() > 1e-3  # two shifts


@pytest.mark.parametrize("name", [n for n in gn.positions.names() if n not in ("none", "learned")])
def test_encodings_take_positions_between_whole_ones(name):
    torch.manual_seed(0)
    small = gn.positions.encoding(name).tiny
    model = gn.DecoderOnly(30, 16, 1, 2, position=gn.positions.get(name, **small, positions="cape"))
    loss = model(torch.randint(30, (2, 9))).square().mean()
    loss.backward()
    assert torch.isfinite(loss)


# ------------------------------------------------------------------ abacus


def reference(ids, digits):
    """Written out: a digit's index within its run, from 1; 0 for everything else."""
    found = np.zeros_like(ids)
    for b, row in enumerate(ids):
        run = 0
        for t, token in enumerate(row):
            run = run + 1 if token in digits else 0
            found[b, t] = run
    return found


def test_a_digit_sits_at_its_place_in_its_number():
    digits = (3, 4, 5, 6)
    ids = torch.randint(9, (4, 20), generator=torch.Generator().manual_seed(0))
    at = gn.Layout.dense(4, 20)
    assert torch.equal(Abacus(digits=digits).read(ids, at).pos, torch.from_numpy(reference(ids.numpy(), digits)))


def test_numbers_end_with_their_document_and_go_on_across_padding():
    abacus, ids = Abacus(digits=(1,)), torch.ones(2, 8, dtype=torch.long)
    assert abacus.read(ids, PACKED).pos.tolist() == [[1, 2, 3, 4, 5, 1, 2, 3], [1, 2, 3, 4, 5, 6, 7, 0]]
    at = gn.Layout.padded(torch.tensor([[0, 1, 0, 1, 1]]))
    assert abacus.read(ids[:1, :5], at).pos.tolist() == [[0, 1, 0, 2, 3]]


def test_training_starts_all_numbers_of_a_batch_at_one_random_place():
    torch.manual_seed(0)
    abacus, ids = Abacus(start=5, digits=(1, 2)), torch.tensor([[1, 2, 0, 1], [0, 1, 0, 2]])
    found = set()
    for _ in range(80):
        pos = abacus.train(ids, gn.Layout.dense(2, 4)).pos
        k = int(pos[0, 0]) - 1
        assert pos.tolist() == [[k + 1, k + 2, 0, k + 1], [0, k + 1, 0, k + 1]]
        found.add(k)
    assert found == set(range(6))


def test_the_digits_are_read_off_a_tokenizer():
    tokenizer = gn.Tokenizer.bytes()
    assert Abacus().fitted(tokenizer).digits == tuple(tokenizer.encode("0123456789"))
    assert Abacus(digits=(7,)).fitted(tokenizer).digits == (7,)
