"""Learned positions: rows of a table, and no row past it."""

import pytest
import torch

import gnomon as gn
from gnomon.positions import Learned


def test_a_position_is_a_row():
    table, at = Learned(8, 16), gn.Layout.packed([[2, 3]])
    torch.testing.assert_close(table(torch.zeros(1, 5, 8), at)[0], table.weight[[0, 1, 0, 1, 2]])


def test_its_parameters_are_rows_times_width():
    """2048 x 512 = 1 048 576."""
    with torch.device("meta"):
        assert sum(p.numel() for p in Learned(512, 2048).parameters()) == 1_048_576


def test_one_hundred_tokens_do_not_fit_into_64_rows():
    """The error names the rows, the first missing position and the last one asked for; nothing has changed."""
    model = gn.DecoderOnly.from_preset("mini-gpt", n_layers=1).eval()
    before = {name: x.clone() for name, x in model.state_dict().items()}
    with pytest.raises(gn.BadValue) as error:
        model(torch.zeros(1, 100, dtype=torch.long))
    for part in ("64 rows", "position 64 (first missing)", "99 (last asked)", "max_positions >= 100", "rope"):
        assert part in str(error.value)
    assert all(torch.equal(x, before[name]) for name, x in model.state_dict().items())
    assert model(torch.zeros(1, 64, dtype=torch.long)).shape == (1, 64, 512)


def test_past_the_end_with_a_cache_is_an_error_that_leaves_the_cache_as_it_was():
    model = gn.DecoderOnly(50, 16, 1, 2, position="learned", max_positions=4).eval()
    ids = torch.tensor([[1, 2, 3, 4, 5]])
    with torch.no_grad():
        cache = model.cache()
        model(ids[:, :3], cache=cache)
        with pytest.raises(gn.BadValue, match=r"4 rows .* position 4 \(first missing\) to 4"):
            model(ids[:, 3:], cache=cache)
        assert len(cache) == 3
        after = model(ids[:, 3:4], cache=cache)
        torch.testing.assert_close(after, model(ids[:, :4])[:, 3:])


def test_the_row_of_the_batch_that_reaches_too_far_is_named():
    at = gn.Layout.packed([[3], [2, 1], [9]])
    with pytest.raises(gn.BadValue, match="first in row 2 of 3"):
        Learned(4, 8).check(at)


@pytest.mark.parametrize(
    ("positions", "message"),
    [(torch.tensor([[0, -1]]), "positions start at 0, got -1"), (torch.tensor([[0.0, 0.5]]), "need whole positions")],
)
def test_positions_that_are_no_rows_are_refused(positions, message):
    with pytest.raises(gn.BadValue, match=message):
        Learned(4, 8)(torch.zeros(1, 2, 4), gn.Layout.from_hf(position_ids=positions))


def test_padding_may_carry_any_position():
    """Positions of padded slots are not asked for: they may lie past the table."""
    at = gn.Layout.from_hf(torch.tensor([[0, 0, 1, 1]]), torch.tensor([[99, -5, 0, 1]]))
    table = Learned(4, 2)
    torch.testing.assert_close(table(torch.zeros(1, 4, 4), at)[0, 2:], table.weight)


def test_growth_by_tiling_repeats_rows_bit_for_bit():
    table = Learned(3, 4)
    grown = table.grow(10, "tile")
    assert grown.max_positions == 10
    assert torch.equal(grown.weight, table.weight[torch.arange(10) % 4])


def test_growth_by_interpolation_stretches_and_keeps_both_ends():
    table = Learned(3, 4)
    grown = table.grow(7)
    assert torch.equal(grown.weight[0], table.weight[0])
    torch.testing.assert_close(grown.weight[::2], table.weight)
    torch.testing.assert_close(grown.weight[1::2], (table.weight[:-1] + table.weight[1:]) / 2)


@pytest.mark.parametrize("how", ["interpolate", "tile"])
def test_a_grown_table_is_a_copy_that_trains_apart(how):
    table = Learned(3, 4).to(torch.float64)
    before, grown = table.weight.clone(), table.grow(4, how)
    torch.testing.assert_close(grown.weight, before)
    assert grown.weight.dtype == torch.float64
    with torch.no_grad():
        grown.weight.zero_()
    assert torch.equal(table.weight, before)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Learned(4, 8).grow(7), "would lose some"),
        (lambda: Learned(4, 8).grow(9, "tiel"), "unknown way to grow 'tiel': did you mean 'tile'"),
        (lambda: Learned(4, 0), "max_positions >= 1"),
        (lambda: gn.positions.get("learned").build(d_model=4), "learned needs max_positions"),
    ],
)
def test_a_mistake_is_named(call, message):
    with pytest.raises(gn.BadValue, match=message):
        call()


def test_only_rows_in_use_get_a_gradient():
    table = Learned(3, 6)
    table(torch.zeros(1, 2, 3), gn.Layout.from_hf(position_ids=torch.tensor([[1, 4]]))).sum().backward()
    assert table.weight.grad.abs().sum(1).nonzero().flatten().tolist() == [1, 4]


def test_rows_before_that_of_position_0_are_never_read():
    """OPT, BART and RoBERTa keep two."""
    shifted, plain = Learned(8, 5, offset=2), Learned(8, 5)
    with torch.no_grad():
        plain.weight.copy_(shifted.weight[2:])
    at = gn.Layout.dense(1, 5)
    assert shifted.weight.shape == (7, 8)
    assert torch.equal(shifted.vectors(at), plain.vectors(at))
    with pytest.raises(gn.BadValue, match="hold 5 rows"):
        shifted.check(gn.Layout.dense(1, 6))
    grown = shifted.grow(9, "tile")
    assert torch.equal(grown.weight[:7], shifted.weight)
    assert torch.equal(grown.vectors(gn.Layout.dense(1, 9)), plain.grow(9, "tile").vectors(gn.Layout.dense(1, 9)))
    with pytest.raises(gn.BadValue, match="offset counts the rows"):
        Learned(8, 5, offset=-1)
