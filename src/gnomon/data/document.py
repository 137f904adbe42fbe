"""Document: one text and where it comes from. It may stay in its file and be read whenever it is asked for, so that a
corpus can be larger than memory: then only its name, size and digest are held."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

from gnomon.errors import BadInput


@dataclass(frozen=True)
class Document:
    """One text and where it comes from (a path, or ``path:line`` in a JSONL file).

    again   reads the text once more, where it is in a file
    """

    name: str
    text: str
    again: Callable[[], str] | None = field(default=None, compare=False, repr=False)

    @property
    def data(self) -> bytes:
        """The text as UTF-8."""
        return self.text.encode()

    @cached_property
    def n_bytes(self) -> int:
        """Length of the text as UTF-8."""
        return len(self.data)

    @cached_property
    def sha256(self) -> bytes:
        """Digest of the text alone: two documents with one text share it."""
        return hashlib.sha256(self.data).digest()

    def left_in_file(self) -> "Document":
        """The same document without its text, which is read again when it is asked for; itself where it has no file."""
        return self if self.again is None else _InFile(self.name, self.n_bytes, self.sha256, self.again)


class _InFile(Document):
    """A document whose text is in its file."""

    def __init__(self, name: str, n_bytes: int, sha256: bytes, again: Callable[[], str]) -> None:
        for key, value in {"name": name, "n_bytes": n_bytes, "sha256": sha256, "again": again}.items():
            self.__dict__[key] = value

    @property
    def text(self) -> str:
        """The text, read now. BadInput where the file holds another one by now."""
        assert self.again is not None
        text = self.again()
        if hashlib.sha256(text.encode()).digest() != self.sha256:
            raise BadInput(f"{self.name} was changed while it was being used: leave the files as they are, start again")
        return text


__all__ = ["Document"]
