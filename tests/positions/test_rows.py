"""Vectors of distances: one product and a shift are the numbers taken one by one."""

import pytest
import torch

import gnomon as gn
from gnomon.attention import kernels
from gnomon.positions.rows import by_key, collect, gaps, skewed, spread, straight, take

SIZES = [(4, 4, 0), (3, 7, 0), (3, 7, 2), (2, 5, 4), (6, 6, 3)]


@pytest.mark.parametrize(("T", "S", "lag"), SIZES)
def test_a_shifted_product_is_the_number_taken_for_each_pair(T, S, lag):
    at = gn.Layout.dense(1, 20)
    q_at, k_at = at.tokens(slice(10 - T, 10)), at.tokens(slice(10 + lag - S, 10 + lag))
    gap, q, k = straight(q_at, k_at, lag), torch.randn(1, 2, T, 4), torch.randn(1, 2, S, 4)
    vectors, row = torch.randn(1, 2, 41, 4), gaps(q_at, k_at) + 20
    assert torch.equal(skewed((gap + 20).expand(1, 1, T, -1), S), row)
    want = take(q @ vectors.transpose(-1, -2), row)
    torch.testing.assert_close(skewed(q @ vectors[:, :, gap + 20].transpose(-1, -2), S), want)
    want = take(k @ vectors.transpose(-1, -2), row.transpose(-1, -2)).transpose(-1, -2)
    torch.testing.assert_close(by_key(k, vectors[:, :, gap + 20], T), want)
    p = torch.rand(1, 2, T, S)
    torch.testing.assert_close(collect(p, row, 41)[..., gap + 20], spread(p))
    assert torch.equal(skewed(spread(p), S), p)


def test_distances_are_known_only_where_positions_count_up_by_one():
    dense, placed = gn.Layout.dense(2, 5), gn.Layout.placed([0, 1, 2, 3, 9])
    assert straight(dense, dense, 0).tolist() == list(range(-4, 5))
    assert straight(placed, placed, 0) is straight(dense, dense, None) is None
    assert straight(dense.tokens(slice(-1, None)), dense, 0) is None


@pytest.mark.parametrize("name", ["shaw", "deberta", "transformer-xl", "cope", "fox"])
def test_blocks_of_queries_meet_no_key_ahead_of_them(name, monkeypatch):
    """Counted by the scores that are computed: for T queries in single rows T (T + 1) / 2 of them, not T T."""
    T, found = 12, []
    monkeypatch.setattr(kernels, "BLOCK", 1)
    model = gn.DecoderOnly(11, 8, 1, 2, position=name)
    position = model.stack.position_of(0)
    whole = type(position).scores

    def counted(self, q, k, tables, ok, scale):
        found.append((q.x.shape[2], k.x.shape[2]))
        return whole(self, q, k, tables, ok, scale)

    monkeypatch.setattr(type(position), "scores", counted)
    model(torch.zeros(1, T, dtype=torch.long))
    assert found == [(1, n + 1) for n in range(T)]


@pytest.mark.parametrize("name", ["shaw", "deberta", "transformer-xl", "cope", "fox"])
@pytest.mark.parametrize("rows", [1, 5, 12])
def test_a_prompt_and_a_chunk_after_it_are_what_single_tokens_are(name, rows, monkeypatch):
    """Blocks of several sizes, where queries are fewer than keys too; gradients as of one block."""
    torch.manual_seed(0)
    model, ids = gn.DecoderOnly(11, 8, 2, 2, position=name), torch.randint(11, (2, 12))
    want = model(ids)
    (want * torch.linspace(0, 1, 11)).sum().backward()
    grads = {n: p.grad.clone() for n, p in model.named_parameters() if p.grad is not None}
    model.zero_grad()
    monkeypatch.setattr(kernels, "BLOCK", 2 * 2 * 12 * rows)
    got = model(ids)
    torch.testing.assert_close(got, want, atol=1e-5, rtol=1e-5)
    (got * torch.linspace(0, 1, 11)).sum().backward()
    for n, grad in grads.items():
        torch.testing.assert_close(model.get_parameter(n).grad, grad, atol=2e-5, rtol=1e-4)
    cache = model.eval().cache()
    with torch.no_grad():
        parts = torch.cat([model(part, cache=cache) for part in ids.split([2, 6, 1, 3], 1)], 1)
    torch.testing.assert_close(parts, want, atol=1e-5, rtol=1e-5)
