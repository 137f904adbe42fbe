"""Corpora: text from files, folders, JSONL, standard input or this machine's Python, as a list of documents.

A document is one file, one JSONL line or one whole standard input; a text that comes twice is kept once. Texts are
UTF-8 and kept to the character; only a byte order mark at the start of a file goes.

``stdlib`` is the corpus that a machine with Python already has: the source of its standard library, about 12 MB,
without the library's own tests.
"""

import hashlib
import json
import os
import sys
import sysconfig
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import BinaryIO

from gnomon.data.document import Document
from gnomon.errors import BadInput, BadValue, each_text
from gnomon.glossary import message

STDLIB = "stdlib"
NOT_STDLIB = {"test", "tests", "idle_test", "site-packages", "dist-packages", "__pycache__"}
JSONL = (".jsonl", ".ndjson")
IN_MEMORY = 1 << 28  # bytes of text; what is more stays in its files


@dataclass(frozen=True)
class Corpus:
    """Documents in order, each text once.

    >>> corpus = Corpus.from_texts(["one", "two", "one"])
    >>> len(corpus.documents), corpus.n_bytes, corpus.duplicates
    (2, 6, 1)
    """

    documents: tuple[Document, ...]
    name: str
    duplicates: int = 0  # documents left out because an earlier one has the same text
    skipped: int = 0  # files in folders left out because they are not text

    @classmethod
    def open(cls, sources: str | Path | Sequence[str | Path] = STDLIB, text_key: str = "text") -> "Corpus":
        """Read ``sources``: paths of files, folders and JSONL files, "-" for standard input, or "stdlib".

        A folder is read with all below it, in sorted order, except hidden names and files that hold a NUL byte
        (they are counted in ``skipped``). A file that ends in .jsonl or .ndjson holds one object a line, with the
        text under ``text_key``. BadInput names the file and the byte or line that cannot be read as text.
        """
        given = [sources] if isinstance(sources, str | Path) else list(sources)
        skipped: list[Path] = []
        documents = (document for source in given for document in _read(source, text_key, skipped))
        corpus = cls.from_documents(documents, name=", ".join(map(str, given)))
        return replace(corpus, skipped=len(skipped))

    @classmethod
    def from_texts(cls, texts: Iterable[str], name: str = "texts") -> "Corpus":
        """A corpus of texts at hand, one document each."""
        return cls.from_documents(
            [Document(f"{name}:{i}", text) for i, text in enumerate(each_text("texts", texts))], name
        )

    @classmethod
    def from_documents(cls, documents: Iterable[Document], name: str, skipped: int = 0) -> "Corpus":
        """Keep each text once, and none that is blank; BadInput where nothing remains. Of what is more than IN_MEMORY
        bytes, texts stay in their files."""
        kept: dict[bytes, Document] = {}
        written = held = 0
        for document in documents:
            if not document.text or document.text.isspace():
                continue
            written += 1
            if document.sha256 not in kept:  # the first of equals stays
                held += document.n_bytes
                kept[document.sha256] = document if held <= IN_MEMORY else document.left_in_file()
        if not kept:
            raise BadInput(f"no text in {name or 'an empty list'}: give files, folders, JSONL, '-' or {STDLIB!r}")
        return cls(tuple(kept.values()), name, duplicates=written - len(kept), skipped=skipped)

    @cached_property
    def n_bytes(self) -> int:
        """Bytes of UTF-8 in all documents."""
        return sum(document.n_bytes for document in self.documents)

    @cached_property
    def sha256(self) -> str:
        """Fingerprint of the texts and their order, whatever the documents are called."""
        return hashlib.sha256(b"".join(document.sha256 for document in self.documents)).hexdigest()

    @property
    def texts(self) -> list[str]:
        """The texts alone, in order."""
        return [document.text for document in self.documents]

    def split(self, held_out: float = 0.05, seed: int = 0) -> tuple["Corpus", "Corpus"]:
        """Divide into training and held-out documents, about ``held_out`` of the bytes held out.

        Which documents are drawn depends on their texts and ``seed`` alone, not on names or order. Documents are
        drawn whole; where even the smallest is more than the share asked for, that one is held out. A corpus of a
        single document is cut instead: its end is held out, from the start of a line where one is near.
        """
        if not 0 < held_out < 1:
            raise BadValue(f"held_out is {held_out}, but it is a share of the corpus: choose between 0 and 1")
        if len(self.documents) == 1:
            return self._cut(held_out)
        drawn: set[bytes] = set()
        room = held_out * self.n_bytes
        for document in sorted(self.documents, key=lambda d: hashlib.sha256(b"%d:" % seed + d.sha256).digest()):
            if document.n_bytes <= room:
                drawn.add(document.sha256)
                room -= document.n_bytes
        if not drawn:
            drawn = {min(self.documents, key=lambda d: (d.n_bytes, d.sha256)).sha256}
        return (
            Corpus(tuple(d for d in self.documents if d.sha256 not in drawn), f"{self.name} (training)"),
            Corpus(tuple(d for d in self.documents if d.sha256 in drawn), f"{self.name} (held out)"),
        )

    def _cut(self, held_out: float) -> tuple["Corpus", "Corpus"]:
        [document] = self.documents
        text = document.text
        if len(text) < 2:
            raise BadInput(f"{self.name} is one character, which cannot be divided: give more text")
        share = max(1, int(len(text) * held_out))
        end = len(text) - share
        end = text.rfind("\n", max(0, end - share), end) + 1 or end  # at most twice the share, for a line's sake
        return (
            Corpus.from_documents([Document(f"{document.name} (start)", text[:end])], f"{self.name} (training)"),
            Corpus.from_documents([Document(f"{document.name} (end)", text[end:])], f"{self.name} (held out)"),
        )

    def describe(self) -> str:
        """One line: name, size, fingerprint, and what was left out."""
        about = {
            "name": self.name,
            "documents": len(self.documents),
            "megabytes": self.n_bytes / 1e6,
            "sha256": self.sha256[:12],
        }
        left_out = {"repeated": self.duplicates, "not_text": self.skipped}
        notes = [message("data", what, count=count) for what, count in left_out.items() if count]
        if not notes:
            return message("data", "corpus", **about)
        note = notes[0] if len(notes) == 1 else message("data", "both", first=notes[0], second=notes[1])
        return message("data", "corpus_less", **about, note=note)


def _read(source: str | Path, text_key: str, skipped: list[Path]) -> Iterator[Document]:
    """The documents of one source; files in a folder that are not text are added to `skipped`."""
    if source == "-":
        yield Document("standard input", _decode("standard input", sys.stdin.buffer.read()))
    elif source == STDLIB:
        yield from _read_stdlib()
    elif not (path := Path(source)).is_dir():
        yield from _parse(path, text_key)
    else:
        for file in _walk(path):
            if _holds_nul(file):
                skipped.append(file)
            else:
                yield from _parse(file, text_key)


def _read_stdlib() -> Iterator[Document]:
    folder = Path(sysconfig.get_path("stdlib"))
    files = [file for file in _walk(folder, NOT_STDLIB) if file.suffix == ".py"]
    if not files:
        raise BadInput(f"this Python has no library source in {folder}: give files or folders of text instead")
    for file in files:
        yield _whole(file, f"{STDLIB}/{file.relative_to(folder).as_posix()}")


def _walk(folder: Path, without: Iterable[str] = ()) -> Iterator[Path]:
    """The files below ``folder`` in sorted order, without hidden names and folders named in ``without``."""

    def stop(error: OSError) -> None:
        raise BadInput(f"cannot read the folder {error.filename}: {error.strerror}") from error

    for here, folders, files in os.walk(folder, onerror=stop):
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name not in without)
        paths = (Path(here, name) for name in sorted(files) if not name.startswith("."))
        yield from (path for path in paths if path.is_file())


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise BadInput(f"cannot read {path}: {error.strerror}") from error


def _holds_nul(path: Path) -> bool:
    """Whether a file is no text."""
    with _opened(path) as file:
        return any(b"\0" in piece for piece in iter(lambda: file.read(1 << 20), b""))


@contextmanager
def _opened(path: Path) -> Iterator[BinaryIO]:
    try:
        with open(path, "rb") as file:
            yield file
    except OSError as error:
        raise BadInput(f"cannot read {path}: {error.strerror}") from error


def _decode(name: str | Path, data: bytes, before: int = 0) -> str:
    """UTF-8 as text, without a mark at the start of the file. before: bytes of the file that come before these."""
    if (at := data.find(b"\0")) >= 0:
        raise BadInput(f"{name} is not a text file: byte {before + at} is NUL; give UTF-8 text")
    try:
        text = data.decode("utf-8")
        return text if before else text.removeprefix("\N{ZERO WIDTH NO-BREAK SPACE}")
    except UnicodeDecodeError as error:
        raise BadInput(
            f"{name} is not UTF-8: {error.reason} at byte {before + error.start} (0x{data[error.start]:02X}); "
            "convert it, for example with iconv -t UTF-8"
        ) from error


def _parse(path: Path, text_key: str) -> Iterator[Document]:
    """The documents of one file: one a line where it is JSONL, else one."""
    if path.suffix not in JSONL:
        yield _whole(path, str(path))
        return
    start = 0
    with _opened(path) as file:
        for number, data in enumerate(file, start=1):
            line, place = _decode(path, data, start), (path, start, len(data))
            start += len(data)
            if line.strip():
                name = f"{path}:{number}"
                yield Document(name, _checked_text(name, line, text_key), partial(_again, place, name, text_key))


def _whole(path: Path, name: str) -> Document:
    return Document(name, _decode(path, _bytes(path)), lambda: _decode(path, _bytes(path)))


def _again(place: tuple[Path, int, int], name: str, text_key: str) -> str:
    """The text of one line of a JSONL file, by its path, its first byte and its bytes."""
    path, start, size = place
    with _opened(path) as file:
        file.seek(start)
        return _checked_text(name, _decode(path, file.read(size), start), text_key)


def _checked_text(name: str, line: str, text_key: str) -> str:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise BadInput(f"{name} is not JSON: {error}") from error
    if not isinstance(record, dict):
        raise BadInput(f"{name} is a JSON {type(record).__name__}, not an object with the key {text_key!r}")
    if text_key not in record:
        raise BadInput(f"{name} has no key {text_key!r}, only {', '.join(map(repr, record))}: choose with --text-key")
    text = record[text_key]
    if not isinstance(text, str):
        raise BadInput(f"{name}: the value of {text_key!r} is {type(text).__name__}, not a string")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise BadInput(f"{name}: character {error.start} of {text_key!r} is half a surrogate pair") from error
    return text
