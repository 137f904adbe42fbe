"""Each head is its formula, padding has no part in what is pooled, and a head that cannot be is named."""

import pytest
import torch
from torch.nn import functional as F

import gnomon as gn
from gnomon.attention import Memory
from gnomon.models.heads import pool
from gnomon.models.plan import plan
from gnomon.models.presets import preset

SIZES = {"vocab_size": 50, "d_model": 16, "n_layers": 2, "n_heads": 2, "causal": False}
IDS = torch.tensor([[3, 1, 4, 1, 5], [9, 2, 6, 5, 3]])
MASK = torch.tensor([[0, 0, 1, 1, 1], [1, 1, 1, 1, 0]]).bool()


def encoder(**settings):
    """An encoder with no weight at zero, so that nothing can be left out unseen."""
    model = gn.EncoderOnly(**SIZES, **settings).eval()
    with torch.no_grad():
        for p in model.parameters():
            p.normal_(std=0.3)
    return model


def read(model, at=None):
    with torch.no_grad():
        return model(IDS, at), model.encode(IDS, at).states, dict(model.head.named_parameters())


def test_tokens_are_read_off_the_table():
    model = encoder()
    logits, h, own = read(model)
    torch.testing.assert_close(logits, h @ model.input.tokens.weight.T)
    assert own == {}  # the table is the only weight


def test_masked_tokens_are_read_as_bert_does():
    """Devlin et al. 2019, arXiv:1810.04805: dense, gelu, norm, the token table and a bias for each token."""
    model = encoder(head="masked", norm_eps=1e-12)
    logits, h, w = read(model)
    t = F.layer_norm(
        F.gelu(h @ w["transform.weight"].T + w["transform.bias"]), (16,), w["norm.weight"], w["norm.bias"], 1e-12
    )
    torch.testing.assert_close(logits, t @ model.input.tokens.weight.T + w["out.bias"])


def test_an_untied_masked_head_has_its_own_table():
    model = encoder(head="masked", tied=False)
    assert model.head.out.weight.shape == (50, 16)
    assert model.head.out.weight is not model.input.tokens.weight


def test_labels_are_linear_in_each_token():
    logits, h, w = read(encoder(head="labels", n_classes=7))
    torch.testing.assert_close(logits, h @ w["out.weight"].T + w["out.bias"])
    assert logits.shape == (2, 5, 7)


@pytest.mark.parametrize("pooler", [False, True])
@pytest.mark.parametrize("pooling", ["first", "mean"])
def test_classes_are_linear_in_the_pooled_vector(pooling, pooler):
    model = encoder(head="classes", n_classes=3, pooling=pooling, pooler=pooler)
    logits, h, w = read(model, gn.Layout.padded(MASK))
    p = torch.stack([h[0, 2], h[1, 0]]) if pooling == "first" else torch.stack([h[0, 2:].mean(0), h[1, :4].mean(0)])
    p = torch.tanh(p @ w["pooler.weight"].T + w["pooler.bias"]) if pooler else p
    torch.testing.assert_close(logits, p @ w["out.weight"].T + w["out.bias"])
    vectors = encoder(head="pooled", pooling=pooling, pooler=pooler)
    assert vectors(IDS).shape == (2, 16)


@pytest.mark.parametrize("pooling", ["first", "mean"])
@pytest.mark.parametrize("junk", [1e30, float("inf"), float("nan")])
def test_padding_has_no_part_in_what_is_pooled(pooling, junk):
    states = torch.randn(2, 5, 16)
    dirty = states.masked_fill(~MASK.unsqueeze(2), junk)
    at = gn.Layout.padded(MASK)
    assert torch.equal(pool(Memory(states, at), pooling), pool(Memory(dirty, at), pooling))
    assert pool(Memory(dirty, at), pooling).isfinite().all()


@pytest.mark.parametrize("pooling", ["first", "mean"])
def test_a_row_is_pooled_alike_whatever_side_its_padding_is_on(pooling):
    model = encoder(head="pooled", pooling=pooling, position="rope")
    alone = model(torch.tensor([[7, 8, 9]]))
    for ids, mask in (([[7, 8, 9, 0, 0]], [[1, 1, 1, 0, 0]]), ([[0, 0, 7, 8, 9]], [[0, 0, 1, 1, 1]])):
        torch.testing.assert_close(model(torch.tensor(ids), gn.Layout.padded(torch.tensor(mask))), alone)


def test_the_first_token_is_the_first_in_time_not_in_memory():
    states = torch.arange(6.0).reshape(1, 3, 2)
    at = gn.Layout.dense(1, 3).slots(torch.tensor([[2, 0, 1]]))
    assert pool(Memory(states, at), "first").tolist() == [[2.0, 3.0]]


def test_a_row_of_padding_is_pooled_to_zeros():
    at = gn.Layout.padded(torch.zeros(1, 3, dtype=torch.bool))
    for pooling in ("first", "mean"):
        assert pool(Memory(torch.randn(1, 3, 4), at), pooling).tolist() == [[0.0] * 4]


def test_several_documents_are_not_pooled_into_one_vector():
    at = gn.Layout.packed([[2, 3]])
    with pytest.raises(gn.BadValue, match="several documents"):
        pool(Memory(torch.randn(1, 5, 4), at))


def test_bert_base_with_its_pooler_has_the_published_size():
    """The published checkpoint's encoder and pooler: 108 891 648 and 768 x 768 + 768."""
    planned = plan(preset("bert-base"))
    assert planned.total == 109_482_240
    assert planned.parts["head"] == 768 * 768 + 768
    assert plan(preset("bert-base", head="tokens")).total == 108_891_648


@pytest.mark.parametrize(
    ("head", "more"),
    [("tokens", {}), ("masked", {}), ("labels", {"n_classes": 3}), ("pooled", {}), ("classes", {"n_classes": 3})],
)
def test_every_head_survives_another_vocabulary_and_the_way_to_json(head, more):
    model = encoder(head=head, **more)
    before = model(IDS)
    assert gn.ModelConfig.from_dict(model.config.to_dict()) == model.config
    model.resize(60)
    after = model(IDS)
    assert after.shape[-1] == (60 if head in ("tokens", "masked") else before.shape[-1])
    torch.testing.assert_close(after[..., :50], before)


def test_dropout_reaches_the_classes():
    model = gn.EncoderOnly(**SIZES, head="classes", n_classes=3, dropout=0.5)
    memory = Memory(torch.randn(2, 5, 16), gn.Layout.dense(2, 5))
    assert not torch.equal(model.head(memory), model.head(memory))
    model.eval()
    assert torch.equal(model.head(memory), model.head(memory))


@pytest.mark.parametrize(
    ("cls", "settings", "message"),
    [
        (gn.EncoderOnly, {"head": "classes"}, "n_classes goes with head='labels' or head='classes'"),
        (gn.EncoderOnly, {"n_classes": 4}, "n_classes goes with"),
        (gn.EncoderOnly, {"head": "labels", "n_classes": 0}, "n_classes must be a whole number between 1"),
        (gn.EncoderOnly, {"head": "class"}, "unknown head 'class': did you mean 'classes'"),
        (gn.EncoderOnly, {"pooling": "max"}, "unknown pooling 'max'"),
        (gn.DecoderOnly, {"head": "pooled"}, "goes with an encoder: this model is decoder-only"),
    ],
)
def test_a_head_that_cannot_be_is_named(cls, settings, message):
    with pytest.raises(gn.BadValue, match=message):
        cls(**SIZES, **settings)
