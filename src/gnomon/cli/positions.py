"""`gnomon positions`: the encodings there are, as the registry has them; a page about each; how to cite them."""

import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gnomon.cli.options import import_option, json_option, lang_option
from gnomon.cli.output import columns, print_json, wrap
from gnomon.errors import BadValue
from gnomon.glossary import Words, translate, words

if TYPE_CHECKING:
    from gnomon.positions import PositionEncoding

TITLES = ("name", "acts_at", "kind", "parameters", "extrapolation", "paper")
SHORT = ("name", "acts_at", "extrapolation")


@click.command("positions")
@click.argument("what", nargs=-1, metavar="[NAME | cite NAME...]")
@click.option("--markdown", is_flag=True, help="Print the table as Markdown, as it stands in the README.")
@click.option("--plot", type=click.Path(path_type=Path), help="Draw NAME into this .png or .svg file, too.")
@import_option
@lang_option
@json_option
def command(what: tuple[str, ...], markdown: bool, plot: Path | None, lang: str, as_json: bool) -> None:
    """List the position encodings and recipes, describe one, or cite some.

    \b
    gnomon positions                  one line each
    gnomon positions rope             formula, paper, costs, limits, users, a picture, the nearest others
    gnomon positions cite rope t5     BibTeX; of a trained model: its folder

    Costs are counted, not timed: of one layer of width 512 with 8 heads; parameters of 6 layers and 2048 positions.
    Encodings of your own join with --import MODULE.
    """
    if (markdown and what) or (plot is not None and (len(what) != 1 or what[0] == "cite")):
        raise BadValue(
            "--markdown prints the list of all encodings, --plot draws one: gnomon positions rope --plot x.png"
        )
    if what[:1] == ("cite",):
        _cite(what[1:], as_json)
    elif len(what) > 1:
        raise BadValue(
            f"give one name, got {', '.join(what)}; cite takes several: gnomon positions cite {' '.join(what)}"
        )
    elif what:
        _about(what[0], plot, lang, as_json)
    else:
        _list(markdown, lang, as_json)


def _cite(names: tuple[str, ...], as_json: bool) -> None:
    """BibTeX of encodings by name, or of the models in folders."""
    from gnomon.checkpoints import load
    from gnomon.positions import names as encodings
    from gnomon.positions import recipes
    from gnomon.positions.citation import cite

    if not names:
        raise BadValue("cite takes names of encodings or folders of models: gnomon positions cite rope alibi")
    known = {*encodings(), *recipes()}
    text = cite([load(Path(name)) if name not in known and Path(name).exists() else name for name in names])
    if as_json:
        print_json({"cite": text})
    else:
        click.echo(text)


def _about(name: str, plot: Path | None, lang: str, as_json: bool) -> None:
    """The page about one encoding, or about a recipe."""
    from gnomon.cli.encoding_page import facts, page, recipe_facts, recipe_page
    from gnomon.positions import encoding, recipe, recipes

    if name in recipes():
        if plot is not None:
            raise BadValue(f"{name} is a recipe for position ids, which --plot cannot draw: leave --plot out")
        found = recipe(name)
        print_json(recipe_facts(found)) if as_json else click.echo(recipe_page(found, words("positions", lang)))
        return
    cls = encoding(name)
    drawn = None if plot is None else _draw_first_view(cls, plot, lang)
    if as_json:
        print_json({**facts(cls), **({} if drawn is None else {"file": plot, "alt": drawn})})
        return
    click.echo(page(cls, words("positions", lang), columns(None)))
    if drawn is not None:
        click.echo(f"{plot}: {drawn}")


def _draw_first_view(cls: "type[PositionEncoding]", plot: Path, lang: str) -> str:
    """Draw the first view that `gnomon plot` has of it; what the picture shows, in words."""
    from gnomon.cli.plot import draw, views_of
    from gnomon.plots.picture import picture_format
    from gnomon.positions import get

    picture_format(plot)
    picture = draw(views_of(cls.name)[0], get(cls.name), lang=lang)
    picture.save(plot)
    return picture.alt


def _list(markdown: bool, lang: str, as_json: bool) -> None:
    """All encodings, one line each."""
    from gnomon.positions.kinship import SIZES

    found = listing()
    if as_json:
        print_json({"sizes": dict(SIZES), "positions": found, "recipes": recipe_listing()})
        return
    w = words("positions", lang)
    titles = TITLES if markdown else SHORT
    rows = [tuple(w(title) for title in titles), *(_cells(row, w, titles) for row in found)]
    click.echo(_markdown(rows) if markdown else _columns(rows))
    if not markdown:
        click.echo("\n" + wrap(w("list_more", count=len(found)), most=None))
        recipes = [(w("recipe"), w("in_training"), w("paper")), *_recipe_cells(lang)]
        click.echo("\n" + _columns(recipes, whole=True))
        example = "position=gn.positions.get('rope', positions='randomized(2048)')"
        click.echo("\n" + wrap(w("recipes", example=example), most=None))


def listing() -> list[dict[str, Any]]:
    """One entry per known encoding, "none" first."""
    from gnomon import positions

    return [_entry(positions.encoding(name)) for name in positions.names()]


def recipe_listing() -> list[dict[str, Any]]:
    """One entry per known recipe for position ids."""
    from gnomon import positions

    classes = [positions.recipe(name) for name in positions.recipes()]
    return [{"name": cls.name, "paper": cls.paper, "training": cls.formula} for cls in classes]


def _recipe_cells(lang: str) -> list[tuple[str, ...]]:
    return [(row["name"], translate(row["training"], lang), row["paper"]) for row in recipe_listing()]


def _entry(cls: Any) -> dict[str, Any]:
    from gnomon.positions.base import kind_of
    from gnomon.positions.kinship import parameters

    return {
        "name": cls.name,
        "paper": cls.paper,
        "acts": cls.acts,
        "relative": cls.relative,
        "kind": kind_of(cls),
        "parameters": parameters(cls),
        "extrapolation": cls.extrapolation,
        "class": f"{cls.__module__}.{cls.__qualname__}",
    }


def _cells(row: dict[str, Any], w: Words, titles: tuple[str, ...]) -> tuple[str, ...]:
    """Digits in groups by commas, as in the README."""
    n = row["parameters"]
    cells = {
        "name": row["name"],
        "acts_at": w(row["acts"]),
        "kind": "-" if row["acts"] == "nowhere" else w(row["kind"]),
        "parameters": "?" if n is None else f"{n:,}",
        "extrapolation": translate(row["extrapolation"], w.lang),
        "paper": row["paper"],
    }
    return tuple(cells[title] for title in titles)


def _columns(rows: list[tuple[str, ...]], whole: bool = False) -> str:
    """Side by side. Where the terminal ends a row is cut; or its last cell goes on below, where it is wanted whole."""
    width, widths = columns(None), [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    left = sum(widths[:-1]) + 2 * len(widths[:-1])
    lines = []
    for *cells, last in rows:
        line = "".join(f"{cell:<{w}}  " for cell, w in zip(cells, widths, strict=False)) + last
        if whole:
            indent = " " * (left if left + 20 <= width else 4)  # where the last column is too narrow, below the first
            lines += textwrap.wrap(line, width, subsequent_indent=indent, drop_whitespace=True)
        else:
            lines.append(line if len(line) <= width else f"{line[: width - 1]}…")
    return "\n".join(lines)


def _markdown(rows: list[tuple[str, ...]]) -> str:
    titles, *body = rows
    lines = [titles, ("---",) * len(titles), *((f"`{name}`", *rest) for name, *rest in body)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


__all__ = ["command", "listing"]
