"""Tokenizers in GGUF: what ours say in ggml's words, what ggml's words mean, and texts that come back."""

import json
from pathlib import Path

import gguf
import pytest
import tokenizers
import torch
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import decoders, models, pre_tokenizers, processors

import gnomon as gn
from gnomon.checkpoints.gguf import load, save
from gnomon.checkpoints.gguf.header import GGUF
from gnomon.checkpoints.gguf.tokenizer import WORDS, read_tokenizer
from gnomon.data.sentencepiece import BYTE, CONTROL, UNKNOWN, USER_DEFINED, Piece, SentencePiece
from gnomon.data.token_bytes import BYTE_ALPHABET
from gnomon.errors import BadInput, BadValue

TEXTS = ["niño, don't say 1984 or 12 345!", "  two  \t\n\n blank lines", "世界 😀 x1y22", "<|endoftext|> WE'LL", ""]


def vocabulary() -> gn.Tokenizer:
    return gn.Tokenizer.bpe([text * 4 for text in TEXTS[:3]], 300)


def file_with(path: Path, tokenizer: gn.Tokenizer) -> GGUF:
    torch.manual_seed(0)
    model = gn.DecoderOnly(tokenizer.vocab_size, 8, 1, 2, bias=False, norm="rmsnorm", gated=True, activation="silu")
    model.tokenizer = tokenizer
    return GGUF(save(model, path))


def without_the_whole(path: Path, target: Path, **changes: object) -> GGUF:
    """A file as llama.cpp writes it, without our tokenizer.json in it; a change to None takes a key away."""
    reader = gguf.GGUFReader(path)
    writer = gguf.GGUFWriter(target, "llama")
    changes = {f"tokenizer.{key}": value for key, value in changes.items()} | {"tokenizer.huggingface.json": None}
    for name, field in reader.fields.items():
        if not name.startswith("GGUF.") and name != "general.architecture" and name not in changes:
            writer.add_key_value(name, field.contents(), field.types[0])
    for name, value in changes.items():
        if value is not None:
            writer.add_key_value(name, value, gguf.GGUFValueType.get_type(value))
    for tensor in reader.tensors:
        writer.add_tensor(tensor.name, tensor.data)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return GGUF(target)


def digits_apart(tokenizer: gn.Tokenizer) -> gn.Tokenizer:
    core = tokenizers.Tokenizer.from_str(tokenizer.to_json())
    core.pre_tokenizer = pre_tokenizers.Sequence([*WORDS["smollm"]()])
    return gn.Tokenizer(core.to_str())


def pieces() -> gn.Tokenizer:
    marks = [
        Piece("<unk>", 0, UNKNOWN),
        Piece("<s>", 0, CONTROL),
        Piece("</s>", 0, CONTROL),
        Piece("<x>", 0, USER_DEFINED),
    ]
    merged = [Piece(text, -float(n)) for n, text in enumerate(["▁a", "ab", "▁ab", "bc", "a", "b", "c", "▁"])]
    vocab = [*marks, *(Piece(f"<0x{b:02X}>", 0, BYTE) for b in range(256)), *merged]
    return gn.Tokenizer(SentencePiece(vocab).core().to_str())


KINDS = {"bytes": gn.Tokenizer.bytes, "bpe": vocabulary, "digits": lambda: digits_apart(vocabulary()), "pieces": pieces}


@pytest.mark.parametrize("kind", KINDS)
def test_ggmls_words_alone_bring_the_same_ids_back(kind: str, tmp_path: Path) -> None:
    ours = KINDS[kind]()
    file_with(tmp_path / "m.gguf", ours)
    back = read_tokenizer(without_the_whole(tmp_path / "m.gguf", tmp_path / "bare.gguf"))
    assert back is not None
    for text in TEXTS:
        assert back.encode(text) == ours.encode(text)
        assert back.decode(back.encode(text)) == ours.decode(ours.encode(text))
    assert (back.vocab_size, back.eos_id, back.frame) == (ours.vocab_size, ours.eos_id, ours.frame)


def test_with_our_own_json_nothing_is_lost(tmp_path: Path) -> None:
    ours = vocabulary()
    ours.chat_template = "{{ messages }}"
    back = read_tokenizer(file_with(tmp_path / "m.gguf", ours))
    assert back is not None
    assert (back.sha256, back.chat_template) == (ours.sha256, ours.chat_template)


@pytest.mark.parametrize("says", [None, True, False])
def test_begin_of_text_as_the_file_says(says: bool | None, tmp_path: Path) -> None:
    """A file that says nothing begins SentencePiece texts with it, as llama.cpp does, and byte-level ones not."""
    for kind, usual in (("pieces", True), ("bpe", False)):
        file_with(tmp_path / "m.gguf", KINDS[kind]())
        changes = {"ggml.add_bos_token": says, "ggml.bos_token_id": 1}
        back = read_tokenizer(without_the_whole(tmp_path / "m.gguf", tmp_path / f"{kind}.gguf", **changes))
        assert back is not None
        control = 1 in back.control_ids  # of the byte-level one, id 1 is a byte: a mistake of the file
        assert back.frame[0] == ([1] if (usual if says is None else says) and control else [])


@pytest.mark.parametrize("pre", [None, "default"])
def test_a_file_that_does_not_say_how_it_cuts_words_is_named(pre: str | None, tmp_path: Path) -> None:
    """And the command that writes it into the file; one that carries its whole tokenizer says it."""
    file = file_with(tmp_path / "m.gguf", vocabulary())
    bare = without_the_whole(tmp_path / "m.gguf", tmp_path / "bare.gguf", **{"ggml.pre": pre})
    with pytest.warns(UserWarning, match=r"bare.gguf does not say how .*tokenizer.ggml.pre.*gguf-new-metadata"):
        assert read_tokenizer(bare) is not None
    assert read_tokenizer(file) is not None


def test_control_tokens_keep_their_parts(tmp_path: Path) -> None:
    """As ids in ggml's words, with our own tokenizer.json in the file or without."""
    ours = vocabulary()
    core = tokenizers.Tokenizer.from_str(ours.to_json())
    core.add_special_tokens(["<s>", "<pad>", "<unk>"])
    core.post_processor = processors.TemplateProcessing(
        single="<s> $A <|endoftext|>", special_tokens=[("<s>", core.token_to_id("<s>")), ("<|endoftext|>", 256)]
    )
    names = {"bos_token": "<s>", "pad_token": "<pad>", "unk_token": "<unk>", "eos_token": "<|endoftext|>"}
    ours = gn.Tokenizer(core, names)
    whole = file_with(tmp_path / "m.gguf", ours)
    bare = without_the_whole(tmp_path / "m.gguf", tmp_path / "bare.gguf")
    for file in (whole, bare):
        back = read_tokenizer(file)
        assert back is not None
        assert (dict(back.names), back.frame) == (names, ours.frame)
        assert (back.bos_id, back.pad_id) == (ours.bos_id, ours.pad_id)
    keys = {key: whole.metadata[f"tokenizer.ggml.{key}_token_id"] for key in ("bos", "eos", "unknown", "padding")}
    config = json.loads((gn.save_hf(load(whole.path), tmp_path / "hf") / "config.json").read_text())
    for part in ("bos", "eos", "unk", "pad"):
        assert config[f"{part}_token_id"] == core.token_to_id(names[f"{part}_token"])
    assert keys == {"bos": ours.bos_id, "eos": 256, "unknown": core.token_to_id("<unk>"), "padding": ours.pad_id}


@pytest.mark.slow
@given(st.text())
def test_any_text_comes_back(text: str) -> None:
    assert BACK.decode(BACK.encode(text)) == text
    assert not set(BACK.encode(text)) & BACK.control_ids


def _back() -> gn.Tokenizer:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        file_with(Path(folder) / "m.gguf", vocabulary())
        back = read_tokenizer(without_the_whole(Path(folder) / "m.gguf", Path(folder) / "bare.gguf"))
    assert back is not None
    return back


BACK = _back()


@pytest.mark.parametrize(
    ("pre", "text", "words"),
    [
        ("gpt-2", "don't 1984  x", ["don", "'t", "Ġ1984", "Ġ", "Ġx"]),
        ("smollm", "don't 1984  x", ["don", "'t", "Ġ", "1", "9", "8", "4", "Ġ", "Ġx"]),
        ("llama-bpe", "DON'T 1984!\n\nx", ["DON", "'T", "Ġ", "198", "4", "!ĊĊ", "x"]),
        ("qwen2", "DON'T 1984!\n\nx", ["DON", "'T", "Ġ", "1", "9", "8", "4", "!ĊĊ", "x"]),
        ("bloom", "Hi, a b!", ["Hi", ",", "Ġa", "Ġb", "!"]),
    ],
)
def test_texts_are_cut_into_words_as_the_vocabulary_was_trained(pre: str, text: str, words: list[str]) -> None:
    """The words follow from the published patterns, applied by hand."""
    assert [word for word, _ in pre_tokenizers.Sequence(WORDS[pre]()).pre_tokenize_str(text)] == words


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"ggml.pre": "gpt-3"}, "did you mean 'gpt-2'"),
        ({"ggml.model": "rwkv"}, "unknown tokenizer 'rwkv'"),
        ({"ggml.tokens": None}, "without tokenizer.ggml.tokens"),
        ({"ggml.token_type": [1, 2]}, "token_type"),
        ({"ggml.merges": ["a"]}, "cannot be used"),
    ],
)
def test_what_is_wrong_with_a_tokenizer_is_named(changes: dict[str, object], words: str, tmp_path: Path) -> None:
    file_with(tmp_path / "m.gguf", vocabulary())
    file = without_the_whole(tmp_path / "m.gguf", tmp_path / "bare.gguf", **changes)
    with pytest.raises(BadInput, match=rf"bare.gguf.*{words}"):
        read_tokenizer(file)


def test_tokenizers_that_llama_cpp_does_not_have_are_not_written(tmp_path: Path) -> None:
    letters = gn.Tokenizer.characters(["abc"])
    words = tokenizers.Tokenizer(models.WordLevel({"a": 0, "?": 1}, "?"))
    other = tokenizers.Tokenizer(
        models.BPE(dict(zip(BYTE_ALPHABET, range(256), strict=True)) | {"ab": 256}, [("a", "b")])
    )
    other.pre_tokenizer, other.decoder = pre_tokenizers.Whitespace(), decoders.ByteLevel()
    for tokenizer in (letters, gn.Tokenizer(words.to_str()), gn.Tokenizer(other.to_str())):
        with pytest.raises(BadValue, match="llama.cpp has no tokenizer like"):
            file_with(tmp_path / "m.gguf", tokenizer)
    assert list(tmp_path.iterdir()) == []


def test_more_tokens_than_rows_belong_to_another_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gn.DecoderOnly, "check_ids", lambda *_: None)  # which keeps us from writing such a file
    model = gn.DecoderOnly(200, 8, 1, 2, bias=False, norm="rmsnorm", gated=True, activation="silu")
    model.tokenizer = gn.Tokenizer.bytes()
    save(model, tmp_path / "m.gguf")
    with pytest.raises(BadInput, match="257 tokens, but a table of 200"):
        load(tmp_path / "m.gguf")
