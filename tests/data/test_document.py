"""A corpus larger than memory: texts stay in their files, and everything made of them is the same."""

import json
import tracemalloc

import pytest

from gnomon.data import Corpus, Tokenizer, TokenStore
from gnomon.errors import BadInput


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "text").mkdir()
    for n in range(40):
        (tmp_path / "text" / f"{n:02}.txt").write_text(f"\ufeffnumber {n}: " + "ñ" * n * 50)
    lines = [json.dumps({"text": f"line {n} " + "x" * 500}) for n in range(200)]
    (tmp_path / "text" / "lines.jsonl").write_text("\n".join([*lines, lines[3]]) + "\n")
    (tmp_path / "text" / "picture.png").write_bytes(b"\x89PNG\0")
    return tmp_path


def test_texts_that_stay_in_their_files_are_the_same_corpus(folder, monkeypatch):
    held = Corpus.open(folder / "text")
    monkeypatch.setattr("gnomon.data.corpus.IN_MEMORY", 0)
    left = Corpus.open(folder / "text")
    assert (left.sha256, left.n_bytes, left.duplicates, left.skipped) == (held.sha256, held.n_bytes, 1, 1)
    assert left.texts == held.texts
    assert [part.sha256 for part in left.split(0.2)] == [part.sha256 for part in held.split(0.2)]
    stores = [TokenStore.open(corpus, Tokenizer.bytes(), folder / name) for name, corpus in (("a", held), ("b", left))]
    files = [next((folder / name).iterdir()).read_bytes() for name in ("a", "b")]
    assert files[0] == files[1]
    assert stores[0].tokens.tolist() == stores[1].tokens.tolist()


def test_a_corpus_that_stays_in_its_files_takes_a_share_of_its_size(folder, monkeypatch):
    monkeypatch.setattr("gnomon.data.corpus.IN_MEMORY", 1 << 12)
    monkeypatch.setattr("gnomon.data.store.BATCH_BYTES", 1 << 12)
    with open(folder / "large.jsonl", "w") as file:
        for n in range(400):
            file.write(json.dumps({"text": f"{n} " + "word " * 2000}) + "\n")
    tracemalloc.start()
    try:
        corpus = Corpus.open(folder / "large.jsonl")
        TokenStore.open(corpus, Tokenizer.bytes(), folder / "tokens")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert corpus.n_bytes > 4_000_000
    assert peak < corpus.n_bytes / 3


def test_a_file_that_changes_in_between_is_named(folder, monkeypatch):
    monkeypatch.setattr("gnomon.data.corpus.IN_MEMORY", 0)
    corpus = Corpus.open(folder / "text")
    (folder / "text" / "07.txt").write_text("something else")
    with pytest.raises(BadInput, match=r"07\.txt was changed while it was being used"):
        TokenStore.open(corpus, Tokenizer.bytes(), folder / "tokens")
    assert not list((folder / "tokens").glob("*.tokens"))
