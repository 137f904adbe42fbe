"""A stack whose layers share blocks, an input of its own width, two senses of position: each is its formula."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import gnomon as gn

SIZES = {"vocab_size": 23, "d_model": 16, "n_layers": 4, "n_heads": 2}
IDS = torch.randint(23, (2, 9), generator=torch.Generator().manual_seed(1))


def drawn(model):
    """Every weight away from its first value."""
    for weight in model.parameters():
        nn.init.normal_(weight, std=0.3)
    return model.eval()


@pytest.mark.parametrize(("distinct", "blocks"), [(1, [0, 0, 0, 0]), (2, [0, 0, 1, 1]), (3, [0, 0, 1, 2])])
def test_layers_that_share_a_block_compute_what_copies_of_it_do(distinct, blocks):
    shared = drawn(gn.DecoderOnly(**SIZES, distinct_layers=distinct))
    apart = gn.DecoderOnly(**SIZES).eval()
    apart.load_state_dict(
        {
            name: shared.state_dict()[name.replace(f"blocks.{n}.", f"blocks.{blocks[n]}.")]
            for name in apart.state_dict()
            for n in [int(name.split(".")[2]) if name.startswith("stack.blocks.") else 0]
        }
    )
    assert len(shared.stack.blocks) == distinct
    assert torch.equal(shared(IDS), apart(IDS))


def test_a_shared_block_has_keys_and_values_of_each_layer_in_the_cache():
    model = drawn(gn.DecoderOnly(**SIZES, distinct_layers=1))
    cache = model.cache()
    pieces = [model(IDS[:, :5], cache=cache), model(IDS[:, 5:], cache=cache)]
    torch.testing.assert_close(torch.cat(pieces, 1), model(IDS), atol=1e-4, rtol=1e-4)


def test_position_at_the_input_and_in_attention():
    """MPNet: a learned vector is added to each token's, and T5's bias to the scores."""
    both = drawn(gn.EncoderOnly(**SIZES, position="t5", input_position="learned", max_positions=12))
    vectors = both.input.position.weight[:9]
    alone = gn.EncoderOnly(**SIZES, position="t5").eval()
    alone.load_state_dict({name: w for name, w in both.state_dict().items() if "input.position" not in name})
    assert not torch.allclose(both(IDS), alone(IDS), atol=0.1)
    with torch.no_grad():
        x = alone.input(IDS) + vectors
        at = gn.Layout.dense(*IDS.shape)
        torch.testing.assert_close(both(IDS), alone.stack(x, at, at) @ alone.input.tokens.weight.T)
    assert gn.ModelConfig.from_dict(both.config.to_dict()) == both.config


def test_an_input_of_its_own_width_is_projected_after_its_norm():
    """ALBERT: W norm(E[id] + P[t]) + b with a table that the head for masked tokens shares."""
    settings = {"position": "learned", "max_positions": 12, "input_norm": "layernorm", "head": "masked"}
    model = drawn(gn.EncoderOnly(**SIZES, **settings, d_input=6, head_activation="relu"))
    inner, head = model.input, model.head
    narrow = inner.norm(inner.tokens.weight[IDS] + inner.position.weight[:9])
    assert narrow.shape == (2, 9, 6)
    torch.testing.assert_close(inner(IDS), narrow @ inner.enter.weight.T + inner.enter.bias)
    h = model.encode(IDS).states
    want = head.norm(F.relu(head.transform(h))) @ inner.tokens.weight.T + head.out.bias
    torch.testing.assert_close(model(IDS), want)


def test_the_first_norm_may_be_left_to_the_input():
    """ModernBERT: no other block is without."""
    model = gn.EncoderOnly(**SIZES, input_norm="layernorm", first_norm=False)
    assert [type(block.around_attention.norm) for block in model.stack.blocks] == [nn.Identity, *[nn.LayerNorm] * 3]


WRONG = [
    ({"distinct_layers": 5}, "at most as many as layers"),
    ({"distinct_layers": 1, "window": [3, None]}, "layer 1 shares its block with another layer"),
    ({"distinct_layers": 1, "experts": {"n_experts": 2, "dense_layers": [0]}}, "shares its block"),
    ({"first_norm": False, "placement": "post"}, "goes with placement='pre'"),
    ({"input_position": "rope"}, "rope acts in attention"),
    ({"input_position": "learned", "position": "sinusoidal"}, "two encodings at the input"),
    ({"d_input": 8}, "cannot share"),
]


@pytest.mark.parametrize(("settings", "said"), WRONG)
def test_settings_that_do_not_go_together_are_named(settings, said):
    with pytest.raises(gn.BadValue, match=said):
        gn.EncoderOnly(**SIZES, **settings)
