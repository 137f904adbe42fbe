"""What `gnomon lab` and `gnomon demo` share: a folder, words before and after, and a way on for whoever interrupts."""

import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain, count
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gnomon.glossary import grouped

if TYPE_CHECKING:
    from gnomon.data import Corpus
    from gnomon.lab import Report, Settings
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


def free_folder(name: str, settings: "Settings") -> Path:
    """runs/<name>, or the first of its numbered namesakes that does not hold another experiment."""
    from gnomon.lab.prepare import holds_another

    first = Path("runs", name)
    numbered = (first.with_name(f"{name}-{n}") for n in count(2))
    return next(folder for folder in chain([first], numbered) if not holds_another(folder, settings))


def perform(
    settings: "Settings", corpus: "Corpus", folder: Path, workers: int | None, resume: bool, quiet: bool
) -> "Report":
    """Prepare the experiment, say what will happen, do it; meanwhile nobody else writes into the folder."""
    from gnomon.data import locked
    from gnomon.lab.experiments import perform, workers_for
    from gnomon.lab.prepare import prepare

    with locked(folder):
        lab = prepare(settings, corpus, folder, quiet)
        if not quiet:
            click.echo(_plan(lab, workers_for(lab.jobs(), workers)), err=True)
        with _way_on(folder):
            return perform(lab, workers, resume, quiet)


def _plan(lab: "Lab", workers: int) -> str:
    from gnomon.lab.budget import estimate, seconds_per_step

    s, corpus = lab.settings, lab.about
    trials = s.trials()
    tokens = s.train.steps * s.train.batch_size * s.train_length
    step = seconds_per_step(s, lab.tokenizer.vocab_size)
    seconds = estimate(s, workers, step, lab.targets.tokens_read(s.lengths))
    names = ", ".join(dict.fromkeys(trial.label for trial in trials))
    return (
        f"{len(trials)} models, {s.model.n_layers} layers of width {s.model.d_model}, that differ in position only: "
        f"{names}.\n"
        f"Text: {corpus['name']}, {corpus['bytes'] / 1e6:.1f} MB in {corpus['documents']} documents "
        f"({corpus['held out']['documents']} of them held out), sha256 {corpus['sha256'][:12]}.\n"
        f"Each trains on {grouped(tokens)} tokens in windows of {s.train_length}, {workers} at a time, and is then "
        f"given up to {grouped(s.lengths[-1])} tokens.\n"
        f"About {_minutes(seconds)} on this machine. Ctrl-C keeps what is finished in {lab.folder}.\n"
    )


def _minutes(seconds: float) -> str:
    if seconds < 90:
        return f"{max(5, round(seconds / 5) * 5)} seconds"
    return f"{round(seconds / 30) / 2:g} minutes"


@contextmanager
def _way_on(folder: Path) -> Iterator[None]:
    """Whoever interrupts is told how to go on."""
    try:
        yield
    except KeyboardInterrupt:
        click.echo(f"what is finished is kept in {folder}: the same command with --resume goes on", err=True)
        raise


def show(report: "Report", folder: Path, quiet: bool) -> None:
    """Print the table, and where everything is."""
    click.echo(report.table(colour=sys.stdout.isatty()))
    if not quiet:
        about = report.about
        machine, seconds = about["machine"], about["seconds"]
        versions = f"Python {machine['python']}, torch {machine['torch']}, gnomon {machine['gnomon']}"
        click.echo(
            f"\n{machine['processor']}, {machine['cores']} cores, {machine['workers']} at a time; {versions}; seed "
            f"{report.settings.seed}; {seconds['total']:.0f} s"
        )
        click.echo(f"Page: {folder / 'report.html'}   pictures, numbers and models: {folder}/")


def quoted(path: Path) -> str:
    """A path as it must be typed."""
    return shlex.quote(str(path))


__all__ = ["free_folder", "names", "numbers", "perform", "quoted", "show"]
