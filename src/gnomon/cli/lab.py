"""`gnomon lab`: encodings of your choice, on your text, measured far past their training length."""

import re
from dataclasses import replace
from pathlib import Path

import click

from gnomon.cli.config import load_config
from gnomon.cli.experiments import How, free_folder, names, numbers, perform, show
from gnomon.cli.nested import names_or_files, nested
from gnomon.cli.options import (
    config_options,
    import_option,
    json_option,
    lang_option,
    quiet_option,
    seed_option,
    typed_flags,
)
from gnomon.cli.output import print_json
from gnomon.errors import BadValue

# The options that are settings, and the names these have in a TOML file and for --set.
SAME = "positions combine tasks sizes length trained_at protocols rates gpus factors seed seeds device threads"
FLAGS = {name: name for name in [*SAME.split(), "vocab_size", "held_out"]} | {
    name: f"train.{name}" for name in ("steps", "batch_size", "lr")
}


PRESET = "standard: five seeds, a sweep of rates, three protocols and a baseline, in half an hour on two cores."
UNITS = {"s": 1, "m": 60, "h": 3600}


def rates(ctx: click.Context, param: click.Parameter, value: str | None) -> tuple[float, ...] | None:
    """The callback of an option that lists numbers."""
    try:
        return None if value is None else tuple(float(part) for part in value.split(","))
    except ValueError:
        raise click.BadParameter(f"{value!r} is not a list of numbers such as 3e-3,6e-3", ctx, param) from None


def seconds(ctx: click.Context, param: click.Parameter, value: str | None) -> float | None:
    """The callback of an option that is a time: 10m, 90s, 2h."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([smh])", (value or "").strip())
    if value is not None and found is None:
        raise click.BadParameter(f"{value!r} is not a time such as 10m, 90s or 2h", ctx, param)
    return None if found is None else float(found[1]) * UNITS[found[2]]


COMMANDS = {
    "tasks": "Train on short questions with exact answers, ask longer ones: copy, sort, add, recall and others.",
    "compare": "Lay two results beside each other: what differs in settings, numbers and order.",
    "reproduce": "Repeat a published result in minutes, and say whether its order appears.",
    "extension": "Ways to let a RoPE checkpoint read further: loss, passkeys, cost at short length.",
}


@click.command("lab", cls=nested(COMMANDS))
@click.argument(
    "more_text",
    nargs=-1,
    metavar="[TEXT]...",
    type=click.Path(path_type=Path),
    shell_complete=names_or_files(COMMANDS),
)
@click.option("--text", multiple=True, type=click.Path(path_type=Path), help="Text to use, before any TEXT.")
@click.option("--text-key", default="text", show_default=True, help="Key of the text in JSONL files.")
@click.option(
    "--positions",
    callback=names,
    metavar="NAMES",
    help="Such as 'rope,rope(base=200)'; 'all' are all that read text.  [default: six]",
)
@click.option(
    "--combine", callback=names, metavar="WAYS", help="How positions join tokens: add,concat.  [default: add]"
)
@click.option("--preset", type=click.Choice(["quick", "standard"]), default="quick", help=PRESET)
@click.option(
    "--tasks", callback=names, metavar="NAMES", help="text, copy-unique, ...; see `gnomon lab tasks`.  [default: text]"
)
@click.option("--sizes", callback=names, metavar="SIZES", help="LAYERSxWIDTH: 2x128,4x256.  [default: 2x128]")
@click.option("--length", callback=numbers, metavar="NUMBERS", help="Tokens of the windows trained on.  [default: 64]")
@click.option(
    "--trained-at", callback=numbers, metavar="NUMBERS", help="Multiples of --length to train at too, as a baseline."
)
@click.option("--protocols", callback=names, metavar="NAMES", help="fixed,sliding,windows.  [default: fixed]")
@click.option("--rates", callback=rates, metavar="NUMBERS", help="Learning rates to choose from for each encoding.")
@click.option("--factors", callback=numbers, metavar="NUMBERS", help="Multiples of it measured.  [default: 1,2,4,8,16]")
@click.option("--steps", type=int, help="Training steps of each model.")
@click.option("--minutes", type=float, help="Instead of --steps: as many as fit into about so many minutes here.")
@click.option(
    "--budget", callback=seconds, metavar="TIME", help="Fit the grid to 10m, 90s or 2h; says what it leaves out."
)
@click.option("--batch-size", type=int, help="Windows a step.")
@click.option("--lr", type=float, help="Highest learning rate.")
@click.option("--vocab-size", type=int, help="Tokens of the vocabulary learned from the text.  [default: 512]")
@click.option("--held-out", type=float, help="Share of the text held out.  [default: 0.05]")
@click.option("--seeds", type=int, help="Seeds to train each encoding from, beginning with --seed.  [default: 1]")
@seed_option
@click.option("--device", help="cpu, cuda, mps or auto.  [default: cpu, the fastest for many small models]")
@click.option("--threads", type=click.IntRange(min=1), help="Threads of each worker.  [default: 1]")
@click.option("--gpus", type=click.IntRange(min=1), help="GPUs of each model's training, under torchrun.  [default: 1]")
@click.option("--executor", default="processes", show_default=True, help="serial, processes, ray or ray://HOST:PORT.")
@click.option("--workers", type=click.IntRange(min=1), help="Models to train at once.  [default: one per core]")
@click.option("--output", "-o", type=click.Path(path_type=Path), help="Folder of the experiment.  [default: in runs/]")
@click.option("--resume", is_flag=True, help="Keep what an interrupted run has finished in the folder.")
@config_options("train.lr=3e-4")
@import_option
@lang_option
@json_option
@quiet_option
@click.pass_context
def command(
    ctx: click.Context,
    /,
    more_text: tuple[Path, ...],
    text: tuple[Path, ...],
    text_key: str,
    preset: str,
    minutes: float | None,
    budget: float | None,
    executor: str,
    workers: int | None,
    output: Path | None,
    resume: bool,
    config_file: Path | None,
    settings: tuple[str, ...],
    lang: str,
    as_json: bool,
    quiet: bool,
    **_: object,  # the settings, which typed_flags reads
) -> None:
    """Train a small model under each encoding and measure it far past its training length.

    TEXT is files, folders, JSONL or - for standard input; without any, the source text of this machine's Python
    library. Every model begins with the same weights, sees the same batches and is asked for the same tokens. Every
    setting can be given as --set model.d_model=256 or --set train.lr_of.rope=1e-3, or in a TOML file.
    """
    from gnomon.data import Corpus
    from gnomon.lab.budget import fit, steps_for
    from gnomon.lab.settings import PRESETS

    flags = typed_flags(ctx, FLAGS)
    if "length" in flags:
        first, *others = ctx.params["length"]
        flags = {**flags, "train_length": first, "train_lengths": tuple(others)}
        del flags["length"]
    for other, given in {"--steps": "train.steps" in flags, "--budget": budget is not None}.items():
        if minutes is not None and given:
            raise BadValue(f"{other} and --minutes both say how long to train: give one of them")
    asked = load_config(PRESETS[preset], config_file, settings, flags).plain()
    if minutes is not None:
        asked = replace(asked, train=replace(asked.train, steps=steps_for(minutes, asked, workers)))
    asked, left_out = (asked, ()) if budget is None else fit(asked, budget, workers)
    folder = output or free_folder("lab", asked)
    corpus = Corpus.open([*text, *more_text] or "stdlib", text_key)
    how = How(executor, workers, resume, quiet or as_json, lang)
    report = perform(asked, corpus, folder, how, left_out)
    report.save(folder, lang)
    if as_json:
        print_json({"folder": folder, **report.to_dict()})
    else:
        show(report, folder, quiet, lang)


__all__ = ["command"]
