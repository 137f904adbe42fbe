"""GGUF files: what is written comes back, what is quantised is decoded, and what is damaged or unknown is refused."""

import itertools
import re
import struct
import subprocess
import sys
from functools import partial
from pathlib import Path

import gguf
import numpy as np
import pytest
import torch

import gnomon as gn
from gnomon.checkpoints.gguf import load, save
from gnomon.checkpoints.gguf.header import GGUF
from gnomon.errors import BadInput, BadValue
from gnomon.positions.scaling import Linear, Llama3, LongRoPE, YaRN

SIZES = {"vocab_size": 300, "d_model": 32, "n_layers": 2, "n_heads": 4}
LLAMA = {"norm": "rmsnorm", "activation": "silu", "gated": True, "bias": False, "d_ff": 64}
GPT = {"norm": "layernorm", "activation": "gelu_tanh"}
rope = partial(gn.positions.get, "rope")
GEMMA = {**LLAMA, "norm": "rmsnorm_plus_one", "activation": "gelu_tanh", "embed_scale": "sqrt"}
COHERE = {**LLAMA, "norm": "layernorm_no_bias", "residual": "one norm"}
FALCON = {"norm": "layernorm", "activation": "gelu", "bias": False}
FEW = {"n_experts": 5, "top_k": 3, "d_ff": 24}
MODELS: dict[str, dict[str, object]] = {
    "llama": {**LLAMA, "n_kv_heads": 2},
    "llama, untied, odd heads": {**LLAMA, "n_heads": 3, "n_kv_heads": 1, "d_head": 10, "tied": False},
    "phi3, interleaved, partly rotated": {**LLAMA, "position": rope(pairing="interleaved", rotary_dim=4)},
    "llama, llama3": {**LLAMA, "position": rope(base=5e5, scaling=Llama3(8.0, 8192))},
    "llama, yarn": {**LLAMA, "position": rope(scaling=YaRN(4.0, 64, attention_factor=1.3))},
    "llama, linear": {**LLAMA, "position": rope(scaling=Linear(2.0))},
    "qwen2": {**LLAMA, "n_kv_heads": 2, "qkv_bias": True},
    "qwen3": {**LLAMA, "n_kv_heads": 2, "qk_norm": True, "d_head": 16},
    "gemma3": {
        **LLAMA, "n_layers": 6, "norm": "rmsnorm_plus_one", "activation": "gelu_tanh", "placement": "sandwich",
        "qk_norm": True, "embed_scale": "sqrt", "window": [4] * 5 + [None],
        "position": [rope()] * 5 + [rope(base=1e6, scaling=Linear(8.0))],
    },
    "phi3": {
        **LLAMA, "position": rope(scaling=LongRoPE(4.0, 16, (1.0, 1.1, 1.2, 1.3), (1.0, 2.0, 3.0, 4.0)))},
    "gpt2": {**GPT, "position": "learned", "max_positions": 64},
    "gptneox": {**GPT, "activation": "gelu", "residual": "parallel", "position": rope(fraction=0.5), "tied": False},
    "bloom": {**GPT, "position": "alibi", "input_norm": "layernorm"},
    "llama, experts": {**LLAMA, "n_kv_heads": 2, "experts": {"n_experts": 5}},
    "qwen2moe": {**LLAMA, "qkv_bias": True, "experts": {**FEW, "normalised": False, "shared": 16, "shared_gate": True}},
    "qwen3moe": {**LLAMA, "qk_norm": True, "d_head": 16, "experts": FEW},
    "olmoe": {**LLAMA, "qk_norm": "joint", "tied": False, "experts": {"n_experts": 5, "normalised": False}},
    "gpt-oss": {
        **LLAMA, "activation": "clamped_swish", "bias": True, "sinks": True, "window": [4, None], "tied": False,
        "experts": {**FEW, "router_bias": True}, "position": rope(scaling=YaRN(4.0, 64, truncate=False)),
    },
    "gemma": {**GEMMA},
    "gemma2": {**GEMMA, "placement": "sandwich", "window": [4, None], "softcap": 3.0, "head_softcap": 5.0},
    "olmo2": {**LLAMA, "placement": "branch", "qk_norm": "joint", "tied": False},
    "olmo2, windows": {
        **LLAMA, "placement": "branch", "qk_norm": "joint", "tied": False, "window": [4, None],
        "position": [rope(base=5e5), rope(base=5e5, scaling=YaRN(4.0, 64))],
    },
    "exaone4": {**LLAMA, "placement": "branch", "qk_norm": True, "n_layers": 4, "window": [4, 4, 4, None],
                "position": [rope()] * 3 + ["none"]},
    "exaone4, no window": {**LLAMA, "placement": "branch", "qk_norm": True},
    "glm4": {**LLAMA, "placement": "sandwich", "qkv_bias": True, "position": rope(fraction=0.5, pairing="interleaved")},
    "granite": {**LLAMA, "embed_scale": 3.0, "residual_scale": 0.4, "head_scale": 0.25, "attention_scale": 0.3},
    "command-r": {**COHERE, "position": rope(pairing="interleaved"), "head_scale": 0.0625},
    "cohere2": {**COHERE, "n_layers": 4, "window": [4, 4, 4, None], "head_scale": 0.25,
                "position": [rope(pairing="interleaved")] * 3 + ["none"]},
    "smollm3": {**LLAMA, "n_layers": 4, "position": [rope()] * 3 + ["none"]},
    "falcon": {**FALCON, "residual": "one norm", "n_kv_heads": 1},
    "falcon, two norms": {**FALCON, "residual": "parallel", "n_kv_heads": 2, "tied": False},
    "stablelm": {**LLAMA, "norm": "layernorm", "qkv_bias": True, "position": rope(rotary_dim=4), "tied": False},
    "stablelm, one norm": {**LLAMA, "norm": "layernorm", "residual": "one norm", "tied": False},
    "phi2": {**GPT, "residual": "one norm", "head_bias": True, "position": rope(rotary_dim=4), "tied": False},
    "starcoder2": {**GPT, "n_kv_heads": 2, "position": rope(base=1e5)},
    "mpt": {**GPT, "activation": "gelu", "position": "alibi", "norm": "layernorm_no_bias", "bias": False},
}  # fmt: skip
IDS = torch.tensor([[3, 141, 59, 26, 5, 35, 89, 79, 32, 38, 46, 26, 43, 38, 32, 79, 50, 288, 299, 0]])


def model_of(name: str) -> gn.DecoderOnly:
    torch.manual_seed(7)
    model = gn.DecoderOnly(**{**SIZES, "init_std": 0.3, **MODELS[name]}).eval()
    with torch.no_grad():
        for weight in model.parameters():  # no weight is left at a value where a mistake would not show
            weight += 0.1 * torch.randn_like(weight)
    return model


@pytest.mark.parametrize("name", MODELS)
def test_float32_comes_back_bit_for_bit(name: str, tmp_path: Path) -> None:
    model = model_of(name)
    back = load(save(model, tmp_path / "m.gguf"))
    assert GGUF(tmp_path / "m.gguf").metadata["general.architecture"] == name.split(",")[0]
    torch.testing.assert_close(back(IDS), model(IDS), rtol=0, atol=2e-6 * float(model(IDS).detach().abs().max()))
    again = load(save(back, tmp_path / "again.gguf"))
    assert (tmp_path / "m.gguf").read_bytes() == (tmp_path / "again.gguf").read_bytes()
    for key, weight in back.state_dict().items():
        assert torch.equal(weight, again.state_dict()[key])
        if not name.startswith(("gemma", "cohere", "command", "glm")) and "interleaved" not in name:
            assert torch.equal(weight, model.state_dict()[key])


def test_the_rows_of_llamas_queries_are_where_llama_cpp_expects_them(tmp_path: Path) -> None:
    """Its converter splits each head's rows in two halves and interleaves them; values are untouched."""
    model = model_of("llama")
    save(model, tmp_path / "m.gguf")
    tensors = {tensor.name: tensor.data for tensor in gguf.GGUFReader(tmp_path / "m.gguf").tensors}
    for part, heads in (("q", 4), ("k", 2)):
        weight = model.state_dict()[f"stack.blocks.1.attention.{part}.weight"].numpy()
        expected = weight.reshape(heads, 2, 4, 32).swapaxes(1, 2).reshape(weight.shape)
        assert np.array_equal(tensors[f"blk.1.attn_{part}.weight"], expected)
    assert np.array_equal(tensors["blk.1.attn_v.weight"], model.state_dict()["stack.blocks.1.attention.v.weight"])


def test_gemmas_norms_are_stored_with_their_one(tmp_path: Path) -> None:
    model = model_of("gemma3")
    save(model, tmp_path / "m.gguf")
    tensors = {tensor.name: tensor.data for tensor in gguf.GGUFReader(tmp_path / "m.gguf").tensors}
    for ours, theirs in (("stack.norm", "output_norm"), ("stack.blocks.0.attention.q_norm", "blk.0.attn_q_norm")):
        assert np.array_equal(tensors[f"{theirs}.weight"], 1 + model.state_dict()[f"{ours}.weight"].numpy())


def test_experts_are_one_tensor_of_three_axes(tmp_path: Path) -> None:
    """As llama.cpp's converter stacks them; a vector of each expert is a row, and the one row of a gate a vector."""
    for name in ("gpt-oss", "qwen2moe"):
        model = model_of(name)
        save(model, tmp_path / name)
        tensors = {tensor.name: tensor.data for tensor in gguf.GGUFReader(tmp_path / name).tensors}
        ffn = model.stack.blocks[1].ffn
        for part in ("gate", "up", "down"):
            for kind in ("weight", "bias") if name == "gpt-oss" else ("weight",):
                stacked = torch.stack([getattr(getattr(expert, part), kind) for expert in ffn.experts])
                assert np.array_equal(tensors[f"blk.1.ffn_{part}_exps.{kind}"], stacked.detach())
        assert np.array_equal(tensors["blk.1.ffn_gate_inp.weight"], ffn.router.weight.detach())
    assert np.array_equal(tensors["blk.1.ffn_gate_inp_shexp.weight"], ffn.shared_gate.weight[0].detach())
    assert np.array_equal(tensors["blk.1.ffn_up_shexp.weight"], ffn.shared.up.weight.detach())


def test_names_that_differ_are_llama_cpps(tmp_path: Path) -> None:
    """The norm before gpt-oss's experts is post_attention_norm; with two norms Falcon's second is attention's."""
    for name, ours, theirs in (
        ("gpt-oss", "around_ffn.norm.weight", "post_attention_norm.weight"),
        ("gpt-oss", "attention.sinks", "attn_sinks.weight"),
        ("falcon, two norms", "around_attention.norm.weight", "attn_norm_2.weight"),
        ("falcon, two norms", "around_ffn.norm.weight", "attn_norm.weight"),
        ("falcon", "around_attention.norm.weight", "attn_norm.weight"),
    ):
        model = model_of(name)
        save(model, tmp_path / "m.gguf")
        tensors = {tensor.name: tensor.data for tensor in gguf.GGUFReader(tmp_path / "m.gguf").tensors}
        assert np.array_equal(tensors[f"blk.1.{theirs}"], model.state_dict()[f"stack.blocks.1.{ours}"])


def test_a_family_with_one_table_refuses_a_head_of_its_own(tmp_path: Path) -> None:
    """llama.cpp loads no Gemma with a tensor `output`."""
    with pytest.raises(BadValue, match=r"nearest is gemma, which cannot say: tied = False \(there True\)"):
        save(gn.DecoderOnly(**SIZES, **GEMMA, tied=False), tmp_path / "m.gguf")


def test_a_tied_head_is_one_table_in_the_file(tmp_path: Path) -> None:
    """A head without a tensor of its own is the table."""
    tied, untied = (GGUF(save(model_of(name), tmp_path / name)) for name in ("llama", "llama, untied, odd heads"))
    assert "output.weight" not in tied.tensors
    assert "output.weight" in untied.tensors
    model = load(tmp_path / "llama")
    assert model.config.tied
    assert model.head.weight is model.input.tokens.weight


@pytest.mark.parametrize(("dtype", "close"), [("float16", 1e-3), ("q8_0", 1e-2)])
@pytest.mark.parametrize("name", ["llama", "llama, experts"])
def test_smaller_files_are_close(name: str, dtype: str, close: float, tmp_path: Path) -> None:
    model = model_of(name)
    save(model, tmp_path / "whole.gguf")
    back = load(save(model, tmp_path / "small.gguf", dtype))
    assert (tmp_path / "small.gguf").stat().st_size < 0.8 * (tmp_path / "whole.gguf").stat().st_size
    for key, weight in model.state_dict().items():
        error = (back.state_dict()[key] - weight).abs().max()
        assert error <= close * weight.abs().max()
        assert (error == 0) == (weight.dim() == 1), key  # vectors stay whole


QUANTISED = [kind for kind in gguf.GGMLQuantizationType if kind in gguf.quants._type_traits]


@pytest.mark.parametrize("kind", QUANTISED, ids=lambda kind: kind.name)
def test_every_quantisation_is_decoded(kind: gguf.GGMLQuantizationType, tmp_path: Path) -> None:
    """The matrix of a file, against the gguf package's own reader and decoder; the bytes are random."""
    block, size = gguf.GGML_QUANT_SIZES[kind]
    rows = 5
    data = np.random.default_rng(1).integers(0, 60, (rows, 2 * size), np.uint8)
    writer = gguf.GGUFWriter(tmp_path / "q.gguf", "llama")
    writer.add_tensor("t", data, raw_dtype=kind)
    close(writer)
    [(first, values)] = GGUF(tmp_path / "q.gguf").decoded("t")
    assert first == 0
    assert values.shape == (rows, 2 * block)
    assert np.array_equal(values, gguf.quants.dequantize(data, kind), equal_nan=True)


def close(writer: gguf.GGUFWriter) -> None:
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def test_a_large_tensor_is_decoded_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = model_of("phi3")  # queries, keys and values in one tensor, so that pieces cross their borders
    save(model, tmp_path / "m.gguf")
    monkeypatch.setattr("gnomon.checkpoints.gguf.header.CHUNK", 32 * 7)
    back = load(tmp_path / "m.gguf")
    assert all(torch.equal(w, model.state_dict()[k]) for k, w in back.state_dict().items())


def test_dtype_and_tokens_of_a_loaded_model(tmp_path: Path) -> None:
    save(model_of("llama"), tmp_path / "m.gguf")
    assert {w.dtype for w in load(tmp_path / "m.gguf", dtype=torch.bfloat16).parameters()} == {torch.bfloat16}
    assert load(tmp_path / "m.gguf").tokenizer is None


# ------------------------------------------------------------------ damaged, unknown


def test_a_file_cut_off_anywhere_is_refused(tmp_path: Path) -> None:
    """A truncated download is not a model: cut at every place of the header and at some of the data."""
    model = model_of("llama")
    model.tokenizer = gn.Tokenizer.bytes()
    whole = save(model, tmp_path / "m.gguf").read_bytes()
    short = tmp_path / "short.gguf"
    for end in [*range(0, 3000, 41), len(whole) // 2, len(whole) - 200]:
        short.write_bytes(whole[:end])
        with pytest.raises(BadInput, match="short.gguf"):
            load(short)


def absurd(**changes: int) -> bytes:
    """A header with one tensor, some of its numbers replaced."""
    n = {"version": 3, "tensors": 1, "keys": 0, "name": 1, "axes": 1, "size": 4, "kind": 0, "offset": 0} | changes
    return (
        b"GGUF" + struct.pack("<IQQ", n["version"], n["tensors"], n["keys"]) + struct.pack("<Q", n["name"]) + b"t"
        + struct.pack("<IQIQ", n["axes"], n["size"], n["kind"], n["offset"])
    ).ljust(256, b"\0")  # fmt: skip


def test_the_header_that_absurd_numbers_are_put_into_is_sound(tmp_path: Path) -> None:
    (tmp_path / "m").write_bytes(absurd())
    assert GGUF(tmp_path / "m").tensors["t"].shape == (4,)


@pytest.mark.parametrize(
    "change",
    [
        {field: value}
        for field, value in [
            *itertools.product(("tensors", "keys", "name", "size", "offset"), (2**40, 2**63, 2**64 - 1)),
            ("version", 1), ("version", 1 << 24), ("axes", 0), ("axes", 2**31), ("kind", 999), ("kind", 4), ("size", 0),
        ]
    ],
    ids=str,
)  # fmt: skip
def test_absurd_numbers_are_refused_before_anything_is_reserved(change: dict[str, int], tmp_path: Path) -> None:
    (tmp_path / "m").write_bytes(absurd(**change))
    with pytest.raises(BadInput):
        GGUF(tmp_path / "m")


def rewritten(source: Path, target: Path, drop: tuple[str, ...] = (), **keys: object) -> Path:
    """A copy of a file without some tensors or keys, and with other values for some keys."""
    reader = gguf.GGUFReader(source)
    writer = gguf.GGUFWriter(target, reader.get_field("general.architecture").contents())
    known = {name: field for name, field in reader.fields.items() if not name.startswith("GGUF.")}
    for name, field in known.items():
        if name not in ("general.architecture", *drop, *keys):
            writer.add_key_value(name, field.contents(), field.types[0])
    for name, value in keys.items():
        writer.add_key_value(name, value, gguf.GGUFValueType.get_type(value))
    for tensor in reader.tensors:
        if tensor.name not in drop:
            writer.add_tensor(tensor.name, tensor.data)
    close(writer)
    return target


@pytest.mark.parametrize(
    ("drop", "keys", "words"),
    [
        (("blk.1.ffn_up.weight",), {}, "missing: blk.1.ffn_up.weight"),
        ((), {"llama.block_count": 1}, "unused: blk.1"),
        ((), {"llama.feed_forward_length": 65}, "different: .*64.*65"),
        ((), {"llama.rope.something": 2.0}, "llama.rope.something"),
        ((), {"llama.rope.scaling.type": "su"}, "'su'"),
        ((), {"llama.expert_count": 8}, "no key llama.expert_used_count"),
        ((), {"llama.attention.head_count": "four"}, "whole number"),
        ((), {"llama.attention.head_count": 5}, "BAD"),
        (("llama.embedding_length",), {}, "no key llama.embedding_length"),
        ((), {"llama.vocab_size": 7}, "vocab_size is 7"),
        ((), {"split.count": 2}, "one of several"),
    ],
)
def test_what_does_not_fit_is_named(drop: tuple[str, ...], keys: dict[str, object], words: str, tmp_path: Path) -> None:
    save(model_of("llama"), tmp_path / "m.gguf")
    with pytest.raises(BadInput, match="changed.gguf" if words == "BAD" else words):
        load(rewritten(tmp_path / "m.gguf", tmp_path / "changed.gguf", drop, **keys))


def test_an_unknown_architecture_names_the_known_ones(tmp_path: Path) -> None:
    writer = gguf.GGUFWriter(tmp_path / "m.gguf", "lama")
    close(writer)
    with pytest.raises(BadInput, match="did you mean 'llama'"):
        load(tmp_path / "m.gguf")


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"position": "t5"}, "t5"),
        (
            {**LLAMA, "softcap": 5.0},
            r"nearest is llama, which cannot say: softcap = 5\.0 \(there None\).*model\.softcap=none",
        ),
        ({**LLAMA, "sinks": True}, r"sinks = True \(there False\)"),
        ({**LLAMA, "window": 4}, "window = 4"),
        ({**LLAMA, "head_bias": True}, "head_bias"),
        (
            {**GPT, "activation": "gelu", "residual": "parallel", "position": rope()},
            r"nearest is gptneox, which cannot say: tied = True \(there False\)\.",
        ),
        ({**LLAMA, "position": rope(scaling=YaRN(4.0, 64, truncate=False))}, "does not compute"),
    ],
)
def test_a_model_that_llama_cpp_cannot_compute_is_not_written(
    settings: dict[str, object], words: str, tmp_path: Path
) -> None:
    model = gn.DecoderOnly(**{**SIZES, **settings})
    with pytest.raises(BadValue, match=words):
        save(model, tmp_path / "m.gguf")
    assert list(tmp_path.iterdir()) == []


def test_a_part_of_each_head_is_written_where_llama_cpp_turns_one(tmp_path: Path) -> None:
    """It loads no llama, qwen2, qwen3 or gemma3 whose rope.dimension_count is not the width of a head."""
    part = {**SIZES, **LLAMA, "position": rope(rotary_dim=4)}
    save(gn.DecoderOnly(**part), tmp_path / "m.gguf")
    assert GGUF(tmp_path / "m.gguf").metadata["general.architecture"] == "phi3"
    with pytest.raises(BadValue, match=r"nearest is phi3, which cannot say: qk_norm = True"):
        save(gn.DecoderOnly(**part, qk_norm=True), tmp_path / "other.gguf")


def test_a_part_of_a_head_that_llama_cpp_would_not_load_is_refused(tmp_path: Path) -> None:
    save(gn.DecoderOnly(**SIZES, **LLAMA), tmp_path / "m.gguf")
    data, key = bytearray((tmp_path / "m.gguf").read_bytes()), b"llama.rope.dimension_count"
    place = data.index(key) + len(key) + 4  # after the type of the value
    assert struct.unpack_from("<I", data, place) == (8,)
    struct.pack_into("<I", data, place, 4)
    (tmp_path / "m.gguf").write_bytes(data)
    with pytest.raises(BadInput, match=r"rope\.dimension_count is 4; .*only with 8"):
        load(tmp_path / "m.gguf")


@pytest.mark.parametrize("position", ["rope", "alibi"])
def test_a_refusal_names_what_blocks_and_a_way_out_that_works(position: str, tmp_path: Path) -> None:
    """`gnomon train --position rope --set model.activation=gelu` is GPT-NeoX with one table; each way is tried."""
    settings = {"activation": "gelu"} if position == "rope" else {}
    with pytest.raises(BadValue) as error:
        save(gn.DecoderOnly.from_preset("mini-gpt", position=position, **settings), tmp_path / "first.gguf")
    text = str(error.value)
    assert "{" not in text
    assert len(text) < 500
    words = {"true": True, "false": False}
    found = re.findall(r"--set model\.(\w+)=(\w+)", text)
    changes = {name: words.get(value, value) for name, value in found}
    assert changes == ({"tied": False} if position == "rope" else {"input_norm": "layernorm"})
    save(gn.DecoderOnly.from_preset("mini-gpt", position=position, **settings, **changes), tmp_path / "second.gguf")
    presets = re.findall(r"--preset ([\w-]+)", text)
    assert presets == (["mini-gpt"] if position == "rope" else [])
    for name in presets:
        save(gn.DecoderOnly.from_preset(name, position=position), tmp_path / "third.gguf")


def test_numbers_that_a_dtype_cannot_hold_are_not_written(tmp_path: Path) -> None:
    model = model_of("llama")
    with torch.no_grad():
        model.stack.blocks[0].ffn.up.weight[3, 5] = 1e6
    with pytest.raises(BadValue, match="blk.0.ffn_up.weight has numbers that float16 cannot hold"):
        save(model, tmp_path / "m.gguf", "float16")
    assert list(tmp_path.iterdir()) == []
    assert load(save(model, tmp_path / "m.gguf")).stack.blocks[0].ffn.up.weight[3, 5] == 1e6


def test_wrapped_models_are_written_too(tmp_path: Path) -> None:
    model = model_of("llama")
    save(model, tmp_path / "plain.gguf")
    save(torch.nn.DataParallel(model), tmp_path / "wrapped.gguf")
    assert (tmp_path / "plain.gguf").read_bytes() == (tmp_path / "wrapped.gguf").read_bytes()
    with pytest.raises(BadValue, match="0 layers"):
        save(gn.DecoderOnly(**{**SIZES, "n_layers": 0}), tmp_path / "m.gguf")


def test_longrope_is_written_without_a_factor(tmp_path: Path) -> None:
    """llama.cpp would divide all positions by it, besides the factors of the pairs."""
    metadata = GGUF(save(model_of("phi3"), tmp_path / "m.gguf")).metadata
    assert "phi3.rope.scaling.factor" not in metadata
    assert (metadata["phi3.context_length"], metadata["phi3.rope.scaling.original_context_length"]) == (64, 16)


def test_a_dtype_that_is_not_written_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadValue, match="q8_0"):
        save(model_of("llama"), tmp_path / "m.gguf", "q8")  # type: ignore[arg-type]


def test_an_empty_file_is_called_empty(tmp_path: Path) -> None:
    (tmp_path / "m.gguf").touch()
    with pytest.raises(BadInput, match="m.gguf is empty: download it again"):
        load(tmp_path / "m.gguf")


# ------------------------------------------------------------------ memory

PEAK = Path(__file__).parents[1] / "peak.py"


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/smaps_rollup").exists(), reason="Linux tells how much memory is private")
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_decoding_takes_no_second_copy_of_the_model(tmp_path: Path, dtype: str) -> None:
    """Weights are decoded some rows at a time into where they stay."""
    small = save(model_of("llama"), tmp_path / "small.gguf", dtype="q8_0")
    sizes = {"vocab_size": 8000, "d_model": 256, "n_layers": 12, "n_heads": 4, "d_ff": 2048, "init_std": 0.3}
    big = save(gn.DecoderOnly(**{**LLAMA, **sizes}), tmp_path / "big.gguf", dtype="q8_0")
    script = [sys.executable, str(PEAK), str(small), str(big), dtype]
    taken, size = map(int, subprocess.run(script, capture_output=True, text=True, check=True).stdout.split())
    assert size > 4e7
    assert taken <= 1.15 * size
