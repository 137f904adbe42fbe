"""Projections around attention: torch's own module as an oracle, sizes, and what is refused."""

import pytest
import torch
from torch import nn

from gnomon import BadValue, Layout, MultiHeadAttention, Trace
from gnomon.attention import GrowingCache, watch
from gnomon.positions import get

NONE = get("none").build()


def self_attention(module: MultiHeadAttention, x: torch.Tensor, at: Layout | None = None, **more) -> torch.Tensor:
    at = Layout.dense(*x.shape[:2]) if at is None else at
    return module(x, NONE, None, at, at, **more)


@pytest.mark.parametrize("causal", [True, False])
def test_it_is_torchs_multi_head_attention(causal):
    torch.manual_seed(0)
    ours, theirs = MultiHeadAttention(32, 4, causal=causal), nn.MultiheadAttention(32, 4, batch_first=True)
    with torch.no_grad():
        theirs.in_proj_weight.copy_(torch.cat([ours.q.weight, ours.k.weight, ours.v.weight]))
        theirs.in_proj_bias.copy_(torch.cat([ours.q.bias, ours.k.bias, ours.v.bias]))
        theirs.out_proj.load_state_dict(ours.out.state_dict())
    x = torch.randn(2, 7, 32)
    mask = nn.Transformer.generate_square_subsequent_mask(7) if causal else None
    want, weights = theirs(x, x, x, attn_mask=mask, need_weights=True, average_attn_weights=False)
    trace = Trace()
    assert torch.allclose(self_attention(ours, x, trace=trace), want, atol=1e-6)
    assert torch.allclose(trace.attention[0], weights, atol=1e-6)


def test_with_one_key_value_head_all_query_heads_share_it():
    module = MultiHeadAttention(32, 4, n_kv_heads=1)
    x = torch.randn(2, 5, 32)
    q, (k, v) = module.queries(x), module.keys_values(x)
    assert (q.shape, k.shape, v.shape) == ((2, 4, 5, 8), (2, 1, 5, 8), (2, 1, 5, 8))
    assert sum(p.numel() for p in module.parameters()) == 32 * 32 * 2 + 32 * 8 * 2 + 32 * 2 + 8 * 2
    assert self_attention(module, torch.randn(2, 5, 32)).shape == (2, 5, 32)


def test_a_head_may_have_any_width():
    module = MultiHeadAttention(30, 4, d_head=6, bias=False)
    assert self_attention(module, torch.randn(1, 3, 30)).shape == (1, 3, 30)
    assert module.q.weight.shape == (24, 30)
    assert module.q.bias is None


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ({"d_model": 30, "n_heads": 4}, "d_model=30 does not divide into n_heads=4"),
        ({"d_model": 32, "n_heads": 4, "n_kv_heads": 3}, "n_heads=4 must be a multiple of n_kv_heads=3"),
        ({"d_model": 32, "n_heads": 4, "n_kv_heads": 0}, "n_kv_heads must be a whole number between 1"),
        ({"d_model": 32, "n_heads": 0}, "n_heads must be a whole number between 1 and .* got 0"),
    ],
)
def test_sizes_that_do_not_fit_are_refused(sizes, message):
    with pytest.raises(BadValue, match=message):
        MultiHeadAttention(**sizes)


def test_the_scale_is_one_over_the_root_of_the_head_width_unless_given():
    """Queries and keys of ones: equal scores under any scale; with other keys the scale decides (T5 uses 1)."""
    torch.manual_seed(0)
    one, given = MultiHeadAttention(32, 4), MultiHeadAttention(32, 4, attention_scale=8**-0.5)
    unscaled = MultiHeadAttention(32, 4, attention_scale=1.0)
    for module in (given, unscaled):
        module.load_state_dict(one.state_dict())
    x = torch.randn(1, 6, 32)
    assert torch.equal(self_attention(one, x), self_attention(given, x))
    assert not torch.allclose(self_attention(one, x), self_attention(unscaled, x), atol=1e-3)


def test_the_weights_on_request_are_those_of_the_definition():
    """Per head, over padding and windows, and asking for them changes nothing."""
    module = MultiHeadAttention(32, 4, n_kv_heads=2, window=2).eval()
    at, x, trace = Layout.padded(torch.tensor([[0, 1, 1, 1]])), torch.randn(1, 4, 32), Trace()
    quiet, loud = self_attention(module, x, at), self_attention(module, x, at, trace=trace)
    p = trace.attention[0]
    assert torch.equal(quiet, loud)
    assert p.shape == (1, 4, 4, 4)
    assert not p.requires_grad
    assert (p > 0)[0, 0].int().tolist() == [[0, 0, 0, 0], [0, 1, 0, 0], [0, 1, 1, 0], [0, 0, 1, 1]]


def test_the_scores_on_request_are_what_the_softmax_reads():
    """-inf where a query may not look; a trace that asks for none gets none."""
    module = MultiHeadAttention(32, 4, n_kv_heads=2, window=2).eval()
    x, trace = torch.randn(1, 4, 32), Trace(scores=[])
    self_attention(module, x, trace=trace)
    torch.testing.assert_close(trace.scores[0].softmax(-1), trace.attention[0])
    assert torch.equal(trace.scores[0] == float("-inf"), trace.attention[0] == 0)
    assert Trace().scores is None


def test_dropout_acts_on_weights_in_training_only():
    module, x = MultiHeadAttention(32, 4, dropout=0.5), torch.randn(1, 6, 32)
    assert not torch.equal(self_attention(module, x), self_attention(module, x))
    module.eval()
    assert torch.equal(self_attention(module, x), self_attention(module, x))


def test_it_says_what_it_is():
    module = MultiHeadAttention(32, 4, n_kv_heads=2, window=3)
    assert "n_heads=4, n_kv_heads=2, d_head=8, causal=True, window=3" in repr(module)


def test_it_can_be_called_alone():
    """As torch's module can: positions 0..T-1, and no encoding unless one is given."""
    torch.manual_seed(0)
    module, x, at = MultiHeadAttention(32, 4), torch.randn(2, 5, 32), Layout.dense(2, 5)
    assert torch.equal(module(x), module(x, NONE, None, at, at))
    rope = get("rope").build(d_head=8)
    assert torch.equal(module(x, rope), module(x, rope, rope.prepare(at), at, at))
    assert not torch.allclose(module(x, rope), module(x), atol=1e-4)
    padded = Layout.padded([[0, 1, 1, 1, 1], [1, 1, 1, 1, 1]])
    assert torch.allclose(module(x, rope, at=padded)[0, 1:], module(x[:1, 1:], rope)[0], atol=1e-6)


def test_one_layout_of_one_row_still_takes_the_causal_kernel():
    module, x, at = MultiHeadAttention(32, 4), torch.randn(2, 5, 32), Layout.dense(1, 5)
    with watch() as ran:
        module(x, NONE, None, at, at)
    assert ran == ["causal"]


def test_a_norm_that_widens_under_autocast_leaves_queries_and_keys_narrow():
    class Wide(nn.Identity):
        def forward(self, x):
            return x.float()

    module = MultiHeadAttention(32, 4).bfloat16()
    module.q_norm = module.k_norm = Wide()
    assert module(torch.randn(2, 5, 32).bfloat16()).dtype == torch.bfloat16


def test_a_cache_needs_to_say_where_its_keys_sit():
    with pytest.raises(BadValue, match=r"k_at = cache\.extend\(at\)"):
        MultiHeadAttention(32, 4)(torch.randn(2, 5, 32), cache=GrowingCache())
