"""Published vocabularies: what the class of the transformers library adds to a text and gives, of each family."""

import json
import struct
from pathlib import Path
from typing import Any

import pytest
import transformers as hf
from transformers.convert_slow_tokenizer import SLOW_TO_FAST_CONVERTERS
from transformers.models.mbart.tokenization_mbart import FAIRSEQ_LANGUAGE_CODES
from transformers.models.mbart50.tokenization_mbart50 import FAIRSEQ_LANGUAGE_CODES as MBART50

from gnomon.data import Tokenizer
from gnomon.data.sentencepiece import BYTE, CONTROL, UNKNOWN, Piece, SentencePiece
from gnomon.data.token_bytes import BYTE_ALPHABET
from gnomon.errors import BadInput

TEXTS = [
    "ab ca",
    "  abc\n b",
    "a<mask_2> <unk_7>b",
    "a <mask> b",
    "a<mask>b",
    "<extra_id_0> a",
    "x</s>y",
    "",
    "ñ 12'll, 1984!",
    "e\u0301",
]
NAMES = ["<s>", "<pad>", "</s>", "<unk>", *BYTE_ALPHABET, "ab", "Ġa", "Ġab", "<mask>"]
ENDED = [*BYTE_ALPHABET, "ab", "Ġa", "Ġab", "<|endoftext|>", "<|im_start|>"]
MERGES = "#version: 0.2\na b\nĠ a\nĠ ab\n"
OPT = {
    "tokenizer_class": "GPT2Tokenizer", "add_bos_token": True,
    "bos_token": {"content": "</s>", "__type": "AddedToken", "normalized": True},
    "eos_token": "</s>", "unk_token": "</s>", "pad_token": "<pad>",
}  # fmt: skip
WORDS = [
    "[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "ab", "ca", "a", "##b", "##c", "b", "##a", "c", ",", "x", "y",
    "s", "<", ">", "/", "mask", "1", "!", "Ab", "γεια", "κοσμε",
]  # fmt: skip
ADDED = {"added_tokens_decoder": {"260": {"content": "<|im_start|>", "special": True, "normalized": False}}}


def bpe(names: list[str], config: dict[str, Any] | None = None, model_type: str | None = None) -> dict[str, Any]:
    """The files of a folder."""
    vocab = {name: i for i, name in enumerate(names)}
    return {"vocab.json": vocab, "merges.txt": MERGES, **about(config, model_type)}


def about(config: dict[str, Any] | None, model_type: str | None) -> dict[str, Any]:
    files = {} if config is None else {"tokenizer_config.json": config}
    return files if model_type is None else {**files, "config.json": {"model_type": model_type}}


def words(config: dict[str, Any] | None = None) -> dict[str, Any]:
    return {"vocab.txt": "\n".join(WORDS) + "\n", **about(config, "bert")}


CASES = {
    "opt": bpe(NAMES, OPT, "opt"),
    "opt, its names alone": {**bpe(NAMES, None, "opt"), "special_tokens_map.json": {"bos_token": "</s>"}},
    "roberta": bpe(NAMES, None, "roberta"),
    "roberta, by the config's class": bpe(NAMES, {"tokenizer_class": "RobertaTokenizerFast"}),
    "roberta, with a space first": bpe(NAMES, {"add_prefix_space": True}, "roberta"),
    "bart": bpe(NAMES, None, "bart"),
    "gpt2": bpe(ENDED, None, "gpt2"),
    "gpt2, begun": bpe(ENDED, {"add_bos_token": True}, "gpt2"),
    "gpt_neox, within": bpe(ENDED, {"add_bos_token": True, "add_eos_token": True}, "gpt_neox"),
    "qwen2": bpe(ENDED[:-1], ADDED, "qwen2"),
    "qwen3, more control tokens": bpe(ENDED, {"additional_special_tokens": ["<|im_start|>", "<|new|>"]}, "qwen3"),
    "bert": words(),
    "bert, cased": words({"do_lower_case": False}),
    "distilbert": {**words(), "config.json": {"model_type": "distilbert"}},
    "electra, by the config's class": words({"tokenizer_class": "ElectraTokenizer"}),
    "mpnet": {"vocab.txt": "\n".join(["<s>", "<pad>", "</s>", "[UNK]", *WORDS[5:], "<mask>"]) + "\n",
              **about(None, "mpnet")},
}  # fmt: skip


def folder(path: Path, files: dict[str, Any]) -> Path:
    path.mkdir(exist_ok=True)
    for name, content in files.items():
        data = content if isinstance(content, (str, bytes)) else json.dumps(content)
        (path / name).write_bytes(data if isinstance(data, bytes) else data.encode())
    return path


def whole(ours: Tokenizer, text: str) -> list[int]:
    """As the transformers library reads a text: control strings in it are control tokens."""
    before, after = ours.frame
    return [*before, *ours.encode(text, special=True), *after]


@pytest.mark.parametrize("case", CASES)
def test_a_vocabulary_is_read_as_its_class_in_transformers_reads_it(case: str, tmp_path: Path) -> None:
    ours = Tokenizer.load(folder(tmp_path, CASES[case]))
    theirs = hf.AutoTokenizer.from_pretrained(tmp_path)
    for text in TEXTS:
        assert whole(ours, text) == theirs(text)["input_ids"], text
    named = {part: str(mark) for part, mark in theirs.special_tokens_map.items() if isinstance(mark, str)}
    files = CASES[case]
    vocabulary = files["vocab.json"] if "vocab.json" in files else files["vocab.txt"].splitlines()
    own = {part: mark for part, mark in named.items() if mark in vocabulary}
    assert {**ours.names} == own or case.startswith("opt,")  # where the end is named by nobody, ours is looked for
    assert not {*ours.control_ids} & {*ours.encode(" ".join([*own.values(), "a"]))} - {ours.unk_id}


@pytest.mark.parametrize("case", ["opt", "roberta", "bert", "qwen2"])
def test_what_is_read_is_kept_as_one_tokenizer_json(case: str, tmp_path: Path) -> None:
    ours = Tokenizer.load(folder(tmp_path / "published", CASES[case]))
    again = Tokenizer.load(ours.save(tmp_path / "saved"))
    assert (again.sha256, again.frame, again.names) == (ours.sha256, ours.frame, ours.names)
    theirs = hf.AutoTokenizer.from_pretrained(tmp_path / "saved")
    assert theirs("ab ca")["input_ids"] == whole(ours, "ab ca")
    assert (theirs.bos_token, theirs.pad_token) == (ours.names.get("bos_token"), ours.names.get("pad_token"))


# ------------------------------------------------------------------ SentencePiece

MARKS = [Piece("<pad>", 0.0, CONTROL), Piece("</s>", 0.0, CONTROL), Piece("<unk>", 0.0, UNKNOWN)]
SCORED = [Piece(text, -1.5 * n) for n, text in enumerate(["a", "b", "c", "▁", "ñ", "ab", "▁a", "▁ab", ",", "1"], 1)]
LLAMA = [Piece("<unk>", 0.0, UNKNOWN), Piece("<s>", 0.0, CONTROL), Piece("</s>", 0.0, CONTROL)]
BYTES = [Piece(f"<0x{byte:02X}>", 0.0, BYTE) for byte in range(256)]
MERGED = [Piece(text, -float(n)) for n, text in enumerate(["ab", "▁a", "▁ab", "▁▁", "a", "b", "c", "▁", "ñ"])]


def varint(number: int) -> bytes:
    number &= (1 << 64) - 1
    out = b""
    while number > 0x7F:
        out, number = out + bytes([number & 0x7F | 0x80]), number >> 7
    return out + bytes([number])


def message(*fields: tuple[int, Any]) -> bytes:
    out = b""
    for field, value in fields:
        if isinstance(value, float):
            out += varint(field << 3 | 5) + struct.pack("<f", value)
        elif isinstance(value, int):
            out += varint(field << 3) + varint(value)
        else:
            out += varint(field << 3 | 2) + varint(len(value)) + value
    return out


def model_file(pieces: list[Piece], kind: int, bos: int, eos: int, prefix: int = 1) -> bytes:
    entries = [(1, message((1, p.text.encode()), (2, p.score), (3, p.kind))) for p in pieces]
    about = [(2, message((3, kind), (41, bos), (42, eos))), (3, message((3, prefix), (4, 0)))]
    return message(*entries, *about)


def merges(pieces: list[Piece]) -> dict[str, Any]:
    """The same vocabulary as the transformers library's classes take it."""
    spec = json.loads(SentencePiece(pieces).core().to_str())["model"]
    return {"vocab": spec["vocab"], "merges": [tuple(pair) for pair in spec["merges"]]}


def scored(pieces: list[Piece]) -> list[tuple[str, float]]:
    return [(piece.text, piece.score) for piece in pieces]


GEMMA = [Piece(f"<{mark}>", 0.0, UNKNOWN if mark == "unk" else CONTROL) for mark in ("pad", "eos", "bos", "unk")]
FAIRSEQ = [("<s>", 0.0), ("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0), *scored(SCORED), ("<mask>", 0.0)]
EXTRA = [(f"<extra_id_{i}>", 0.0) for i in reversed(range(100))]
NLLB = ["ace_Arab", "deu_Latn", "eng_Latn", "spa_Latn"]


def spoken(codes: list[str]) -> list[tuple[str, float]]:
    """fairseq's vocabulary with codes of languages before the mask."""
    return [*FAIRSEQ[:-1], *((code, 0.0) for code in codes), FAIRSEQ[-1]]


def nllb() -> dict[str, Any]:
    marks = [Piece(mark, 0.0, CONTROL) for mark in ("<s>", "<pad>", "</s>")]
    codes = [Piece(mark, 0.0, CONTROL) for mark in (*NLLB, "<mask>")]
    return merges([*marks, Piece("<unk>", 0.0, UNKNOWN), *MERGED, *codes])


def fast(name: str, pieces: list[Piece]) -> dict[str, Any]:
    """What the transformers library makes of the pieces of a model file."""
    return SLOW_TO_FAST_CONVERTERS[name].convert_from_spm(vocab=scored(pieces))


ALBERT = [Piece(m, 0.0, UNKNOWN if m == "<unk>" else CONTROL) for m in ("<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]")]
MODELS: dict[str, Any] = {
    "t5": ("spiece.model", model_file([*MARKS, *SCORED], 1, -1, 1), about(None, "t5"),
           lambda: hf.T5Tokenizer(vocab=[*scored([*MARKS, *SCORED]), *EXTRA])),
    "t5, few spans": ("spiece.model", model_file([*MARKS, *SCORED], 1, -1, 1), about({"extra_ids": 2}, "t5"),
                      lambda: hf.T5Tokenizer(vocab=[*scored([*MARKS, *SCORED]), *EXTRA[-2:]], extra_ids=2)),
    "llama": ("tokenizer.model", model_file([*LLAMA, *BYTES, *MERGED], 2, 1, 2),
              about({"tokenizer_class": "LlamaTokenizer", "add_bos_token": True}, "llama"),
              lambda: hf.LlamaTokenizer(**merges([*LLAMA, *BYTES, *MERGED]), add_bos_token=True)),
    "llama, ended": ("tokenizer.model", model_file([*LLAMA, *BYTES, *MERGED], 2, 1, 2),
                     about({"tokenizer_class": "LlamaTokenizer", "add_bos_token": False, "add_eos_token": True,
                            "legacy": True}, "llama"),
                     lambda: hf.LlamaTokenizer(**merges([*LLAMA, *BYTES, *MERGED]), add_eos_token=True, legacy=True)),
    "gemma": ("tokenizer.model", model_file([*GEMMA, *BYTES, *MERGED], 2, 2, 1, prefix=0),
              about({"add_bos_token": True}, "gemma3_text"),
              lambda: hf.GemmaTokenizer(**merges([*GEMMA, *BYTES, *MERGED]), add_bos_token=True)),
    "mt5": ("spiece.model", model_file([*MARKS, *SCORED], 1, -1, 1), about({"extra_ids": 0}, "mt5"),
            lambda: hf.T5Tokenizer(vocab=scored([*MARKS, *SCORED]), extra_ids=0)),
    "albert": ("spiece.model", model_file([*ALBERT, *SCORED], 1, 2, 3), about(None, "albert"),
               lambda: hf.AlbertTokenizer(vocab=scored([*ALBERT, *SCORED]))),
    "albert, cased": ("spiece.model", model_file([*ALBERT, *SCORED], 1, 2, 3),
                      about({"keep_accents": True, "do_lower_case": False}, "albert"),
                      lambda: hf.AlbertTokenizer(vocab=scored([*ALBERT, *SCORED]), keep_accents=True,
                                                 do_lower_case=False)),
    "mbart": ("sentencepiece.bpe.model", model_file([*LLAMA, *SCORED], 1, 1, 2),
              about({"additional_special_tokens": FAIRSEQ_LANGUAGE_CODES, "src_lang": "ro_RO"}, "mbart"),
              lambda: hf.MBartTokenizer(vocab=spoken(FAIRSEQ_LANGUAGE_CODES), src_lang="ro_RO")),
    "mbart50": ("sentencepiece.bpe.model", model_file([*LLAMA, *SCORED], 1, 1, 2),
                about({"tokenizer_class": "MBart50Tokenizer", "additional_special_tokens": MBART50}, "mbart"),
                lambda: hf.MBart50Tokenizer(vocab=spoken(MBART50))),
    "nllb": ("sentencepiece.bpe.model", model_file([*LLAMA, *MERGED], 2, 1, 2),
             about({"tokenizer_class": "NllbTokenizer", "additional_special_tokens": NLLB, "src_lang": "deu_Latn"},
                   "m2m_100"),
             lambda: hf.NllbTokenizer(**nllb(), additional_special_tokens=NLLB, src_lang="deu_Latn")),
    "camembert": ("sentencepiece.bpe.model", model_file([*LLAMA, *SCORED], 1, 1, 2), about(None, "camembert"),
                  lambda: hf.CamembertTokenizer(**fast("CamembertTokenizer", [*LLAMA, *SCORED]))),
    "pegasus": ("spiece.model", model_file([*MARKS, *SCORED], 1, -1, 1), about(None, "pegasus"),
                lambda: hf.PegasusTokenizer(**fast("PegasusTokenizer", [*MARKS, *SCORED]))),
    "xlm-roberta": ("sentencepiece.bpe.model", model_file([*LLAMA, *SCORED], 1, 1, 2), about(None, "xlm-roberta"),
                    lambda: hf.XLMRobertaTokenizer(vocab=FAIRSEQ)),
}  # fmt: skip


@pytest.mark.parametrize("case", MODELS)
def test_a_sentencepiece_model_is_read_as_its_class_in_transformers_reads_it(case: str, tmp_path: Path) -> None:
    name, data, files, theirs = MODELS[case]
    ours = Tokenizer.load(folder(tmp_path, {name: data, **files}))
    other = theirs()
    for text in TEXTS:
        # the first class adds a mask that this vocabulary does not have, the second joins spaces with a table alone
        if (case != "gemma" or "<mask>" not in text) and (case != "nllb" or "  " not in text):
            assert whole(ours, text) == other(text)["input_ids"], text
    assert ours.names["eos_token"] == other.eos_token


def m2m(kind: int, **config: Any) -> dict[str, Any]:
    """A folder of M2M-100: a model, and a vocab.json with the ids of its pieces, in another order."""
    pieces = [piece.text for piece in (MERGED if kind == 2 else SCORED)]
    vocab = {token: i for i, token in enumerate(["<s>", "<pad>", "</s>", "<unk>", *reversed(pieces), "abca"])}
    model = model_file([*LLAMA, *(MERGED if kind == 2 else SCORED)], kind, 1, 2)
    return {"sentencepiece.bpe.model": model, "vocab.json": vocab, **about(config, "m2m_100")}


@pytest.mark.parametrize("kind", [1, 2])
def test_m2m_100_has_the_ids_of_its_vocab_json_and_a_language_first(kind: int, tmp_path: Path) -> None:
    """Its class in the transformers library needs the sentencepiece package: here is what that class is."""
    files = m2m(kind, tokenizer_class="M2M100Tokenizer", src_lang="am")
    ours = Tokenizer.load(folder(tmp_path, files))
    (tmp_path / "plain").mkdir()
    (tmp_path / "plain" / "x.model").write_bytes(files["sentencepiece.bpe.model"])
    plain, vocab = Tokenizer.load(tmp_path / "plain" / "x.model"), files["vocab.json"]
    names = {i: name for name, i in plain._core.get_vocab().items()}
    for text in ("ab ca", "  abc b", "abca", "a ñx", ""):
        assert ours.encode(text) == [vocab[names[i]] for i in plain.encode(text)], text
    assert ours.frame == ([len(vocab) + 1], [vocab["</s>"]])
    assert (ours.vocab_size, ours.controls["__zu__"]) == (len(vocab) + 100, len(vocab) + 99)


def test_what_is_wrong_with_ids_of_their_own_is_named(tmp_path: Path) -> None:
    whole, spiece = m2m(1), MODELS["pegasus"][1]
    vocab = whole["vocab.json"]
    for n, (change, says) in enumerate(
        [
            ({"vocab.json": {token: i for token, i in vocab.items() if i}}, "ids in vocab.json"),
            ({"vocab.json": {token: i for token, i in vocab.items() if token != "abca"} | {"x": 9}}, "each once"),
            ({"vocab.json": {"<s>": 0, "</s>": 1, "<unk>": 2}}, "no id for 10 pieces of the model, such as 'a'"),
            (about({"language_codes": "m2m"}, "m2m_100"), "unknown language_codes 'm2m'"),
            (about({"src_lang": "xx"}, "m2m_100"), "src_lang is 'xx'"),
            ({"spiece.model": spiece, "vocab.json": {}, **about({"offset": "5"}, "pegasus")}, "offset counts"),
        ]
    ):
        files = whole if "spiece.model" not in change else {}
        with pytest.raises(BadInput, match=says):
            Tokenizer.load(folder(tmp_path / str(n), {**files, **change}))


def test_the_spans_of_t5_and_masks_are_control_tokens(tmp_path: Path) -> None:
    name, data, files, _ = MODELS["t5"]
    t5 = Tokenizer.load(folder(tmp_path / "t5", {name: data, **files}))
    assert t5.encode("<extra_id_0>", special=True) == [t5.vocab_size - 1]
    assert (t5.vocab_size, t5.frame) == (13 + 100, ([], [1]))
    roberta = Tokenizer.load(folder(tmp_path / "roberta", CASES["roberta"]))
    assert roberta.mask_id == NAMES.index("<mask>")


# ------------------------------------------------------------------ what is wrong with a folder


def test_a_class_that_is_not_known_is_refused_and_the_way_out_named(tmp_path: Path) -> None:
    path = folder(tmp_path, bpe(NAMES, {"tokenizer_class": "BigBirdTokenizer"}))
    with pytest.raises(BadInput, match=r"unknown tokenizer_class 'BigBirdTokenizer'.*did you mean.*save_pretrained"):
        Tokenizer.load(path)


def test_an_added_token_at_another_id_is_named(tmp_path: Path) -> None:
    path = folder(tmp_path, {**bpe(NAMES, None, "gpt2"), "added_tokens.json": {"<new>": 9000}})
    with pytest.raises(BadInput, match=r"'<new>' is said to have the id 9000"):
        Tokenizer.load(path)


@pytest.mark.parametrize("name", ["tokenizer_config.json", "special_tokens_map.json", "config.json"])
def test_a_damaged_file_beside_a_vocabulary_is_named(name: str, tmp_path: Path) -> None:
    deep, binary = "[" * 100_000, b'"\xff"'
    for content, says in (("{", "not JSON"), ("[1]", "an object was"), (deep, "not JSON"), (binary, "not JSON")):
        with pytest.raises(BadInput, match=rf"{name}.*{says}"):
            Tokenizer.load(folder(tmp_path, {**bpe(NAMES), name: content}))


WRONG: list[Any] = [5, "x", [5], {"a": 5}, {"0": 5}, True, -1]


@pytest.mark.parametrize(
    "key",
    ["tokenizer_class", "added_tokens_decoder", "additional_special_tokens", "add_bos_token", "bos_token", "eos_token",
     "extra_ids", "do_lower_case", "strip_accents", "tokenize_chinese_chars", "add_prefix_space", "chat_template",
     "legacy"],
)  # fmt: skip
def test_a_setting_of_a_wrong_kind_is_one_error_or_nothing(key: str, tmp_path: Path) -> None:
    name, data, files, _ = MODELS["t5"]
    folders = [CASES["gpt2"], CASES["bert"], {name: data, **files}]
    for n, wrong in enumerate(WRONG):
        for i, files in enumerate(folders):
            try:
                Tokenizer.load(folder(tmp_path / f"{n}{i}", {**files, "tokenizer_config.json": {key: wrong}}))
            except BadInput as error:
                assert str(tmp_path) in str(error)  # noqa: PT017


def test_a_chat_template_that_is_no_text_is_named(tmp_path: Path) -> None:
    path = folder(tmp_path, {**bpe(ENDED, None, "gpt2"), "chat_template.jinja": b"\xff"})
    with pytest.raises(BadInput, match="chat_template.jinja is not UTF-8"):
        Tokenizer.load(path)
