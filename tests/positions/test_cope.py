"""CoPE: the paper's counts written out, the listing of its appendix, and a count that follows time and not memory."""

from dataclasses import replace

import pytest
import torch

import gnomon as gn
from gnomon.attention import attend
from gnomon.positions.base import Side
from gnomon.positions.cope import CoPE


def by_hand(q, k, e, P, scaled=True):
    """Equations 3 to 6 for one head: the scores of a causal triangle."""
    T, C = q.shape
    scores = torch.full((T, T), float("-inf"))
    for i in range(T):
        for j in range(i + 1):
            p = min(float(sum(torch.sigmoid(q[i] @ k[n] / C**0.5) for n in range(j, i + 1))), P - 1)
            low = int(p)
            mixed = (1 - (p - low)) * (q[i] @ e[low]) + (p - low) * (q[i] @ e[min(low + 1, P - 1)])
            scores[i, j] = (q[i] @ k[j] + mixed) / C**0.5 if scaled else q[i] @ k[j] / C**0.5 + mixed
    return scores


def drawn(P=4, **options):
    torch.manual_seed(0)
    cope = CoPE(4, 2, rows=P, **options)
    torch.nn.init.normal_(cope.weight)
    return cope, *torch.randn(3, 1, 2, 7, 4)


@pytest.mark.parametrize("scaled", [True, False])
def test_it_is_the_papers_sum(scaled):
    cope, q, k, v = drawn(scaled=scaled)
    want = [by_hand(q[0, h], k[0, h], cope.weight[0], 4, scaled).softmax(-1) @ v[0, h] for h in range(2)]
    torch.testing.assert_close(attend(q, k, v, cope)[0], torch.stack(want), atol=1e-5, rtol=1e-5)


@pytest.mark.slow  # imports a library
def test_without_the_scale_it_is_x_transformers():
    theirs = pytest.importorskip("x_transformers.x_transformers").CoPE(4, 2, 4)
    cope, q, k, v = drawn(scaled=False)
    with torch.no_grad():
        theirs.pos_emb.copy_(cope.weight[0])
        logits = (q @ k.mT / 2).masked_fill(torch.ones(7, 7).triu(1).bool(), -1e30)
        want = (logits + theirs(q, logits)).softmax(-1) @ v
    torch.testing.assert_close(attend(q, k, v, cope), want, atol=1e-5, rtol=1e-5)


def test_tokens_are_counted_in_time_whatever_their_order_in_memory():
    cope, q, k, v = drawn()
    order, at = torch.tensor([3, 0, 6, 1, 5, 2, 4]), gn.Layout.dense(1, 7)
    mixed = replace(at.slots(order[None]), kind="custom")
    got = attend(q, k[:, :, order], v[:, :, order], cope, at, mixed)
    torch.testing.assert_close(got, attend(q, k, v, cope, at, at), atol=1e-5, rtol=1e-5)


def test_gates_shut_count_nothing_and_gates_open_count_tokens():
    """With k far along q, sigmoid is 1 and p is the number of tokens from the key on, the query itself included."""
    cope, at, ok = CoPE(4, 1, rows=20), gn.Layout.dense(1, 5), gn.Layout.dense(1, 5).mask()
    q = torch.ones(1, 1, 5, 4)
    _, open_ = cope.counts(Side(q, at), Side(50 * q, at), ok, 0.5)
    assert open_[0, 0, 4].tolist() == [5, 4, 3, 2, 1]
    _, shut = cope.counts(Side(q, at), Side(-50 * q, at), ok, 0.5)
    assert shut.max() < 1e-20
