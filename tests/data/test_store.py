"""The stored tokens are the encoded texts, once, whatever happens while they are written."""

import itertools
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gnomon.data import Corpus, Tokenizer, TokenStore, store
from gnomon.errors import BadInput, BadValue

TEXTS = ["the dog bit the man", "el perro mordió al hombre", "a", "世界 😀\n"]

BUILD = """
import os, signal, sys
from gnomon.data import Corpus, Tokenizer, TokenStore, store
store.BATCH_BYTES = 1000
corpus = Corpus.from_texts([f"{{i}} the dog bit the man" * 20 for i in range(200)])
{before}
built = TokenStore.open(corpus, Tokenizer.bytes(), cache=sys.argv[1], progress={progress})
print(built.n_documents, len(built.tokens))
"""


def build(cache: Path, before: str = "", progress: str = "None") -> list[str]:
    """The command that builds one store in a process of its own."""
    return [sys.executable, "-c", BUILD.format(before=before, progress=progress), str(cache)]


def files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.suffix == ".tokens") if folder.exists() else []


@pytest.mark.slow
@given(texts=st.lists(st.text("abñ世\n ", min_size=1), min_size=1), batch=st.integers(1, 20))
@settings(max_examples=60, deadline=None)
def test_stored_documents_are_the_encoded_texts(
    any_tokenizer: Tokenizer, tmp_path_factory: pytest.TempPathFactory, texts: list[str], batch: int
) -> None:
    cache = tmp_path_factory.mktemp("cache")
    corpus = Corpus.from_texts([*texts, "dog"])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store, "BATCH_BYTES", batch)
        built = TokenStore.open(corpus, any_tokenizer, cache)
    end = [] if any_tokenizer.eos_id is None else [any_tokenizer.eos_id]
    encoded = [any_tokenizer.encode(document.text) for document in corpus.documents]
    assert [built.document(i).tolist() for i in range(built.n_documents)] == encoded
    assert built.tokens.tolist() == [i for ids in encoded for i in ids + end]
    assert built.document_bytes.tolist() == [document.n_bytes for document in corpus.documents]


def test_byte_lengths_of_the_stream_are_the_sizes_of_the_documents(byte_level: Tokenizer) -> None:
    built = TokenStore.open(Corpus.from_texts(TEXTS), byte_level)
    lengths = [built.byte_lengths[built.document(i)].sum() for i in range(built.n_documents)]
    assert lengths == built.document_bytes.tolist() == [len(text.encode()) for text in TEXTS]


def test_the_second_opening_encodes_nothing_and_maps_the_file(byte_level: Tokenizer) -> None:
    corpus = Corpus.from_texts(TEXTS)
    calls: list[tuple[int, int]] = []
    first = TokenStore.open(corpus, byte_level, progress=lambda done, total: calls.append((done, total)))
    assert calls == [(corpus.n_bytes, corpus.n_bytes)]
    second = TokenStore.open(corpus, byte_level, progress=lambda done, total: calls.append((done, total)))
    assert len(calls) == 1
    assert np.array_equal(first.tokens, second.tokens)
    assert not second.tokens.flags.owndata
    assert not second.tokens.flags.writeable


def test_a_process_without_the_texts_finds_the_same_tokens(byte_level: Tokenizer, tmp_path: Path) -> None:
    corpus = Corpus.from_texts(TEXTS)
    with pytest.raises(BadInput, match="open the corpus once"):
        TokenStore.find(corpus.sha256, len(TEXTS), byte_level, tmp_path)
    opened = TokenStore.open(corpus, byte_level, tmp_path)
    found = TokenStore.find(corpus.sha256, len(TEXTS), byte_level, tmp_path)
    assert np.array_equal(found.tokens, opened.tokens)
    assert np.array_equal(found.ends, opened.ends)
    with pytest.raises(BadInput, match="open the corpus once"):
        TokenStore.find(corpus.sha256, len(TEXTS) - 1, byte_level, tmp_path)


def test_another_corpus_or_tokenizer_is_another_file(families: dict[str, Tokenizer], tmp_path: Path) -> None:
    for tokenizer, texts in itertools.product(families.values(), [TEXTS, TEXTS[:2], TEXTS[::-1]]):
        built = TokenStore.open(Corpus.from_texts(texts), tokenizer, tmp_path)
        assert built.document(0).tolist() == tokenizer.encode(texts[0])
    assert len(files(tmp_path)) == 3 * len(families)


@pytest.mark.slow
def test_large_vocabularies_are_stored_in_full(tmp_path: Path) -> None:
    characters = "".join(map(chr, range(0x20000, 0x20000 + (1 << 16))))
    tokenizer = Tokenizer.characters([characters])
    built = TokenStore.open(Corpus.from_texts([characters]), tokenizer, tmp_path)
    assert built.document(0).tolist() == list(range(1 << 16))


def damage_end(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def damage_start(path: Path) -> None:
    path.write_bytes(b"\xff" + path.read_bytes()[1:])


def damage_header(path: Path) -> None:
    path.write_bytes(b"[1]\n")


def damage_fingerprint(path: Path) -> None:
    path.write_bytes(path.read_bytes().replace(b'"documents": 4', b'"documents": 5'))


def damage_tokens(path: Path) -> None:
    """Others, each of them possible."""
    data = path.read_bytes()
    start = data.index(b"\n") + 1
    path.write_bytes(data[:start] + bytes(len(data[start : start + 64])) + data[start + 64 :])


def damage_one_bit(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)


def damage_size(path: Path) -> None:
    path.write_bytes(path.read_bytes().replace(b'{"tokens": ', b'{"tokens":-'))


DAMAGES = [
    damage_end,
    damage_start,
    damage_header,
    damage_fingerprint,
    damage_tokens,
    damage_one_bit,
    damage_size,
    Path.unlink,
]


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_file_is_written_anew(tmp_path: Path, damage: Callable[[Path], None]) -> None:
    corpus, tokenizer = Corpus.from_texts(TEXTS), Tokenizer.bytes()
    whole = TokenStore.open(corpus, tokenizer, tmp_path).tokens.tolist()
    damage(tmp_path / files(tmp_path)[0])
    calls: list[int] = []
    again = TokenStore.open(corpus, tokenizer, tmp_path, progress=lambda done, total: calls.append(done))
    assert (again.tokens.tolist(), len(calls)) == (whole, 1)


@given(line=st.binary(max_size=20) | st.sampled_from([b"[" * 9999, b'{"tokens": "x", "checksum": []}', b"0" * 9999]))
@settings(max_examples=30, deadline=None)
def test_whatever_stands_in_the_cache_the_tokens_are_the_texts(
    tmp_path_factory: pytest.TempPathFactory, line: bytes
) -> None:
    cache, corpus, tokenizer = tmp_path_factory.mktemp("cache"), Corpus.from_texts(TEXTS), Tokenizer.bytes()
    whole = TokenStore.open(corpus, tokenizer, cache).tokens.tolist()
    path = cache / files(cache)[0]
    for damaged in (line, line + b"\n" + path.read_bytes().partition(b"\n")[2]):
        path.write_bytes(damaged)
        assert TokenStore.open(corpus, tokenizer, cache).tokens.tolist() == whole


@pytest.mark.parametrize("count", ["-1", "1e3", '"many"', "null", "[]", str(2**62), str(10**30)])
def test_a_number_of_tokens_that_makes_no_sense_is_damage(tmp_path: Path, count: str) -> None:
    corpus, tokenizer = Corpus.from_texts(TEXTS), Tokenizer.bytes()
    whole = TokenStore.open(corpus, tokenizer, tmp_path).tokens.tolist()
    path = tmp_path / files(tmp_path)[0]
    path.write_bytes(re.sub(rb'"tokens": \d+', b'"tokens": ' + count.encode(), path.read_bytes()))
    assert TokenStore.open(corpus, tokenizer, tmp_path).tokens.tolist() == whole


def test_a_process_without_the_texts_names_the_damaged_file(tmp_path: Path) -> None:
    corpus, tokenizer = Corpus.from_texts(TEXTS), Tokenizer.bytes()
    TokenStore.open(corpus, tokenizer, tmp_path)
    damage_tokens(tmp_path / files(tmp_path)[0])
    with pytest.raises(BadInput, match=f"in the cache is damaged: {tmp_path}"):
        TokenStore.find(corpus.sha256, len(TEXTS), tokenizer, tmp_path)


KILLS = {
    "while encoding": {"progress": "lambda done, total: done * 2 > total and os.kill(os.getpid(), signal.SIGKILL)"},
    "before the file is moved into place": {"before": "os.replace = lambda *a: os.kill(os.getpid(), signal.SIGKILL)"},
    "while writing": {
        "before": "os.fsync = lambda handle: (os.ftruncate(handle, 100), os.kill(os.getpid(), signal.SIGKILL))"
    },
}
KILLED = [pytest.param(when, marks=[pytest.mark.slow] if n else []) for n, when in enumerate(KILLS)]


@pytest.mark.skipif(sys.platform == "win32", reason="SIGKILL is POSIX")
@pytest.mark.parametrize("when", KILLED)
def test_a_build_killed_half_way_leaves_no_store_and_the_next_succeeds(tmp_path: Path, when: str) -> None:
    assert subprocess.run(build(tmp_path, **KILLS[when]), capture_output=True).returncode == -9
    assert files(tmp_path) == []
    run = subprocess.run(build(tmp_path), capture_output=True, text=True, check=True)
    assert run.stdout.split()[0] == "200"
    assert len(files(tmp_path)) == 1


@pytest.mark.slow
def test_two_processes_may_build_the_same_store(tmp_path: Path) -> None:
    slow = "lambda done, total: __import__('time').sleep(0.005)"
    runs = [subprocess.Popen(build(tmp_path, progress=slow), stdout=subprocess.PIPE, text=True) for _ in range(2)]
    outputs = {run.communicate()[0] for run in runs}
    assert [run.returncode for run in runs] == [0, 0]
    assert len(outputs) == 1
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.skipif(sys.platform == "win32", reason="limits on file size are POSIX")
def test_a_full_disk_leaves_nothing_and_says_what_to_do(tmp_path: Path) -> None:
    limit = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))"
    run = subprocess.run(build(tmp_path, before=limit), capture_output=True, text=True)
    assert "BadInput: cannot write" in run.stderr
    assert run.stderr.strip().endswith("Set GNOMON_CACHE to a folder with room")
    assert list(tmp_path.iterdir()) == []


def test_drafts_of_killed_processes_go(tmp_path: Path) -> None:
    for name, age in [(".a.tokens.1.ff.tmp", 60), (".b.tokens.1.ff.tmp", 0)]:
        (tmp_path / name).touch()
        written = (tmp_path / name).stat().st_mtime - age
        os.utime(tmp_path / name, (written, written))
    TokenStore.open(Corpus.from_texts(TEXTS), Tokenizer.bytes(), tmp_path)
    assert [path.name for path in tmp_path.iterdir() if path.suffix == ".tmp"] == [".b.tokens.1.ff.tmp"]


def test_the_cache_is_used_unless_a_folder_is_given(tmp_path: Path) -> None:
    TokenStore.open(Corpus.from_texts(TEXTS), Tokenizer.bytes())
    assert len(files(tmp_path / "cache" / "tokens")) == 1


def test_a_document_that_is_not_there_is_refused() -> None:
    built = TokenStore.open(Corpus.from_texts(TEXTS), Tokenizer.bytes())
    for index in [4, -1]:
        with pytest.raises(BadValue, match="0 to 3"):
            built.document(index)


def test_a_cache_that_is_no_folder_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(BadInput, match=r"cannot write .*file.*GNOMON_CACHE"):
        TokenStore.open(Corpus.from_texts(TEXTS), Tokenizer.bytes(), tmp_path / "file")
