"""Strategies: what they choose, how often, and that a row's choice is its own."""

import pytest
import torch

from gnomon.errors import BadValue
from gnomon.generate import Distribution, Greedy, Sample, Search, generate


def rngs(n: int, start: int = 0) -> list[torch.Generator]:
    return [torch.Generator().manual_seed(start + i) for i in range(n)]


def test_greedy_takes_the_best_token_and_the_lower_id_of_a_tie():
    assert Greedy().choose(torch.tensor([[0.0, 2.0, 1.0], [3.0, 0.0, 3.0]]), rngs(2)).tolist() == [1, 0]


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (3, 1, 0, 2)])
@pytest.mark.parametrize(
    ("t", "kept"),
    [
        # of [.5, .25, .15, .1]: at t = 2 the third has .2027 / .3701 = .548 of the best one's probability
        (1.0, [0, 1]),
        (2.0, [0, 1, 2, 3]),
        (4.0, [0, 1, 2, 3]),
    ],
)
def test_temperature_comes_before_min_p(t, kept, order):
    logits = torch.tensor([[0.5, 0.25, 0.15, 0.1]]).log()[:, list(order)]
    out = Sample(t, min_p=0.4).process(logits)[0]
    assert sorted(order[i] for i in out.isfinite().nonzero().flatten().tolist()) == kept


def test_temperature_two_flattens_as_computed_by_hand():
    out = Sample(2.0, min_p=0.4).process(torch.tensor([[0.5, 0.25, 0.15, 0.1]]).log()).softmax(-1)
    # square roots of the probabilities, over their sum 1.910630
    torch.testing.assert_close(out, torch.tensor([[0.370091, 0.261694, 0.202707, 0.165510]]), atol=1e-6, rtol=0)


def test_top_k_comes_before_top_p_and_each_sees_what_the_one_before_left():
    logits = torch.tensor([[0.4, 0.2, 0.2, 0.2]]).log()
    assert Sample(top_k=2, top_p=0.65).process(logits).isfinite().tolist() == [[True, False, False, False]]  # .4 / .6
    assert Sample(top_p=0.65).process(logits).isfinite().sum() == 3


def test_top_p_comes_before_min_p():
    logits = torch.tensor([[0.4, 0.3, 0.2, 0.1]]).log()
    # min_p first would leave .4 and .3, of which .4 alone holds .57
    assert Sample(top_p=0.55, min_p=0.7).process(logits).isfinite().tolist() == [[True, True, False, False]]


@pytest.mark.slow
@pytest.mark.parametrize(
    "strategy", [Sample(), Sample(0.5), Sample(1.7), Sample(top_k=3), Sample(top_p=0.8), Sample(1.5, 5, 0.9, 0.1)]
)
def test_draws_follow_the_processed_distribution(strategy):
    """Chi-square of 20 000 draws, a generator each: the 0.999 quantile for 7 degrees of freedom is 24.32; fewer
    surviving tokens have fewer degrees and a smaller one. The seeds are fixed, so this passes always or never."""
    n = 20_000
    logits = torch.tensor([2.0, 1.5, 1.0, 0.5, 0.0, -0.5, -1.0, -1.5]).expand(n, -1)
    counts = strategy.choose(logits, rngs(n)).bincount(minlength=8)
    expected = n * strategy.process(logits[:1]).double().softmax(-1)[0]
    alive = expected > 0
    assert counts[~alive].sum() == 0
    assert ((counts - expected)[alive] ** 2 / expected[alive]).sum() < 24.32


def test_draws_of_one_generator_follow_the_distribution_too():
    rng, logits = torch.Generator().manual_seed(7), torch.tensor([[0.5, 0.3, 0.2]]).log()
    counts = torch.stack([Sample().choose(logits, [rng])[0] for _ in range(1000)]).bincount(minlength=3)
    expected = torch.tensor([500.0, 300.0, 200.0])
    assert ((counts - expected) ** 2 / expected).sum() < 13.82  # 0.999 quantile, 2 degrees of freedom


@pytest.mark.parametrize("strategy", [Greedy(), Sample(), Sample(0.7, 10, 0.9, 0.05)])
def test_a_rows_choice_depends_on_its_own_logits_and_generator_alone(strategy):
    torch.manual_seed(0)
    logits = torch.randn(6, 40)
    together = strategy.choose(logits, rngs(6))
    alone = [strategy.choose(logits[i : i + 1], [rng])[0] for i, rng in enumerate(rngs(6))]
    order = [4, 0, 5, 2]
    some = strategy.choose(logits[order], [rngs(6)[i] for i in order])
    assert together.tolist() == [int(i) for i in alone]
    assert some.tolist() == together[order].tolist()


def test_seeds_do_not_matter_at_temperature_zero():
    logits = torch.tensor([[1.0, 2.0]]).expand(50, -1)
    for strategy in (
        Sample(0.0),
        Sample(0.0, 1),
        Sample(0.0, top_p=0.0),
        Sample(1e-10),
        Sample(0.0, top_p=0.9, min_p=0.5),
    ):
        assert set(strategy.choose(logits, rngs(50)).tolist()) == {1}


def test_one_uniform_number_is_used_per_draw():
    rng, other = rngs(2, 5)[0], rngs(2, 5)[0]
    Sample(0.0, 3, 0.5, 0.1).choose(torch.zeros(1, 9), [rng])
    torch.rand((), generator=other, dtype=torch.float64)
    assert torch.equal(rng.get_state(), other.get_state())


def test_torchs_own_generator_is_left_alone():
    before = torch.get_rng_state()
    Sample().choose(torch.zeros(3, 9), rngs(3))
    assert torch.equal(before, torch.get_rng_state())


@pytest.mark.parametrize("bad", [{"temperature": -1}, {"top_k": 0}, {"top_k": 1.5}, {"top_p": 2}, {"min_p": -1}])
def test_a_bad_setting_is_refused_when_the_strategy_is_made(bad):
    with pytest.raises(BadValue, match=next(iter(bad))):
        Sample(**bad)


def test_strategies_are_values():
    assert Sample(0.5, top_k=3) == Sample(0.5, top_k=3) != Sample(0.5)
    assert Greedy() == Greedy()
    assert repr(Greedy()) == "Greedy()"


class EveryOther(Search):
    """Writes the best token and then its own idea of what comes after: a search of four lines."""

    def write(self, batch, rows, rules):
        logits = batch.read([row.prompt_ids for row in rows])
        while rows:
            best = rules.apply_strictly(logits, [row.history() for row in rows]).allowed.argmax(-1).tolist()
            for row, i in zip(rows, best, strict=True):
                yield row.take(i, 0.0, full=False)
                if row.finish_reason is None:
                    yield row.take(7, 0.0, full=False)
            going = [n for n, row in enumerate(rows) if row.finish_reason is None]
            batch.keep(going)
            rows = [rows[n] for n in going]
            logits = batch.read([row.ids[-2:] for row in rows]) if rows else None


def test_a_search_of_ones_own_drives_the_feed_like_the_others(chain):
    model = chain({1: [2], 7: [3]})
    out = generate(model, [[1], [7]], strategy=EveryOther(), max_new_tokens=5)
    assert [g.ids for g in out] == [[2, 7, 3, 7, 3], [3, 7, 3, 7, 3]]
    cache = model.cache()
    generate(model, [[1], [7]], strategy=EveryOther(), cache=cache, max_new_tokens=5)
    assert cache.at.real.sum(1).tolist() == [5, 5]


def test_a_distribution_says_what_its_choices_are_drawn_from():
    logits = torch.tensor([[0.0, 2.0, 1.0], [3.0, 0.0, 3.0]])
    assert Greedy().process(logits).softmax(-1).tolist() == [[0, 1, 0], [1, 0, 0]]
    assert isinstance(Greedy(), Distribution)
    assert isinstance(Sample(), Distribution)
