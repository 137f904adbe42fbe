"""ALiBi: published slopes for any number of heads, and where its bias goes."""

import pytest
import torch

import gnomon as gn
from gnomon.positions import ALiBi


@pytest.mark.parametrize(
    ("heads", "slopes"),
    [  # the authors' rule: powers of two, and for others the slopes of the next power below, then every other of 2c
        (1, [2.0**-8]),
        (2, [2.0**-4, 2.0**-8]),
        (3, [0.0625, 0.00390625, 0.25]),
        (6, [0.25, 0.0625, 0.015625, 0.00390625, 0.5, 0.125]),
        (8, [2.0**-n for n in range(1, 9)]),
        (12, [2.0**-n for n in range(1, 9)] + [0.70710678, 0.35355339, 0.17677670, 0.08838835]),
        (16, [2.0 ** (-n / 2) for n in range(1, 17)]),
    ],
)
def test_slopes_are_the_published_ones_in_their_order(heads, slopes):
    """A single geometric series for 12 heads would begin with 0.63."""
    assert ALiBi(heads).slopes() == pytest.approx(slopes, abs=5e-9)


@pytest.mark.parametrize("heads", [1, 3, 6, 8, 12, 40])
def test_slopes_and_bias_are_those_of_bloom_in_transformers(heads):
    bloom = pytest.importorskip("transformers.models.bloom.modeling_bloom")
    theirs = bloom.build_alibi_tensor(torch.ones(1, 9), heads, torch.float32).view(heads, 9)  # m_h * key position
    ours = ALiBi(heads).bias_tensor(gn.Layout.dense(1, 9))[0]  # (H, 9, 9)
    seen = torch.ones(9, 9).tril().bool()
    difference = (ours - theirs[:, None, :]).masked_fill(~seen, 0.0)
    constant = difference[:, :, :1] * seen  # only a constant per row, which a softmax does not see
    torch.testing.assert_close(difference, constant, atol=1e-5, rtol=0)


@pytest.mark.parametrize("heads", [8, 12])
def test_the_bias_is_that_of_x_transformers(heads):
    x_transformers = pytest.importorskip("x_transformers.x_transformers")
    theirs = x_transformers.AlibiPositionalBias(heads=heads, total_heads=heads)(6, 6)
    torch.testing.assert_close(ALiBi(heads).bias_tensor(gn.Layout.dense(1, 6))[0], theirs)


def test_the_bias_is_minus_slope_times_distance():
    """Bidirectional, slope 2^-8 of one head: row 2 of five is [-2, -1, 0, -1, -2] slopes."""
    bias = ALiBi(1, causal=False).bias_tensor(gn.Layout.dense(1, 5))[0, 0, 2] * 2**8
    assert bias.tolist() == [-2, -1, 0, -1, -2]


def test_a_symmetric_bias_cannot_tell_left_from_right():
    bias = ALiBi(4, causal=False).bias_tensor(gn.Layout.dense(1, 9))
    assert torch.equal(bias, bias.transpose(-1, -2))


def test_split_heads_look_to_one_side_each():
    bias = ALiBi(4, causal=False, sides="split").bias_tensor(gn.Layout.dense(1, 5))[0]
    past, future = torch.ones(5, 5).tril().bool(), torch.ones(5, 5).triu().bool()
    for h in range(4):
        assert torch.equal(bias[h].isfinite(), past if h < 2 else future)
    assert torch.equal(bias[0], bias[2].T)  # the same slopes on both sides


@pytest.mark.parametrize("mask", [[[0, 0, 1, 1, 1]], [[1, 1, 1, 0, 0]]])
def test_distance_counts_tokens_and_not_padded_slots(mask):
    """Slope 1/256 of one head: the last real query is 2, 1, 0 tokens from the three real keys, wherever they lie."""
    at = gn.Layout.padded(torch.tensor(mask))
    real = at.real[0]
    bias = ALiBi(1).bias_tensor(at)[0, 0][real][-1][real] * 2**8
    assert bias.tolist() == [-2, -1, 0]
    step = at.then(1)
    assert (ALiBi(1).bias_tensor(step, at)[0, 0, 0][real] * 2**8).tolist() == [-3, -2, -1]


def test_the_layer_adds_it_to_scores_whose_queries_are_the_last_ones():
    scores = torch.zeros(1, 2, 2, 5)
    assert (ALiBi(2)(scores)[0, 1] * 2**8).tolist() == [[-3, -2, -1, 0, -1], [-4, -3, -2, -1, 0]]


def test_sdpa_takes_it_as_a_mask():
    q, k, v = torch.randn(3, 1, 2, 6, 8)
    at = gn.Layout.dense(1, 6)
    alibi = ALiBi(2)
    out = torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=alibi.score_mask(at))
    torch.testing.assert_close(out, gn.attend(q, k, v, alibi, at, at, kernel="dense"))


def test_its_numbers_do_not_depend_on_the_models_dtype():
    """Slope 2^-8 over distances 2999 and 3000: one step is 1/256; bfloat16 products would give 16 of them."""
    alibi, at = ALiBi(1).bfloat16(), gn.Layout.dense(1, 3001)
    last = alibi.bias_tensor(at.tokens(slice(-1, None)), at)[0, 0, 0]
    assert last.dtype == torch.float32
    assert (last[1] - last[0]) * 2**8 == 1
    assert float(last[0]) == -3000 / 256


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_asked_for_in_half_precision_it_is_rounded_once(dtype):
    """Slopes and distances that were narrow before their product would be: 70 000 is infinite in float16."""
    alibi, last = ALiBi(12), gn.Layout.from_hf(position_ids=torch.tensor([[70_000]]))
    keys = gn.Layout.from_hf(position_ids=torch.arange(70_001)[None])
    whole, got = alibi.bias_tensor(last, keys), alibi.bias_tensor(last, keys, dtype=dtype)
    assert got.dtype == dtype
    assert torch.equal(got, whole.to(dtype))


def test_lengths_one_after_another_do_not_matter():
    used, lengths = ALiBi(4), (512, 513, 511)
    for n in lengths:
        assert torch.equal(used.bias_tensor(gn.Layout.dense(1, n)), ALiBi(4).bias_tensor(gn.Layout.dense(1, n)))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_heads": 0}, "n_heads must be at least 1"),
        ({"n_heads": 4, "sides": "split"}, "for bidirectional attention"),
        ({"n_heads": 3, "sides": "split", "causal": False}, "even number of heads, got 3"),
        ({"n_heads": 4, "sides": "symetric"}, "did you mean 'symmetric'"),
    ],
)
def test_a_mistake_is_named(arguments, message):
    with pytest.raises(gn.BadValue, match=message):
        ALiBi(**arguments)
