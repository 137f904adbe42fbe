"""Context scaling against its formulas, against Hugging Face's library, and as data."""

import itertools
import json
import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import gnomon as gn
from gnomon.positions.scaling import (
    NTK,
    SCALINGS,
    DynamicNTK,
    Linear,
    Llama3,
    LongRoPE,
    Proportional,
    YaRN,
    plain_frequencies,
    scaling,
)

EACH = [
    Linear(4.0),
    NTK(4.0),
    YaRN(4.0, 64),
    Llama3(8.0, 64),
    YaRN(16.0, 64, truncate=False, beta_fast=8.0),
    DynamicNTK(2.0, 64),
    LongRoPE(4.0, 64, [1.0] * 8, [2.0] * 4 + [8.0] * 4),
    Proportional(2.0, 0.5),
]
each = pytest.mark.parametrize("method", EACH, ids=repr)


def slower(method, base, d):
    """How much of its speed every pair keeps."""
    return [1 / stretch for stretch in method.explain(base, d)]


# ------------------------------------------------------------------ values


def test_linear_divides_every_pair_alike():
    assert slower(Linear(4.0), 1e4, 16) == pytest.approx([0.25] * 8)


def test_ntk_keeps_the_fastest_pair_and_stretches_the_slowest_by_exactly_the_factor():
    kept = slower(NTK(4.0), 1e4, 16)
    assert kept[0] == 1.0
    assert kept[-1] == pytest.approx(0.25, rel=1e-12)
    assert kept == sorted(kept, reverse=True)


def test_ntk_counts_the_width_that_rotates():
    """Pythia rotates 16 of 64 channels: the exponent is 16 / 14."""
    rope = gn.positions.get("rope", fraction=0.25, scaling=NTK(2.0)).build(d_head=64)
    assert rope.frequencies() == pytest.approx(plain_frequencies(1e4 * 2 ** (16 / 14), 16))


def test_yarn_ramps_between_whole_pairs():
    """d = 16, base 1e4, factor 4, L = 64: pairs 0 to 3 of the correction range, ramp 0, 1/3, 2/3, 1."""
    method = YaRN(4.0, 64)
    assert method.ramp(1e4, 16) == (0.0, 3.0)
    stretched = [0.0, 1 / 3, 2 / 3, 1, 1, 1, 1, 1]
    assert slower(method, 1e4, 16) == pytest.approx([1 - g + g / 4 for g in stretched])


def test_yarn_may_ramp_between_fractions_of_pairs():
    method = YaRN(4.0, 64, truncate=False)
    high = 16 * math.log(64 / (2 * math.pi)) / (2 * math.log(1e4))  # the pair that turns once within L
    assert method.ramp(1e4, 16) == (0.0, pytest.approx(high))
    assert slower(method, 1e4, 16)[1] == pytest.approx(1 - 0.75 / high)


@pytest.mark.parametrize(
    ("factor", "more", "magnitude"),
    [
        (1.0, {}, 1.0),
        (4.0, {}, 1.13862944),
        (16.0, {}, 1.27725887),
        (16.0, {"mscale": 1.0, "mscale_all_dim": 1.0}, 1.0),
        (40.0, {"mscale": 1.0, "mscale_all_dim": 0.8}, 1.05696626),
        (40.0, {"attention_factor": 2.0}, 2.0),
    ],
)
def test_yarn_sharpens_attention_by_its_factor(factor, more, magnitude):
    """0.1 ln s + 1 on cosines and sines, so that scores get its square; a ratio where both mscales are given."""
    method = YaRN(factor, 64, **more)
    assert method.magnitude == pytest.approx(magnitude, abs=1e-8)
    rope, x = gn.positions.get("rope", scaling=method).build(d_head=16), torch.randn(1, 1, 5, 16)
    turned = rope.rotate(x, rope.prepare(gn.Layout.dense(1, 5)))
    torch.testing.assert_close(turned.norm(dim=-1), x.norm(dim=-1) * magnitude)


def test_llama3_blends_by_the_number_of_turns():
    """Width 64, base 5e5, factor 32, L = 8192 (Llama 3.2 1B): pair i turns 8192 / (2 pi 5e5^(i/32)) times."""
    kept = slower(Llama3(32.0, 8192), 5e5, 64)
    turns = [8192 / (2 * math.pi * 5e5 ** (i / 32)) for i in range(32)]
    assert [i for i in range(32) if 1 < turns[i] < 4] == [15, 16, 17]
    assert kept[:15] == [1.0] * 15
    assert kept[15:18] == pytest.approx([1 / 32 + (turns[i] - 1) / 3 * (31 / 32) for i in (15, 16, 17)])
    assert kept[18:] == pytest.approx([1 / 32] * 14)


def test_llama3_is_the_papers_form_of_yarn_with_other_ends():
    """Peng et al. 2024, equation 18, with alpha = 1 and beta = 4, and no temperature."""
    base, d, L, s = 1e4, 64, 512, 8.0
    want = []
    for theta in plain_frequencies(base, d):
        gamma = min(max((L * theta / (2 * math.pi) - 1) / (4 - 1), 0), 1)
        want.append((1 - gamma) * theta / s + gamma * theta)
    assert Llama3(s, L).frequencies(base, d) == pytest.approx(want, rel=1e-12)


@pytest.mark.parametrize(
    "method",
    [
        Linear(4.0),
        YaRN(4.0, 64),
        YaRN(8.0, 32, truncate=False),
        YaRN(16.0, 64, mscale=1.0, mscale_all_dim=0.8),
        YaRN(4.0, 64, attention_factor=0.7, beta_fast=16.0, beta_slow=2.0),
        Llama3(8.0, 64),
    ],
    ids=repr,
)
def test_hugging_faces_library_computes_the_same_from_what_is_exported(method):
    from transformers import LlamaConfig
    from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

    config = LlamaConfig(
        hidden_size=32,
        num_attention_heads=2,
        max_position_embeddings=int(64 * method.factor),
        rope_parameters={**method.to_hf(), "rope_theta": 1e4},
    )
    theta, magnitude = ROPE_INIT_FUNCTIONS[method.to_hf()["rope_type"]](config, "cpu")
    assert method.frequencies(1e4, 16) == pytest.approx(theta.tolist(), rel=1e-6)
    assert method.magnitude == pytest.approx(magnitude)


def test_dynamic_ntk_grows_its_base_with_the_text_and_only_past_the_trained_length():
    """d = 8, base 1e4, factor 2, L = 16: base (2 n / 16 - 1)^(8 / 6) at n tokens."""
    rope = gn.positions.get("rope", scaling=DynamicNTK(2.0, 16)).build(d_head=8)
    for n in (5, 16, 17, 24, 32):
        base = 1e4 * max(2 * n / 16 - 1, 1) ** (8 / 6)
        got = rope.scaling.frequencies_at(torch.tensor([n]), 1e4, 8)[0].tolist()
        assert got == pytest.approx(plain_frequencies(base, 8), rel=1e-12)
    assert rope.scaling.frequencies_at(torch.tensor([24]), 1e4, 8)[0, 1:].tolist() == pytest.approx(
        [0.07937005, 0.00629961, 0.0005], rel=1e-6
    )


def test_longrope_changes_lists_past_the_trained_length():
    method = LongRoPE(4.0, 16, (1.0, 1.5, 2.0, 3.0), (2.0, 2.0, 4.0, 8.0))
    short, long = method.frequencies_at(torch.tensor([16, 17]), 1e4, 8).tolist()
    plain = plain_frequencies(1e4, 8)
    assert short == pytest.approx([t / f for t, f in zip(plain, (1.0, 1.5, 2.0, 3.0), strict=True)])
    assert long == pytest.approx([t / f for t, f in zip(plain, (2.0, 2.0, 4.0, 8.0), strict=True)])
    assert method.magnitude == pytest.approx(math.sqrt(1 + math.log(4) / math.log(16)))


@pytest.mark.parametrize("method", [DynamicNTK(2.0, 16), LongRoPE(4.0, 16, [1.0] * 4, [2.0, 2.0, 4.0, 8.0])], ids=repr)
def test_applied_to_ones_own_queries_a_text_has_one_table_too(method):
    """A table for each token, as if its text ended there, would turn early keys and late queries by two of them."""
    rope = gn.positions.get("rope", scaling=method).build(d_head=8)
    q, k = torch.randn(2, 2, 2, 24, 8)
    ids = torch.stack([torch.arange(24), torch.arange(24).clamp(max=15)])  # the second text ends at the trained length
    got_q, got_k = rope.apply(q, k, ids)
    torch.testing.assert_close(got_q[:1], rope(q[:1]))
    torch.testing.assert_close(got_k[1:, :, :16], rope(k[1:, :, :16]))
    torch.testing.assert_close(rope.apply(q, k)[1], rope(k))


@pytest.mark.parametrize("length", [40, 64, 65, 200])
@pytest.mark.parametrize(
    "method",
    [DynamicNTK(3.0, 64), LongRoPE(4.0, 64, [1.0 + i / 8 for i in range(8)], [2.0 + i for i in range(8)])],
    ids=["dynamic", "longrope"],
)
def test_by_length_too_hugging_faces_library_computes_the_same(method, length):
    from transformers import LlamaConfig
    from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

    config = LlamaConfig(
        hidden_size=32,
        num_attention_heads=2,
        max_position_embeddings=64 if method.kind == "dynamic" else 256,
        rope_parameters={**method.to_hf(), "rope_theta": 1e4},
    )
    theta, magnitude = ROPE_INIT_FUNCTIONS[method.kind](config, "cpu", seq_len=length)
    got = method.frequencies_at(torch.tensor([length]), 1e4, 16)[0]
    assert got.tolist() == pytest.approx(theta.tolist(), rel=1e-5)
    assert method.magnitude == pytest.approx(magnitude)


@pytest.mark.parametrize("width", [8, 12, 16, 64])
@pytest.mark.parametrize("fraction", [0.25, 0.4, 0.75, 1.0])
def test_proportional_turns_the_pairs_that_hugging_faces_library_turns(width, fraction):
    from transformers import LlamaConfig
    from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

    method = Proportional(2.0, fraction)
    config = LlamaConfig(head_dim=width, rope_parameters={**method.to_hf(), "rope_theta": 1e4})
    theta, magnitude = ROPE_INIT_FUNCTIONS["proportional"](config, "cpu")
    assert method.frequencies(1e4, width) == pytest.approx(theta.tolist(), rel=1e-6)
    assert method.magnitude == magnitude


def test_pairs_that_stand_still_see_no_position():
    """Channels of the slow pairs pass; those of the fast ones turn as in the whole head, unlike with a rotary_dim."""
    still, whole, narrow = (
        gn.positions.get("rope", **options).build(d_head=16)
        for options in ({"scaling": Proportional(fraction=0.25)}, {}, {"rotary_dim": 4})
    )
    x, at = torch.randn(1, 1, 7, 16), gn.Layout.dense(1, 7)
    turned, full, few = (rope.rotate(x, rope.prepare(at)) for rope in (still, whole, narrow))
    assert torch.equal(turned[..., 2:8], x[..., 2:8])
    assert torch.equal(turned[..., 10:], x[..., 10:])
    for pair in (0, 1):
        assert torch.equal(turned[..., pair::8], full[..., pair::8])
    assert not torch.allclose(turned, few)
    assert still.describe(64) == [
        "4 of the 16 channels of a head turn, base 10\N{NARROW NO-BREAK SPACE}000 (pairing=half).",
        "2 pairs of channels, wavelengths from 6.283 to 19.87 tokens.",
        "Every pair completes a turn within 64 tokens.",
        "Twice the length: no new angle.",
        "Scaling: kind proportional, factor 1.0, fraction 0.25.",
        "2 of 2 pairs turn as trained; cosines and sines times 1.",
    ]


# ------------------------------------------------------------------ properties


@given(
    st.sampled_from(sorted(set(SCALINGS) - {"longrope", "dynamic", "proportional"})),
    st.floats(1, 64),
    st.sampled_from([8, 16, 64, 128]),
    st.integers(16, 10_000),
)
def test_every_pair_keeps_at_least_its_part_and_at_most_its_speed(kind, factor, d, original):
    method = SCALINGS[kind](factor, *([original] if kind in ("yarn", "llama3") else []))
    kept = slower(method, 1e4, d)
    assert all(1 / factor * (1 - 1e-9) <= k <= 1 + 1e-9 for k in kept)
    assert all(a >= b - 1e-9 for a, b in itertools.pairwise(kept))  # slower pairs are stretched no less
    if factor == 1:
        assert kept == pytest.approx([1] * (d // 2))


@each
def test_a_scaled_model_is_still_relative(method):
    model = gn.DecoderOnly(30, 32, 2, 2, position=gn.positions.get("rope", scaling=method)).eval()
    ids, at = torch.randint(30, (2, 9)), gn.Layout.dense(2, 9)
    moved = gn.Layout(at.pos + 1000, at.step, None, at.length, "dense")
    torch.testing.assert_close(model(ids, moved), model(ids, at), atol=1e-5, rtol=1e-5)


# ------------------------------------------------------------------ as data


@each
def test_it_comes_back_from_json_and_from_a_models_config(method):
    assert scaling(json.loads(json.dumps(method.to_dict()))) == method
    config = gn.DecoderOnly(30, 32, 1, 2, position=gn.positions.get("rope", scaling=method)).config
    again = gn.ModelConfig.from_dict(json.loads(json.dumps(config.to_dict())))
    assert again == config
    assert again.position.build(d_head=16).scaling == method


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"kind": "yarm", "factor": 2.0}, "did you mean 'yarn'"),
        ({"kind": "linear"}, "linear scaling takes factor"),
        ({"kind": "linear", "factor": 2.0, "orginal_length": 4}, "unknown setting of linear scaling"),
        ({"kind": "linear", "factor": 0.5}, "at least 1; got 0.5"),
        ({"kind": "linear", "factor": math.nan}, "at least 1; got nan"),
        ({"kind": "yarn", "factor": 2.0, "original_length": 0}, "at least 1; got 0"),
        ({"kind": "yarn", "factor": 2.0, "original_length": 64, "beta_fast": 1.0}, "beta_fast must exceed"),
        ({"kind": "llama3", "factor": 2.0, "original_length": 64, "low_freq_factor": 5.0}, "must exceed"),
        ({"factor": 2.0}, "a context scaling is given as"),
        ({"kind": "dynamic", "factor": 2.0, "original_length": 64, "freeze": 0}, "at least 1; got 0"),
        (
            {
                "kind": "longrope",
                "factor": 2.0,
                "original_length": 64,
                "short_factor": [1.0] * 8,
                "long_factor": [0.0] * 8,
            },
            "long_factor lists a number above 0",
        ),
        (
            {"kind": "longrope", "factor": 2.0, "original_length": 64, "short_factor": [1.0], "long_factor": [1.0]},
            "has 1 factors, but a width of 16 has 8 pairs",
        ),
        ({"kind": "proportional", "fraction": 0.0}, "above 0 and at most 1; got 0.0"),
        ({"kind": "proportional", "fraction": 0.1}, "of 8 pairs a fraction of 0.1 is none"),
        ("yarn", "a context scaling is given as"),
    ],
)
def test_what_cannot_be_is_named(settings, message):
    with pytest.raises(gn.BadValue, match=message):
        gn.positions.get("rope", scaling=settings).build(d_head=16)


def test_ntk_needs_two_pairs():
    with pytest.raises(gn.BadValue, match="needs two pairs"):
        gn.positions.get("rope", scaling=NTK(2.0), rotary_dim=2).build(d_head=16)
