"""What `gnomon extend` and `gnomon retrofit` have in common: measuring before and after, saving, and the report."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gnomon.cli.output import print_json
from gnomon.errors import BadInput
from gnomon.glossary import Words, translate, words

if TYPE_CHECKING:
    from gnomon.data.store import Ints
    from gnomon.lab.by_position import Stretch
    from gnomon.models import Model
    from gnomon.models.position_change import PositionChange

FORMATS = ("hf", "native")


def measure_options(command: Any) -> Any:
    """Options of the measurement before and after."""
    for option in reversed(
        (
            click.option(
                "--documents",
                "count",
                type=click.IntRange(min=0),
                default=8,
                show_default=True,
                help="Documents that loss by position is measured on, before and after; 0: not at all.",
            ),
            click.option(
                "--text",
                "sources",
                multiple=True,
                default=("stdlib",),
                show_default=True,
                help="Text to measure on: a file, a folder, JSONL, or stdlib; repeatable.",
            ),
            click.option("--picture", type=click.Path(path_type=Path), help="Draw both into this .png or .svg file."),
        )
    ):
        command = option(command)
    return command


def save(model: "Model", folder: Path, kind: str) -> None:
    """Write a Hugging Face folder or a run folder."""
    if kind == "hf":
        from gnomon.checkpoints.hf import save_hf

        save_hf(model, folder)
    else:
        from gnomon.checkpoints import save_model

        save_model(model, folder)


def documents(model: "Model", sources: tuple[str, ...], length: int, count: int) -> "Ints | None":
    """Beginnings of documents to measure on; None where there shall be none, or the model is of another kind."""
    from gnomon.data import Corpus
    from gnomon.lab.by_position import beginnings
    from gnomon.models import DecoderOnly

    if count == 0 or not isinstance(model, DecoderOnly) or not model.config.causal:
        return None
    if model.tokenizer is None:
        raise BadInput("this model has no tokenizer, so there is no text to measure it on: give --documents 0")
    return beginnings(Corpus.open(sources), model.tokenizer, length, count)


def measure_by_position(model: "Model", rows: "Ints", name: str, quiet: bool, w: Words) -> "list[Stretch]":
    """Loss by position, under a progress bar."""
    from tqdm import tqdm

    from gnomon.lab.by_position import by_position
    from gnomon.models import DecoderOnly

    assert isinstance(model, DecoderOnly)
    about = w("measuring", name=w(name))
    with tqdm(total=len(rows), desc=about, unit="doc", leave=False, disable=quiet or None) as bar:
        return by_position(model, rows, lambda: bar.update(1))


def before_and_after(
    old: "Model", new: "Model", sources: tuple[str, ...], length: int, count: int, quiet: bool, lang: str
) -> "dict[str, list[Stretch]]":
    """Loss by position of both on the same documents; nothing where there is nothing to measure."""
    rows, w = documents(old, sources, length, count), words("position_change", lang)
    if rows is None:
        return {}
    return {name: measure_by_position(model, rows, name, quiet, w) for name, model in (("before", old), ("after", new))}


def report(
    what: str,
    change: "PositionChange",
    found: "dict[str, list[Stretch]]",
    output: Path,
    picture: Path | None,
    trained: int | None,
    lang: str,
    as_json: bool,
) -> None:
    """Say what changed and what it did."""
    w = words("position_change", lang)
    if picture is not None and found:
        from gnomon.plots.by_position import losses_by_position

        losses_by_position({w(name): stretches for name, stretches in found.items()}, trained, lang).save(picture)
    if as_json:
        print_json(
            {
                "what": what,
                "output": output,
                "unchanged": change.unchanged,
                "notes": change.notes,
                "picture": picture if found else None,
                "removed": {name: list(shape) for name, shape in change.removed.items()},
                "added": {name: list(shape) for name, shape in change.added.items()},
                "loss_by_position": {name: [_as_json(s) for s in stretches] for name, stretches in found.items()},
            }
        )
        return
    width = max(len(w("gone")), len(w("new")))
    lines = [translate(what, lang), f"    {w('unchanged', count=change.unchanged)}"]
    lines += [f"    {w('gone'):<{width}} {name} {shape}" for name, shape in change.removed.items()]
    lines += [f"    {w('new'):<{width}} {name} {shape}" for name, shape in change.added.items()]
    lines += [f"    {translate(note, lang)}" for note in change.notes]
    if found:
        lines += ["", w("nats"), *_table(found, w)]
    click.echo("\n".join([*lines, "", f"{output}" + (f", {picture}" if picture is not None and found else "")]))


def _as_json(stretch: "Stretch") -> dict[str, Any]:
    return {"start": stretch.start, "stop": stretch.stop, "nats": stretch.nats and asdict(stretch.nats)}


def _table(found: "dict[str, list[Stretch]]", w: Words) -> list[str]:
    first = next(iter(found.values()))
    rows = [f"    {w('positions'):<16}" + "".join(f"{w(name):>26}" for name in found)]
    for n, stretch in enumerate(first):
        where = w("to", start=stretch.start, stop=stretch.stop)
        rows.append(f"    {where:<16}" + "".join(f"{_cell(stretches[n], w):>26}" for stretches in found.values()))
    return rows


def _cell(stretch: "Stretch", w: Words) -> str:
    if stretch.nats is None:
        return w("no_positions")
    value, low, high = (w.number(x, ".3f") for x in (stretch.nats.value, stretch.nats.low, stretch.nats.high))
    return f"{value} [{low}{', ' if w.lang == 'en' else '; '}{high}]"


__all__ = ["FORMATS", "before_and_after", "measure_options", "report", "save"]
