"""A corpus as token ids on disk: tokenised once, memory-mapped ever after.

One file holds everything: a line of JSON padded to 64 bytes or a multiple, the stream of tokens (uint16 or uint32),
then the documents' ends and UTF-8 sizes (int64). Its name is made of the fingerprints of corpus and tokenizer, so
that a change of either finds no file, and it appears whole or not at all, whoever is killed or writes it twice. The
first line holds a checksum of all that follows: a file that was damaged since is written anew, never trained on.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from gnomon.data.corpus import Corpus
from gnomon.data.document import Document
from gnomon.data.files import atomic, cache_folder, sweep
from gnomon.data.tokenizer import Tokenizer
from gnomon.errors import BadInput, BadValue

FORMAT = 2  # goes up when the layout of the file changes
LONGEST = 4096  # bytes of a first line
BATCH_BYTES = 1 << 20  # text encoded between two calls of progress

Ints = np.ndarray[Any, np.dtype[np.integer[Any]]]
Progress = Callable[[int, int], None]  # bytes of text done, bytes in all


@dataclass(frozen=True)
class TokenStore:
    """The documents of a corpus as one stream of token ids, each document followed by end-of-text.

    With a tokenizer that has no end-of-text, documents follow each other with nothing between.
    """

    tokens: Ints  # (N,) the stream
    ends: Ints  # (documents,) where each document's own tokens end: the place of its end-of-text
    document_bytes: Ints  # (documents,) UTF-8 bytes of each document
    byte_lengths: Ints  # (V,) UTF-8 bytes of each token id
    eos_id: int | None

    @classmethod
    def open(
        cls,
        corpus: Corpus,
        tokenizer: Tokenizer,
        cache: str | Path | None = None,
        progress: Progress | None = None,
    ) -> "TokenStore":
        """Map the tokens of ``corpus``, encoding them first where the folder ``cache`` does not hold them yet.

        ``cache`` is by default the folder ``tokens`` in Gnomon's cache. ``progress`` is called while encoding, with the
        bytes done and the bytes in all. A file that is damaged is written anew. BadInput where it cannot be written,
        for example on a full disk.
        """
        path, header = _expected(corpus.sha256, len(corpus.documents), tokenizer, cache)
        parts = _map(path, header)
        if parts is None:
            _write(path, header, corpus.documents, tokenizer, progress)
            parts = _map(path, header)
        if parts is None:
            raise BadInput(f"{path} was written but cannot be read back: set GNOMON_CACHE to a folder on another disk")
        return cls(*parts, byte_lengths=tokenizer.byte_lengths(), eos_id=tokenizer.eos_id)

    @classmethod
    def find(cls, sha256: str, n_documents: int, tokenizer: Tokenizer, cache: str | Path | None = None) -> "TokenStore":
        """Map the tokens that ``open`` wrote for the corpus with this fingerprint and number of documents.

        For processes that share the file but do not have the texts. BadInput where there is no such file, or a damaged
        one.
        """
        path, header = _expected(sha256, n_documents, tokenizer, cache)
        parts = _map(path, header)
        if parts is None:
            what = "the tokenised text in the cache is damaged:" if path.exists() else "there is no tokenised text"
            raise BadInput(f"{what} {path}: open the corpus once before its tokens are shared")
        return cls(*parts, byte_lengths=tokenizer.byte_lengths(), eos_id=tokenizer.eos_id)

    @staticmethod
    def place(sha256: str, n_documents: int, tokenizer: Tokenizer, cache: str | Path | None = None) -> Path:
        """The file that ``find`` reads, for those who send it to another machine."""
        return _expected(sha256, n_documents, tokenizer, cache)[0]

    @property
    def n_documents(self) -> int:
        """Number of documents."""
        return len(self.ends)

    @cached_property
    def starts(self) -> Ints:
        """(documents,) the place of each document's first token."""
        return np.concatenate([[0], self.ends[:-1] + (self.eos_id is not None)])

    def document(self, index: int) -> Ints:
        """The tokens of one document, without its end-of-text."""
        if not 0 <= index < self.n_documents:
            raise BadValue(f"document {index} was asked for, but the store holds 0 to {self.n_documents - 1}")
        return self.tokens[self.starts[index] : self.ends[index]]


def _expected(
    sha256: str, n_documents: int, tokenizer: Tokenizer, cache: str | Path | None
) -> tuple[Path, dict[str, Any]]:
    """Where the tokens of a corpus are kept, and what must agree when they are read; they are counted later."""
    folder = cache_folder() / "tokens" if cache is None else Path(cache)
    header = {
        "format": FORMAT,
        "corpus": sha256,
        "tokenizer": tokenizer.sha256,
        "documents": n_documents,
        "dtype": "uint16" if tokenizer.vocab_size <= 1 << 16 else "uint32",
    }
    return folder / f"{sha256[:20]}-{tokenizer.sha256[:20]}.tokens", header


def _map(path: Path, header: dict[str, Any]) -> tuple[Ints, Ints, Ints] | None:
    """Tokens, ends and sizes of a whole file that fits ``header``; None where there is no such file."""
    try:
        with open(path, "rb") as file:
            line = file.readline(LONGEST)
        found = json.loads(line)
        n_tokens, checksum = found.pop("tokens"), found.pop("checksum")
        data = np.asarray(np.memmap(path, dtype=np.uint8, mode="r"))
    except (OSError, ValueError, KeyError, AttributeError, TypeError, RecursionError):
        return None  # absent, or not a file of ours: it is written anew
    if found != header or type(n_tokens) is not int or not 0 <= n_tokens <= len(data):
        return None
    sizes = [n_tokens, header["documents"], header["documents"]]
    dtypes = [np.dtype(header["dtype"]), np.dtype(np.int64), np.dtype(np.int64)]
    ends = np.cumsum([len(line), *(_round_up(n * dtype.itemsize) for n, dtype in zip(sizes, dtypes, strict=True))])
    if len(data) != ends[-1] or _checksum([data[len(line) :].data]) != checksum:
        return None
    tokens, document_ends, document_bytes = (
        data[at : at + n * dtype.itemsize].view(dtype) for at, n, dtype in zip(ends, sizes, dtypes, strict=False)
    )
    return tokens, document_ends, document_bytes


def _write(
    path: Path, header: dict[str, Any], documents: Sequence[Document], tokenizer: Tokenizer, progress: Progress | None
) -> None:
    end = [] if tokenizer.eos_id is None else [tokenizer.eos_id]
    dtype, lengths = np.dtype(header["dtype"]), []
    total, done = sum(document.n_bytes for document in documents), 0
    most = {"tokens": 10**18, "checksum": "0" * 64, **header}  # what comes after has a fixed place in the file
    first = _round_up(len(json.dumps(most)) + 1)
    sweep(path.parent)
    try:
        with atomic(path) as file:
            file.write(bytes(first))
            digest = hashlib.sha256()
            for batch in _batches(documents):
                encoded = tokenizer.encode_batch([document.text for document in batch])
                tokens = np.concatenate([np.array(ids + end, dtype=dtype) for ids in encoded])
                _append(file, digest, tokens.data)
                lengths += [len(ids) for ids in encoded]
                done += sum(document.n_bytes for document in batch)
                if progress is not None:
                    progress(done, total)
            ends = np.cumsum(np.array(lengths) + len(end)) - len(end)
            n_tokens = int(ends[-1]) + len(end)
            _append(file, digest, bytes(_round_up(n_tokens * dtype.itemsize) - n_tokens * dtype.itemsize))
            for piece in _body(ends, np.array([document.n_bytes for document in documents])):
                _append(file, digest, piece)
            line = json.dumps({"tokens": n_tokens, "checksum": digest.hexdigest(), **header}).encode()
            file.seek(0)
            file.write(line.ljust(first - 1) + b"\n")
    except BadInput as error:
        if not str(error).startswith("cannot write"):
            raise
        raise BadInput(f"{error}. Set GNOMON_CACHE to a folder with room") from error


def _append(file: BinaryIO, digest: Any, piece: bytes | memoryview) -> None:
    file.write(piece)
    digest.update(piece)


def _batches(documents: Sequence[Document]) -> Iterator[list[Document]]:
    """Cut the documents into runs of about BATCH_BYTES."""
    batch: list[Document] = []
    size = 0
    for document in documents:
        batch.append(document)
        size += document.n_bytes
        if size >= BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _round_up(size: int) -> int:
    return -(-size // 64) * 64


def _body(*parts: Ints) -> Iterator[bytes | memoryview]:
    """What follows the first line: each part, and zeros after it."""
    for part in parts:
        yield part.data
        yield bytes(_round_up(part.nbytes) - part.nbytes)


def _checksum(pieces: Iterable[bytes | memoryview]) -> str:
    digest = hashlib.sha256()
    for piece in pieces:
        digest.update(piece)
    return digest.hexdigest()
