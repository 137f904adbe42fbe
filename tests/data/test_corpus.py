"""Laws of corpora: what is read, what is kept, how it is divided, and what is said of what cannot be read."""

import io
import json
import os
import random
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gnomon.data import Corpus, Document
from gnomon.errors import BadInput, BadValue

WRITTEN = st.text(st.characters(exclude_categories=["Cs"]), min_size=1).filter(lambda text: not text.isspace())


def test_a_file_is_one_document_kept_to_the_character(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes("  niño\r\n\tend\n\n".encode())
    assert Corpus.open(tmp_path / "a.txt").documents == (Document(str(tmp_path / "a.txt"), "  niño\r\n\tend\n\n"),)


def test_a_byte_order_mark_is_no_text(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"\xef\xbb\xbfone")
    assert Corpus.open(str(tmp_path / "a.txt")).texts == ["one"]


def test_a_folder_is_read_below_in_sorted_order_without_hidden_and_binary_files(tmp_path: Path) -> None:
    for name in ["b/z.md", "b/a.txt", "a.txt", "c", ".hidden", ".git/config"]:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(name)
    (tmp_path / "image.png").write_bytes(b"\x89PNG\0\xff")
    os.symlink(tmp_path / "nowhere", tmp_path / "broken")
    os.symlink(tmp_path, tmp_path / "b" / "circle")
    corpus = Corpus.open(tmp_path)
    assert corpus.texts == ["a.txt", "c", "b/a.txt", "b/z.md"]
    assert corpus.skipped == 1
    assert "1 not text" in corpus.describe()


def test_jsonl_is_one_document_a_line(tmp_path: Path) -> None:
    lines = [json.dumps({"text": "one\u2028line"}, ensure_ascii=False), "", json.dumps({"text": "two", "id": 2})]
    (tmp_path / "a.jsonl").write_text("\r\n".join(lines), encoding="utf-8")
    corpus = Corpus.open(tmp_path / "a.jsonl")
    assert corpus.texts == ["one\u2028line", "two"]
    assert [document.name for document in corpus.documents] == [f"{tmp_path}/a.jsonl:1", f"{tmp_path}/a.jsonl:3"]


def test_the_key_of_jsonl_may_be_named(tmp_path: Path) -> None:
    (tmp_path / "a.ndjson").write_text('{"body": "one"}\n')
    assert Corpus.open(tmp_path / "a.ndjson", text_key="body").texts == ["one"]


def test_a_dash_is_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO("niño\n".encode())))
    assert Corpus.open("-").texts == ["niño\n"]


def test_sources_follow_each_other(tmp_path: Path) -> None:
    (tmp_path / "b").write_text("b")
    (tmp_path / "a").write_text("a")
    assert Corpus.open([tmp_path / "b", tmp_path / "a"]).texts == ["b", "a"]


def test_the_embedded_corpus_is_the_standard_library_without_its_tests() -> None:
    corpus = Corpus.open("stdlib")
    names = {document.name for document in corpus.documents}
    assert "stdlib/json/decoder.py" in names
    assert {name for name in names if "test" in name.split("/")[:-1] or "site-packages" in name} == set()
    assert Path(json.__file__).read_text(encoding="utf-8") in corpus.texts
    assert corpus.n_bytes > 5_000_000
    assert corpus.sha256 == Corpus.open().sha256
    assert corpus.sha256[:12] in corpus.describe()


def test_a_text_is_kept_once_and_the_first_stays() -> None:
    corpus = Corpus.from_documents(
        [Document("a", "x"), Document("b", "y"), Document("c", "x"), Document("d", " \n")], "n"
    )
    assert [document.name for document in corpus.documents] == ["a", "b"]
    assert corpus.duplicates == 1
    assert "1 repeated" in corpus.describe()


def test_the_fingerprint_follows_texts_and_order_but_not_names() -> None:
    def fingerprint(*documents: tuple[str, str]) -> str:
        return Corpus.from_documents([Document(*document) for document in documents], "n").sha256

    assert fingerprint(("a", "x"), ("b", "y")) == fingerprint(("c", "x"), ("d", "y"))
    assert len({fingerprint(("", "x"), ("", "y")), fingerprint(("", "y"), ("", "x")), fingerprint(("", "xy"))}) == 3


@given(texts=st.lists(WRITTEN, min_size=2, unique=True), held_out=st.floats(0.01, 0.99), seed=st.integers(0, 99))
def test_the_two_parts_are_disjoint_whole_and_neither_is_empty(texts: list[str], held_out: float, seed: int) -> None:
    corpus = Corpus.from_texts(texts)
    train, valid = corpus.split(held_out, seed)
    assert train.documents
    assert valid.documents
    assert not set(train.texts) & set(valid.texts)
    assert sorted(train.texts + valid.texts) == sorted(texts)
    smallest = min(document.n_bytes for document in corpus.documents)
    assert valid.n_bytes <= max(smallest, held_out * corpus.n_bytes)


def test_many_documents_give_the_share_asked_for() -> None:
    corpus = Corpus.from_texts([f"{i:06d}" * 10 for i in range(1000)])
    for held_out in [0.05, 0.2, 0.5]:
        assert corpus.split(held_out)[1].n_bytes == pytest.approx(held_out * corpus.n_bytes, rel=0.01)


def test_the_parts_depend_on_texts_and_seed_alone() -> None:
    texts = [f"text {i}" for i in range(100)]
    shuffled = random.Random(0).sample(texts, 100)
    parts = {seed: set(Corpus.from_texts(texts).split(0.2, seed)[1].texts) for seed in range(3)}
    assert parts[0] == set(Corpus.from_texts(shuffled, name="other").split(0.2, 0)[1].texts)
    assert parts[0] != parts[1] != parts[2]


@given(
    text=st.text("abñ\n", min_size=2).map(lambda text: f"a{text}a"),
    held_out=st.sampled_from([1e-20, 0.1, 0.5, 0.99]) | st.floats(0, 1, exclude_min=True, exclude_max=True),
)
def test_a_single_document_is_cut_into_a_start_and_an_end(text: str, held_out: float) -> None:
    train, valid = Corpus.from_texts([text]).split(held_out)
    assert train.texts[0] + valid.texts[0] == text
    assert train.n_bytes > 0 < valid.n_bytes
    assert len(valid.texts[0]) <= max(1, 2 * held_out * len(text))


def test_the_end_of_a_single_document_starts_with_a_line() -> None:
    _, valid = Corpus.from_texts(["a line\n" * 100]).split(0.123)
    assert valid.texts == ["a line\n" * 13]


def test_a_document_that_cannot_be_divided_says_so() -> None:
    with pytest.raises(BadInput, match="one character"):
        Corpus.from_texts(["a"]).split()


@pytest.mark.parametrize("held_out", [0.0, 1.0, -0.5])
def test_a_share_that_is_none_is_refused(held_out: float) -> None:
    with pytest.raises(BadValue, match="between 0 and 1"):
        Corpus.from_texts(["a", "b"]).split(held_out)


BAD_FILES = {
    "nul.txt": (b"abc\0def", r"nul\.txt .*byte 3 is NUL"),
    "latin.txt": (b"ni\xf1o", r"latin\.txt is not UTF-8: .* byte 2 \(0xF1\)"),
    "cut.txt": (b"ok\xf0\x9f", r"cut\.txt is not UTF-8: .* byte 2 \(0xF0\)"),
    "bad.jsonl": (b'{"text": "a"}\n{"text": ', r"bad\.jsonl:2 is not JSON"),
    "list.jsonl": (b"[1]\n", r"list\.jsonl:1 is a JSON list"),
    "key.jsonl": (b'{"body": "a", "id": 1}\n', r"key\.jsonl:1 has no key 'text', only 'body', 'id'"),
    "type.jsonl": (b'\n{"text": 3}\n', r"type\.jsonl:2: the value of 'text' is int"),
    "half.jsonl": (b'{"text": "a\\ud83d"}\n', r"half\.jsonl:1: character 1 of 'text'"),
    "empty.txt": (b"", r"no text in .*empty\.txt"),
    "blank.txt": (b" \n\n", r"no text in .*blank\.txt"),
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_a_file_that_is_no_text_is_named_with_the_place(tmp_path: Path, name: str) -> None:
    content, message = BAD_FILES[name]
    (tmp_path / name).write_bytes(content)
    with pytest.raises(BadInput, match=message) as error:
        Corpus.open(tmp_path / name)
    assert "\n" not in str(error.value)


def test_a_text_in_another_encoding_inside_a_folder_is_not_dropped_in_silence(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("fine")
    (tmp_path / "latin.txt").write_bytes(b"ni\xf1o")
    with pytest.raises(BadInput, match=r"latin\.txt"):
        Corpus.open(tmp_path)


def test_an_empty_folder_and_an_empty_list_are_named(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=f"no text in {tmp_path}"):
        Corpus.open(tmp_path)
    with pytest.raises(BadInput, match="no text in an empty list"):
        Corpus.open([])


def test_a_missing_or_unreadable_file_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(BadInput, match=r"cannot read .*none\.txt: No such file"):
        Corpus.open(tmp_path / "none.txt")
    (tmp_path / "locked.txt").write_text("x")

    def refuse(path: Path) -> bytes:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "read_bytes", refuse)
    with pytest.raises(BadInput, match=r"cannot read .*locked\.txt: Permission denied"):
        Corpus.open(tmp_path / "locked.txt")


def test_a_folder_that_cannot_be_listed_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """os.walk alone passes over such a folder in silence."""
    (tmp_path / "locked").mkdir()
    (tmp_path / "a.txt").write_text("x")
    listed = os.scandir

    def refuse(path: str) -> object:
        if str(path).endswith("locked"):
            raise PermissionError(13, "Permission denied", str(path))
        return listed(path)

    monkeypatch.setattr(os, "scandir", refuse)
    with pytest.raises(BadInput, match="locked: Permission denied"):
        Corpus.open(tmp_path)


def test_a_python_without_library_source_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sysconfig.get_path", lambda name: str(tmp_path))
    with pytest.raises(BadInput, match="no library source"):
        Corpus.open("stdlib")
