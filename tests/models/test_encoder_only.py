"""EncoderOnly: both sides are seen; what looks back only has no place in it."""

import pytest
import torch

import gnomon as gn
from gnomon.models import build

SIZES = {"vocab_size": 23, "d_model": 16, "n_layers": 2, "n_heads": 4}


def test_it_is_a_decoder_only_model_that_sees_both_ways():
    """The same weights in the same blocks give the same logits."""
    encoder, other = gn.EncoderOnly(**SIZES).eval(), gn.DecoderOnly(**SIZES, causal=False).eval()
    encoder.load_state_dict(other.state_dict())
    ids = torch.randint(23, (2, 9))
    assert torch.equal(encoder(ids), other(ids))


def test_a_causal_encoder_is_refused():
    with pytest.raises(gn.BadValue, match="sees both ways"):
        gn.EncoderOnly(**SIZES, causal=True)


def test_without_position_it_warns_and_says_why():
    with pytest.warns(UserWarning, match="perplexity 147 against 4"):
        gn.EncoderOnly(**SIZES, position="none")


def test_a_bias_that_only_looks_back_is_refused():
    with pytest.raises(gn.BadValue, match="t5 was built with causal=True"):
        gn.EncoderOnly(**SIZES, position=gn.positions.get("t5", causal=True))


def test_segments_are_added_and_refused_where_there_is_no_table():
    model, ids = gn.EncoderOnly(**SIZES, n_types=2).eval(), torch.randint(23, (2, 5))
    second = torch.tensor([[0, 0, 1, 1, 1]]).expand(2, 5)
    assert not torch.equal(model(ids, types=second), model(ids))
    assert torch.equal(model(ids, types=torch.zeros_like(ids)), model(ids))
    with pytest.raises(gn.BadValue, match="n_types"):
        gn.EncoderOnly(**SIZES)(ids, types=second)


def test_the_config_builds_it_again():
    model, ids = gn.EncoderOnly(**SIZES, position="alibi").eval(), torch.randint(23, (2, 5))
    again = build(gn.ModelConfig.from_dict(model.config.to_dict()))
    again.load_state_dict(model.state_dict())
    assert torch.equal(again.eval()(ids), model(ids))
