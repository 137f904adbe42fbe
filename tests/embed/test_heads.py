"""Heads: one table used twice, or two tables."""

import copy
import math

import pytest
import torch
from torch import nn

import gnomon as gn


def pair(**options):
    table = gn.TokenEmbedding(11, 6, scale=None)
    return table, gn.Tied(table, **options)


def test_a_tied_head_is_the_table_itself():
    """One Parameter, tested with `is`; counted once."""
    model = gn.DecoderOnly(11, 8, 1, 2)
    assert model.head.weight is model.input.tokens.weight
    assert sum(p is model.input.tokens.weight for p in model.parameters()) == 1
    assert [name for name in model.state_dict() if name.startswith("head")] == []


def test_logits_are_products_with_the_rows():
    """logits = h W^T: a dot product, which includes length; (1, 0) scores 2 with (2, 2) and 1 with (1, 0)."""
    table, head = pair()
    h = torch.randn(2, 3, 6)
    torch.testing.assert_close(head(h), h @ table.weight.T)
    with torch.no_grad():
        table.weight[:2] = torch.tensor([[2.0, 2, 0, 0, 0, 0], [1.0, 0, 0, 0, 0, 0]])
    assert head(torch.tensor([[[1.0, 0, 0, 0, 0, 0]]]))[0, 0, :2].tolist() == [2, 1]


def test_the_lookups_scale_is_not_in_the_head():
    """The original Transformer multiplies by sqrt(D) on the way in and uses the same matrix as it is on the way out."""
    table = gn.TokenEmbedding(3, 16)
    with torch.no_grad():
        table.weight.fill_(1.0)
    assert table(torch.tensor([[0]]))[0, 0, 0] == 4.0
    assert gn.Tied(table)(torch.ones(1, 1, 16))[0, 0, 0] == 16.0


def test_t5s_head_is_scaled_when_tied():
    """T5 v1.0: logits times d^-0.5; d = 16, hidden state and row of ones: 4, not 16."""
    table = gn.TokenEmbedding(3, 16, scale=None)
    with torch.no_grad():
        table.weight.fill_(1.0)
    assert gn.Tied(table, scale=16**-0.5)(torch.ones(1, 1, 16))[0, 0, 0] == 4.0


@pytest.mark.parametrize("scale", ["sqrt", None])
def test_the_gradient_is_the_sum_over_both_uses(scale):
    """With the uses told apart by detaching one, the two gradients add up to the tied one."""

    def gradient(lookup, head):
        torch.manual_seed(0)
        table = gn.TokenEmbedding(11, 6, scale=scale)
        uses = [table.weight if used else table.weight.detach() for used in (lookup, head)]
        x = nn.functional.embedding(torch.tensor([1, 4, 4]), uses[0]) * table.scale
        loss = nn.functional.cross_entropy(torch.tanh(x) @ uses[1].T, torch.tensor([2, 3, 10]))
        loss.backward()
        return table.weight.grad

    torch.manual_seed(0)
    table = gn.TokenEmbedding(11, 6, scale=scale)
    head = gn.Tied(table)
    logits = head(torch.tanh(table(torch.tensor([[1, 4, 4]]))))[0]
    nn.functional.cross_entropy(logits, torch.tensor([2, 3, 10])).backward()
    torch.testing.assert_close(table.weight.grad, gradient(True, False) + gradient(False, True))
    torch.testing.assert_close(table.weight.grad, gradient(True, True))


def test_tied_every_row_gets_a_gradient():
    """The course's "only rows in the batch" holds untied: 3 rows there, all 512 here."""
    ids = torch.tensor([[76, 299, 412]])
    for tied, rows in ((True, 512), (False, 3)):
        model = gn.DecoderOnly(512, 16, 1, 2, position="none", tied=tied)
        nn.functional.cross_entropy(model(ids)[0], ids[0]).backward()
        assert int((model.input.tokens.weight.grad.abs().sum(1) > 0).sum()) == rows


def test_a_tied_model_starts_at_the_loss_of_guessing():
    """With rows of deviation 0.02 the first loss is ln V; with nn.Embedding's N(0, 1) it would be near 90."""
    torch.manual_seed(0)
    model, ids = gn.DecoderOnly.from_preset("mini-gpt").eval(), torch.randint(512, (4, 64))
    with torch.no_grad():
        loss = nn.functional.cross_entropy(model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())
    assert float(loss) == pytest.approx(math.log(512), abs=0.1)


def reload(model, **how):
    other = gn.DecoderOnly.from_config(model.config)
    other.load_state_dict(model.state_dict(), **how)
    return other


def from_meta(model):
    with torch.device("meta"):
        late = gn.DecoderOnly.from_config(model.config)
    late.load_state_dict(model.state_dict(), assign=True)
    return late


def resized(model):
    model.resize(20)
    return model


@pytest.mark.parametrize(
    "path",
    [
        copy.deepcopy,
        reload,
        lambda m: reload(m, assign=True),
        from_meta,
        lambda m: m.bfloat16(),
        lambda m: m.double(),
        lambda m: m.to("meta"),
        resized,
    ],
    ids=["deepcopy", "load", "load with assign", "meta and assign", "bfloat16", "double", "to", "resize"],
)
def test_a_tie_survives(path):
    """After every path one Parameter, counted once, that both uses follow."""
    model = path(gn.DecoderOnly(11, 8, 1, 2, padding_id=0))
    table = model.input.tokens.weight
    assert model.head.weight is table
    assert [name for name, p in model.named_parameters() if p is table] == ["input.tokens.weight"]
    if table.device.type == "meta":
        return
    ids = torch.tensor([[1, 2, 3]])
    before = model(ids)
    with torch.no_grad():
        table[1:].mul_(2)
    assert (model(ids) - before).abs().max() > 1e-4


@pytest.mark.slow
@torch.no_grad()
def test_a_tie_survives_compilation():
    model, ids = gn.DecoderOnly(11, 8, 1, 2).eval(), torch.tensor([[1, 2, 3]])
    compiled = torch.compile(model, backend="eager")
    torch.testing.assert_close(compiled(ids), model(ids))
    model.input.tokens.weight.mul_(2)
    torch.testing.assert_close(compiled(ids), model(ids))


def test_a_copy_is_tied_to_its_own_table():
    model = gn.DecoderOnly(11, 8, 1, 2)
    other = copy.deepcopy(model)
    assert other.head.weight is not model.head.weight
    with torch.no_grad():
        other.input.tokens.weight.zero_()
    assert model.head.weight.abs().sum() > 0


def test_one_optimizer_step_decays_a_tied_table_once():
    """lr 0.1 and decay 0.5 with zero gradient: 1 becomes 0.95, not 0.9025."""
    model = gn.DecoderOnly(4, 3, 1, 1, position="none")
    with torch.no_grad():
        model.input.tokens.weight.fill_(1.0)
    model.input.tokens.weight.grad = torch.zeros(4, 3)
    torch.optim.AdamW(model.parameters(), lr=0.1, weight_decay=0.5).step()
    assert model.head.weight.flatten().tolist() == pytest.approx([0.95] * 12)


@pytest.mark.parametrize("size", [10, 5])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("tied", [True, False])
def test_resizing_resizes_table_head_and_bias_together(tied, bias, size):
    """7 tokens to 10 padded to 16, or to 5: old rows bit for bit, old logits unchanged, a tie stays a tie."""
    table = gn.TokenEmbedding(7, 6, scale=None, padding_id=1)
    head = gn.Tied(table, bias=bias) if tied else gn.Untied(6, 7, bias=bias)
    if bias:
        nn.init.normal_(head.bias)
    h, keep = torch.randn(1, 2, 6), min(size, 7)
    before, rows = head(h), table.weight.detach().clone()
    table.resize(size)
    head.resize(size)
    assert head(h).shape == (1, 2, size)
    torch.testing.assert_close(head(h)[..., :keep], before[..., :keep])
    assert torch.equal(table.weight[:keep], rows[:keep])
    assert table.weight[1].abs().sum() == 0
    assert (head.weight is table.weight) == tied
    if bias:
        assert head.bias.shape == (size,)
        assert head.bias[7:].abs().sum() == 0


@pytest.mark.parametrize("tied", [True, False])
def test_a_model_is_resized_to_a_multiple_and_its_config_follows(tied):
    model = gn.DecoderOnly(7, 8, 1, 2, tied=tied).eval()
    ids = torch.tensor([[1, 2, 6]])
    before = model(ids)
    assert model.resize(10, pad_to_multiple=8) == 16
    assert model.config.vocab_size == model.input.tokens.vocab_size == model.head.weight.shape[0] == 16
    torch.testing.assert_close(model(ids)[..., :7], before)
    assert model(torch.tensor([[15]])).shape == (1, 1, 16)
    gn.DecoderOnly.from_config(model.config).load_state_dict(model.state_dict())


@pytest.mark.parametrize(
    ("padding_id", "size", "message"),
    [(None, (0,), "one row, got 0"), (None, (9, 0), "pad_to_multiple .* got 0"), (6, (5,), "cut off the padding")],
)
@pytest.mark.parametrize("tied", [True, False])
def test_a_refused_size_leaves_table_head_and_config(tied, padding_id, size, message):
    model = gn.DecoderOnly(7, 8, 1, 2, tied=tied, head_bias=True, padding_id=padding_id).eval()
    ids = torch.tensor([[1, 2]])
    before = model(ids)
    with pytest.raises(gn.BadValue, match=message):
        model.resize(*size)
    assert model.config.vocab_size == model.input.tokens.vocab_size == model.head.weight.shape[0] == 7
    assert torch.equal(model(ids), before)


@pytest.mark.parametrize("own", [None, 9])
@pytest.mark.parametrize("size", [(10, 8), (5, 1)])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("tied", [True, False])
def test_a_translator_is_resized_on_the_side_it_writes(tied, bias, size, own):
    """10 padded to 16, or 5: old logits bit for bit, the same source, and the config builds it again."""
    settings = {"tied": tied, "head_bias": bias, "padding_id": 0, "source_vocab_size": own}
    model = gn.EncoderDecoder(7, 8, 1, 2, **settings).eval()
    texts = torch.tensor([[1, 2]]), torch.tensor([[3, 4]])
    before, rows = model(*texts), model.resize(*size)
    after = model(*texts)
    assert after.shape[-1] == rows == model.head.weight.shape[0]
    assert torch.equal(after[..., :7], before[..., :rows])
    assert model.input.tokens.weight[0].abs().sum() == 0
    assert (model.head.weight is model.input.tokens.weight) == tied
    assert own is None or model.source_input.tokens.vocab_size == own
    gn.EncoderDecoder.from_config(model.config).load_state_dict(model.state_dict())


def test_an_untied_head_has_a_table_of_its_own():
    model = gn.DecoderOnly(11, 8, 1, 2, tied=False)
    assert model.head.weight is not model.input.tokens.weight
    assert "head.weight" in model.state_dict()


def test_the_padding_token_has_a_logit_of_zero_and_gives_no_gradient_to_its_row():
    table = gn.TokenEmbedding(4, 3, padding_id=0)
    logits = gn.Tied(table)(torch.randn(1, 2, 3))
    assert logits[..., 0].abs().sum() == 0
    logits.sum().backward()
    assert table.weight.grad[0].abs().sum() == 0
    assert table.weight.grad[1:].abs().sum(1).min() > 0
