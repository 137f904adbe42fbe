"""`gnomon lab`: encodings of your choice, on your text, measured far past their training length."""

from pathlib import Path

import click

from gnomon.cli.config import load_config
from gnomon.cli.experiments import free_folder, names, numbers, perform, show
from gnomon.cli.nested import nested
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
FLAGS = {
    "positions": "positions",
    "combine": "combine",
    "length": "train_length",
    "factors": "factors",
    "seed": "seed",
    "seeds": "seeds",
    "device": "device",
    "threads": "threads",
    "steps": "train.steps",
    "batch_size": "train.batch_size",
    "lr": "train.lr",
    "vocab_size": "vocab_size",
    "held_out": "held_out",
}


COMMANDS = {
    "tasks": "Train on short questions with exact answers, ask longer ones: copy, sort, add, recall and others.",
    "reproduce": "Repeat a published result in minutes, and say whether its order appears.",
}


@click.command("lab", cls=nested(COMMANDS))
@click.argument("more_text", nargs=-1, metavar="[TEXT]...", type=click.Path(path_type=Path))
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
@click.option("--length", type=int, help="Tokens of the windows trained on.  [default: 64]")
@click.option("--factors", callback=numbers, metavar="NUMBERS", help="Multiples of it measured.  [default: 1,2,4,8,16]")
@click.option("--steps", type=int, help="Training steps of each model.")
@click.option("--minutes", type=float, help="Instead of --steps: as many as fit into about so many minutes here.")
@click.option("--batch-size", type=int, help="Windows a step.")
@click.option("--lr", type=float, help="Highest learning rate.")
@click.option("--vocab-size", type=int, help="Tokens of the vocabulary learned from the text.  [default: 512]")
@click.option("--held-out", type=float, help="Share of the text held out.  [default: 0.05]")
@click.option("--seeds", type=int, help="Seeds to train each encoding from, beginning with --seed.  [default: 1]")
@seed_option
@click.option("--device", help="cpu, cuda, mps or auto.  [default: cpu, the fastest for many small models]")
@click.option("--threads", type=click.IntRange(min=1), help="Threads of each worker.  [default: 1]")
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
    minutes: float | None,
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
    from gnomon.lab import LabSettings
    from gnomon.lab.budget import steps_for

    flags = typed_flags(ctx, FLAGS)
    if minutes is not None:
        if "train.steps" in flags:
            raise BadValue("--steps and --minutes both say how long to train: give one of them")
        flags["train.steps"] = steps_for(minutes, load_config(LabSettings, config_file, settings, flags), workers)
    asked = load_config(LabSettings, config_file, settings, flags)
    folder = output or free_folder("lab", asked)
    corpus = Corpus.open([*text, *more_text] or "stdlib", text_key)
    report = perform(asked, corpus, folder, workers, resume, quiet or as_json, lang)
    report.save(folder, lang)
    if as_json:
        print_json({"folder": folder, **report.to_dict()})
    else:
        show(report, folder, quiet, lang)


__all__ = ["command"]
