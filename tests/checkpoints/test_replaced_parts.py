"""A model whose parts were replaced comes back from every kind of file as it was, or is refused; a tie stays a tie."""

import copy
from dataclasses import replace

import pytest
import torch
from torch import nn

import gnomon as gn
from gnomon.checkpoints import gguf, load, save_hf, save_model
from gnomon.embed import InputLayer
from gnomon.errors import BadValue
from gnomon.models.position_change import retrofit
from gnomon.models.snapshot import snapshot

IDS = torch.tensor([[3, 1, 4, 1, 5, 9, 2, 6]])
FORMATS = {
    "run folder": lambda model, folder: save_model(model, folder / "saved"),
    "hugging face": lambda model, folder: save_hf(model, folder / "saved"),
    "gguf": lambda model, folder: gguf.save(model, folder / "saved.gguf"),
}


def model_of(**changes):
    """A small Llama, which all three formats hold; nothing in it is at its initial ones."""
    torch.manual_seed(1)
    llama = {"norm": "rmsnorm", "activation": "silu", "gated": True, "bias": False, "d_ff": 32, "init_std": 0.3}
    model = gn.DecoderOnly(50, 16, 2, 2, **llama, **changes).eval()
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(0.1 * torch.randn_like(weight))
    return model


def table(**changes):
    return gn.TokenEmbedding(50, 16, scale=None, std=0.5, **changes)


def new_table(model):
    model.input.tokens = table()


def new_layer(model):
    model.input = InputLayer(50, 16, scale=None, std=0.5)


def new_layer_then_table(model):
    new_layer(model)
    new_table(model)


def head_given_the_table(model):
    model.head.weight = model.input.tokens.weight


def table_given_the_head(model):
    model.input.tokens.weight = model.head.weight


def tied_head(model):
    model.head = gn.Tied(model.input)


def head_tied_to_the_table(model):
    model.head = gn.Tied(model.input.tokens)


def head_of_its_own(model):
    model.head = gn.Untied(16, 50, std=0.3)


CHANGES = [
    (True, new_table, True),
    (True, new_layer, True),
    (True, new_layer_then_table, True),
    (True, head_of_its_own, False),
    (False, head_given_the_table, True),
    (False, table_given_the_head, True),
    (False, tied_head, True),
    (False, head_tied_to_the_table, True),
    (False, new_table, False),
    (False, head_of_its_own, False),
]


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize(("tied", "change", "after"), CHANGES, ids=lambda x: getattr(x, "__name__", str(x)))
@torch.no_grad()
def test_a_replaced_part_comes_back_and_a_tie_is_a_tie(tmp_path, form, tied, change, after):
    model = model_of(tied=tied)
    change(model)
    want = model(IDS)
    again = load(FORMATS[form](model, tmp_path))
    assert (again.config.tied, again.tied) == (after, after)
    torch.testing.assert_close(again(IDS), want, rtol=0, atol=1e-6)
    again.input.tokens.weight.mul_(2)
    assert torch.equal(again.head.weight, again.input.tokens.weight) == after


def other_scale(model):
    model.input.tokens = gn.TokenEmbedding(50, 16)


def head_on_the_old_table(model):
    model.head = gn.Tied(model.input.tokens)
    new_table(model)


def one_end_resized(model):
    model.input.tokens.resize(60)


def other_width(model):
    model.head = gn.Untied(16, 60)


def other_block(model):
    model.stack.blocks[1] = nn.Identity()


def other_eps(model):
    model.stack.norm = nn.RMSNorm(16, eps=0.5)


def other_window(model):
    attention = model.stack.blocks[0].attention
    attention.settings = replace(attention.settings, window=3)


def one_block_twice(model):
    model.stack.blocks[1] = model.stack.blocks[0]


def one_weight_twice(model):
    model.stack.blocks[0].attention.k.weight = model.stack.blocks[0].attention.v.weight


def an_end_outside(model):
    model.ends = (7, 50)


def a_tokenizer_too_large(model):
    model.tokenizer = gn.Tokenizer.bytes()


class Louder(nn.RMSNorm):
    def forward(self, x):
        return 2 * super().forward(x)

    def extra_repr(self):
        return "louder"


def a_part_that_computes_otherwise(model):
    model.stack.norm = Louder(16, eps=model.stack.norm.eps)


REFUSED = {
    other_scale: r"input\.tokens\.scale is 4\.0 instead of 1\.0",
    head_on_the_old_table: r"gn\.Tied\(model\.input\)",
    one_end_resized: r"input\.tokens\.weight is \(60, 16\) instead of \(50, 16\).*model\.resize",
    other_width: r"head\.weight is \(60, 16\) instead of",
    other_block: r"stack\.blocks\.1 is Identity, not Block",
    other_eps: r"stack\.norm\.eps is 0\.5",
    other_window: r"attention\.settings\.window is 3 instead of None",
    one_block_twice: "are one tensor",
    one_weight_twice: "are one tensor",
    an_end_outside: "ends has the id 50",
    a_tokenizer_too_large: "tokenizer has the id 256",
    a_part_that_computes_otherwise: r"stack\.norm has a forward of its own",
}


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("change", REFUSED, ids=lambda change: change.__name__)
def test_what_no_file_would_bring_back_is_refused_by_name_and_writes_nothing(tmp_path, form, change):
    model = model_of()
    change(model)
    with pytest.raises(BadValue, match=REFUSED[change]):
        FORMATS[form](model, tmp_path)
    assert list(tmp_path.glob("**/*.*")) == []


def test_a_part_of_a_subclass_that_computes_alike_is_held():
    """As torch's own wrappers make them: another class, the methods of the first."""
    model = model_of()
    model.stack.norm.__class__ = type("Sharded", (nn.RMSNorm,), {"extra_repr": lambda self: "", "_apply": None})
    assert snapshot(model).weights.keys() == model.state_dict().keys()


@pytest.mark.parametrize("form", ["run folder", "hugging face"])
def test_names_of_more_or_fewer_classes_than_there_are_are_refused(tmp_path, form):
    sizes = {"d_model": 16, "n_layers": 1, "n_heads": 2, "max_positions": 8, "vocab_size": 50}
    model = gn.EncoderOnly.from_preset("bert-base", **sizes, head="classes", n_classes=3)
    model.labels = ("bad", "good")
    with pytest.raises(BadValue, match="names 2 classes, but the head knows 3"):
        FORMATS[form](model, tmp_path)


@pytest.mark.parametrize("position", gn.positions.names())
def test_a_model_that_was_used_is_still_what_its_config_builds(position):
    """Forward, backward, another dtype, another dropout: none of these is a part that was replaced."""
    model = gn.DecoderOnly(50, 16, 2, 2, position=position, max_positions=16, dropout=0.1)
    model(IDS).sum().backward()
    model.stack.blocks[0].attention.dropout = 0.0
    model.generate([[1, 2]], max_new_tokens=2)
    assert snapshot(model.bfloat16()).config == model.config


@pytest.mark.parametrize("change", [new_table, new_layer])
def test_a_tied_head_follows_what_is_replaced(change):
    model = model_of()
    change(model)
    assert model.head.weight is model.input.tokens.weight
    other = copy.deepcopy(model)
    assert other.head.weight is other.input.tokens.weight
    assert other.head.weight is not model.head.weight


def test_an_encoders_head_follows_too():
    model = gn.EncoderOnly(50, 16, 1, 2, position="learned", max_positions=8, head="masked")
    new_table(model)
    assert model.tied
    assert model.head.out.weight is model.input.tokens.weight


def test_a_head_that_was_given_the_table_is_resized_with_it():
    model = model_of(tied=False)
    head_given_the_table(model)
    model.resize(60)
    assert model.head.weight is model.input.tokens.weight
    assert model.head.weight.shape == (60, 16)


def test_a_tied_head_takes_no_other_weight():
    model = model_of()
    model.head.weight = model.input.tokens.weight  # as much as to say: tied
    with pytest.raises(BadValue, match=r"gn\.Untied"):
        model.head.weight = nn.Parameter(torch.ones(50, 16))


def test_a_bias_of_a_replaced_head_comes_back(tmp_path):
    model = model_of()
    model.head = gn.Untied(16, 50, bias=True)
    nn.init.normal_(model.head.bias)
    again = load(save_model(model, tmp_path))
    assert torch.equal(again(IDS), model(IDS))


def test_another_encoding_keeps_the_head_that_was_replaced():
    model = model_of()
    head_of_its_own(model)
    new = retrofit(model, "alibi").model
    assert new.config.tied is False
    assert torch.equal(new.head.weight, model.head.weight)


@pytest.mark.parametrize(
    "used",
    [{"ends": (3, 40)}, {"start": 40}, {"first": 40}, {"tokenizer": gn.Tokenizer.characters(map(chr, range(41, 80)))}],
)
def test_no_id_in_use_is_cut_off(used):
    """Such a model could be saved but not loaded, and would stop at nothing."""
    model = model_of()
    for name, value in used.items():
        setattr(model, name, value)
    before = model(IDS)
    with pytest.raises(BadValue, match=f"{next(iter(used))} has the id 40.* at least 41"):
        model.resize(40)
    assert model.config.vocab_size == model.input.tokens.vocab_size == 50
    assert torch.equal(model(IDS), before)
    assert model.resize(41) == 41
