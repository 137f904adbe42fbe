"""Encoders and encoder-decoders in GGUF: read back bit for bit, under the names that llama.cpp's converter gives."""

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
MODELS: dict[str, dict[str, Any]] = {
    "bert": {**BERT, "pooling": "first"},
    "bert, mean, of length 1": {**BERT, "pooling": "mean", "unit": True},
    "bert, without types": {**BERT, "n_types": 0},
}
HF_ROOTS = {"bert": "bert."}  # what llama.cpp's converter takes away from names in safetensors
IDS = torch.tensor([[3, 14, 9, 26, 5, 35, 0]])


def model_of(name: str) -> Any:
    torch.manual_seed(7)
    model = build(ModelConfig(**MODELS[name])).eval()
    with torch.no_grad():
        for weight in model.parameters():  # no weight is left at a value where a mistake would not show
            weight += 0.1 * torch.randn_like(weight)
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


@pytest.mark.parametrize("name", [name for name in MODELS if name.split(",")[0] in HF_ROOTS and "," not in name])
def test_tensors_have_the_names_that_the_gguf_package_gives_those_of_hugging_face(name: str, tmp_path: Path) -> None:
    model, arch = model_of(name), name.split(",")[0]
    gn.save_hf(model, tmp_path / "hf")
    kind = next(number for number, known in gguf.MODEL_ARCH_NAMES.items() if known == arch)
    names = gguf.get_tensor_name_map(kind, 2)
    expected = {
        names.get_name(key.removeprefix(HF_ROOTS[arch]), try_suffixes=(".weight", ".bias")): value
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
    writer = gguf.GGUFWriter(target, reader.get_field("general.architecture").contents())
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
