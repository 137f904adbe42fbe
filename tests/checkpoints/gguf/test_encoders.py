"""Encoders and encoder-decoders in GGUF: read back bit for bit, under the names that llama.cpp's converter gives."""

import struct
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
import tokenizers
import torch
from safetensors.numpy import load_file
from tokenizers import decoders, models, normalizers, pre_tokenizers, processors

import gnomon as gn
from gnomon.checkpoints.gguf import load, save
from gnomon.checkpoints.gguf.header import GGUF
from gnomon.errors import BadValue
from gnomon.models import ModelConfig, build

SIZES = {"vocab_size": 40, "d_model": 32, "n_layers": 2, "n_heads": 4, "d_ff": 48, "init_std": 0.3}
BERT = {
    **SIZES, "architecture": "encoder-only", "causal": False, "position": "learned", "max_positions": 24, "n_types": 2,
    "norm": "layernorm", "norm_eps": 1e-12, "placement": "post", "input_norm": "layernorm", "activation": "gelu",
    "head": "pooled",
}  # fmt: skip
T5 = {
    **SIZES, "d_head": 10, "position": "t5", "bias": False, "norm": "rmsnorm", "attention_scale": 1.0,
    "norm_eps": 1e-6, "activation": "relu",
}  # fmt: skip
NEAR_FAR = [gn.positions.get("rope", base=160000.0), *[gn.positions.get("rope")] * 2]
MODERN = {
    **SIZES, "n_layers": 5, "architecture": "encoder-only", "causal": False, "head": "pooled", "pooling": "first",
    "norm": "layernorm_no_bias", "input_norm": "layernorm_no_bias", "first_norm": False, "bias": False, "gated": True,
    "activation": "gelu", "position": NEAR_FAR, "window": [None, 3, 3], "max_positions": 64,
}  # fmt: skip
TABLES = [gn.positions.get("t5", table=n) for n in range(3)]
BOTH = {**T5, "architecture": "encoder-decoder"}
GATED = {"gated": True, "activation": "gelu_tanh"}
MODELS: dict[str, dict[str, Any]] = {
    "bert": {**BERT, "pooling": "first"},
    "bert, mean, of length 1": {**BERT, "pooling": "mean", "unit": True},
    "bert, without types": {**BERT, "n_types": 0},
    "t5": {**BOTH, "head_scale": 32**-0.5},
    "t5, gated": {**BOTH, **GATED, "tied": False, "n_decoder_layers": 1},
    "t5, a table for each layer": {**BOTH, **GATED, "tied": False, "position": TABLES[:2]},
    "t5, such tables, three layers": {**BOTH, "head_scale": 32**-0.5, "position": TABLES, "n_decoder_layers": 3},
    "modern-bert": MODERN,
    "modern-bert, no window": {**MODERN, "position": "rope", "window": None, "pooling": "mean"},
    "t5encoder": {**T5, **GATED, "architecture": "encoder-only", "causal": False, "head": "pooled"},
    "t5encoder, tables": {
        **T5,
        "architecture": "encoder-only",
        "causal": False,
        "head": "pooled",
        "position": TABLES[:2],
    },
}
HF = {"bert": "bert.", "t5": "", "modern-bert": ""}  # what llama.cpp's converter takes away from names in safetensors
IDS = torch.tensor([[3, 14, 9, 26, 5, 35, 0]])


def model_of(name: str) -> Any:
    torch.manual_seed(7)
    model = build(ModelConfig(**MODELS[name])).eval()
    with torch.no_grad():
        for weight in model.parameters():  # no weight is left at a value where a mistake would not show
            weight.add_(0.1 * torch.randn_like(weight))
    return model


def said(model: Any) -> torch.Tensor:
    return model(IDS, IDS[:, :4]) if model.architecture == "encoder-decoder" else model(IDS)


@pytest.mark.parametrize("name", MODELS)
def test_float32_comes_back_bit_for_bit(name: str, tmp_path: Path) -> None:
    model = model_of(name)
    back = load(save(model, tmp_path / "m.gguf"))
    assert GGUF(tmp_path / "m.gguf").metadata["general.architecture"] == name.split(",")[0]
    assert torch.equal(said(back), said(model))
    assert back.state_dict().keys() == model.state_dict().keys()
    assert all(torch.equal(weight, model.state_dict()[key]) for key, weight in back.state_dict().items())
    assert (tmp_path / "m.gguf").read_bytes() == save(back, tmp_path / "again.gguf").read_bytes()


@pytest.mark.parametrize("name", ["bert", "t5", "t5, gated", "t5, a table for each layer", "modern-bert"])
def test_tensors_have_the_names_that_the_gguf_package_gives_those_of_hugging_face(name: str, tmp_path: Path) -> None:
    model, arch = model_of(name), name.split(",")[0]
    gn.save_hf(model, tmp_path / "hf")
    kind = next(number for number, known in gguf.MODEL_ARCH_NAMES.items() if known == arch)
    names = gguf.get_tensor_name_map(kind, model.config.n_layers)
    expected = {
        names.get_name(key.removeprefix(HF[arch]), try_suffixes=(".weight", ".bias")): value
        for key, value in load_file(tmp_path / "hf" / "model.safetensors").items()
    }
    reader = gguf.GGUFReader(save(model, tmp_path / "m.gguf"))
    assert {tensor.name for tensor in reader.tensors} == expected.keys()
    assert all(np.array_equal(tensor.data, expected[tensor.name]) for tensor in reader.tensors)


def test_keys_of_bert_are_llama_cpps(tmp_path: Path) -> None:
    found = GGUF(save(model_of("bert, mean, of length 1"), tmp_path / "m.gguf")).metadata
    assert found[gguf.Keys.Attention.CAUSAL.format(arch="bert")] is False
    assert found[gguf.Keys.LLM.POOLING_TYPE.format(arch="bert")] == gguf.PoolingType.MEAN
    assert found[gguf.Keys.Tokenizer.TOKEN_TYPE_COUNT] == 2
    assert found[gguf.Keys.Attention.LAYERNORM_EPS.format(arch="bert")] == pytest.approx(1e-12)


def test_a_window_of_modernbert_is_counted_over_both_sides(tmp_path: Path) -> None:
    found = GGUF(save(model_of("modern-bert"), tmp_path / "m.gguf")).metadata
    assert found["modern-bert.attention.sliding_window"] == 4  # two tokens on either side
    assert found["modern-bert.attention.sliding_window_pattern"] == 3
    assert found["modern-bert.rope.freq_base"] == 160000.0
    assert found["modern-bert.rope.freq_base_swa"] == 10000.0


def test_a_decoder_starts_where_the_file_says(tmp_path: Path) -> None:
    model = model_of("t5")
    assert load(save(model, tmp_path / "none.gguf")).start is None
    model.start = 3
    file = save(model, tmp_path / "m.gguf")
    assert GGUF(file).metadata[gguf.Keys.LLM.DECODER_START_TOKEN_ID.format(arch="t5")] == 3
    assert load(file).start == 3


@pytest.mark.parametrize(
    "change",
    [
        {"tied": False},
        {"head_scale": 0.5},
        {"position": gn.positions.get("t5", max_distance=64)},
        {"activation": "silu"},
    ],
)
def test_what_a_file_of_t5_does_not_say_is_refused(change: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(BadValue, match=f"nearest is t5, which cannot say: .*({next(iter(change))} = |head of its own)"):
        save(build(ModelConfig(**{**MODELS["t5"], **change})), tmp_path / "m.gguf")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"pooler": True}, r"pooler = True \(there False\)"),
        ({"head": "masked"}, "masked"),
        ({"activation": "relu"}, r"activation = relu \(there gelu\)"),
        ({"position": "alibi"}, "alibi"),
    ],
)
def test_what_a_file_of_bert_does_not_hold_is_refused(change: dict[str, Any], words: str, tmp_path: Path) -> None:
    with pytest.raises(BadValue, match=words):
        save(build(ModelConfig(**{**BERT, **change})), tmp_path / "m.gguf")
    assert list(tmp_path.iterdir()) == []


def test_prompts_are_not_lost_in_silence(tmp_path: Path) -> None:
    model = model_of("bert")
    model.prompts = {"query": "query: "}
    with pytest.raises(BadValue, match=r"prompts of a model, query: .*model\.prompts = \{\}"):
        save(model, tmp_path / "m.gguf")
    assert list(tmp_path.iterdir()) == []


# ------------------------------------------------------------------ tokenizers


def wordpiece(lower: bool = True) -> gn.Tokenizer:
    words = [
        "[PAD]",
        "[UNK]",
        "[CLS]",
        "[SEP]",
        "[MASK]",
        "the",
        "nino" if lower else "Niño",
        *["play", "##ing", "##s", ","],
    ]
    core = tokenizers.Tokenizer(models.WordPiece({word: i for i, word in enumerate(words)}, unk_token="[UNK]"))
    core.normalizer = normalizers.BertNormalizer(lowercase=lower)
    core.pre_tokenizer, core.decoder = pre_tokenizers.BertPreTokenizer(), decoders.WordPiece()
    core.add_special_tokens(words[:5])
    core.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    names = {"unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]", "pad_token": "[PAD]"}
    return gn.Tokenizer(core.to_str(), {**names, "mask_token": "[MASK]"})


def without_the_whole(source: Path, target: Path) -> Path:
    """A file as llama.cpp's converter writes it, without tokenizer.json in it."""
    reader = gguf.GGUFReader(source)
    writer = gguf.GGUFWriter(target, reader.fields["general.architecture"].contents())
    for name, field in reader.fields.items():
        if not name.startswith("GGUF.") and name not in ("general.architecture", "tokenizer.huggingface.json"):
            writer.add_key_value(name, field.contents(), field.types[0])
    for tensor in reader.tensors:
        writer.add_tensor(tensor.name, tensor.data)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return target


@pytest.mark.parametrize("lower", [True, False])
def test_a_vocabulary_of_word_pieces_is_read_from_ggmls_words(lower: bool, tmp_path: Path) -> None:
    model = model_of("bert")
    model.tokenizer = wordpiece(lower)
    file = save(model, tmp_path / "m.gguf")
    metadata = GGUF(file).metadata
    assert metadata["tokenizer.ggml.tokens"][5:11] == ["▁the", "▁nino" if lower else "▁Niño", "▁play", "ing", "s", "▁,"]
    assert (metadata["tokenizer.ggml.bos_token_id"], metadata["tokenizer.ggml.seperator_token_id"]) == (2, 3)
    for path in (file, without_the_whole(file, tmp_path / "plain.gguf")):
        again = load(path).tokenizer
        assert again is not None
        assert again.frame == ([2], [3])
        assert again.names == model.tokenizer.names
        for text in ("The Niño, playings", "[CLS] playing", "nowhere"):
            assert again.encode(text) == model.tokenizer.encode(text)


def test_a_unigram_vocabulary_is_read_from_ggmls_words(tmp_path: Path) -> None:
    words = [("<pad>", 0.0), ("</s>", 0.0), ("<unk>", -2.0), ("▁the", -2.5), ("▁", -3.0), ("th", -4.0), ("e", -4.5)]
    core = tokenizers.Tokenizer(models.Unigram(words, unk_id=2, byte_fallback=False))
    charsmap = struct.pack("<I", 1024) + bytes(1024) + b"a\0"  # a table that changes no character
    core.normalizer = normalizers.Precompiled(charsmap)
    space = pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="always", split=True)
    core.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), space])
    core.decoder = decoders.Metaspace(replacement="▁", prepend_scheme="always", split=True)
    core.add_special_tokens(["<pad>", "</s>", "<unk>", "<extra_id_0>"])
    core.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 1)])
    model = model_of("t5")
    model.tokenizer = gn.Tokenizer(core.to_str(), {"eos_token": "</s>", "unk_token": "<unk>", "pad_token": "<pad>"})
    file = save(model, tmp_path / "m.gguf")
    stored = gguf.GGUFReader(file).fields[gguf.Keys.Tokenizer.PRECOMPILED_CHARSMAP]
    assert stored.types == [gguf.GGUFValueType.ARRAY, gguf.GGUFValueType.UINT8]  # llama.cpp takes bytes alone
    assert bytes(stored.contents()) == charsmap
    for path in (file, without_the_whole(file, tmp_path / "plain.gguf")):
        again = load(path).tokenizer
        assert again is not None
        assert again.frame == ([], [1])
        assert again.names == model.tokenizer.names
        for text in ("the  thee", "e the\tx", "</s> the", ""):
            assert again.encode(text) == model.tokenizer.encode(text)
