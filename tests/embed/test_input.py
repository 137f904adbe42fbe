"""The whole input layer: tokens with their positions, once."""

import re
from dataclasses import replace

import pytest
import torch
from torch import nn

import gnomon as gn
from gnomon.positions import sinusoidal_table
from gnomon.positions.base import _REGISTRY


@pytest.mark.parametrize("position", ["sinusoidal", "learned", "rope", "alibi", "t5", "none"])
def test_ids_become_vectors_under_every_encoding(position):
    """(32, 100) ids -> (32, 100, 512)."""
    layer = gn.InputLayer(vocab_size=50_000, d_model=512, position=position, max_positions=2048, dropout=0.1)
    assert layer(torch.randint(50_000, (32, 100))).shape == (32, 100, 512)


def test_position_is_added_to_the_scaled_token_vectors():
    layer, ids = gn.InputLayer(30, 16, position="sinusoidal"), torch.tensor([[3, 5, 3]])
    want = layer.tokens.weight[ids[0]] * 4 + torch.from_numpy(sinusoidal_table(3, 16)).float()
    torch.testing.assert_close(layer(ids)[0], want)


@pytest.mark.parametrize("name", ["rope", "alibi", "t5", "none"])
def test_what_acts_in_attention_adds_nothing_here(name):
    """Nor is a learned table left behind."""
    layer, ids = gn.InputLayer(30, 16, position=name, max_positions=8), torch.tensor([[3, 5, 3]])
    torch.testing.assert_close(layer(ids), layer.tokens(ids))
    assert [key for key, _ in layer.named_parameters()] == ["tokens.weight"]


def test_an_unknown_name_is_quoted_with_the_known_ones():
    with pytest.raises(ValueError, match="'sinusoidale': did you mean 'sinusoidal'") as error:
        gn.InputLayer(30, 16, position="sinusoidale")
    assert all(name in str(error.value) for name in gn.positions.names())


def test_dropout_drops_once():
    """A share of 0.3 is zero, not 1 - 0.7^2 = 0.51, and what stays is divided by 0.7."""
    layer, ids = gn.InputLayer(30, 64, position="sinusoidal", dropout=0.3), torch.randint(30, (20, 50))
    whole = layer.eval()(ids)
    dropped = layer.train()(ids)
    zero = dropped == 0
    assert float(zero.float().mean()) == pytest.approx(0.3, abs=0.01)
    torch.testing.assert_close(dropped[~zero], whole[~zero] / 0.7)


def test_no_dropout_drops_nothing():
    layer, ids = gn.InputLayer(30, 64, position="sinusoidal").train(), torch.randint(30, (20, 50))
    assert torch.equal(layer(ids), layer.eval()(ids))


def test_positions_come_from_the_layout_and_padding_slots_may_hold_any_id():
    """A left-padded row gets the positions of its tokens, and what stands in padded slots changes nothing."""
    layer = gn.InputLayer(30, 16, position="learned", max_positions=5)
    at = gn.Layout.padded(torch.tensor([[0, 0, 1, 1, 1]]))
    padded = layer(torch.tensor([[999, -7, 4, 5, 6]]), at)
    torch.testing.assert_close(padded[0, 2:], layer(torch.tensor([[4, 5, 6]]))[0])


class TestConcatenation:
    """Concatenating widens by a stated position_dim, then projects to d_model."""

    def test_it_projects_tokens_and_positions_side_by_side(self):
        layer = gn.InputLayer(30, 16, position="sinusoidal", combine="concat", position_dim=6)
        ids = torch.tensor([[3, 5], [1, 1]])
        p = torch.from_numpy(sinusoidal_table(2, 6)).float().expand(2, -1, -1)
        torch.testing.assert_close(layer(ids), layer.project(torch.cat([layer.tokens(ids), p], -1)))
        assert layer.project.weight.shape == (16, 22)

    def test_adding_is_concatenating_under_one_shared_projection(self):
        """[W W] [x; p] = W (x + p), so a sum is the case in which both halves share their projection."""
        cat = gn.InputLayer(30, 16, position="sinusoidal", combine="concat", position_dim=16).double()
        add = gn.InputLayer(30, 16, position="sinusoidal").double()
        add.tokens.load_state_dict(cat.tokens.state_dict())
        W = torch.randn(16, 16, dtype=torch.float64)
        with torch.no_grad():
            cat.project.weight.copy_(torch.cat([W, W], 1))
            cat.project.bias.zero_()
        ids = torch.randint(30, (2, 9))
        torch.testing.assert_close(cat(ids), add(ids) @ W.T, rtol=0, atol=1e-13)

    def test_in_a_model_it_trains(self):
        model = gn.DecoderOnly(30, 16, 1, 2, position="sinusoidal", combine="concat", position_dim=4)
        model(torch.randint(30, (2, 5))).square().mean().backward()
        assert model.input.project.weight.grad.abs().sum() > 0

    @pytest.mark.parametrize("options", [{"combine": "concat"}, {"position_dim": 4}])
    def test_a_width_goes_with_it_and_only_with_it(self, options):
        with pytest.raises(gn.BadValue, match="position_dim goes with combine='concat'"):
            gn.InputLayer(30, 16, position="sinusoidal", **options)

    def test_another_way_to_combine_is_refused(self):
        with pytest.raises(gn.BadValue, match="unknown way to combine 'concatenate': did you mean 'concat'"):
            gn.InputLayer(30, 16, combine="concatenate")


class TestTypes:
    def test_segments_are_added_from_a_table_of_their_own(self):
        layer, ids = gn.InputLayer(30, 16, position="learned", max_positions=8, n_types=2), torch.tensor([[3, 5, 3]])
        types = torch.tensor([[0, 1, 1]])
        torch.testing.assert_close(
            layer(ids, types=types) - layer(ids), layer.types.weight[types] - layer.types.weight[0]
        )

    def test_types_without_a_table_are_refused(self):
        with pytest.raises(gn.BadValue, match="build it with n_types"):
            gn.InputLayer(30, 16)(torch.tensor([[1]]), types=torch.tensor([[0]]))

    def test_a_type_outside_its_table_is_refused(self):
        with pytest.raises(gn.BadValue, match="2"):
            gn.InputLayer(30, 16, n_types=2)(torch.tensor([[1]]), types=torch.tensor([[2]]))


@pytest.mark.parametrize("norm", ["layernorm", "rmsnorm"])
def test_a_norm_acts_on_the_sum(norm):
    layer = gn.InputLayer(30, 16, position="sinusoidal", norm=norm)
    plain, ids = gn.InputLayer(30, 16, position="sinusoidal"), torch.tensor([[3, 5]])
    plain.tokens.load_state_dict(layer.tokens.state_dict())
    by_hand = nn.LayerNorm(16) if norm == "layernorm" else nn.RMSNorm(16, eps=1e-5)
    torch.testing.assert_close(layer(ids), by_hand(plain(ids)))


def test_one_row_of_positions_serves_the_whole_batch_and_its_gradient_adds_up():
    layer = gn.InputLayer(30, 8, position="learned", max_positions=4)
    layer(torch.randint(30, (5, 3))).sum().backward()
    assert layer.position.weight.grad.tolist() == [[5.0] * 8] * 3 + [[0.0] * 8]


def test_a_half_precision_layer_gives_half_precision_and_rounds_positions_once():
    layer = gn.InputLayer(30, 64, position="sinusoidal", scale=None).bfloat16()
    with torch.no_grad():
        layer.tokens.weight.zero_()
    out = layer(torch.zeros(1, 300, dtype=torch.long))
    assert out.dtype == torch.bfloat16
    want = torch.from_numpy(sinusoidal_table(300, 64)).float().bfloat16()
    assert torch.equal(out[0], want)


def test_a_layout_for_other_tokens_is_refused():
    with pytest.raises(gn.BadValue, match="2 rows but the batch has 3"):
        gn.InputLayer(30, 8)(torch.zeros(3, 4, dtype=torch.long), gn.Layout.dense(2, 4))


# ------------------------------------------------------------------ token and position enter at comparable sizes


@pytest.mark.parametrize("name", [n for n in gn.positions.names() if gn.positions.encoding(n).acts == "input"])
@pytest.mark.parametrize("d_model", [16, 128, 512])
@pytest.mark.parametrize("architecture", ["layer", "decoder", "encoder", "both", "narrow table", "concat"])
def test_token_and_position_enter_at_comparable_sizes_by_default(name, d_model, architecture):
    sizes = {"vocab_size": 300, "d_model": d_model, "position": name, "max_positions": 64}
    deep = {"n_layers": 1, "n_heads": 2, "d_ff": 8}
    match architecture:
        case "layer":
            layer = gn.InputLayer(**sizes)
        case "decoder":
            layer = gn.DecoderOnly(**sizes, **deep).input
        case "encoder":
            layer = gn.EncoderOnly(**sizes, **deep, input_norm="layernorm").input
        case "both":
            layer = gn.EncoderDecoder(**sizes, **deep, source_vocab_size=200).source_input
        case "narrow table":
            layer = gn.InputLayer(**sizes, d_embed=d_model // 4)
        case "concat":
            layer = gn.InputLayer(**sizes, combine="concat", position_dim=8)
    tokens, position = layer.sizes()
    assert 0.5 < tokens / position < 2
    assert layer.balance() == ""


def test_an_encoding_of_ones_own_enters_as_large_as_tokens(monkeypatch):
    monkeypatch.setattr("gnomon.positions.base._REGISTRY", dict(_REGISTRY))
    kind = {"vectors": lambda self, at, dtype=torch.float32: torch.ones(1, at.shape[1], 16)}
    fixed = type("Ones", (gn.PositionEncoding,), {"name": "ones", "acts": "input", **kind})
    tokens, position = gn.DecoderOnly(300, 16, 1, 2, position=fixed.name).input.sizes()
    assert tokens == pytest.approx(position, rel=0.1)


def test_published_presets_keep_their_published_sizes():
    for name in ("gpt2-small", "bert-base", "mini-gpt"):
        c = gn.models.preset(name, n_layers=1)
        assert (c.embed_scale, c.init_std) == (None, 0.02)
        layer = gn.models.build(gn.models.preset(name, n_layers=1, vocab_size=500)).input
        assert layer.sizes() == pytest.approx((0.02, 0.02), rel=0.05)
    assert gn.models.preset("vaswani-base").embed_scale == "sqrt"


def test_what_auto_came_to_is_kept_whatever_becomes_of_the_config():
    config = gn.ModelConfig.from_dict(
        {"vocab_size": 9, "d_model": 8, "n_layers": 1, "n_heads": 1, "position": "sinusoidal"}
    )
    assert config.embed_scale == 50.0
    assert replace(config, position=gn.positions.get("rope")).embed_scale == 50.0
    assert gn.ModelConfig.from_dict(config.to_dict()) == config
    assert replace(config, embed_scale=None).embed_scale is None


def test_sizes_that_differ_much_are_said():
    layer = gn.InputLayer(300, 16, position="sinusoidal", scale=None)
    assert re.search(r"size 0\.02 and positions with 0\.7\d? .* one is 3\d times the other", layer.balance())
