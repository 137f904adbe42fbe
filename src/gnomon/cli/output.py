"""What commands print: for programs exactly one JSON object, with the version of its shape; for people, how wide."""

import json
import math
import shutil
import textwrap
from collections.abc import Mapping
from dataclasses import asdict
from numbers import Integral, Real
from pathlib import PurePath
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from gnomon.train import Evaluation

SCHEMA_VERSION = 1


def _plain(value: object) -> object:
    """Turn numpy's numbers into Python's, paths into text, and NaN and infinities, which JSON cannot say, into null."""
    match value:
        case Mapping():
            return {str(key): _plain(item) for key, item in value.items()}
        case list() | tuple():
            return [_plain(item) for item in value]
        case bool() | Integral():
            return value if isinstance(value, bool) else int(value)
        case Real():
            return float(value) if math.isfinite(value) else None
        case PurePath():
            return str(value)
    return value


def print_json(payload: Mapping[str, object]) -> None:
    """Print `payload` on standard output as one JSON object that begins with `schema_version`.

    Keys keep their order. `schema_version` goes up when a key changes its meaning or leaves, not when one is added.
    Raises TypeError for a value that is no number, text, path, list, mapping or None.
    """
    whole = _plain({"schema_version": SCHEMA_VERSION, **payload})
    click.echo(json.dumps(whole, indent=2, ensure_ascii=False, allow_nan=False))


def columns(most: int | None = 100) -> int:
    """How wide text may be: the terminal (or COLUMNS), but no wider than `most`; `most` where neither says. None: as
    wide as the terminal, and 80 where there is none."""
    width = shutil.get_terminal_size((80 if most is None else most, 24)).columns
    return width if most is None else min(most, width)


def wrap(text: str, first: str = "", most: int | None = 100) -> str:
    """Paragraphs as wide as `columns` allows, the first line after `first`, the others indented as far."""
    indent = " " * len(first)
    fill = textwrap.TextWrapper(
        columns(most), initial_indent=first, subsequent_indent=indent, break_long_words=False
    ).fill
    return "\n".join(map(fill, text.splitlines()))


def measures_json(evaluation: "Evaluation") -> dict[str, object]:
    """An evaluation's values by name, the number of its targets, and under "measures" the intervals with them."""
    from gnomon.train.evaluation import metric_name

    named = {metric_name(name): measure for name, measure in evaluation.measures.items()}
    return {
        **{name: measure.value for name, measure in named.items()},
        "held_out_tokens": evaluation.targets,
        "measures": {name: asdict(measure) for name, measure in named.items()},
    }


__all__ = ["SCHEMA_VERSION", "columns", "measures_json", "print_json", "wrap"]
