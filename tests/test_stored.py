"""Weights in fewer bits: what they are, that the model computes with exactly these, and what it refuses then."""

import copy

import gguf
import pytest
import torch
from gguf import GGMLQuantizationType as Type
from torch import nn

import gnomon as gn
from gnomon.errors import BadValue
from gnomon.linear import linear
from gnomon.models.similarity import token_vectors
from gnomon.stored import Stored, pack, store, unpack

SIZES = {"vocab_size": 90, "d_model": 64, "n_layers": 2, "n_heads": 4, "d_ff": 96}
FEWER = ("float16", "bfloat16", "int8", "int4")
BITS = {"float16": 16, "bfloat16": 16, "int8": 8.5, "int4": 4.5}


@pytest.mark.parametrize("kind", ["int8", "int4"])
def test_blocks_hold_what_the_gguf_library_says_they_hold(kind):
    weight = torch.randn(7, 96) * torch.logspace(-3, 3, 7)[:, None]
    blocks = pack(weight, kind)
    quantised = {"int8": Type.Q8_0, "int4": Type.Q4_0}[kind]
    assert torch.equal(unpack(blocks, kind), torch.from_numpy(gguf.quants.dequantize(blocks.numpy(), quantised)))


@pytest.mark.parametrize("kind", FEWER)
def test_storing_what_was_stored_changes_nothing(kind):
    once = Stored(torch.randn(8, 64), kind).dense()
    assert torch.equal(Stored(once, kind).dense(), once)


@pytest.mark.parametrize("kind", FEWER)
def test_a_matrix_takes_its_bits_and_errs_by_at_most_half_a_step(kind):
    weight = torch.randn(64, 128)
    kept = Stored(weight, kind)
    assert kept.blocks.nbytes * 8 == BITS[kind] * weight.numel()
    largest = weight.unflatten(1, (-1, 32)).abs().amax(-1, keepdim=True)
    step = {"float16": 2**-10, "bfloat16": 2**-7, "int8": 1 / 127 + 2**-10, "int4": 2 / 8 + 2**-9}[kind]
    assert bool(((kept.dense() - weight).unflatten(1, (-1, 32)).abs() <= step * largest / 2 + 1e-7).all())


@pytest.mark.parametrize("kind", FEWER)
@pytest.mark.parametrize("tied", [True, False])
def test_a_model_computes_with_what_is_stored(kind, tied):
    """The same model with the rounded weights in float32 writes the same, from rows at once and one after another."""
    model = gn.DecoderOnly(**SIZES, tied=tied).eval()
    rounded = copy.deepcopy(model)
    for part in rounded.modules():
        if getattr(part, "stores_weight", False):
            part.weight.data = unpack(pack(part.weight.detach(), kind), kind)
    store(model, kind)
    assert model.tied == tied
    ids = torch.randint(0, 90, (1, 24))
    with torch.no_grad():
        torch.testing.assert_close(model(ids), rounded(ids), rtol=1e-4, atol=1e-5)
        cache = model.cache()
        steps = torch.cat([model(ids[:, i : i + 1], cache=cache) for i in range(24)], 1)
    torch.testing.assert_close(steps, rounded(ids).detach(), rtol=1e-4, atol=1e-5)


def test_every_matrix_is_stored_and_nothing_else():
    model = gn.EncoderDecoder(**SIZES)
    large = {name for name, weight in model.named_parameters() if weight.dim() == 2}
    store(model, "int8")
    kept = {f"{name}" for name, part in model.named_modules() if isinstance(part, Stored)}
    assert kept == large
    assert all(weight.dim() < 2 for weight in model.parameters())


def test_rows_that_are_no_whole_blocks_stay_as_they_are():
    model = gn.DecoderOnly(**{**SIZES, "d_ff": 100})
    store(model, "int4")
    ffn = model.stack.blocks[0].ffn
    assert isinstance(ffn.up.weight, Stored)
    assert isinstance(ffn.down.weight, nn.Parameter)


def test_a_cast_leaves_the_form_alone():
    model = gn.DecoderOnly(**SIZES)
    store(model, "float16")
    model.double().float()
    assert model.input.tokens.weight.blocks.dtype == torch.float16


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
@pytest.mark.parametrize("more", [{"position": "deberta"}, {"d_embed": 32}, {"tied": False}])
def test_whatever_reads_a_weight_reads_a_stored_one(dtype, more):
    """In any dtype the model is cast to: tables that layers project, a table's widening, a head of its own."""
    model = gn.DecoderOnly(**SIZES, **more).eval()
    store(model, "float16")
    ids = torch.arange(5)[None]
    with torch.no_grad():
        want = model(ids)
        got = model.to(dtype)(ids)
    assert got.dtype == dtype
    torch.testing.assert_close(got.float(), want, atol=3e-2, rtol=3e-2)


def test_vectors_of_words_are_those_stored():
    model = gn.DecoderOnly(**{**SIZES, "vocab_size": 300})
    model.tokenizer = gn.Tokenizer.bytes()
    whole = token_vectors(model)
    store(model, "float16")
    torch.testing.assert_close(token_vectors(model), whole, atol=1e-3, rtol=1e-3)


def test_it_can_be_neither_saved_nor_resized(tmp_path):
    model = gn.DecoderOnly(**SIZES)
    store(model, "int8")
    for change in (
        lambda: gn.save_model(model, tmp_path / "a"),
        lambda: gn.save_hf(model, tmp_path / "b"),
        lambda: model.resize(100),
    ):
        with pytest.raises(BadValue, match="is stored in int8, for running only"):
            change()
    assert not list(tmp_path.iterdir())


def test_a_checkpoint_is_loaded_so(tmp_path):
    model = gn.DecoderOnly(**SIZES).to(torch.bfloat16).eval()
    gn.save_model(model, tmp_path / "m")
    lossless = gn.load(tmp_path / "m", weights="bfloat16")
    wide = gn.load(tmp_path / "m", weights="float32")
    ids = torch.randint(0, 90, (1, 5))
    assert lossless(ids).dtype == torch.float32
    torch.testing.assert_close(lossless(ids), wide(ids))
    with pytest.raises(BadValue, match="leave dtype out"):
        gn.load(tmp_path / "m", dtype="bfloat16", weights="int8")
    with pytest.raises(BadValue, match="unknown weights 'int3'"):
        gn.load(tmp_path / "m", weights="int3")


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_a_row_of_half_precision_is_summed_in_float32(dtype):
    x, weight = torch.randn(2, 4096).to(dtype), torch.randn(5, 4096).to(dtype)
    with torch.no_grad():
        y = linear(x, weight)
    assert y.dtype == dtype
    assert torch.equal(y, (x.double() @ weight.double().T).to(dtype)) or torch.allclose(
        y.float(), x.float() @ weight.float().T, rtol=torch.finfo(dtype).eps, atol=0.05
    )
