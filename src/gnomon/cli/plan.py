"""`gnomon plan PRESET`: parameters by part, tied and untied, and the cache by context, before anything is built."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gnomon.cli.config import plain_settings
from gnomon.cli.options import config_options, import_option, json_option
from gnomon.cli.output import print_json
from gnomon.glossary import grouped

if TYPE_CHECKING:
    from gnomon.models import ModelConfig
    from gnomon.models.plan import Plan

DTYPES = ("float32", "bfloat16")
WIDTH = 15  # of a column of numbers


@click.command("plan")
@click.argument("preset")
@click.option("--position", help="Count it with this encoding instead of the preset's.")
@click.option("--context", "contexts", type=click.IntRange(min=1), multiple=True, help="A context length; repeatable.")
@click.option("--batch", type=click.IntRange(min=1), default=1, show_default=True, help="Rows in the cache.")
@config_options
@import_option
@json_option
def command(
    preset: str,
    position: str | None,
    contexts: tuple[int, ...],
    batch: int,
    config_file: Path | None,
    settings: tuple[str, ...],
    as_json: bool,
) -> None:
    """Count the parameters of PRESET by part, tied and untied, and its cache by context length.

    PRESET is mini-gpt, mini-llama, gpt2-small, vaswani-base or bert-base. Any setting of a model can be changed:
    --set d_model=256 --set n_kv_heads=1. Nothing is allocated, so any size can be planned.
    """
    from gnomon.models.config import preset as named
    from gnomon.models.plan import plan

    changes = plain_settings(config_file, settings) | ({} if position is None else {"position": position})
    planned = plan(named(preset, **changes))
    report = _report(preset, planned, list(contexts) or planned.contexts(), batch)
    if as_json:
        print_json(report)
    else:
        click.echo(_written(planned, report))


def _report(preset: str, planned: "Plan", contexts: list[int], batch: int) -> dict[str, Any]:
    import torch

    types = {name: getattr(torch, name) for name in DTYPES}
    return {
        "preset": preset,
        "config": planned.config.to_dict(),
        "parameters": {**planned.parts, "input_layer": planned.input_layer, "total": planned.total},
        "tied": planned.tied,
        "untied": planned.untied,
        "weights_bytes": {name: planned.total * dtype.itemsize for name, dtype in types.items()},
        "batch": batch,
        "cache_numbers_per_token": planned.numbers_per_token,
        "cache_bytes": [
            {"context": n, **{name: planned.cache_bytes(n, dtype, batch) for name, dtype in types.items()}}
            for n in contexts
            if planned.numbers_per_token
        ],
    }


def _written(planned: "Plan", report: dict[str, Any]) -> str:
    c, parameters = planned.config, report["parameters"]
    parts = {name: n for name, n in parameters.items() if name not in ("input_layer", "total") and n}
    lines = [
        f"{report['preset']}: {_depth(c)} layers, width {c.d_model}, {c.n_heads} heads, {c.vocab_size} tokens, "
        f"position {_named(c.position)}, head {_head(c)}",
        "",
        *(_row(name.replace("_", "-"), grouped(n)) for name, n in parts.items()),
        _row("total", grouped(parameters["total"])) + "   parameters",
        _row("input layer", grouped(parameters["input_layer"])) + "   of them",
        "",
        *_tied_or_not(planned),
        _row("", *DTYPES),
        _row("weights", *_sizes(report["weights_bytes"])),
        *(_row(f"cache, {grouped(row['context'])}", *_sizes(row)) for row in report["cache_bytes"]),
        "",
        _of_the_cache(planned),
    ]
    if report["batch"] > 1:
        lines.append(f"The cache is that of {report['batch']} rows.")
    if c.window is not None:
        lines.append(f"Its window of {_windows(c)} tokens bounds the cache.")
    return "\n".join(lines)


def _depth(c: "ModelConfig") -> str:
    return f"{c.n_layers} + {c.depth}" if c.architecture == "encoder-decoder" else str(c.n_layers)


def _head(c: "ModelConfig") -> str:
    over_words = c.head in ("tokens", "masked")
    return ("tied" if c.tied else "untied") if over_words else c.head


def _windows(c: "ModelConfig") -> str:
    each = c.window if isinstance(c.window, tuple) else (c.window,)
    return ", ".join("all" if window is None else grouped(window) for window in each)


def _tied_or_not(planned: "Plan") -> list[str]:
    """What a table for the output alone would cost; nothing where there is no such output."""
    if planned.tied == planned.untied:
        return []
    more = f"   {planned.untied / planned.tied - 1:+.1%}"
    return [_row("tied", grouped(planned.tied)), _row("untied", grouped(planned.untied)) + more, ""]


def _of_the_cache(planned: "Plan") -> str:
    if planned.numbers_per_token == 0:
        return "An encoder reads every text in one piece and keeps no cache."
    each = (
        "A token" if planned.config.architecture == "decoder-only" else "A token of the target, and one of the source,"
    )
    return (
        f"{each} leaves {grouped(planned.numbers_per_token)} numbers in the cache: a key and a value of each key/value "
        "head in each layer."
    )


def _named(position: Any) -> str:
    """The encoding as one would choose it; several are listed by layer."""
    each = position if isinstance(position, tuple) else (position,)
    return ", ".join(repr(spec) if spec.options else spec.name for spec in each)


def _sizes(row: Mapping[str, int]) -> list[str]:
    return [size(row[dtype]) for dtype in DTYPES]


def _row(name: str, *values: str) -> str:
    return f"{name:<18}" + "".join(f"{value:>{WIDTH}}" for value in values)


def size(n_bytes: int) -> str:
    """Bytes for people, in powers of 1000.

    >>> size(75_497_472)
    '75.5 MB'
    """
    if n_bytes < 1000:
        return f"{n_bytes} bytes"
    power = min((len(str(n_bytes)) - 1) // 3, 4)
    return f"{n_bytes / 1000**power:.1f} {('kB', 'MB', 'GB', 'TB')[power - 1]}"


__all__ = ["command", "size"]
