"""The whole model: what goes in, what comes out, and what does not matter."""

import copy

import pytest
import torch

import gnomon as gn
from gnomon.models.stack import init_linears

ENCODINGS = gn.positions.names()
VOCAB = 60


def small(**changes):
    settings = {"position": "rope", "max_positions": 32, "init_std": 0.2, **changes}
    return gn.DecoderOnly(VOCAB, 16, 2, 2, **settings).eval()


def tokens(B=2, T=9):
    return torch.randint(VOCAB, (B, T))


@pytest.mark.parametrize("preset", ["mini-gpt", "mini-llama"])
def test_ids_become_logits_over_the_vocabulary(preset):
    model, ids = gn.DecoderOnly.from_preset(preset), torch.tensor([[76, 299, 412]])
    assert model(ids).shape == (1, 3, 512)
    assert model.hidden(ids).shape == (1, 3, 128)
    torch.testing.assert_close(model.eval()(ids), model.head(model.hidden(ids)))


@pytest.mark.parametrize("position", ENCODINGS)
@pytest.mark.parametrize("placement", ["pre", "post"])
def test_a_tokens_output_depends_on_its_own_row_alone(position, placement):
    """Neither batch mates nor padding, on either side, change it."""
    model, ids = small(position=position, placement=placement), tokens(3, 7)
    want = model(ids[:1])
    torch.testing.assert_close(model(ids)[:1], want, atol=1e-5, rtol=0)
    filler = tokens(1, 2)
    left = gn.Layout.padded(torch.tensor([[0, 0, 1, 1, 1, 1, 1, 1, 1]]))
    right = gn.Layout.padded(torch.tensor([[1, 1, 1, 1, 1, 1, 1, 0, 0]]))
    torch.testing.assert_close(model(torch.cat([filler, ids[:1]], 1), left)[:, 2:], want, atol=1e-5, rtol=0)
    torch.testing.assert_close(model(torch.cat([ids[:1], filler], 1), right)[:, :7], want, atol=1e-5, rtol=0)


@pytest.mark.parametrize("position", ENCODINGS)
def test_a_changed_future_leaves_the_past_bit_for_bit(position):
    model, ids = small(position=position), tokens()
    other = ids.clone()
    other[:, 5:] = tokens(2, 4)
    assert torch.equal(model(other)[:, :5], model(ids)[:, :5])
    if gn.positions.encoding(position).one_sided:
        return  # it cannot be built to look ahead
    both_ways = small(position=position, causal=False)
    assert not torch.equal(both_ways(other)[:, :5], both_ways(ids)[:, :5])


def test_position_changes_the_output():
    """With options that fit a text so short. T5's table starts near zero, so its weights are drawn wider here."""
    ids, plain = tokens(), small(position="none")
    for position in [n for n in ENCODINGS if n != "none"]:
        model = small(position=gn.positions.get(position, **gn.positions.encoding(position).tiny))
        for table in model.stack.positions.parameters():
            torch.nn.init.normal_(table)
        plain.load_state_dict(model.state_dict(), strict=False)
        assert (model(ids) - plain(ids)).abs().max() > 1e-2, position


@pytest.mark.parametrize("position", ["rope", "alibi", "t5", "none"])
def test_no_learned_absolute_table_is_left_behind(position):
    """Choosing a method that acts in attention leaves nothing of the size of max_positions."""
    model = small(position=position, max_positions=31)
    assert model.input.position is None
    assert all(31 not in p.shape for p in model.parameters())


@pytest.mark.parametrize("position", ENCODINGS)
def test_the_state_dict_holds_parameters_alone(position):
    model = small(position=position)
    model(tokens())
    assert set(model.state_dict()) == {name for name, _ in model.named_parameters()}


def test_one_encoding_per_layer_acts_in_its_layer():
    """A list of two: with the second layer's encoding "none", only the first layer sees RoPE, and the reverse."""
    ids = tokens()
    base = small(position="rope")
    outputs = {}
    for mix in (["rope", "rope"], ["rope", "none"], ["none", "rope"]):
        model = small(position=mix)
        model.load_state_dict(base.state_dict())
        trace = gn.Trace()
        model(ids, trace=trace)
        outputs[tuple(mix)] = trace.hidden
    both, first, second = outputs.values()
    assert torch.equal(both[1], first[1])
    assert not torch.equal(first[2], both[2])
    assert not torch.equal(second[1], both[1])


def test_equal_encodings_are_one_module_and_different_ones_are_several():
    mix = [gn.positions.get("rope"), "none", gn.positions.get("rope"), gn.positions.get("rope", base=5.0)]
    model = gn.DecoderOnly(VOCAB, 16, 4, 2, position=mix)
    assert len(model.stack.positions) == 3
    assert model.position_of(0) is model.position_of(2)
    assert model.position_of(3).base == 5.0


def test_post_norm_ends_with_its_own_norm_and_pre_norm_with_a_final_one():
    assert isinstance(small(placement="post").stack.norm, torch.nn.Identity)
    assert isinstance(small(placement="pre").stack.norm, torch.nn.LayerNorm)


def test_what_writes_into_the_stream_starts_smaller():
    """GPT-2: 0.02 / sqrt(2 n_layers) for the projections that are added to the residual stream."""
    model = gn.DecoderOnly(VOCAB, 256, 8, 4, init_std=0.02)
    for block in model.stack.blocks:
        for part, std in (
            (block.attention.q, 0.02),
            (block.ffn.up, 0.02),
            (block.attention.out, 0.005),
            (block.ffn.down, 0.005),
        ):
            assert float(part.weight.detach().std()) == pytest.approx(std, rel=0.05)
            assert part.bias.abs().sum() == 0


def test_initialising_draws_every_linear_layer():
    layers = torch.nn.ModuleDict({"up": torch.nn.Linear(400, 400), "out": torch.nn.Linear(400, 400)})
    init_linears(torch.nn.ModuleDict({"block": layers}), std=0.1, n_layers=2)
    assert float(layers["up"].weight.detach().std()) == pytest.approx(0.1, rel=0.05)
    assert float(layers["out"].weight.detach().std()) == pytest.approx(0.05, rel=0.05)


@pytest.mark.parametrize("position", ENCODINGS)
def test_a_copy_is_a_model_of_its_own(position):
    model, ids = small(position=position), tokens()
    other = copy.deepcopy(model)
    want = model(ids).clone()
    with torch.no_grad():
        for p in other.parameters():
            p.zero_()
    assert torch.equal(model(ids), want)


def test_a_trace_holds_every_step_of_the_way():
    model, ids, trace = small(position="learned"), tokens(), gn.Trace()
    logits = model(ids, trace=trace)
    assert trace.tokens.shape == (2, 9, 16)
    assert trace.position.shape[1:] == (9, 16)
    assert len(trace.hidden) == model.config.n_layers + 1
    assert len(trace.attention) == model.config.n_layers
    torch.testing.assert_close(model.head(model.stack.norm(trace.hidden[-1])), logits)
    assert torch.equal(model(ids), logits)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"n_heads": 3}, "d_model=16 does not divide into n_heads=3 heads"),
        ({"n_kv_heads": 4, "n_heads": 6, "d_head": 4}, "n_heads=6 must be a multiple of n_kv_heads=4"),
        ({"n_heads": 0}, "n_heads must be a whole number between 1 and"),
        ({"position": "rope", "d_head": 7}, "rotary width must be even"),
        ({"position": "learned"}, "learned needs max_positions"),
        ({"position": "rop"}, "did you mean 'rope'"),
        ({"norm": "layer"}, "unknown norm 'layer'"),
    ],
)
def test_a_mistake_is_named_when_the_model_is_built(changes, message):
    with pytest.raises(gn.BadValue, match=message):
        gn.DecoderOnly(**{"vocab_size": 10, "d_model": 16, "n_layers": 1, "n_heads": 2, **changes})


@pytest.mark.parametrize(
    ("ids", "message"),
    [([[1, VOCAB]], f"token id {VOCAB} .* vocabulary of {VOCAB}"), ([1, 2], "shape"), ([[]], r"got \(1, 0\)")],
)
def test_ids_that_are_none_are_refused_before_anything_is_computed(ids, message):
    with pytest.raises(gn.BadValue, match=message):
        small()(torch.tensor(ids, dtype=torch.long))


def test_head_width_may_be_free_of_the_model_width():
    model = gn.DecoderOnly(VOCAB, 16, 1, 3, d_head=6, position="rope")
    assert model.stack.blocks[0].attention.q.weight.shape == (18, 16)
    assert model(tokens()).shape == (2, 9, VOCAB)


@pytest.mark.parametrize(
    ("changes", "biases"),
    [
        ({"bias": False}, []),
        ({"bias": False, "qkv_bias": True}, ["attention.k", "attention.q", "attention.v"]),
        (
            {"bias": False, "qkv_bias": True, "out_bias": True},
            ["attention.k", "attention.out", "attention.q", "attention.v"],
        ),
        ({"qkv_bias": False}, ["attention.out", "ffn.down", "ffn.up"]),
        ({"qkv_bias": False, "out_bias": True}, ["attention.out", "ffn.down", "ffn.up"]),
    ],
)
def test_each_part_of_a_block_has_the_biases_that_were_asked_for(changes, biases):
    names = [name for name, _ in small(**changes).named_parameters() if ".bias" in name and "blocks.0" in name]
    linear = sorted(name.split("blocks.0.")[1].removesuffix(".bias") for name in names if "norm" not in name)
    assert linear == biases


@pytest.mark.parametrize("tied", [True, False])
def test_logits_may_be_scaled_and_capped_whatever_table_they_come_from(tied):
    """c tanh(s h E^T / c): Granite's scale, Gemma 2's cap."""
    model, ids = small(tied=tied, head_scale=0.25, head_softcap=0.01), tokens()
    table = model.input.tokens.weight if tied else model.head.weight
    torch.testing.assert_close(model(ids), 0.01 * torch.tanh(25 * model.hidden(ids) @ table.T))


def test_scores_and_logits_may_be_scaled_otherwise():
    """T5 does not divide scores, and its tied head multiplies by d^-0.5."""
    model, ids = small(attention_scale=1.0, head_scale=0.25, head_bias=True), tokens()
    with torch.no_grad():
        model.head.bias.normal_()
    h = model.hidden(ids)
    torch.testing.assert_close(model(ids), 0.25 * h @ model.input.tokens.weight.T + model.head.bias)
    attention = model.stack.blocks[0].attention
    assert attention.settings.scale == 1.0
    assert small().stack.blocks[0].attention.settings.scale == attention.d_head**-0.5
