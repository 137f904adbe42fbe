"""Forgetting attention: the paper's sum written out, another library's gates, and a memory that is never longer than a
text."""

import pytest
import torch

import gnomon as gn
from gnomon.attention import Content, MultiHeadAttention, attend
from gnomon.positions.fox import FoX, running_sum


def by_hand(x, q, k, v, weight, shift):
    """Equations 4 to 6 for one head, pair by pair."""
    T, C = q.shape
    f = torch.sigmoid(x @ weight + shift)
    out = torch.zeros(T, C)
    for i in range(T):
        scores = [q[i] @ k[j] / C**0.5 + sum(torch.log(f[n]) for n in range(j + 1, i + 1)) for j in range(i + 1)]
        out[i] = torch.stack(scores).softmax(0) @ v[: i + 1]
    return out


def drawn(T, heads=2, width=6):
    torch.manual_seed(0)
    return torch.randn(1, T, width), *torch.randn(3, 1, heads, T, 4)


def test_it_is_the_papers_sum():
    fox, (x, q, k, v) = FoX(6, 4, 2, start=1.0, std=0.5), drawn(7)
    tables, at = fox.of_layer(None, 0), gn.Layout.dense(1, 7)
    state = fox.state(x, tables, at)
    got = attend(q, k, v, fox, at, at, content=Content(tables, state, state))
    want = [by_hand(x[0], q[0, h], k[0, h], v[0, h], fox.weight[0, h], fox.shift[0, h]) for h in range(2)]
    torch.testing.assert_close(got[0], torch.stack(want), atol=1e-5, rtol=1e-5)


@pytest.mark.slow  # imports a library
def test_gates_are_those_of_x_transformers():
    theirs = pytest.importorskip("x_transformers.x_transformers").DataDependentAlibi(6, 2)
    fox, (x, *_) = FoX(6, 4, 2), drawn(9)
    with torch.no_grad():
        linear = theirs.to_forget_gates[0]
        fox.weight[0], fox.shift[0] = linear.weight, linear.bias
        state = fox.state(x, fox.of_layer(None, 0), gn.Layout.dense(1, 9))
    torch.testing.assert_close((state - state.mT).float().tril(), theirs(x).tril(), atol=1e-5, rtol=1e-5)


def test_constant_gates_are_alibi():
    """w = 0 and b with log sigmoid(b) = -m: a penalty of m a token."""
    alibi, at = gn.positions.get("alibi").build(n_heads=2), gn.Layout.dense(1, 6)
    m = torch.tensor(alibi.slopes())
    fox, (x, q, k, v) = FoX(6, 4, 2, std=0.0), drawn(6)
    with torch.no_grad():
        fox.shift[0] = -torch.log(torch.expm1(m))
    state = fox.state(x, fox.of_layer(None, 0), at)
    got = attend(q, k, v, fox, at, at, content=Content(fox.of_layer(None, 0), state, state))
    torch.testing.assert_close(got, attend(q, k, v, alibi, at, at), atol=1e-5, rtol=1e-5)


def test_running_sums_begin_anew_in_every_document_whatever_the_order_in_memory():
    at, x = gn.Layout.packed([[2, 3, 1], [4]]), torch.arange(1.0, 13).view(2, 1, 6)
    sums = running_sum(x.masked_fill(~at.real[:, None], 0), at)[:, 0]
    assert sums.tolist() == [[1, 3, 3, 7, 12, 6], [7, 15, 24, 34, 0, 0]]
    order = torch.tensor([[5, 0, 3, 2, 1, 4]]).expand(2, 6)
    mixed = running_sum(x.gather(2, order[:, None]), at.slots(order))
    assert torch.equal(mixed[:1], running_sum(x, at)[:1].gather(2, order[:1, None]))


def test_what_lies_before_both_tokens_cancels_however_long_it_is():
    """After 200 000 halvings a running sum is -139 000, where float32 steps by 0.016."""
    fox, x = FoX(4, 4, 1), torch.zeros(1, 200_003, 4)
    with torch.no_grad():
        state = fox.state(x, fox.of_layer(None, 0), gn.Layout.dense(1, 200_003))[0, 0, :, 0]
    assert float(state[-3] - state[-1]) == pytest.approx(2 * torch.log(torch.tensor(2.0)).item(), abs=1e-6)


def test_a_token_that_is_gone_from_the_cache_still_counts():
    """First tokens that stay visible are forgotten by what a rolling cache has dropped."""
    model = gn.DecoderOnly(20, 16, 2, 2, position="fox", window=3, sink_tokens=1, init_std=0.4).eval()
    ids, cache = torch.randint(20, (2, 12)), model.cache("rolling")
    with torch.no_grad():
        steps = torch.cat([model(ids[:, t : t + 1], cache=cache) for t in range(12)], 1)
        torch.testing.assert_close(steps, model(ids), atol=1e-4, rtol=1e-4)


def test_a_plan_counts_what_it_keeps_of_a_token():
    model = gn.DecoderOnly(20, 16, 2, 2, position="fox")
    cache = model.cache()
    model(torch.zeros(1, 5, dtype=torch.long), cache=cache)
    held = [x for store in (cache.k, cache.v, cache.state) for x in store.values()]
    planned = gn.plan(model.config)
    assert planned.numbers_per_token == sum(x.numel() for x in held) / 5
    assert planned.cache_bytes(5) == sum(x.numel() * x.element_size() for x in held)


def test_alone_it_says_that_it_needs_the_tokens():
    q, fox = torch.randn(1, 2, 3, 4), FoX(6, 4, 2)
    with pytest.raises(gn.BadValue, match="fox forgets by the vectors of tokens"):
        attend(q, q, q, fox)
    assert MultiHeadAttention(6, 2, d_head=4)(torch.randn(1, 3, 6), fox).shape == (1, 3, 6)
