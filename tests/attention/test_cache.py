"""The cache by itself: what it holds, what it refuses. That steps change nothing is a law: tests/audit."""

from collections.abc import Callable

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

import gnomon as gn
from gnomon import BadValue, Layout
from gnomon.attention import Cache, GrowingCache, PreallocatedCache, RollingCache

KINDS: dict[str, Callable[[], Cache]] = {
    "growing": GrowingCache,
    "preallocated": lambda: PreallocatedCache(12),
    "rolling": lambda: RollingCache(8, rollback=4),
}


def put(cache: Cache, *numbers: float, at: Layout | None = None) -> torch.Tensor:
    """Feed one row of tokens whose key and value are these numbers; returns the keys that they may look at."""
    x = torch.tensor(numbers).view(1, 1, -1, 1)
    if at is None:
        at = Layout.dense(1, len(numbers)) if cache.at is None else cache.then(len(numbers))
    cache.extend(at)
    k, _ = cache.update(0, x, 10 * x)
    cache.commit()
    return k.flatten()


def held(cache: Cache) -> list[float]:
    return cache.k[0][0, 0, : len(cache), 0].tolist()


def up_to(*numbers: float) -> list[float]:
    return pytest.approx(list(numbers), abs=1e-6)


# ------------------------------------------------------------------ every kind


@pytest.mark.parametrize("kind", KINDS)
def test_a_cache_holds_what_it_was_given_and_where_it_sits(kind):
    cache = KINDS[kind]()
    assert len(cache) == 0
    assert put(cache, 1.0, 2.0).tolist() == [1.0, 2.0]
    assert put(cache, 3.0).tolist() == [1.0, 2.0, 3.0]
    assert held(cache) == [1.0, 2.0, 3.0]
    assert cache.v[0][0, 0, :3, 0].tolist() == [10.0, 20.0, 30.0]
    assert cache.at.pos.tolist() == [[0, 1, 2]]
    assert cache.then(2).pos.tolist() == [[3, 4]]


@pytest.mark.parametrize("kind", KINDS)
def test_an_empty_cache_does_not_guess_where_tokens_sit(kind):
    with pytest.raises(BadValue, match="give the first call a Layout"):
        KINDS[kind]().then(1)


@pytest.mark.parametrize("kind", KINDS)
def test_rows_are_counted(kind):
    cache = KINDS[kind]()
    put(cache, 1.0)
    with pytest.raises(BadValue, match="holds 1 rows, the new tokens have 2"):
        cache.extend(Layout.dense(2, 1))


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_is_held_before_the_step_ends(kind):
    cache = KINDS[kind]()
    put(cache, 1.0, 2.0)
    cache.extend(cache.then(1))
    cache.update(0, torch.full((1, 1, 1, 1), 9.0), torch.full((1, 1, 1, 1), 9.0))
    assert len(cache) == 2  # no commit: the step failed
    put(cache, 3.0)
    assert held(cache) == [1.0, 2.0, 3.0]


@pytest.mark.parametrize("kind", KINDS)
def test_reorder_moves_keys_values_and_layout_together(kind):
    cache = KINDS[kind]()
    at = Layout.padded(torch.tensor([[0, 1], [1, 1]]))
    x = torch.tensor([[1.0, 2.0], [3.0, 4.0]]).view(2, 1, 2, 1)
    cache.extend(at)
    cache.update(0, x, -x)
    cache.commit()
    cache.reorder(torch.tensor([1, 0, 1]))
    assert cache.k[0][:, 0, :2, 0].tolist() == [[3.0, 4.0], [1.0, 2.0], [3.0, 4.0]]
    assert cache.v[0][:, 0, :2, 0].tolist() == [[-3.0, -4.0], [-1.0, -2.0], [-3.0, -4.0]]
    assert cache.at.real.tolist() == [[True, True], [False, True], [True, True]]
    assert cache.then(1).pos.tolist() == [[2], [1], [2]]


@pytest.mark.parametrize("kind", KINDS)
def test_crop_goes_back_for_all_rows_or_for_each(kind):
    cache = KINDS[kind]()
    x = torch.arange(8.0).view(2, 1, 4, 1)
    cache.extend(Layout.dense(2, 4))
    cache.update(0, x, x)
    cache.commit()
    cache.crop(3)
    assert len(cache) == 3
    assert cache.at.kind == "dense"
    cache.crop([1, 2])
    assert len(cache) == 2
    assert cache.at.real.tolist() == [[True, False], [True, True]]
    assert cache.then(1).pos.tolist() == [[1], [2]]
    cache.crop(0)
    assert len(cache) == 0
    cache.crop(5)  # nothing to go back from


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("keep", [-1, [1, 2, 3], [1, -1]])
def test_crop_refuses_what_is_not_one_number_per_row(kind, keep):
    cache = KINDS[kind]()
    cache.extend(Layout.dense(2, 3))
    cache.update(0, torch.zeros(2, 1, 3, 1), torch.zeros(2, 1, 3, 1))
    cache.commit()
    with pytest.raises(BadValue, match="crop keeps a number >= 0"):
        cache.crop(keep)
    assert len(cache) == 3


@pytest.mark.parametrize("kind", KINDS)
def test_a_prefix_is_kept_whole_or_not_at_all(kind):
    cache = KINDS[kind]()
    put(cache, 1.0, 2.0, 3.0, 4.0, at=Layout.prefix(3, 4))
    with pytest.raises(BadValue, match="prefix was read in one piece"):
        cache.crop(2)
    assert held(cache) == [1.0, 2.0, 3.0, 4.0]
    cache.crop(3)
    assert held(cache) == [1.0, 2.0, 3.0]


# ------------------------------------------------------------------ preallocated


def test_a_full_cache_says_how_large_it_should_have_been():
    cache = PreallocatedCache(3)
    put(cache, 1.0, 2.0)
    with pytest.raises(BadValue, match="room for 3 tokens and holds 2; 2 more do not fit.*capacity >= 4"):
        put(cache, 3.0, 4.0)
    put(cache, 3.0)
    assert held(cache) == [1.0, 2.0, 3.0]
    with pytest.raises(BadValue, match="at least one token"):
        PreallocatedCache(0)


def test_a_preallocated_cache_writes_in_place():
    cache = PreallocatedCache(6)
    put(cache, 1.0)
    room = cache.k[0].data_ptr()
    for n in range(5):
        put(cache, float(n))
    assert cache.k[0].data_ptr() == room


# ------------------------------------------------------------------ rolling


def test_an_update_that_fills_the_window_drops_nothing_and_the_next_the_oldest():
    cache = RollingCache(8)
    put(cache, 10.0, 10.1, 10.2, 10.3, 10.4, 10.5)
    put(cache, 10.6)
    put(cache, 10.7)
    assert held(cache) == up_to(10.0, 10.1, 10.2, 10.3, 10.4, 10.5, 10.6, 10.7)
    put(cache, 10.8)
    assert held(cache) == up_to(10.1, 10.2, 10.3, 10.4, 10.5, 10.6, 10.7, 10.8)
    put(cache, 10.9)
    assert held(cache) == up_to(10.2, 10.3, 10.4, 10.5, 10.6, 10.7, 10.8, 10.9)
    assert cache.at.pos.tolist() == [[2, 3, 4, 5, 6, 7, 8, 9]]


def test_a_prompt_longer_than_the_window_leaves_its_end():
    cache = RollingCache(8)
    assert put(cache, *map(float, range(10))).tolist() == list(map(float, range(10)))  # it attends before it is cut
    assert held(cache) == [2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0]
    assert put(cache, 10.0, 11.0, 12.0).tolist() == list(map(float, range(2, 13)))
    assert held(cache) == [5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0]
    assert cache.then(1).pos.tolist() == [[13]]


def test_each_row_drops_its_own_oldest():
    cache = RollingCache(2)
    x = torch.arange(8.0).view(2, 1, 4, 1)
    cache.extend(Layout.padded(torch.tensor([[1, 1, 1, 0], [0, 0, 1, 1]])))
    cache.update(0, x, x)
    cache.commit()
    assert cache.k[0][:, 0, :, 0].tolist() == [[1.0, 2.0], [6.0, 7.0]]
    assert cache.then(1).pos.tolist() == [[3], [2]]


def test_going_back_farther_than_the_rollback_is_an_error_that_changes_nothing():
    cache = RollingCache(4, rollback=2)
    put(cache, *map(float, range(10)))
    with pytest.raises(BadValue, match="window 4 with rollback 2 cannot go back to.*larger rollback"):
        cache.crop(6)
    assert held(cache) == [4.0, 5.0, 6.0, 7.0, 8.0, 9.0]
    cache.crop(8)
    assert held(cache) == [4.0, 5.0, 6.0, 7.0]
    assert cache.then(1).pos.tolist() == [[8]]


@pytest.mark.parametrize("sizes", [(0, 0), (-1, 0), (4, -1)])
def test_a_rolling_cache_needs_a_window(sizes):
    with pytest.raises(BadValue, match="window >= 1, rollback >= 0"):
        RollingCache(*sizes)


# ------------------------------------------------------------------ in a model


def test_a_model_makes_the_cache_it_can_use():
    model = gn.DecoderOnly(11, 16, 1, 2, window=5)
    assert isinstance(model.cache(), GrowingCache)
    assert model.cache("preallocated", capacity=7).capacity == 7
    assert (model.cache("rolling", rollback=2).window, model.cache("rolling", rollback=2).rollback) == (5, 2)
    with pytest.raises(BadValue, match="build the model with window"):
        gn.DecoderOnly(11, 16, 1, 2).cache("rolling")
    with pytest.raises(BadValue, match="did you mean 'growing'"):
        model.cache("growin")


def test_a_layout_that_does_not_continue_the_cache_is_refused():
    """Continuing from a cache somebody kept: the mask of the new tokens alone, or positions from 0, would be silent."""
    model, cache = gn.DecoderOnly(11, 16, 1, 2).eval(), None
    ids = torch.randint(11, (1, 6))
    cache = model.cache()
    model(ids[:, :5], cache=cache)
    with pytest.raises(BadValue, match="row 0: the cache holds tokens up to step 4, but the new ones start at step 0"):
        model(ids[:, 5:], Layout.dense(1, 1), cache)
    with pytest.raises(BadValue, match="places 5 tokens a row, but 1 were given"):
        model(ids[:, 5:], Layout.dense(1, 5), cache)
    assert len(cache) == 5
    ways = [model(ids)[:, 5:], model(ids[:, 5:], cache=cache)]
    cache.crop(5)
    ways.append(model(ids[:, 5:], cache.then(1), cache))
    assert max((ways[0] - way).abs().max() for way in ways) < 1e-5


@pytest.mark.parametrize("position", gn.positions.names())
@pytest.mark.parametrize("kind", ["growing", "preallocated"])
def test_a_cached_step_after_256_tokens_does_a_hundredth_of_the_operations(position, kind):
    """Multiplications and additions in products, which are nearly all of them; counted, since clocks differ."""
    torch.manual_seed(0)
    model = gn.DecoderOnly(64, 64, 2, 4, position=position, max_positions=300).eval()
    ids = torch.randint(64, (1, 257))
    with torch.inference_mode():
        cache = model.cache(kind, capacity=300)
        model(ids[:, :256], cache=cache)
        assert operations(lambda: model(ids[:, 256:], cache=cache)) < operations(lambda: model(ids)) / 100


def operations(call: Callable[[], object]) -> int:
    """Floating-point operations of all products in a call."""
    with FlopCounterMode(display=False) as counter:
        call()
    return counter.get_total_flops()


def test_going_back_keeps_the_room_that_was_taken():
    """Trying tokens and taking some back at every step must not take a whole buffer anew each time."""
    model, ids = gn.DecoderOnly(30, 16, 1, 2).eval(), torch.randint(30, (2, 9))
    cache = model.cache("preallocated", capacity=32)
    with torch.no_grad():
        model(ids[:, :6], cache=cache)
        room = cache.k[0].data_ptr()
        cache.crop(4)
        got = model(ids[:, 4:], cache=cache)
        torch.testing.assert_close(got, model(ids)[:, 4:])
    assert cache.k[0].data_ptr() == room
