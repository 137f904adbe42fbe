"""What commands print for programs: exactly one JSON object, with the version of its shape."""

import json
import math
from collections.abc import Mapping

import click

SCHEMA_VERSION = 1


def _plain(value: object) -> object:
    """Replace what JSON cannot say: NaN and infinities become null, tuples lists, paths and other objects text."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, str | int):
        return value
    return str(value)


def print_json(payload: Mapping[str, object]) -> None:
    """Print `payload` on standard output as one JSON object that begins with `schema_version`.

    Keys keep their order. `schema_version` goes up when a key changes its meaning or leaves, not when one is added.
    """
    whole = _plain({"schema_version": SCHEMA_VERSION, **payload})
    click.echo(json.dumps(whole, indent=2, ensure_ascii=False, allow_nan=False))


__all__ = ["SCHEMA_VERSION", "print_json"]
