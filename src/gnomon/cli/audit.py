"""`gnomon audit TARGET`: the laws of position, masks, caches and tying, asked about anybody's model."""

import os
import shutil
import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gnomon.cli.failures import THRESHOLD
from gnomon.cli.options import (
    TakesModel,
    device_option,
    import_option,
    json_option,
    lang_option,
    quiet_option,
    seed_option,
)
from gnomon.cli.output import print_json
from gnomon.errors import BadInput, BadValue
from gnomon.glossary import translate, words

if TYPE_CHECKING:
    from gnomon.audit import AuditReport, Target

COUNTED = ("fail", "by-design", "not-observable", "not-applicable")  # verdicts that may decide about the exit code
NEVER = "never"


@click.command("audit", cls=TakesModel)
@click.argument("target", required=False)
@click.option(
    "--with",
    "through",
    type=click.Choice(["gnomon", "transformers"]),
    help="The library that computes a checkpoint.  [default: gnomon]",
)
@click.option("--laws", "list_laws", is_flag=True, help="List the laws instead.")
@click.option("--only", metavar="LAW", multiple=True, help="A law to ask, or how names begin; may be repeated.")
@click.option("--skip", metavar="LAW", multiple=True, help="A law to leave out, likewise.")
@click.option(
    "--fail-on",
    type=click.Choice([*COUNTED, NEVER]),
    multiple=True,
    help="Exit with 1 for this verdict beside fail, or never; may be repeated.  [default: fail]",
)
@click.option("--junit", type=click.Path(path_type=Path), help="Write JUnit XML into this file.")
@click.option("--sarif", type=click.Path(path_type=Path), help="Write SARIF 2.1.0 into this file.")
@click.option("--html", type=click.Path(path_type=Path), help="Write a page that needs no other file.")
@seed_option
@device_option
@click.option(
    "--threads",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="Threads to compute with. One is as fast for short texts, and rounds alike on every machine.",
)
@import_option
@lang_option
@json_option
@quiet_option
@click.pass_context
def command(
    ctx: click.Context,
    /,
    target: str | None,
    through: str | None,
    list_laws: bool,
    only: tuple[str, ...],
    skip: tuple[str, ...],
    fail_on: tuple[str, ...],
    junit: Path | None,
    sarif: Path | None,
    html: Path | None,
    seed: int,
    device: str,
    threads: int,
    lang: str,
    as_json: bool,
    quiet: bool,
) -> None:
    """Find faults of position, masks, caches and tying in any model.

    TARGET is a run folder, a Hugging Face folder or hub name, a .gguf file or the name of a pulled model; or
    module:callable or file.py:callable, which is called for a model. Exits with 1 if the model breaks a law, or if none
    of the laws could be judged.
    """
    from gnomon.audit.resolve import resolve
    from gnomon.audit.run import Interrupted, select
    from gnomon.device import resolve_device, set_threads

    if list_laws:
        _list(lang, as_json)
        return
    if target is None:
        raise BadValue("say what to audit: a run, a checkpoint or module:callable; --laws lists the laws")
    if NEVER in fail_on and len(fail_on) > 1:
        raise BadValue("--fail-on never and another --fail-on contradict each other: give one")
    if not select(only, skip):  # told before a large model is loaded, as wrong names are
        raise BadValue("--skip leaves out every law that --only asks: nothing would be audited")
    files = {".xml": junit, ".sarif": sarif, ".html": html}
    _check_distinct(files)
    set_threads(threads)
    try:
        with redirect_stdout(sys.stderr):  # what a model prints must not stand in the report
            model = resolve(target, through, seed, resolve_device(device))
            report = _run_audit(model, only, skip, seed, quiet or as_json, lang)
    except SystemExit as left:
        raise BadInput(
            f"{target} ended the process, exit({left.code}), where it was asked for logits: raise an error there"
        ) from left
    except Interrupted as stopped:
        if not as_json:
            _show(stopped.report, lang)
            click.echo(f"\n{stopped}: nothing is said about the others", err=True)
        raise
    if as_json:
        _write(report, files, lang)
        print_json(report.as_dict())
    else:
        _show(report, lang)
        written = _write(report, files, lang)
        if written and not quiet:
            click.echo("\n" + words("audit", lang)("written", files=", ".join(written)))
    ctx.exit(THRESHOLD if _fails(report, fail_on) else 0)


def _run_audit(
    model: "Target", only: tuple[str, ...], skip: tuple[str, ...], seed: int, quiet: bool, lang: str
) -> "AuditReport":
    """The audit, under a bar over the laws that names the one being asked."""
    from tqdm import tqdm

    from gnomon.audit.run import audit

    with tqdm(unit="law", leave=False, disable=True if quiet else None, dynamic_ncols=True) as bar:

        def progress(done: int, total: int, law: str) -> None:
            bar.total = total
            bar.set_postfix_str(translate(law, lang), refresh=False)
            bar.update(done - bar.n)
            bar.refresh()

        return audit(model, only=only, skip=skip, seed=seed, progress=progress)


def _show(report: "AuditReport", lang: str) -> None:
    """The table, as wide as the terminal within reason; colour only where a person reads it."""
    width = min(max(shutil.get_terminal_size((100, 24)).columns, 80), 120)
    click.echo(report.table(width, colour=sys.stdout.isatty() and "NO_COLOR" not in os.environ, lang=lang))


def _check_distinct(files: dict[str, Path | None]) -> None:
    """Raise BadValue for two reports in one file: the later would replace the other."""
    paths = [path.resolve() for path in files.values() if path is not None]
    if twice := [path for path in paths if paths.count(path) > 1]:
        raise BadValue(f"{twice[0]} is given for two reports, and would hold the later one only: name two files")


def _write(report: "AuditReport", files: dict[str, Path | None], lang: str) -> list[str]:
    """Write the files that were asked for, and name them."""
    from gnomon.audit.outputs import save

    asked = {kind: path for kind, path in files.items() if path is not None}
    for kind, path in asked.items():
        save(report, path, kind, lang)
    return [str(path) for path in asked.values()]


def _fails(report: "AuditReport", fail_on: tuple[str, ...]) -> bool:
    if NEVER in fail_on:
        return False
    return not (report.ok and report.judged) or any(f.verdict.replace(" ", "-") in fail_on for f in report.findings)


def _list(lang: str, as_json: bool) -> None:
    """Every law: its name, its sentence, and the paper or the fault behind it."""
    from gnomon.audit import LAWS

    if as_json:
        laws = [
            {"name": law.name, "sentence": law.sentence, "source": law.source, "hint": law.hint}
            for law in LAWS.values()
        ]
        print_json({"laws": laws})
        return
    w = words("audit", lang)
    for law in LAWS.values():
        name, sentence = translate(law.name, lang), translate(law.sentence, lang)
        own = "" if name == law.name else f" ({law.name})"
        click.echo(f"{click.style(name, bold=True)}{own}\n    {sentence}\n    {w('behind_law', source=law.source)}")


__all__ = ["command"]
