"""What an encoding says of itself is counted, not recited."""

import math

import pytest

import gnomon as gn

SIZES = {"d_model": 16, "d_head": 16, "n_heads": 4, "causal": True, "max_positions": 32}


def says(name, trained=None, **options):
    return " ".join(gn.positions.get(name, **options).build(**SIZES).describe(trained))


@pytest.mark.parametrize("name", gn.positions.names())
@pytest.mark.parametrize("trained", [None, 32])
def test_every_encoding_has_something_to_say(name, trained):
    lines = gn.positions.get(name).build(**SIZES).describe(trained)
    assert all(line.endswith(".") for line in lines)
    if trained:
        assert lines[-1].startswith("Twice the length: ") or "scaling" in lines[-1]


def test_pairs_that_never_complete_a_turn_are_counted():
    """Wavelengths of width 16, base 100: 2 pi 100^(i/8) = 6.3, 11, 20, 35, 63, 112, 199, 353."""
    waves = [2 * math.pi * 100 ** (i / 8) for i in range(8)]
    assert sum(wave <= 40 for wave in waves) == 4
    text = says("rope", 40, base=100.0)
    assert "4 of them complete a turn within 40 tokens; pairs 4 to 7 never do." in text
    assert "4 pairs turn to angles" in text
    assert "Every pair completes a turn" in says("rope", 400, base=100.0)
    assert "no new angle" in says("rope", 400, base=100.0)


def test_a_scaling_that_doubles_the_context_shows_no_pair_a_new_angle():
    assert "no new angle" in says("rope", 40, scaling={"kind": "linear", "factor": 2.0})
    half = says("rope", 40, scaling={"kind": "linear", "factor": 1.5})
    assert "no new angle" not in half
    assert "kind linear, factor 1.5" in half
    assert "by the length of each text" in says(
        "rope", scaling={"kind": "dynamic", "factor": 2.0, "original_length": 9}
    )


def test_a_learned_table_ends_where_it_ends():
    assert "A table of 32 trained rows of width 16." in says("learned")
    assert "position 32 has no row" in says("learned")
    assert "after 2 that nothing reads" in says("learned", offset=2)


def test_slopes_say_how_far_a_head_sees():
    """4 heads: slopes 1/4 to 1/256; ln 100 / slope tokens to a hundredth."""
    text = says("alibi", 100).replace("\N{NARROW NO-BREAK SPACE}", "")  # between thousands
    assert "4 slopes from 0.25 to 0.003906" in text
    assert f"after {math.log(100) * 4:.3g} tokens" in text
    assert f"{math.log(100) * 256:.4g} in the flattest" in text
    assert f"{200 / 256:.3g} logits down" in text


def test_buckets_say_what_they_tell_apart():
    text = says("t5", 500)
    assert "32 of the buckets looking back" in text
    assert "Distances below 16" in text
    assert "told apart no further" in text
    assert "seen only in part" in says("t5", 50)
    assert "16 of the buckets on either side" in says("t5", causal=False)
