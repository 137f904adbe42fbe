"""A report in the formats of other programs, and as a page; each is one function from a report to text."""

from collections.abc import Callable, Mapping
from pathlib import Path

from gnomon.audit.outside.outputs.html import page
from gnomon.audit.outside.outputs.json import json_text
from gnomon.audit.outside.outputs.junit import junit
from gnomon.audit.outside.outputs.sarif import sarif
from gnomon.audit.outside.outputs.table import written
from gnomon.audit.outside.report import Report
from gnomon.data import atomic
from gnomon.errors import unknown

WRITERS: Mapping[str, Callable[..., str]] = {
    ".html": page, ".json": json_text, ".sarif": sarif, ".txt": written, ".xml": junit,
}  # fmt: skip
SPOKEN = (".html", ".txt")  #: formats that people read, which take a language


def save(report: Report, path: str | Path, kind: str = "", lang: str = "en") -> None:
    """Write the report to `path`, whole or not at all, in the format that `kind`, else the name's ending says.

    lang: of the page and the table; programs read the same in every language
    """
    ending = kind or Path(path).suffix.lower()
    if ending not in WRITERS:
        raise unknown("ending of a report's file", ending or str(path), WRITERS)
    text = WRITERS[ending](report, **({"lang": lang} if ending in SPOKEN else {})).rstrip("\n") + "\n"
    with atomic(path) as file:
        file.write(text.encode())


__all__ = ["WRITERS", "json_text", "junit", "page", "sarif", "save", "written"]
