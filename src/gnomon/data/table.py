"""Tables of text and label: TSV, CSV or JSONL with the columns `text` and `label`."""

import csv
import hashlib
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from gnomon.errors import BadInput, unknown

COLUMNS = ("text", "label")


class Example(NamedTuple):
    """A text and the class it belongs to."""

    text: str
    label: str


def read_table(path: str | Path) -> list[Example]:
    """The rows of a table whose suffix is .tsv, .csv, .jsonl or .ndjson, in UTF-8.

    TSV and CSV begin with a line of column names; other columns are passed over. Fields of a CSV may be in quotes and
    then hold line breaks; those of a TSV are taken as they are. Raises BadInput with the line that does not fit.
    """
    path = Path(path)
    readers = {".tsv": _read_separated, ".csv": _read_separated, ".jsonl": _objects, ".ndjson": _objects}
    if path.suffix.lower() not in readers:
        raise BadInput(f"{path}: {unknown('kind of table', path.suffix, readers)}")
    try:
        with open(path, encoding="utf-8-sig", newline="") as lines:
            rows = [_example(path, line, row) for line, row in readers[path.suffix.lower()](path, lines)]
    except UnicodeDecodeError as error:
        raise BadInput(f"{path} is not UTF-8: {error.reason} at byte {error.start}") from error
    except OSError as error:
        raise BadInput(f"cannot read {path}: {error.strerror}") from error
    if not rows:
        raise BadInput(f"{path} holds no rows: give a text and a label on each line")
    return rows


def drop_duplicates(examples: Iterable[Example]) -> list[Example]:
    """Each text once, in order; a text that comes with two different labels is left out, for nothing can be learned or
    judged by it."""
    label_of: dict[str, str | None] = {}
    for text, label in examples:
        label_of[text] = label if label_of.setdefault(text, label) == label else None
    return [Example(text, label) for text, label in label_of.items() if label is not None]


def split_examples(examples: Iterable[Example], held_out: float, seed: int = 0) -> tuple[list[Example], list[Example]]:
    """Training and held-out examples: of each class its share is held out, at least one text and never all.

    Which ones depends on their texts and `seed` alone. Raises BadInput for a class of one text.
    """
    by_label: dict[str, list[Example]] = {}
    for example in examples:
        by_label.setdefault(example.label, []).append(example)
    training, kept_apart = [], []
    for label, some in sorted(by_label.items()):
        if len(some) < 2:
            raise BadInput(
                f"the class {label!r} has one text, but one is to be learned from and one held out: give more, or none"
            )
        some = sorted(some, key=lambda e: hashlib.sha256(f"{seed}:{e.text}".encode()).digest())
        n = min(max(1, round(held_out * len(some))), len(some) - 1)
        kept_apart += some[:n]
        training += some[n:]
    return training, kept_apart


def _read_separated(path: Path, lines: Iterable[str]) -> Iterator[tuple[int, dict[str, object]]]:
    """Rows by column name, each with the line it ends on."""
    tabs = path.suffix.lower() == ".tsv"
    dialect = {"delimiter": "\t", "quoting": csv.QUOTE_NONE} if tabs else {"delimiter": ",", "strict": True}
    rows = csv.reader(lines, **dialect)  # type: ignore[arg-type]
    try:
        header = next(rows, [])
        if missing := [column for column in COLUMNS if column not in header]:
            raise BadInput(
                f"{path}, line 1: there is no column {' or '.join(map(repr, missing))} among {header}: "
                "the first line names the columns, text and label"
            )
        for row in rows:
            if row and len(row) != len(header):
                raise BadInput(f"{path}, line {rows.line_num}: {len(row)} fields where {len(header)} were expected")
            if row:
                yield rows.line_num, dict(zip(header, row, strict=True))
    except csv.Error as error:
        raise BadInput(f"{path}, line {rows.line_num}: {error}") from error


def _objects(path: Path, lines: Iterable[str]) -> Iterator[tuple[int, dict[str, object]]]:
    """The object of each line that is not blank."""
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise BadInput(f"{path}, line {number}: not JSON: {error}") from error
        if not isinstance(row, dict):
            raise BadInput(f"{path}, line {number}: an object with text and label was expected, got {line.strip()!r}")
        yield number, row


def _example(path: Path, line: int, row: dict[str, object]) -> Example:
    for column in COLUMNS:
        value = row.get(column)
        if not isinstance(value, str) or not value.strip():
            raise BadInput(f"{path}, line {line}: {column} must be some text, got {value!r}")
    return Example(*(str(row[column]) for column in COLUMNS))


__all__ = ["Example", "drop_duplicates", "read_table", "split_examples"]
