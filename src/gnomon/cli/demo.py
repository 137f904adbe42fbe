"""`gnomon demo`: the whole in a few minutes, on text that is already on the machine."""

from dataclasses import replace
from pathlib import Path

import click

from gnomon.cli.experiments import How, as_typed, free_folder, names, perform, show
from gnomon.cli.options import import_arguments, import_option, json_option, lang_option, quiet_option, seed_option
from gnomon.cli.output import print_json
from gnomon.glossary import words

PROMPT = "def "


@click.command("demo")
@click.option("--positions", callback=names, metavar="NAMES", help="Encodings to compare.  [default: all six]")
@click.option("--steps", type=click.IntRange(min=1), help="Training steps of each model; fewer for a quick look.")
@click.option("--length", type=int, help="Tokens of the windows trained on.  [default: 64]")
@click.option("--output", "-o", type=click.Path(path_type=Path), help="Folder for everything.  [default: runs/demo]")
@click.option("--workers", type=click.IntRange(min=1), help="Models to train at once.  [default: one per core]")
@click.option("--resume", is_flag=True, help="Keep what an interrupted demo has finished.")
@seed_option
@import_option
@lang_option
@json_option
@quiet_option
@click.pass_context
def command(
    ctx: click.Context,
    /,
    positions: tuple[str, ...] | None,
    steps: int | None,
    length: int | None,
    output: Path | None,
    workers: int | None,
    resume: bool,
    seed: int,
    lang: str,
    as_json: bool,
    quiet: bool,
) -> None:
    """Train the same small Transformer under each position encoding and compare them far past the training length.

    Needs no arguments, no download and no GPU. It prints a table, draws it, writes a page, and lets a model write.
    `gnomon lab` does the same with text, encodings and settings of your own.
    """
    from gnomon.data import Corpus
    from gnomon.lab import LabReport, LabSettings
    from gnomon.lab.samples import best_model, write
    from gnomon.lab.summary import list_encodings

    settings = LabSettings(seed=seed)
    if positions is not None:
        settings = replace(settings, positions=positions)
    if length is not None:
        settings = replace(settings, train_length=length)
    if steps is not None:
        settings = replace(settings, train=replace(settings.train, steps=steps))
    folder = output or free_folder("demo", settings)
    silent = quiet or as_json
    found = perform(
        settings, Corpus.open("stdlib"), folder, How(workers=workers, resume=resume, quiet=silent, lang=lang)
    )
    assert isinstance(found, LabReport)  # of one size and one training length
    report = found
    report = replace(report, sample=write(report, folder, PROMPT))
    report.save(folder, lang)
    if as_json:
        print_json({"folder": folder, **report.to_dict()})
        return
    show(report, folder, quiet, lang)
    if not quiet and report.sample is not None:
        w, model = words("lab", lang), as_typed(best_model(report, folder)) + import_arguments(ctx)
        click.echo(
            f"\n{w('writes', label=list_encodings([report.sample.label], w))}\n\n"
            f"{_indent(report.sample.prompt + report.sample.text)}\n\n"
            f"{w('try_next')}\n"
            f"  gnomon generate {model} --prompt 'class '\n"
            f"  gnomon inspect {model} --text 'import os'\n"
            "  gnomon lab --positions 'rope,rope(base=200),alibi' --minutes 3\n"
            "  gnomon positions"
        )


def _indent(text: str) -> str:
    """Set in from the margin; what would control the terminal shows as a dot."""
    shown = "".join(c if c.isprintable() or c == "\n" else " " if c == "\t" else "·" for c in text)
    return "\n".join(f"    {line}".rstrip() for line in shown.split("\n"))


__all__ = ["command"]
