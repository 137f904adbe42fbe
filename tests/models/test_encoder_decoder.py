"""EncoderDecoder: two stacks and one table; the original Transformer, and its modern forms."""

import pytest
import torch
from torch import nn

import gnomon as gn
from gnomon.models import build, preset
from gnomon.models.plan import plan

SIZES = {"vocab_size": 23, "d_model": 16, "n_layers": 2, "n_heads": 4}
VASWANI = {
    "position": "sinusoidal",
    "activation": "relu",
    "placement": "post",
    "embed_scale": "sqrt",
}


def original(**changes):
    return gn.EncoderDecoder(**SIZES, **{**VASWANI, **changes}).eval()


def texts(B=3, S=7, T=5):
    return torch.randint(23, (B, S)), torch.randint(23, (B, T))


# ------------------------------------------------------------------ against torch's own


def attention_weights(to, of):
    """torch keeps the three projections in one matrix."""
    to.in_proj_weight.copy_(torch.cat([of.q.weight, of.k.weight, of.v.weight]))
    to.in_proj_bias.copy_(torch.cat([of.q.bias, of.k.bias, of.v.bias]))
    to.out_proj.load_state_dict(of.out.state_dict())


def feed_forward(to, of):
    to.linear1.load_state_dict(of.ffn.up.state_dict())
    to.linear2.load_state_dict(of.ffn.down.state_dict())


@torch.no_grad()
def as_torch(model, pre):
    """torch.nn's encoder and decoder with the weights of `model`."""
    settings = {"d_model": 16, "nhead": 4, "dim_feedforward": 64, "dropout": 0.0, "batch_first": True}
    encoder = nn.TransformerEncoder(
        nn.TransformerEncoderLayer(**settings, norm_first=pre),
        2,
        norm=nn.LayerNorm(16) if pre else None,
        enable_nested_tensor=False,
    )
    decoder = nn.TransformerDecoder(
        nn.TransformerDecoderLayer(**settings, norm_first=pre), 2, norm=nn.LayerNorm(16) if pre else None
    )
    for layer, block in zip(encoder.layers, model.encoder.blocks, strict=True):
        attention_weights(layer.self_attn, block.attention)
        feed_forward(layer, block)
        layer.norm1.load_state_dict(block.around_attention.norm.state_dict())
        layer.norm2.load_state_dict(block.around_ffn.norm.state_dict())
    for layer, block in zip(decoder.layers, model.decoder.blocks, strict=True):
        attention_weights(layer.self_attn, block.attention)
        attention_weights(layer.multihead_attn, block.cross)
        feed_forward(layer, block)
        layer.norm1.load_state_dict(block.around_attention.norm.state_dict())
        layer.norm2.load_state_dict(block.around_cross.norm.state_dict())
        layer.norm3.load_state_dict(block.around_ffn.norm.state_dict())
    if pre:
        encoder.norm.load_state_dict(model.encoder.norm.state_dict())
        decoder.norm.load_state_dict(model.decoder.norm.state_dict())
    return encoder.eval(), decoder.eval()


@pytest.mark.parametrize("placement", ["post", "pre"])
def test_it_is_torchs_transformer_under_the_same_weights(placement):
    """Post-norm and ReLU as in the paper, or pre-norm; a padded source."""
    model, (source, target) = original(placement=placement, init_std=0.3), texts()
    for p in model.parameters():
        if p.dim() == 1:
            nn.init.normal_(p, 1.0, 0.3)
    real = torch.arange(7) < torch.tensor([[7], [4], [6]])
    at = gn.Layout.padded(real)
    encoder, decoder = as_torch(model, placement == "pre")
    memory = encoder(model.input(source, at), src_key_padding_mask=~real)
    causal = nn.Transformer.generate_square_subsequent_mask(5)
    h = decoder(model.input(target), memory, tgt_mask=causal, tgt_is_causal=True, memory_key_padding_mask=~real)
    torch.testing.assert_close(model(source, target, at), h @ model.input.tokens.weight.T, rtol=1e-4, atol=1e-5)


# ------------------------------------------------------------------ one table, counts


def test_one_table_serves_source_target_and_output():
    """Changing a row moves the vectors of both texts and the logits."""
    model, (source, target) = original(), texts()
    names = [name for name, p in model.named_parameters() if p.shape == (23, 16)]
    assert names == ["input.tokens.weight"]
    model(source, target).square().sum().backward()
    assert (model.input.tokens.weight.grad.abs().sum(1) > 0).all()


def test_the_source_may_have_a_vocabulary_of_its_own():
    model = original(source_vocab_size=40)
    source, target = torch.full((2, 3), 39), torch.full((2, 4), 22)
    assert model(source, target).shape == (2, 4, 23)
    with pytest.raises(gn.BadValue, match="39"):
        model(target, source)


def test_source_and_target_may_share_their_tokens_and_not_their_positions():
    """BART: one table of tokens, two of positions, and a norm of each side's own."""
    model = original(position="learned", max_positions=9, source_positions=True, input_norm="layernorm")
    assert [n for n, p in model.named_parameters() if p.shape == (23, 16)] == ["input.tokens.weight"]
    assert [n for n, p in model.named_parameters() if p.shape == (9, 16)] == [
        "input.position.weight",
        "source_input.position.weight",
    ]
    ids = torch.randint(23, (2, 5))
    with torch.no_grad():  # for the first reading too: with gradients other kernels run, and last bits differ
        memory = model.encode(ids)
        model.input.position.weight.add_(1)
        assert torch.equal(model.encode(ids).states, memory.states)
        model.source_input.position.weight.add_(torch.randn(9, 16))
        assert not torch.allclose(model.encode(ids).states, memory.states)


@pytest.mark.slow
def test_vaswani_base_has_the_size_that_its_parts_add_up_to():
    """37 000 x 512 for the table; a layer of the encoder 4 (512^2 + 512) + 2 * 512 * 2048 + 2560 and two norms; the
    decoder's with a second attention and a third norm."""
    attention, ffn, norm = 4 * (512 * 512 + 512), 2 * 512 * 2048 + 2048 + 512, 2 * 512
    by_hand = 37_000 * 512 + 6 * (attention + ffn + 2 * norm) + 6 * (2 * attention + ffn + 3 * norm)
    assert plan(preset("vaswani-base")).total == by_hand == 63_082_496


def test_depths_may_differ():
    model = original(n_decoder_layers=1)
    assert (len(model.encoder.blocks), len(model.decoder.blocks)) == (2, 1)
    model(*texts())


# ------------------------------------------------------------------ what makes no sense


def test_a_decoder_that_looks_ahead_is_refused():
    with pytest.raises(gn.BadValue, match="causal=False"):
        original(causal=False)


def test_an_encoder_without_position_is_warned_about():
    with pytest.warns(UserWarning, match="cannot tell one order"):
        original(position="none")


def test_a_bias_that_only_looks_back_is_refused_in_an_encoder():
    with pytest.raises(gn.BadValue, match="only distinguishes past distances"):
        original(position=gn.positions.get("t5", causal=True))
    original(position="t5")


def test_sublayers_side_by_side_are_refused_where_a_third_one_stands():
    with pytest.raises(gn.BadValue, match="without cross-attention"):
        original(residual="parallel", placement="pre")


def test_a_decoder_needs_a_source():
    with pytest.raises(gn.BadValue, match="memory=model.encode"):
        original().hidden(texts()[1])


# ------------------------------------------------------------------ looking inside


def test_a_trace_shows_where_the_target_looks_in_the_source():
    model, (source, target), trace = original(), texts(), gn.Trace()
    at = gn.Layout.padded(torch.arange(7) < torch.tensor([[7], [4], [6]]))
    logits = model(source, target, at, trace=trace)
    assert [p.shape for p in trace.cross] == [(3, 4, 5, 7)] * 2
    assert trace.cross[0][1, :, :, 4:].abs().max() == 0
    torch.testing.assert_close(trace.cross[1].sum(-1), torch.ones(3, 4, 5))
    assert torch.equal(model(source, target, at), logits)


def test_the_config_builds_it_again():
    model, (source, target) = original(n_decoder_layers=1, source_vocab_size=23), texts()
    again = build(gn.ModelConfig.from_dict(model.config.to_dict()))
    again.load_state_dict(model.state_dict())
    assert isinstance(again, gn.EncoderDecoder)
    assert torch.equal(again.eval()(source, target), model(source, target))
