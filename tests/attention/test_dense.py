"""What attention means: numbers small enough to work out by hand, and torch as a second opinion."""

import math

import pytest
import torch
from torch.nn import functional as F

from gnomon import BadValue, Layout
from gnomon.attention import KERNELS, AttentionSettings, attend, dense, masked_softmax, weights
from gnomon.layout import visible
from gnomon.positions import get

NONE = get("none").build()
ON_CPU = sorted(set(KERNELS) - {"flex"})  # FlexAttention without a GPU: test_kernels.py


def values(*rows: list[float]) -> torch.Tensor:
    """(1, heads, S, 1) from the numbers of each head."""
    return torch.tensor(rows).view(1, len(rows), -1, 1)


def means(v: torch.Tensor, at: Layout, k_at: Layout, n_heads: int = 1, **how) -> list[list[float]]:
    """With queries of 0 all scores are equal, so each output is the mean of the values that are seen."""
    q, k = torch.zeros(1, n_heads, at.shape[1], 1), torch.zeros_like(v)
    return attend(q, k, v, NONE, at, k_at, **how)[0, :, :, 0].tolist()


@pytest.mark.parametrize("kernel", [None, "dense", "causal", "toeplitz", "blocked", "content"])
def test_a_causal_query_averages_what_came_before_it(kernel):
    at = Layout.dense(1, 3)
    assert means(values([1.0, 2.0, 3.0]), at, at, kernel=kernel) == [[1.0, 1.5, 2.0]]


@pytest.mark.parametrize("kernel", [None, "dense", "toeplitz", "blocked", "content"])
def test_new_tokens_see_the_whole_past_not_its_beginning(kernel):
    """Three held tokens and two new ones: the means of 1..4 and of 1..5. A triangle from the top left gives 1, 1.5."""
    at = Layout.dense(1, 5)
    assert means(values([1.0, 2.0, 3.0, 4.0, 5.0]), at.tokens(slice(3, None)), at, kernel=kernel) == [[2.5, 3.0]]


@pytest.mark.parametrize("kernel", [None, "dense", "toeplitz", "blocked", "content"])
def test_queries_older_than_every_key_get_0(kernel):
    at = Layout.dense(1, 5)
    got = means(values([1.0, 2.0]), at, at.tokens(slice(3, None)), kernel=kernel)
    assert got == [[0.0, 0.0, 0.0, 1.0, 1.5]]


@pytest.mark.parametrize("kernel", [None, "dense", "plain", "toeplitz", "blocked", "content"])
def test_neighbouring_query_heads_share_a_key_value_head(kernel):
    """Two key/value heads for four query heads serve a, a, b, b."""
    at = Layout.dense(1, 1)
    got = means(values([1.0], [2.0]), at, at, n_heads=4, causal=False, kernel=kernel)
    assert got == [[1.0], [1.0], [2.0], [2.0]]


@pytest.mark.parametrize("kernel", [None, "dense", "blocked", "content"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16])
def test_a_query_that_sees_nothing_gets_0_and_sends_no_gradient(kernel, dtype):
    """The second row must be [0, 0]: not NaN, and not [2, 3], the mean of what is masked."""
    at = Layout.packed([[2]])
    blind = Layout(at.pos, at.step, torch.tensor([[0, 5]]), at.length, "packed")
    q, k = torch.randn(2, 1, 1, 2, 2, dtype=dtype)
    v = torch.tensor([[[[1.0, 2.0], [3.0, 4.0]]]], dtype=dtype)
    q, k, v = (x.requires_grad_() for x in (q, k, v))
    out = attend(q, k, v, NONE, blind, at, causal=False, kernel=kernel)
    assert out.dtype == dtype
    assert out[0, 0, 1].tolist() == [0.0, 0.0]
    assert out[0, 0, 0].tolist() != [0.0, 0.0]
    out.sum().backward()
    assert all(x.grad.isfinite().all() for x in (q, k, v))
    assert q.grad[0, 0, 1].tolist() == [0.0, 0.0]


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("window", [None, 3])
def test_dense_is_what_torch_computes_from_the_mask(causal, window):
    """Softmax(q . k / sqrt(C)) . v over what is visible."""
    torch.manual_seed(0)
    at = Layout.packed([[4, 3], [2, 3]])
    q, k, v = torch.randn(3, 2, 4, 7, 8)
    mask = visible(at, at, causal, window)
    want = F.scaled_dot_product_attention(q, k, v, attn_mask=mask).masked_fill(~mask.any(-1, keepdim=True), 0.0)
    got = dense(q, k, v, NONE, at, at, AttentionSettings(causal=causal, window=window, scale=8**-0.5))
    assert torch.allclose(got, want, atol=1e-6)


def test_the_bias_is_added_after_the_scale():
    alibi = get("alibi").build(n_heads=1)
    at = Layout.dense(1, 2)
    q = k = torch.ones(1, 1, 2, 4)
    p = weights(q, k, alibi, at, at, AttentionSettings(scale=0.25))  # scores 4 x 0.25 = 1, the bias of one step -2^-8
    a, b = math.exp(1 - 2**-8), math.exp(1)
    assert p[0, 0, 1].tolist() == pytest.approx([a / (a + b), b / (a + b)], abs=1e-7)


def test_weights_add_up_to_1_where_something_is_seen():
    at = Layout.padded(torch.tensor([[0, 1, 1, 1]]))
    q, k = torch.randn(2, 1, 2, 4, 8)
    p = weights(q, k, NONE, at, at, AttentionSettings(scale=1.0))
    assert p.sum(-1)[0, 0].tolist() == pytest.approx([0.0, 1.0, 1.0, 1.0], abs=1e-6)
    assert (p[..., 0] == 0).all()


def test_a_softmax_over_huge_scores_stays_finite():
    s, ok = torch.tensor([[1e30, 1e30, -1e30], [0.0, 0.0, 0.0]]), torch.tensor([[True, True, True], [False] * 3])
    assert masked_softmax(s, ok).tolist() == [[0.5, 0.5, 0.0], [0.0, 0.0, 0.0]]


def test_dropout_drops_weights_and_keeps_their_mean():
    torch.manual_seed(0)
    at = Layout.dense(1, 400)
    q, k, v = torch.zeros(1, 1, 400, 1), torch.zeros(1, 1, 400, 1), torch.ones(1, 1, 400, 1)
    outs = [attend(q, k, v, NONE, at, at, causal=False, dropout=0.5, kernel=kernel) for kernel in (None, "dense")]
    for out in outs:
        assert out.mean().item() == pytest.approx(1.0, abs=0.02)
        assert 0.02 < out.std().item() < 0.1  # sqrt(1 / 400)


def test_an_unknown_kernel_is_an_error_that_names_the_nearest():
    at = Layout.dense(1, 1)
    with pytest.raises(BadValue, match="did you mean 'toeplitz'"):
        attend(*torch.zeros(3, 1, 1, 1, 1), NONE, at, at, kernel="toplitz")


@pytest.mark.parametrize("kernel", [None, *ON_CPU])
def test_tensors_that_do_not_fit_together_are_refused(kernel):
    """Tokens without a place, and heads that cannot be shared."""
    short, x = Layout.dense(1, 3), torch.zeros(1, 4, 4, 2)
    with pytest.raises(BadValue, match=r"\(4, 4, 4\) tokens long, but their layouts place \(3, 3, 3\)"):
        attend(x, x, x, NONE, short, short, kernel=kernel)
    at, three = Layout.dense(1, 4), torch.zeros(1, 3, 4, 2)
    with pytest.raises(BadValue, match="4 query heads cannot share 3 of keys and 3 of values"):
        attend(x, three, three, NONE, at, at, kernel=kernel)


def test_half_precision_comes_back_in_half_precision():
    at = Layout.padded(torch.tensor([[0, 1, 1]]))
    for name in ("none", "alibi"):
        position = get(name).build(n_heads=2)
        for dtype in (torch.float16, torch.bfloat16):
            q, k, v = torch.randn(3, 1, 2, 3, 4).to(dtype)
            outs = [attend(q, k, v, position, at, at, kernel=kernel) for kernel in ("dense", "blocked")]
            assert [out.dtype for out in outs] == [dtype] * 2
            assert (outs[0].float() - outs[1].float()).abs().max() < 2e-2


def test_every_kernel_that_runs_here_is_tried_somewhere_above():
    assert ON_CPU == ["blocked", "causal", "content", "dense", "ordered", "plain", "toeplitz"]
