"""Shaw's vectors: the paper's sums written out, one layer's vectors apart from another's, and what is far is one."""

import pytest
import torch

import gnomon as gn
from gnomon.attention import Content, attend, kernels
from gnomon.positions.rows import gaps
from gnomon.positions.shaw import Shaw


def by_hand(q, k, v, keys, values, K):
    """Equations 3 and 4 for one head, pair by pair, causal."""
    T, C = q.shape
    out = torch.zeros(T, C)
    for i in range(T):
        scores = torch.stack([q[i] @ (k[j] + keys[max(j - i, -K) + K]) / C**0.5 for j in range(i + 1)])
        for j, share in enumerate(scores.softmax(0)):
            out[i] += share * (v[j] + values[max(j - i, -K) + K])
    return out


@pytest.mark.parametrize("per_head", [False, True])
def test_it_is_the_papers_sum(per_head):
    torch.manual_seed(0)
    shaw = Shaw(4, 2, clip=3, per_head=per_head)
    q, k, v = torch.randn(3, 1, 2, 7, 4)
    got = attend(q, k, v, shaw)
    tables = [(shaw.keys[0, h * per_head], shaw.values_[0, h * per_head]) for h in range(2)]
    want = torch.stack([by_hand(q[0, h], k[0, h], v[0, h], *tables[h], 3) for h in range(2)])
    torch.testing.assert_close(got[0], want, atol=1e-5, rtol=1e-5)


def test_each_layer_has_vectors_of_its_own():
    """Layers 1 and 3 of four have Shaw's, so there are two of each, and each layer reads its own."""
    model = gn.DecoderOnly(11, 8, 4, 2, position=["shaw", "rope", "shaw", "rope"]).eval()
    shaw, ids = model.position_of(0), torch.randint(11, (1, 6))
    assert shaw is model.position_of(2)
    assert shaw.keys.shape == (2, 1, 33, 4)
    model(ids).square().sum().backward()
    assert all(float(shaw.keys.grad[n].abs().max()) > 0 for n in (0, 1))
    with torch.no_grad():
        before = model.hidden(ids)
        shaw.keys[1].zero_()
        assert not torch.equal(model.hidden(ids), before)


def test_without_vectors_of_values_only_scores_change():
    shaw = Shaw(4, 2, clip=2, values=False)
    assert [name for name, _ in shaw.named_parameters()] == ["keys"]
    q, k = torch.randn(2, 1, 2, 5, 4)
    ones = torch.ones(1, 2, 5, 4)
    torch.testing.assert_close(attend(q, k, ones, shaw), ones)


def test_what_is_farther_than_the_clip_is_one():
    at = gn.Layout.dense(1, 9)
    assert Shaw(4, 2, clip=2).row(gaps(at, at))[0, 0, 8].tolist() == [0, 0, 0, 0, 0, 0, 0, 1, 2]
    assert Shaw(4, 2, clip=2).row(gaps(at, at))[0, 0, 0].tolist() == [2, 3, 4, 4, 4, 4, 4, 4, 4]


def test_gradients_in_blocks_reach_the_vectors_as_in_one_piece(monkeypatch):
    """Through tables that were made outside, as a layer makes them."""
    found, (q, k, v) = [], torch.randn(3, 2, 2, 9, 4)
    shaw = Shaw(4, 2, clip=3)
    for block in (2**24, 2 * 2 * 3 * 9 * 2):
        monkeypatch.setattr(kernels, "BLOCK", block)
        shaw.zero_grad()
        made = Content(tuple(2 * table for table in shaw.of_layer(None, 0)))
        attend(q, k, v, shaw, content=made).square().sum().backward()
        found.append([p.grad.clone() for p in shaw.parameters()])
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other, atol=1e-5, rtol=1e-5)


def test_it_is_no_layer():
    with pytest.raises(gn.BadValue, match="shaw is no layer: it acts in attention"):
        Shaw(4, 2)(torch.zeros(1, 2, 3, 3))
