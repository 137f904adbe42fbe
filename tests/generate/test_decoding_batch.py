"""A decoding batch: where the tokens of uneven rows sit, step after step, and what becomes of rows that have ended."""

import pytest
import torch

from gnomon.generate.decoding_batch import DecodingBatch


def watched(model, monkeypatch):
    """The layouts that the model is given, in order."""
    seen, hidden = [], type(model).hidden

    def spy(self, ids, at=None, cache=None, trace=None):
        seen.append(at)
        return hidden(self, ids, at, cache, trace)

    monkeypatch.setattr(type(model), "hidden", spy)
    return seen


def places(at):
    """Of every row the position of each real token, None at padding."""
    return [
        [p if real else None for p, real in zip(*row, strict=True)]
        for row in zip(at.pos.tolist(), at.real.tolist(), strict=True)
    ]


def test_positions_skip_the_padding_and_go_on_from_there(tiny, monkeypatch):
    model = tiny()
    seen = watched(model, monkeypatch)
    batch = DecodingBatch(model, 2, model.cache(), held=False)
    batch.read([[1, 2, 3], [4, 5, 6, 7, 8]])
    batch.read([[9], [9]])
    batch.read([[10, 11], [10]])
    assert [places(at) for at in seen] == [
        [[None, None, 0, 1, 2], [0, 1, 2, 3, 4]],
        [[3], [5]],
        [[4, 5], [None, 6]],
    ]
    assert seen[2].length.tolist() == [[6, 6], [7, 7]]


def test_even_rows_stay_dense_for_the_fast_kernels(tiny, monkeypatch):
    model = tiny()
    seen = watched(model, monkeypatch)
    batch = DecodingBatch(model, 2, model.cache(), held=False)
    for rows in ([[1, 2], [3, 4]], [[5], [6]], [[7], [8]]):
        batch.read(rows)
    assert [at.kind for at in seen] == ["dense"] * 3


def test_rows_that_end_leave_the_cache(tiny, monkeypatch):
    model = tiny()
    seen = watched(model, monkeypatch)
    batch = DecodingBatch(model, 3, model.cache(), held=False)
    batch.read([[1], [2, 3], [4]])
    batch.keep([1, 2])
    batch.read([[5], [6]])
    batch.keep([1])
    batch.read([[7]])
    assert [places(at) for at in seen[1:]] == [[[2], [1]], [[2]]]
    assert batch.cache.at.shape[0] == 1


def test_rows_that_end_wait_as_padding_in_a_cache_that_is_held(tiny, monkeypatch):
    model = tiny()
    seen = watched(model, monkeypatch)
    batch = DecodingBatch(model, 3, model.cache(), held=True)
    batch.read([[1], [2, 3], [4]])
    batch.keep([1, 2])
    assert batch.read([[5], [6]]).shape == (2, 64)
    batch.keep([1])
    assert batch.read([[7]]).shape == (1, 64)
    assert [places(at) for at in seen[1:]] == [[[None], [2], [1]], [[None], [None], [2]]]
    assert batch.cache.at.real.sum(1).tolist() == [1, 3, 3]


def test_full_is_told_of_the_rows_still_going(tiny):
    model = tiny("learned", max_positions=4)
    batch = DecodingBatch(model, 3, model.cache(), held=True)
    batch.read([[1, 2, 3, 4], [1, 2], [1, 2, 3]])
    assert batch.full() == [True, False, False]
    batch.keep([1, 2])
    assert batch.full() == [False, False]
    batch.read([[1], [2]])
    assert batch.full() == [False, True]


def test_logits_are_computed_wide(tiny):
    model = tiny().to(torch.float16)
    assert DecodingBatch(model, 1, model.cache(), held=False).read([[1, 2]]).dtype == torch.float32


def test_fits_says_how_many_of_the_next_tokens_each_row_has_positions_for(tiny):
    model = tiny("learned", max_positions=6)
    batch = DecodingBatch(model, 3, model.cache(), held=True)
    assert batch.fits(9) == [6, 6, 6]
    batch.read([[1, 2, 3, 4], [1, 2], [1, 2, 3, 4, 5, 6]])
    assert batch.fits(3) == [2, 3, 0]
    assert batch.fits(9) == [2, 4, 0]
    batch.keep([2, 0])
    assert batch.fits(9) == [0, 2]


@pytest.mark.parametrize("position", ["rope", "learned", "alibi"])
def test_what_is_forgotten_was_never_read(tiny, position):
    """Rows forget different numbers of tokens; what they read next sits, and sees, as if they had not read those."""
    model = tiny(position)
    batch, plain = (DecodingBatch(model, 3, model.cache(), held=False) for _ in range(2))
    batch.read([[1, 2, 3, 9, 9], [4, 5, 9], [6, 7]])
    batch.forget([2, 1, 0])
    plain.read([[1, 2, 3], [4, 5], [6, 7]])
    for rows in ([[8], [8, 10], []], [[11, 12], [], [13]], [[1], [2], [3]]):
        mine, other = batch.read(rows), plain.read(rows)
        for n, row in enumerate(rows):
            if row:
                torch.testing.assert_close(mine[n], other[n], atol=1e-4, rtol=0)


def test_rows_may_be_repeated_and_go_on_apart(tiny):
    model = tiny()
    batch = DecodingBatch(model, 2, model.cache(), held=False)
    batch.read([[1, 2, 3], [4]])
    batch.keep([1, 0, 1])
    out = batch.read([[5], [6], [7]])
    for row, text in zip(out, ([4, 5], [1, 2, 3, 6], [4, 7]), strict=True):
        alone = DecodingBatch(model, 1, model.cache(), held=False).read([text])[0]
        torch.testing.assert_close(row, alone, atol=1e-4, rtol=0)


@pytest.mark.parametrize("kind", ["growing", "preallocated", "rolling"])
@pytest.mark.parametrize("read", [True, False])
def test_a_fork_leaves_what_it_came_from_as_it_was(tiny, kind, read):
    model = tiny(window=4)
    batch = DecodingBatch(model, 2, model.cache(kind, capacity=20), held=True)
    plain = DecodingBatch(model, 2, model.cache(kind, capacity=20), held=True)
    for one in (batch, plain):
        if read:
            one.read([[1, 2, 3], [4]])
    fork = batch.fork()
    fork.read([[9, 9], [9, 9]])
    fork.keep([1])
    fork.read([[9]])
    torch.testing.assert_close(batch.read([[5], [6]]), plain.read([[5], [6]]), atol=0, rtol=0)
