"""Numbers in words: what is held out is never trained on, and the small ones are frequent enough to be learned."""

import numpy as np
import pytest
import torch

from gnomon.data import Tokenizer
from gnomon.errors import BadInput, BadValue
from gnomon.models import EncoderDecoder
from gnomon.tasks.numbers import NumbersKind, log_uniform, spell, uniform
from gnomon.train import TrainConfig

SMALL = NumbersKind(limit=1000, count=20)


def test_languages_are_spelled_in_their_own_way_the_two_portuguese_too():
    spelled = {language: spell(17_016, language) for language in ("en", "es", "pt", "pt-br", "digits")}
    assert spelled == {
        "en": "seventeen thousand and sixteen",
        "es": "diecisiete mil dieciséis",
        "pt": "dezassete mil e dezasseis",
        "pt-br": "dezessete mil e dezesseis",
        "digits": "17016",
    }


def test_the_two_held_out_sets_are_distinct_numbers_drawn_in_two_ways():
    held = NumbersKind().held_out
    assert set(held) == {"uniform", "log-uniform"}
    for numbers in held.values():
        assert len(numbers) == len(set(numbers)) == 1000
        assert min(numbers) > 0
        assert max(numbers) < 1_000_000
    assert np.mean(np.array(held["uniform"]) >= 100_000) > 0.85
    assert np.mean(np.array(held["log-uniform"]) >= 100_000) < 0.5
    assert sum(n < 1000 for n in held["log-uniform"]) > 100


def test_what_is_held_out_is_the_same_for_every_direction():
    assert NumbersKind("pt", "es").held_out == NumbersKind("digits", "en").held_out


def test_no_number_that_is_held_out_is_ever_trained_on():
    kind = NumbersKind(limit=1000, count=50)  # so small that without care nearly all would be met
    held = {n for numbers in kind.held_out.values() for n in numbers}
    met = {n for step in range(60) for n in kind.drawn(0, step, 256)}
    assert not met & held
    assert met | held == set(range(1000))


def test_no_more_than_about_a_fifth_of_short_numbers_is_held_out_and_never_zero():
    held = np.array(sorted({n for numbers in NumbersKind().held_out.values() for n in numbers}))
    for top in (10, 100, 1000):
        assert np.sum(held < top) <= 0.3 * top
    assert 0 not in held


def test_training_numbers_are_half_uniform_and_half_log_uniform():
    drawn = np.array([n for step in range(50) for n in NumbersKind().drawn(0, step, 128)])
    assert np.mean(drawn < 1000) == pytest.approx(0.25, abs=0.03)  # half of half: log(1000) / log(1000000)
    assert np.mean(drawn >= 100_000) == pytest.approx(0.45 + 1 / 12, abs=0.03)


def test_log_uniform_numbers_have_all_lengths_alike_and_uniform_ones_do_not():
    rng = np.random.default_rng(0)
    drawn = log_uniform(rng, 10**6, 100_000)
    assert (drawn.min(), drawn.max()) == (0, 10**6 - 1) or drawn.max() < 10**6
    shares = [np.mean((drawn >= 10**k) & (drawn < 10 ** (k + 1))) for k in range(2, 6)]
    assert shares == pytest.approx([1 / 6] * 4, abs=0.01)
    assert np.mean(uniform(rng, 10**6, 100_000) >= 10**5) == pytest.approx(0.9, abs=0.01)


def test_the_numbers_of_a_step_are_a_function_of_the_seed_and_the_step():
    kind, same = NumbersKind(), NumbersKind()
    assert [kind.drawn(1, n, 8) for n in (5, 2)] == [same.drawn(1, n, 8) for n in (5, 2)]
    assert kind.drawn(1, 5, 8) != kind.drawn(2, 5, 8)
    assert len(kind.drawn(0, 0, 1)) == 1


def test_words_are_single_tokens_digits_too_and_anything_can_still_be_read():
    kind = NumbersKind("digits", "es")
    tokenizer = Tokenizer.bpe(kind.texts(), 1024)
    assert [tokenizer.decode([i]) for i in tokenizer.encode("doscientos cuarenta y uno")] == [
        "doscientos",
        " cuarenta",
        " y",
        " uno",
    ]
    assert len(tokenizer.encode("999999")) == 6
    assert tokenizer.decode(tokenizer.encode("twelfty-ß")) == "twelfty-ß"


def test_the_fingerprint_tells_directions_and_limits_apart_but_not_training():
    tokenizer, config = Tokenizer.bytes(), TrainConfig(length=128)
    kinds = [SMALL, NumbersKind("en", "es", 1000, 20), NumbersKind(limit=2000, count=20)]
    prints = {kind.task(tokenizer, config).fingerprint for kind in kinds}
    assert len(prints) == 3
    assert SMALL.task(tokenizer, TrainConfig(length=128, seed=5)).fingerprint in prints


@pytest.mark.slow
@pytest.mark.parametrize(("position", "alike"), [("rope", True), ("alibi", True), ("learned", False)])
def test_only_with_absolute_positions_an_encoder_tells_7_from_77(position, alike):
    torch.manual_seed(0)
    model = EncoderDecoder(257, 16, 2, 2, position=position, max_positions=8).double()
    one, two = model.encode(torch.tensor([[55]])).states, model.encode(torch.tensor([[55, 55]])).states
    assert torch.allclose(one[:, :1], two[:, 1:]) is alike
    assert NumbersKind.default_model["position"] == "learned"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"source": "en", "target": "en"}, "source and target are both en"),
        ({"limit": 10}, "limit must be between 100 and"),
        ({"limit": 10**8}, "limit must be between 100 and"),
        ({"limit": 1000, "count": 51}, "count must be between 1 and a twentieth of the limit, 50"),
    ],
)
def test_settings_that_cannot_be_right_are_named(settings, message):
    with pytest.raises(BadValue, match=message):
        NumbersKind(**settings)


def test_without_the_library_of_words_the_way_to_get_exactly_that_version_is_told(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "num2words", None)
    with pytest.raises(BadInput, match=r"pip install num2words==0\.5\.14"):
        spell(1, "en")
    assert spell(12, "digits") == "12"


def test_an_answer_counts_only_if_it_is_right_to_the_letter():
    task = SMALL.task(Tokenizer.bytes(), TrainConfig(length=128))
    found = task.score("uniform", ["one", "two ", "three", "four"], ["one", "two", "three", "fuor"])
    assert found["exact match uniform"].value == 0.5
    assert found["exact match uniform"].count == 4
    assert torch.tensor(found["exact match uniform"].low) < 0.5
