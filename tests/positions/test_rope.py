"""Rotary positions: published values, both pairings, partial rotation, parity with other implementations."""

import pytest
import torch

import gnomon as gn
from gnomon.positions import RoPE, pairing_order

X = torch.tensor([1.0, 2.0, 3.0, 4.0])


def at(*positions):
    return gn.Layout.from_hf(position_ids=torch.tensor([positions]))


def turned(rope, x, *positions):
    """x (C,) rotated at each of the positions, (T, C)."""
    return rope(x.expand(1, 1, len(positions), -1), at(*positions))[0, 0]


@pytest.mark.parametrize(
    ("pairing", "position", "want"),
    [  # published, and the same for the other pairing, worked out from eq. 15 in float64
        ("interleaved", 1, [-1.14263966, 1.92207551, 2.95985067, 4.02979950]),
        ("interleaved", 5, [2.20151073, -0.39159990, 2.79633410, 4.14493855]),
        ("half", 5, [3.16043501, 1.79758384, -0.10793772, 4.09495938]),
        ("half", 0, [1.0, 2.0, 3.0, 4.0]),
    ],
)
def test_one_vector_is_turned_as_published(pairing, position, want):
    torch.testing.assert_close(turned(RoPE(4, pairing=pairing), X, position)[0], torch.tensor(want), atol=1e-6, rtol=0)


def test_a_rotation_is_absolute_and_only_scores_are_relative():
    """(R_m q) . (R_n k) depends on m - n alone (eq. 16), though R_m q itself moves away from q."""
    q, k = torch.randn(2, 64, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    rope = RoPE(64)
    scores = {
        (m, n): float(turned(rope, q, m)[0] @ turned(rope, k, n)[0]) for m, n in [(3, 1), (103, 101), (9000, 8998)]
    }
    assert max(scores.values()) - min(scores.values()) < 1e-11
    assert abs(float(turned(rope, q, 3)[0] @ turned(rope, k, 2)[0]) - scores[3, 1]) > 1e-3
    assert (turned(rope, q, 7)[0] - q).norm() > 0.5 * q.norm()


def test_rotation_keeps_the_norm():
    x = torch.randn(2, 3, 50, 32, dtype=torch.float64)
    torch.testing.assert_close(RoPE(32)(x).norm(dim=-1), x.norm(dim=-1), rtol=1e-13, atol=0)


@pytest.mark.parametrize("options", [{"rotary_dim": 8}, {"fraction": 0.25}])
def test_partial_rotation_turns_the_first_channels_and_passes_the_rest(options):
    """GPT-NeoX: a quarter of the head, with the exponents of the rotated width."""
    rope, x = RoPE(32, **options), torch.randn(1, 2, 9, 32)
    y = rope(x)
    assert torch.equal(y[..., 8:], x[..., 8:])
    torch.testing.assert_close(y[..., :8], RoPE(8)(x[..., :8]))


def test_both_pairings_are_one_function_up_to_an_order_of_channels():
    order = pairing_order(8, "half")
    assert order.tolist() == [0, 2, 4, 6, 1, 3, 5, 7]
    assert pairing_order(8, "interleaved").tolist() == [0, 4, 1, 5, 2, 6, 3, 7]
    x = torch.randn(1, 1, 11, 8, dtype=torch.float64)
    torch.testing.assert_close(RoPE(8, pairing="half")(x[..., order]), RoPE(8, pairing="interleaved")(x)[..., order])


@pytest.mark.parametrize("d", [4, 8, 10])
def test_the_two_orders_undo_each_other(d):
    """They differ from d = 6 on: using one of them both ways would be seen."""
    there, back = pairing_order(d, "half"), pairing_order(d, "interleaved")
    assert there[back].tolist() == list(range(d))
    assert (there.tolist() == back.tolist()) == (d == 4)


def test_rows_are_reordered_within_each_key_value_head():
    """4 query heads, 2 key/value heads of width 8: K has 16 rows, two blocks of 8."""
    want = [0, 4, 1, 5, 2, 6, 3, 7, 8, 12, 9, 13, 10, 14, 11, 15]
    assert pairing_order(8, "interleaved", heads=2).tolist() == want


def test_reordered_projections_give_the_same_scores():
    """Weights trained for one pairing run in the other after their rows are reordered, queries and keys alike."""
    H, C, D = 2, 8, 16
    wq, wk = torch.randn(2, H * C, D, dtype=torch.float64)
    x = torch.randn(1, 6, D, dtype=torch.float64)
    order = pairing_order(C, "half", H)

    def scores(wq, wk, pairing):
        q, k = ((x @ w.T).view(1, 6, H, C).transpose(1, 2) for w in (wq, wk))
        q, k = RoPE(C, pairing=pairing).apply(q, k)
        return q @ k.transpose(-1, -2)

    torch.testing.assert_close(scores(wq, wk, "interleaved"), scores(wq[order], wk[order], "half"))
    assert (scores(wq, wk, "interleaved") - scores(wq, wk, "half")).abs().max() > 0.1


@pytest.mark.parametrize("shape", [(5,), (1, 5), (2, 5)])
def test_apply_serves_ones_own_attention(shape):
    """`rope.apply(q, k, position_ids)`: ids for all rows or for each; keys may have fewer heads than queries."""
    q, k = torch.randn(2, 4, 5, 16), torch.randn(2, 1, 5, 16)
    ids = (torch.arange(10).view(2, 5) * 7)[: shape[0] if len(shape) == 2 else 1].reshape(shape)
    got_q, got_k = RoPE(16).apply(q, k, ids)
    where = gn.Layout.from_hf(position_ids=ids.expand(2, 5))
    torch.testing.assert_close(got_q, RoPE(16)(q, where))
    torch.testing.assert_close(got_k, RoPE(16)(k, where))


def test_apply_without_ids_counts_from_zero_and_still_is_torchs_apply():
    rope, q = RoPE(8), torch.randn(1, 1, 3, 8)
    torch.testing.assert_close(rope.apply(q, q)[0], rope(q))
    visited = []
    torch.nn.Sequential(rope).apply(lambda module: visited.append(type(module).__name__))
    assert visited == ["RoPE", "Sequential"]


def test_rotation_is_per_head_so_every_head_sees_every_frequency():
    """Rotating d_model before splitting would give each head a band of its own."""
    heads = torch.ones(1, 4, 9, 16)
    y = RoPE(16)(heads)
    assert torch.equal(y[:, 0], y[:, 3])


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_what_comes_in_goes_out_in_its_own_dtype(dtype):
    q = torch.randn(1, 1, 3, 8).to(dtype)
    assert RoPE(8)(q).dtype == dtype
    assert all(x.dtype == dtype for x in RoPE(8).apply(q, q))


@pytest.mark.parametrize(("dtype", "ulp"), [(torch.float16, 5e-4), (torch.bfloat16, 4e-3)])
def test_half_precision_is_rounded_once_at_the_end(dtype, ulp):
    """Unit vectors read the tables: cos 1044.26784088 = 0.30669281 for pair 1 of 16 at position 1857, and its sine.

    Angles in half precision would be 1045 there, whose cosine is -0.41.
    """
    rope = RoPE(32).to(dtype)
    unit = torch.zeros(32, dtype=dtype)
    unit[1] = 1
    y = turned(rope, unit, 1857)[0]
    assert float(y[1]) == pytest.approx(0.30669281, abs=ulp)
    assert float(y[17]) == pytest.approx(0.95180855, abs=ulp)


def test_it_is_the_rotation_of_llama_in_transformers():
    llama = pytest.importorskip("transformers.models.llama.modeling_llama")
    config = llama.LlamaConfig(
        hidden_size=64,
        num_attention_heads=2,
        num_key_value_heads=1,
        rope_parameters={"rope_type": "default", "rope_theta": 5e5},
    )
    q, k = torch.randn(2, 2, 7, 32), torch.randn(2, 1, 7, 32)
    ids = torch.tensor([[0, 1, 2, 3, 4, 5, 6], [40, 41, 3, 4, 900, 901, 2]])
    cos, sin = llama.LlamaRotaryEmbedding(config)(q, ids)
    want_q, want_k = llama.apply_rotary_pos_emb(q, k, cos, sin)
    got_q, got_k = RoPE(32, base=5e5).apply(q, k, ids)
    torch.testing.assert_close(got_q, want_q, atol=1e-4, rtol=0)  # theirs rounds angles to float32
    torch.testing.assert_close(got_k, want_k, atol=1e-4, rtol=0)


def test_it_is_the_partial_rotation_of_gpt_neox_in_transformers():
    neox = pytest.importorskip("transformers.models.gpt_neox.modeling_gpt_neox")
    q, k = torch.randn(1, 2, 9, 16), torch.randn(1, 2, 9, 16)
    config = neox.GPTNeoXConfig(
        hidden_size=32,
        num_attention_heads=2,
        rope_parameters={"rope_type": "default", "rope_theta": 10_000.0, "partial_rotary_factor": 0.25},
    )
    cos, sin = neox.GPTNeoXRotaryEmbedding(config)(q, torch.arange(9)[None])
    want_q, want_k = neox.apply_rotary_pos_emb(q, k, cos, sin)
    got_q, got_k = RoPE(16, fraction=0.25).apply(q, k)
    torch.testing.assert_close(got_q, want_q, atol=1e-5, rtol=0)
    torch.testing.assert_close(got_k, want_k, atol=1e-5, rtol=0)


def test_it_is_the_interleaved_rotation_of_x_transformers():
    x_transformers = pytest.importorskip("x_transformers.x_transformers")
    q = torch.randn(1, 2, 12, 16)
    freqs, _ = x_transformers.RotaryEmbedding(16)(torch.arange(12))
    want = x_transformers.apply_rotary_pos_emb(q, freqs)
    torch.testing.assert_close(RoPE(16, pairing="interleaved")(q), want, atol=1e-5, rtol=0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"d_head": 7}, "must be even and between 2 and d_head=7, got 7"),
        ({"d_head": 8, "rotary_dim": 3}, "must be even"),
        ({"d_head": 8, "rotary_dim": 10}, "between 2 and d_head=8, got 10"),
        ({"d_head": 8, "fraction": 0.1}, "got 0"),
        ({"d_head": 8, "fraction": 0.5, "rotary_dim": 4}, "not both"),
        ({"d_head": 8, "pairing": "halves"}, "unknown pairing 'halves': did you mean 'half'"),
    ],
)
def test_a_mistake_is_named(options, message):
    with pytest.raises(gn.BadValue, match=message):
        RoPE(**options)


def test_a_wrong_shape_is_named():
    with pytest.raises(gn.BadValue, match=r"takes \(batch, heads, tokens, d_head\), got shape \(1, 2, 8\)"):
        RoPE(8)(torch.zeros(1, 2, 8))
