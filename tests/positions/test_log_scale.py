"""Log-scaled attention: the published temperatures, in queries alone."""

import numpy as np
import pytest
import torch

import gnomon as gn
from gnomon.attention import attend
from gnomon.positions.log_scale import LogScale

PLACES = [0, 1, 3, 4, 7, 8, 11, 257, 8190, 8191, 8192, 131_071]


@pytest.mark.parametrize(("c", "L"), [(0.1, 8192), (0.412, 4)])
def test_queries_grow_as_published(c, L):
    """1 + c ln(1 + floor((p+1)/L)) in steps, 1 + c ln(max(1, (p+1)/L)) smoothly, in numpy."""
    p, q = np.array(PLACES), torch.randn(1, 2, len(PLACES), 8, dtype=torch.float64)
    at = gn.Layout.placed(PLACES)
    for growth, beta in (
        ("steps", 1 + c * np.log1p((p + 1) // L)),
        ("smooth", 1 + c * np.log(np.maximum(1, (p + 1) / L))),
    ):
        scale = LogScale(c, L, growth)
        np.testing.assert_allclose(scale.query(q, scale.prepare(at, q.dtype)).numpy(), q.numpy() * beta[:, None])
        assert scale.key(q, scale.prepare(at)) is q


def test_log_n_scaling_is_one_of_them():
    """ln(p+1) / ln(L) past L (Qwen): a coefficient of 1 / ln L."""
    (beta,) = LogScale(float(1 / np.log(64)), 64).prepare(gn.Layout.placed(PLACES), torch.float64)
    want = np.maximum(1, np.log(np.array(PLACES) + 1) / np.log(64))
    np.testing.assert_allclose(beta[0, 0, :, 0].numpy(), want)


def test_a_lab_of_short_windows_scales_what_lies_past_them():
    """Fitted to the training length, as a learned table is: at the default L it would be `none` in a lab of 64."""
    (spec,) = gn.lab.LabSettings(positions=("log-scale",), train_length=64).fitted("log-scale")
    (beta,) = spec.cls(**LogScale.options_for(64)).prepare(gn.Layout.placed([63, 1023]), torch.float64)
    assert spec.options["length"] == 64
    torch.testing.assert_close(beta.flatten().tolist(), [1.0, float(np.log(1024) / np.log(64))], atol=1e-3, rtol=0)


def test_up_to_its_length_it_is_no_position():
    torch.manual_seed(0)
    scaled = gn.DecoderOnly(30, 16, 2, 2, position=gn.positions.get("log-scale", length=9), init_std=0.3).eval()
    plain = gn.DecoderOnly(30, 16, 2, 2, position="none").eval()
    plain.load_state_dict(scaled.state_dict())
    ids = torch.randint(30, (1, 12))
    assert torch.equal(scaled(ids[:, :9]), plain(ids[:, :9]))
    assert not torch.allclose(scaled(ids)[:, -1], plain(ids)[:, -1], atol=1e-4)


def test_a_scale_of_queries_is_a_scale_of_scores():
    q, k, v = torch.randn(3, 1, 2, 1, 8)
    keys, at = gn.Layout.dense(1, 1), gn.Layout.placed([8191])
    scale = LogScale(0.5, 1024)
    got = attend(scale.query(q, scale.prepare(at)), k, v, scale, at, keys)
    want = attend(q, k, v, None, at, keys, scale=8**-0.5 * (1 + 0.5 * np.log(8)))
    torch.testing.assert_close(got, want)


def test_an_encoder_is_refused():
    with pytest.raises(gn.BadValue, match="log-scale is for causal attention only"):
        gn.EncoderOnly(30, 16, 1, 2, position="log-scale")


@pytest.mark.slow
def test_layers_without_position_are_llama4s():
    """The attention of one layer of transformers' Llama 4 text model with tiny steps, through its own mask."""
    from transformers import Llama4TextConfig
    from transformers.models.llama4.modeling_llama4 import Llama4TextAttention

    config = Llama4TextConfig(
        hidden_size=32,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=8,
        num_hidden_layers=4,
        floor_scale=4,
        attn_scale=0.3,
        attn_temperature_tuning=True,
    )
    config._attn_implementation = "eager"
    torch.manual_seed(0)
    theirs, ours = Llama4TextAttention(config, 3), gn.MultiHeadAttention(32, 4, n_kv_heads=2, bias=False)
    for mine, name in ((ours.q, "q_proj"), (ours.k, "k_proj"), (ours.v, "v_proj"), (ours.out, "o_proj")):
        mine.weight.data = getattr(theirs, name).weight.data * 8
        getattr(theirs, name).weight.data = mine.weight.data
    x, mask = torch.randn(2, 19, 32), torch.full((19, 19), float("-inf")).triu(1)[None, None]
    assert not theirs.use_rope
    want = theirs(x, None, mask)[0]
    torch.testing.assert_close(ours(x, LogScale(0.3, 4, "steps")), want, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"coefficient": -0.1}, "at least 0"),
        ({"coefficient": float("inf")}, "at least 0"),
        ({"length": 0}, "at least 1; got 0.1 and 0"),
        ({"length": 2.5}, "length must be a whole number"),
        ({"growth": "step"}, "did you mean 'steps'"),
    ],
)
def test_a_mistake_is_named_where_it_is_chosen(options, message):
    with pytest.raises(gn.BadValue, match=message):
        gn.positions.get("log-scale", **options)


def test_it_says_what_it_comes_to():
    assert LogScale(0.5, 64).describe(128)[-1] == "Twice the length: the last query is 1.69 times as large."
    assert LogScale(0.5, 64, "steps").describe(128)[-1] == "Twice the length: the last query is 1.8 times as large."
