"""Transformer-XL: the paper's four terms written out, and XLNet's attention in the transformers library."""

import math

import pytest
import torch

import gnomon as gn
from gnomon.attention import attend
from gnomon.positions import frequencies, transformer_xl
from gnomon.positions.transformer_xl import TransformerXL


def sinusoid(r, D):
    theta = [10000 ** (-2 * n / D) for n in range(D // 2)]
    return torch.tensor([math.sin(r * t) for t in theta] + [math.cos(r * t) for t in theta])


def drawn(T=6):
    torch.manual_seed(0)
    return TransformerXL(8, 4, 2, std=0.5), *torch.randn(3, 1, 2, T, 4)


@pytest.mark.parametrize("causal", [True, False])
def test_it_is_the_papers_four_terms(causal):
    xl, q, k, v = drawn()
    W, u, g = xl.weight[0], xl.content[0, :, 0], xl.distance[0, :, 0]
    out = torch.zeros(2, 6, 4)
    for h in range(2):
        for i in range(6):
            seen = range(i + 1 if causal else 6)
            R = [W[h] @ sinusoid(i - j, 8) for j in seen]
            a, b = q[0, h, i], k[0, h]
            scores = [(a @ b[j] + a @ R[j] + u[h] @ b[j] + g[h] @ R[j]) / 2 for j in seen]
            out[h, i] = torch.stack(scores).softmax(0) @ v[0, h, : len(scores)]
    torch.testing.assert_close(attend(q, k, v, xl, causal=causal)[0], out, atol=1e-5, rtol=1e-5)


@pytest.mark.slow  # imports a library
def test_it_is_xlnets_attention():
    xlnet = pytest.importorskip("transformers.models.xlnet.modeling_xlnet")
    config = xlnet.XLNetConfig(vocab_size=11, d_model=8, n_layer=1, n_head=2, d_inner=8, dropout=0.0)
    theirs, (xl, q, k, v) = xlnet.XLNetModel(config).eval(), drawn()
    core = theirs.layer[0].rel_attn
    with torch.no_grad():
        for p in (core.r, core.r_w_bias, core.r_r_bias):
            p.normal_()
        xl.weight[0] = core.r.permute(1, 2, 0)
        xl.content[0, :, 0], xl.distance[0, :, 0] = core.r_w_bias, core.r_r_bias
        R = torch.einsum("ibh,hnd->ibnd", theirs.relative_positional_encoding(6, 6, bsz=1), core.r)
        want = core.rel_attn_core(*(x.permute(2, 0, 1, 3) for x in (q, k, v)), R)
        got = attend(q, k, v, xl, causal=False)
    torch.testing.assert_close(got.permute(2, 0, 1, 3), want, atol=1e-5, rtol=1e-5)


def test_positions_may_be_fractions_and_far_away():
    xl, q, k, v = drawn()
    half = gn.Layout.placed([100_000.5, 100_001, 100_001.5, 100_002, 100_002.5, 100_003])
    near = gn.Layout.placed([0.0, 0.5, 1.0, 1.5, 2.0, 2.5])
    torch.testing.assert_close(attend(q, k, v, xl, half, half), attend(q, k, v, xl, near, near), atol=1e-5, rtol=1e-5)
    assert not torch.allclose(attend(q, k, v, xl, half, half), attend(q, k, v, xl), atol=1e-3)


def test_sinusoids_of_keys_are_computed_once_for_all_layers(monkeypatch):
    counted = []
    monkeypatch.setattr(transformer_xl, "angles", lambda pos, f: counted.append(pos) or frequencies.angles(pos, f))
    model = gn.DecoderOnly(11, 8, 3, 2, position="transformer-xl")
    model(torch.zeros(1, 5, dtype=torch.long))
    assert len(counted) == 1  # of all distances, as there are as many queries as a head is wide
    model(torch.zeros(1, 3, dtype=torch.long))
    assert len(counted) == 1 + 1 + 3  # of few queries: keys once, queries in each layer
