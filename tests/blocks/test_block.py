"""A block is two residuals, one around attention and one around the feed-forward network."""

import pytest
import torch

import gnomon as gn
from gnomon.attention import MultiHeadAttention
from gnomon.blocks import Block, FeedForward, NoNorm, OneNormBlock, ParallelBlock, PreNorm, placement
from gnomon.positions import NoPE

AT = gn.Layout.dense(2, 5)


def block(where):
    around = placement(where)
    return Block(MultiHeadAttention(8, 2), FeedForward(8, 16), around(8), around(8))


def run(b, x, trace=None):
    return b(x, NoPE(), None, AT, AT, trace=trace)


@pytest.mark.parametrize("where", ["pre", "post"])
def test_it_reads_like_its_equations(where):
    """pre: x + attention(norm(x)), then x + ffn(norm(x)).  post: norm(x + attention(x)), then norm(x + ffn(x))."""
    b, x = block(where), torch.randn(2, 5, 8)
    n1, n2 = b.around_attention.norm, b.around_ffn.norm
    torch.nn.init.normal_(n1.weight)  # two norms, each with weights of its own
    torch.nn.init.normal_(n2.weight)

    def attention(y):
        return b.attention(y, NoPE(), None, AT, AT)

    if where == "pre":
        h = x + attention(n1(x))
        want = h + b.ffn(n2(h))
    else:
        h = n1(x + attention(x))
        want = n2(h + b.ffn(h))
    torch.testing.assert_close(run(b, x), want)


@pytest.mark.parametrize("where", ["pre", "sandwich"])
def test_parallel_sublayers_read_the_same_stream(where):
    """x + attention(norm(x)) + ffn(norm'(x))."""
    around = placement(where)
    b = ParallelBlock(MultiHeadAttention(8, 2), FeedForward(8, 16), around(8), around(8))
    x = torch.randn(2, 5, 8)
    seen = b.around_attention.branch(x, lambda y: b.attention(y, NoPE(), None, AT, AT))
    torch.testing.assert_close(run(b, x), x + seen + b.around_ffn.branch(x, b.ffn))


def test_sublayers_behind_one_norm_read_the_same_vectors():
    """y = norm(x); x + attention(y) + ffn(y)."""
    first, second = PreNorm(8), NoNorm(8)
    b = OneNormBlock(MultiHeadAttention(8, 2), FeedForward(8, 16), first, second)
    x = torch.randn(2, 5, 8)
    y = torch.nn.functional.layer_norm(x, (8,))
    torch.testing.assert_close(run(b, x), x + b.attention(y, NoPE(), None, AT, AT) + b.ffn(y))
    assert not list(second.parameters())


def test_parallel_sublayers_have_no_post_norm():
    with pytest.raises(gn.BadValue, match="'pre' or 'sandwich'"):
        ParallelBlock(MultiHeadAttention(8, 2), FeedForward(8, 16), placement("post")(8), placement("post")(8))


def test_a_trace_gets_its_output_and_its_attention():
    b, x, trace = block("pre"), torch.randn(2, 5, 8), gn.Trace()
    y = run(b, x, trace)
    assert torch.equal(trace.hidden[0], y)
    assert trace.attention[0].shape == (2, 2, 5, 5)
    assert not trace.hidden[0].requires_grad
    assert torch.equal(run(b, x), y)  # looking changes nothing
