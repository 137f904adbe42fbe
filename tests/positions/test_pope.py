"""PoPE: the published scores, written out; what the cache holds, and the kernel that runs."""

import numpy as np
import pytest
import torch
from torch.nn import functional as F

import gnomon as gn
from gnomon import Layout
from gnomon.attention import watch
from gnomon.positions.pope import PoPE

x_transformers = pytest.importorskip("x_transformers.x_transformers")

PLACES = [0, 1, 3, 90, 257, 5000, 131_071]


def built(d_head=8, n_heads=2, **options):
    """With a delta as training leaves it."""
    pope = PoPE(d_head, n_heads, **options)
    torch.nn.init.uniform_(pope.delta, -6.0, 0.0)
    return pope


def published(q, k, pos, delta, base):
    """(H, T, S) in plain numpy, channel by channel."""
    total, d = 0.0, q.shape[-1]
    for c in range(d):
        lengths = np.log1p(np.exp(q[..., c]))[:, :, None] * np.log1p(np.exp(k[..., c]))[:, None]
        total = total + lengths * np.cos((pos[None] - pos[:, None]) * base ** (-c / d) + delta[:, c, None, None])
    return total


@pytest.mark.parametrize("base", [10_000.0, 100.0])
def test_scores_are_the_papers_formula_however_far(base):
    pope, (q, k) = built(base=base), torch.randn(2, 1, 2, len(PLACES), 8, dtype=torch.float64)
    turned_q, turned_k = pope.apply(q, k, PLACES)
    want = published(q[0].numpy(), k[0].numpy(), np.array(PLACES), pope.delta.detach().double().numpy(), base)
    np.testing.assert_allclose((turned_q @ turned_k.mT)[0].detach().numpy(), want, atol=1e-9)


def test_it_is_what_x_transformers_computes():
    pope, (q, k) = built(), torch.randn(2, 1, 2, 30, 8)
    theirs = x_transformers.PolarEmbedding(8, 2)
    theirs.learned_bias.data.copy_(pope.delta.detach()[:, None])
    freqs, bias = theirs(torch.arange(30))
    want = x_transformers.apply_polar_pos_emb(q, freqs) @ x_transformers.apply_polar_pos_emb(k, freqs + bias).mT
    turned_q, turned_k = pope.apply(q, k)
    torch.testing.assert_close(turned_q @ turned_k.mT, want, atol=1e-5, rtol=1e-5)


def test_a_cache_holds_lengths_of_the_heads_own_width():
    model = gn.DecoderOnly(11, 16, 1, 2, position="pope", n_kv_heads=1).eval()
    cache, ids = model.cache(), torch.randint(11, (1, 9))
    with torch.no_grad(), watch() as ran:
        model(ids, cache=cache)
    assert ran == ["causal"]
    assert cache.k[0].shape == (1, 1, 9, 8)
    assert (cache.k[0] > 0).all()


def test_delta_moves_where_a_head_looks_and_learns():
    """From 0 too, where the authors' clamp has an edge."""
    model = gn.DecoderOnly(11, 16, 1, 2, position="pope")
    model(torch.randint(11, (1, 9))).square().mean().backward()
    delta = model.position_of(0).delta
    assert not delta.any()
    assert delta.grad.abs().min() > 0


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("wider", ["queries", "values"])
def test_values_of_another_width_stay_in_the_fused_kernel(causal, wider):
    """torch would store the scores of all pairs: a counter of its calls shows which it takes."""
    narrow, wide = torch.randn(3, 1, 2, 9, 4), torch.randn(3, 1, 2, 9, 8)
    (q, k, _), v = (wide, narrow[2]) if wider == "queries" else (narrow, wide[2])
    out = gn.attend(q, k, v, causal=causal)
    mask = torch.ones(9, 9, dtype=torch.bool).tril() if causal else None
    torch.testing.assert_close(out, F.scaled_dot_product_attention(q, k, v, attn_mask=mask), atol=1e-5, rtol=1e-5)
    with torch.profiler.profile() as profile:
        gn.attend(q, k, v, causal=causal)
    ran = {event.key for event in profile.key_averages()}
    assert "aten::_scaled_dot_product_attention_math" not in ran
    assert out.shape == v.shape


def test_it_says_what_it_is_made_of():
    lines = PoPE(16, 2).describe(64)
    assert (
        lines[0] == "All 16 channels of a head turn, each at its own frequency, base 10\u202f000; delta is 0 at most."
    )
    assert lines[-1].startswith("Twice the length: ")


def test_another_number_of_heads_is_an_error():
    q = torch.randn(1, 4, 3, 8)
    with pytest.raises(gn.BadValue, match="built for 2 heads of width 8, got 4 of width 8"):
        PoPE(8, 2).apply(q, q)


@pytest.mark.parametrize(
    ("options", "message"), [({"base": -1.0}, "must be above 0"), ({"base": "ten"}, "base must be a number|above 0")]
)
def test_a_mistake_is_named_where_it_is_chosen(options, message):
    with pytest.raises(gn.BadValue, match=message):
        gn.positions.get("pope", **options)
    with pytest.raises(gn.BadValue, match=message):
        PoPE(8, 2, **options)
    with pytest.raises(gn.BadValue, match="n_heads must be at least 1, got 0"):
        PoPE(8, 0)


def test_positions_of_a_padded_batch_are_those_of_its_tokens():
    model = gn.DecoderOnly(11, 16, 2, 2, position="pope").eval()
    ids = torch.randint(11, (1, 5))
    padded = torch.cat([torch.zeros(1, 3, dtype=torch.long), ids], 1)
    with torch.no_grad():
        got = model(padded, Layout.padded(torch.tensor([[0, 0, 0, 1, 1, 1, 1, 1]])))
        torch.testing.assert_close(got[:, 3:], model(ids), atol=1e-5, rtol=1e-5)
