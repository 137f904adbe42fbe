"""Pictures of biases and buckets, against published numbers."""

import numpy as np
import pytest
import torch

import gnomon as gn
from gnomon import plots


def test_alibi_falls_by_its_published_slope_per_token():
    """8 heads, slopes 1/2 to 1/256."""
    facts = plots.bias("alibi", 16, n_heads=8).facts
    for h in range(8):
        np.testing.assert_allclose(facts[f"head_{h + 1}"], -(0.5 ** (h + 1)) * np.arange(17))


def test_a_bidirectional_alibi_is_drawn_to_both_sides():
    facts = plots.bias("alibi", 5, n_heads=2, causal=False).facts
    assert facts["gap"] == list(range(-5, 6))
    np.testing.assert_allclose(facts["head_1"], -(2.0**-4) * np.abs(facts["gap"]))


def test_a_side_that_a_head_does_not_look_at_is_not_drawn():
    split = gn.positions.get("alibi", sides="split")
    facts = plots.bias(split, 5, n_heads=4, causal=False).facts
    behind, ahead = np.array(facts["head_1"]), np.array(facts["head_4"])
    assert np.isinf(behind[6:]).all()
    assert np.isfinite(behind[:6]).all()
    assert np.isinf(ahead[:5]).all()


def test_a_trained_t5_table_is_drawn_by_distance():
    model = gn.DecoderOnly.from_preset("mini-llama", position="t5")
    table = model.position_of(0)
    picture = plots.bias(table, 130)
    bucket_of = [0, 1, 15, 16, 16, 31, 31]  # Raffel et al. 2020: 16 exact, then logarithmic up to distance 128
    for h in range(4):
        shown = np.array(picture.facts[f"head_{h + 1}"])[[0, 1, 15, 16, 18, 113, 130]]
        np.testing.assert_allclose(shown, table.weight.detach()[bucket_of, h])
    assert "nothing has trained them yet" not in picture.alt
    assert "nothing has trained them yet" in plots.bias("t5").alt


def test_the_bucket_map_has_the_published_edges():
    """First distance of each causal bucket of 32 with max_distance 128; the x-check is transformers' own function."""
    modeling = pytest.importorskip("transformers.models.t5.modeling_t5")
    facts = plots.buckets("t5", 300).facts["first_distance"]
    assert list(facts) == list(range(32))
    assert [facts[b] for b in range(16, 32)] == [
        16, 19, 21, 24, 27, 31, 35, 40, 46, 52, 59, 67, 77, 87, 99, 113,
    ]  # fmt: skip
    figure = plots.buckets("t5", 300, causal=False).figure
    shown = torch.as_tensor(np.asarray(figure.axes[0].images[0].get_array())).long()
    gap = torch.arange(300)[None, :] - torch.arange(300)[:, None]
    want = modeling.T5Attention._relative_position_bucket(gap, bidirectional=True, num_buckets=32, max_distance=128)
    assert torch.equal(shown, want)


def test_what_a_causal_model_cannot_see_has_no_bucket():
    figure = plots.buckets("t5", 20).figure
    shown = np.ma.filled(figure.axes[0].images[0].get_array().astype(float), np.nan)
    assert np.isnan(shown[np.triu_indices(20, 1)]).all()
    assert np.isfinite(shown[np.tril_indices(20)]).all()


def test_an_encoding_without_a_fixed_bias_is_refused():
    class Silent(gn.PositionEncoding):
        name = "silent"
        acts = "attention"

        def heads(self):
            return 2

        def scores(self, q, k, tables, ok, scale):
            return q.x @ k.x.transpose(-1, -2)

    try:
        with pytest.raises(gn.BadValue, match="act at score; silent acts at attention"):
            plots.bias(Silent())
    finally:
        from gnomon.positions.base import _REGISTRY

        del _REGISTRY["silent"]
