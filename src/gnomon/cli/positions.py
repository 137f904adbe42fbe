"""`gnomon positions`: the encodings there are, as the registry has them."""

import textwrap
from typing import Any

import click

from gnomon.cli.options import import_option, json_option, lang_option
from gnomon.cli.output import columns, print_json
from gnomon.glossary import Words, translated, words

#: of the model whose parameters are counted
SIZES = {"d_model": 512, "d_head": 64, "n_heads": 8, "n_layers": 6, "max_positions": 2048}
WIDEST = 200  # columns of a table that goes into a file or a pipe
TITLES = ("name", "acts_at", "kind", "parameters", "extrapolation", "paper")


@click.command("positions")
@click.option("--markdown", is_flag=True, help="Print the table as Markdown, as it stands in the README.")
@import_option
@lang_option
@json_option
def command(markdown: bool, lang: str, as_json: bool) -> None:
    """List the position encodings: where each acts, its parameters, what to expect past the training length.

    Parameters are those of a model of width 512 with 6 layers, 8 heads and 2048 positions. Encodings of your own join
    the list with --import MODULE.
    """
    found = listing()
    if as_json:
        print_json({"sizes": SIZES, "positions": found})
        return
    w = words("positions", lang)
    rows = [tuple(w(title) for title in TITLES), *(_cells(row, w, markdown) for row in found)]
    click.echo(_markdown(rows) if markdown else _listed(rows, columns(WIDEST)))
    if not markdown:
        sizes = ", ".join(f"{name} {n}" for name, n in SIZES.items())
        about = w("sizes", sizes=sizes, example="position=gn.positions.get('rope', base=1e6)")
        click.echo("\n" + "\n".join(textwrap.fill(line, columns()) for line in about.splitlines()))


def listing() -> list[dict[str, Any]]:
    """One entry per known encoding, "none" first."""
    from gnomon import positions

    return [_entry(positions.encoding(name)) for name in positions.names()]


def _entry(cls: Any) -> dict[str, Any]:
    from gnomon.positions.base import kind_of

    return {
        "name": cls.name,
        "paper": cls.paper,
        "acts": cls.acts,
        "relative": cls.relative,
        "kind": kind_of(cls),
        "parameters": _parameters(cls.name),
        "extrapolation": cls.extrapolation,
        "class": f"{cls.__module__}.{cls.__qualname__}",
    }


def _parameters(name: str) -> int | None:
    """How many there are at SIZES; None for an encoding that these sizes are not enough to build."""
    import torch

    from gnomon import positions
    from gnomon.errors import BadValue

    try:
        with torch.device("meta"):
            module = positions.get(name).build(causal=True, **SIZES)
    except BadValue:
        return None
    return sum(p.numel() for p in module.parameters())


def _cells(row: dict[str, Any], w: Words, plain: bool) -> tuple[str, ...]:
    """plain: digits in groups by commas, as in the README"""
    kind = "-" if row["acts"] == "nowhere" else w(row["kind"])
    n = row["parameters"]
    parameters = "?" if n is None else f"{n:,}" if plain else w.number(n)
    return row["name"], w(row["acts"]), kind, parameters, translated(row["extrapolation"], w.lang), row["paper"]


def _listed(rows: list[tuple[str, ...]], width: int) -> str:
    """A line for each encoding, or a paragraph where lines would be wider than this."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(TITLES))]
    lines = ["  ".join(f"{cell:<{w}}" for cell, w in zip(row, widths, strict=True)).rstrip() for row in rows]
    if max(map(len, lines)) <= width:
        return "\n".join(lines)
    titles, *body = rows
    about = [(name, "; ".join(map(": ".join, zip(titles[1:], cells, strict=True)))) for name, *cells in body]
    indent = "    "
    return "\n".join(
        f"{name}\n{textwrap.fill(text, width, initial_indent=indent, subsequent_indent=indent)}" for name, text in about
    )


def _markdown(rows: list[tuple[str, ...]]) -> str:
    titles, *body = rows
    lines = [titles, ("---",) * len(titles), *((f"`{name}`", *rest) for name, *rest in body)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


__all__ = ["SIZES", "command", "listing"]
