"""xPos: the published rotation and decay, written out; far positions and long texts without overflow."""

import numpy as np
import pytest
import torch

import gnomon as gn
from gnomon import Layout
from gnomon.attention import watch
from gnomon.positions.xpos import XPos

x_transformers = pytest.importorskip("x_transformers.x_transformers")

FAR = [0, 1, 3, 511, 5000, 40_000, 65_535, 131_071]


def published(q, k, m, n, scale_base=512.0, base=10_000.0, pairing="half"):
    """(H, T, S) in plain numpy, pair by pair: zeta^((m - n)/B) times the real part of q e^(im theta) conj(k e^(in
    theta)); 0 where n > m."""
    d, total = q.shape[-1], 0.0
    gap = (m[:, None] - n[None]).astype(np.float64)
    for i in range(d // 2):
        a, b = (i, i + d // 2) if pairing == "half" else (2 * i, 2 * i + 1)
        zeta, theta = (2 * i / d + 0.4) / 1.4, base ** (-2 * i / d)
        zq, zk = q[..., a] + 1j * q[..., b], k[..., a] + 1j * k[..., b]
        turned = zq[:, :, None] * np.conj(zk)[:, None] * np.exp(1j * gap * theta)
        total = total + turned.real * zeta ** (np.maximum(gap, 0) / scale_base)
    return np.where(gap >= 0, total, 0.0)


def scores(xpos, q, k, at, k_at):
    """(H, T, S), of keys behind their query; parts of the queries one after another, as attention reads them."""
    tables = xpos.prepare_for(at, k_at, q.dtype)
    turned, held = xpos.query(q, tables), xpos.key(k, xpos.prepare(k_at, q.dtype))
    s = torch.cat([turned[:, :, part] @ keys.mT for part, keys in xpos.read(held, tables)], 2)
    return torch.where(at.mask(k_at), s, 0.0)[0]


@pytest.mark.parametrize(
    ("pairing", "scale_base", "dtype", "slack"),
    [("half", 512.0, torch.float64, 1e-9), ("interleaved", 40.0, torch.float64, 1e-9), ("half", 512.0, None, 2e-5)],
)
def test_scores_are_the_papers_formula_however_far(pairing, scale_base, dtype, slack):
    q, k = torch.randn(2, 1, 2, len(FAR), 16, dtype=dtype or torch.float32)
    at = Layout.placed(FAR)
    got = scores(XPos(16, scale_base, pairing=pairing), q, k, at, at)
    place = np.array(FAR)
    want = published(q[0].double().numpy(), k[0].double().numpy(), place, place, scale_base, pairing=pairing)
    np.testing.assert_allclose(got.double().numpy(), want, atol=slack)


def test_it_is_what_x_transformers_computes():
    q, k = torch.randn(2, 1, 2, 30, 16)
    theirs = x_transformers.RotaryEmbedding(16, use_xpos=True, scale_base=64)
    freqs, scale = theirs.forward_from_seq_len(30)
    want = (
        x_transformers.apply_rotary_pos_emb(q, freqs, scale)
        @ x_transformers.apply_rotary_pos_emb(k, freqs, 1 / scale).mT
    )
    got_q, got_k = XPos(16, scale_base=64.0, pairing="interleaved").apply(q, k)
    torch.testing.assert_close((got_q @ got_k.mT).tril(), want.tril(), atol=1e-5, rtol=1e-5)


def test_a_text_of_65536_tokens_is_read_without_overflow_like_its_parts():
    """Keys of all places, queries here and there; in one call in parts, and one query at a time."""
    xpos, n = XPos(4), 65_536
    k_at = Layout.dense(1, n)
    k, q = torch.randn(1, 1, n, 4), torch.randn(1, 1, n, 4)
    tables = xpos.prepare_for(k_at, k_at)
    turned, held = xpos.query(q, tables), xpos.key(k, tables)
    assert turned.isfinite().all()
    parts = list(xpos.read(held, tables))
    assert len(parts) == 4
    for t in (0, 16_383, 16_384, 40_000, n - 1):
        keys = next(keys for part, keys in parts if part.start <= t < part.stop)
        assert keys.isfinite().all()
        one = scores(xpos, q[:, :, t : t + 1], k, k_at.tokens(slice(t, t + 1)), k_at)
        torch.testing.assert_close(turned[0, :, t] @ keys[0, :, : t + 1].mT, one[:, :, : t + 1], atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize(
    ("at", "parts"),
    [
        (Layout.dense(1, 8), 1),
        (Layout.dense(1, 20), 3),
        (Layout.padded(torch.tensor([[0, 0, 1, 1, 1, 1]])), 1),
        (Layout.packed([[7, 1]]), 1),
        (Layout.placed([0, 1, 100, 101]), 2),
        (Layout.placed([0, 9, 18, 27]), 4),
    ],
)
def test_queries_are_read_in_as_few_parts_as_they_span(at, parts):
    """Eight tokens at once. Those of a dense layout are counted; elsewhere their positions decide."""
    xpos = XPos(4, scale_base=0.25)
    k = torch.randn(1, 1, at.shape[1], 4)
    assert len(list(xpos.read(k, xpos.prepare(at)))) == parts


def test_many_parts_are_one_computation_forward_and_backward():
    attention, x = gn.MultiHeadAttention(8, 2), torch.randn(1, 21, 8, dtype=torch.float64)
    attention.double()
    found = []
    for reach in (8, 64):
        xpos = XPos(4, scale_base=0.25)
        xpos._reach = lambda *given, reach=reach: reach
        x = x.detach().requires_grad_()
        trace = gn.Trace()
        y = attention(x, xpos, trace=trace)
        y.square().sum().backward()
        found.append((y, x.grad, trace.attention[0]))
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other)


def test_half_precision_holds_what_is_read_at_once():
    """In float16 a factor of e^20 would be infinite, so fewer tokens are read at once."""
    xpos, at = XPos(8), Layout.dense(1, 5000)
    q = torch.randn(1, 1, 5000, 8)
    for dtype, parts in ((torch.float16, 2), (torch.bfloat16, 1)):
        tables = xpos.prepare_for(at, at, dtype)
        read = list(xpos.read(xpos.key(q.to(dtype), tables), tables))
        assert len(read) == parts
        assert all(keys.isfinite().all() for _, keys in read)
        assert xpos.query(q.to(dtype), tables).dtype == dtype
    with torch.autocast("cpu", torch.float16):
        assert len(list(xpos.read(q, xpos.prepare_for(at, at)))) == 2


def test_a_cache_holds_keys_of_the_heads_own_width_and_the_plain_kernel_runs():
    model = gn.DecoderOnly(11, 16, 1, 2, position="xpos").eval()
    cache, ids = model.cache(), torch.randint(11, (1, 9))
    with torch.no_grad(), watch() as ran:
        model(ids, cache=cache)
    assert ran == ["causal"]
    assert cache.k[0].shape == (1, 2, 9, 8)


def test_an_encoder_refuses_it():
    with pytest.raises(gn.BadValue, match="xpos is for causal attention only"):
        gn.EncoderOnly(11, 16, 1, 2, position="xpos")


def test_it_says_how_far_its_pairs_reach():
    assert "after 1\u202f882 tokens in the fastest pair" in XPos(64).describe()[1]
    assert XPos(8).describe(4096)[-1].startswith("Twice the length: 3 of 4 pairs")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"scale_base": 0.0}, "scale_base is the number of tokens"),
        ({"scale_base": "far"}, "scale_base must be a number"),
        ({"base": -1.0}, "must be above 0"),
    ],
)
def test_a_mistake_is_named_where_it_is_chosen(options, message):
    with pytest.raises(gn.BadValue, match=message):
        gn.positions.get("xpos", **options)
    with pytest.raises(gn.BadValue, match=message):
        XPos(8, **options)
