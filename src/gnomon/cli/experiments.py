"""What `gnomon lab` and `gnomon demo` share: a folder, words before and after, and how to resume."""

import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain, count
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gnomon.cli.options import imported_modules
from gnomon.glossary import Words, words

if TYPE_CHECKING:
    from gnomon.data import Corpus
    from gnomon.lab import LabReport, LabSettings
    from gnomon.lab.grid import Grid, LeftOut
    from gnomon.lab.grid_report import GridReport
    from gnomon.lab.prepare import Lab


def names(ctx: click.Context, param: click.Parameter, value: str | None) -> tuple[str, ...] | None:
    """The callback of an option that lists names; commas within parentheses belong to a name: `rope(base=2, ...)`."""
    from gnomon.lab.settings import split

    return None if value is None else tuple(split(value))


def numbers(ctx: click.Context, param: click.Parameter, value: str | None) -> tuple[int, ...] | None:
    """The callback of an option that lists whole numbers."""
    try:
        return None if value is None else tuple(int(part) for part in value.split(","))
    except ValueError:
        raise click.BadParameter(f"{value!r} is not a list of whole numbers such as 1,2,4", ctx, param) from None


def free_folder(name: str, settings: "LabSettings") -> Path:
    """runs/<name>, or the first of its numbered namesakes that does not hold another experiment."""
    from gnomon.lab.prepare import holds_another

    first = Path("runs", name)
    numbered = (first.with_name(f"{name}-{n}") for n in count(2))
    return next(folder for folder in chain([first], numbered) if not holds_another(folder, settings))


@dataclass(frozen=True)
class How:
    """How an experiment runs: nothing of it changes a number."""

    executor: str = "processes"
    workers: int | None = None
    resume: bool = False
    quiet: bool = False
    lang: str = "en"


def perform(
    settings: "LabSettings", corpus: "Corpus", folder: Path, how: How, left_out: "LeftOut" = ()
) -> "LabReport | GridReport":
    """Prepare the grid, say what will happen, do it; meanwhile nobody else writes into the folder."""
    from gnomon.data import lock_folder
    from gnomon.lab.executor_choice import executor_for
    from gnomon.lab.grid import perform, prepare_grid

    w, executor = words("lab", how.lang), executor_for(how.executor, how.workers, settings.device)
    imported = imported_modules(click.get_current_context())
    with lock_folder(folder):
        grid = prepare_grid(settings, corpus, folder, how.quiet, imported, how.resume, left_out)
        if not how.quiet:
            click.echo(_plan(grid, executor.workers_for(grid.cells()), how.lang), err=True)
        with _explain_interrupt(folder, w):
            return perform(grid, executor, how.resume, how.quiet, how.lang)


def _plan(grid: "Grid", workers: int, lang: str) -> str:
    from gnomon.lab.budget import estimate

    w, cells = words("lab", lang), words("grid", lang)
    lines = [line for lab in grid.labs[:1] for line in _about_text(lab, workers, w)]
    if grid.exact or len(grid.labs) > 1:
        lines.append(cells("plan_grid", count=len(grid.cells()), panels=len(grid.labs), tasks=len(grid.exact)))
    if grid.left_out:
        lines.append(cells("left_out", what="; ".join(cells(key, **fields) for key, fields in grid.left_out)))
    if grid.labs:
        one, seconds = estimate(grid.labs, workers)
        lines.append(w("plan_time", time=_time(seconds, w), first=_time(one, w)))
    return "".join(f"{line}\n" for line in [*lines, w("plan_end", folder=grid.folder)])


def _about_text(lab: "Lab", workers: int, w: Words) -> list[str]:
    from gnomon.lab.summary import list_encodings

    s, corpus = lab.settings, lab.about
    trials = s.trials()
    tokens = s.train.steps * s.train.batch_size * s.train_length
    names = list_encodings(dict.fromkeys(trial.label for trial in trials), w)
    text = {
        "name": corpus["name"],
        "megabytes": corpus["bytes"] / 1e6,
        "documents": corpus["documents"],
        "held": corpus["held out"]["documents"],
        "sha256": corpus["sha256"][:12],
    }
    return [
        w("plan_models", count=len(trials), layers=s.model.n_layers, width=s.model.d_model, names=names),
        w("plan_text", **text),
        w("plan_training", tokens=tokens, trained=s.train_length, workers=workers, longest=s.lengths[-1]),
    ]


def _time(seconds: float, w: Words) -> str:
    if seconds < 90:
        return w("time_seconds", n=max(5, round(seconds / 5) * 5))
    return w("time_minutes", n=round(seconds / 30) / 2)


@contextmanager
def _explain_interrupt(folder: Path, w: Words) -> Iterator[None]:
    """Tell a user who interrupts how to resume."""
    try:
        yield
    except KeyboardInterrupt:
        click.echo(w("goes_on", folder=folder), err=True)
        raise


def show(report: "LabReport | GridReport", folder: Path, quiet: bool, lang: str) -> None:
    """Print the table, and where everything is."""
    click.echo(report.table(colour=sys.stdout.isatty(), lang=lang))
    if quiet:
        return
    w, machine = words("lab", lang), report.about["machine"]
    versions = f"Python {machine['python']}, torch {machine['torch']}, gnomon {machine['gnomon']}"
    about = w(
        "machine",
        processor=machine["processor"],
        cores=machine["cores"],
        workers=machine["workers"],
        versions=versions,
        seed=str(report.seed),
        seconds=report.about["seconds"]["total"],
    )
    click.echo(f"\n{about}")
    click.echo(w("where", page=folder / "report.html", folder=f"{folder}/"))


def as_typed(path: Path) -> str:
    """A path as it must be typed."""
    return shlex.quote(str(path))


__all__ = ["How", "as_typed", "free_folder", "names", "numbers", "perform", "show"]
