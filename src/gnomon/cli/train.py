"""`gnomon train`: a model from text, kept in a run folder, stopped and resumed at will."""

import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gnomon.cli.config import resolve_config
from gnomon.cli.options import (
    config_options,
    device_option,
    dtype_option,
    import_option,
    imports_again,
    json_option,
    quiet_option,
    seed_option,
    threads_option,
    typed_flags,
)
from gnomon.cli.output import print_json
from gnomon.errors import BadValue
from gnomon.glossary import grouped

if TYPE_CHECKING:
    from gnomon.cli.config import Resolved
    from gnomon.cli.recipe import Settings
    from gnomon.train import Report

# The options that are settings, and the names these have in a TOML file and for --set.
FLAGS = {
    "sources": "text.sources", "text_key": "text.text_key", "held_out": "text.held_out",
    "tokenizer": "tokenizer", "vocab_size": "vocab_size", "preset": "preset", "position": "position.name",
    "steps": "train.steps", "batch_size": "train.batch_size", "length": "train.length", "lr": "train.lr",
    "seed": "train.seed", "dtype": "train.dtype",
}  # fmt: skip


@click.command("train")
@click.argument("sources", nargs=-1)
@click.option("--output", "-o", type=click.Path(path_type=Path), help="New run folder.  [default: in runs/]")
@click.option("--resume", type=click.Path(path_type=Path), metavar="RUN", help="Go on with the run in this folder.")
@click.option("--preset", help="mini-gpt, mini-llama or gpt2-small.  [default: mini-gpt]")
@click.option("--position", help="Position encoding; its options: --set position.base=1e6.  [default: the preset's]")
@click.option("--tokenizer", help="bpe, bytes, characters, or a tokenizer.json.  [default: bpe]")
@click.option("--vocab-size", type=int, help="Tokens of a bpe vocabulary.  [default: the preset's]")
@click.option("--text-key", help="Key of the text in JSONL files.  [default: text]")
@click.option("--held-out", type=float, help="Share of the text held out for evaluation.  [default: 0.05]")
@click.option("--steps", type=int, help="Optimizer steps.  [default: 2500]")
@click.option("--batch-size", type=int, help="Windows a step.  [default: 16]")
@click.option("--length", type=int, help="Tokens a window.  [default: 64]")
@click.option("--lr", type=float, help="Highest learning rate.  [default: 0.003; gpt2-small 0.0006]")
@seed_option
@device_option
@dtype_option
@threads_option
@config_options
@import_option
@json_option
@quiet_option
@click.pass_context
def command(
    ctx: click.Context,
    /,
    output: Path | None,
    resume: Path | None,
    device: str,
    threads: int | None,
    config_file: Path | None,
    settings: tuple[str, ...],
    as_json: bool,
    quiet: bool,
    **_: object,  # the settings, which typed_flags reads
) -> None:
    """Train a model on SOURCES: files, folders, JSONL, - for standard input, or stdlib.

    stdlib, the default, is the source text of this machine's Python library. Ctrl-C saves and stops; --resume RUN goes
    on as if nothing had happened. Every setting can be given as --set train.warmup=200, --set model.d_model=256 or
    --set position.base=1e6, or under the same names in a TOML file.
    """
    from gnomon.cli.recipe import Settings, settled
    from gnomon.device import set_threads

    set_threads(threads)
    resolved = resolve_config(Settings, config_file, settings, typed_flags(ctx, FLAGS))
    if resume is None:
        report = _start(settled(resolved), output, device, quiet)
    elif output is None:
        report = _go_on(resume, resolved, device, quiet)
    else:
        raise BadValue("--resume goes on in the run's own folder: leave --output out")
    if as_json:
        print_json(_as_json(report))
    else:
        click.echo(_written(report, imports_again(ctx)))


def _start(settings: "Settings", output: Path | None, device: str, quiet: bool) -> "Report":
    from gnomon.cli.recipe import free_folder, make_model, make_tokenizer, origin_of, tokenized
    from gnomon.data import Corpus
    from gnomon.device import resolve_device
    from gnomon.train import train
    from gnomon.train.loop import check_new

    folder = check_new(output or free_folder(settings))
    where = resolve_device(device)
    corpus = Corpus.open(settings.text.sources, settings.text.text_key)
    _tell(corpus.describe(), quiet)
    training, held_out = corpus.split(settings.text.held_out)
    tokenizer = make_tokenizer(settings, training)
    model = make_model(settings, tokenizer).to(where)
    size = grouped(sum(p.numel() for p in model.parameters()))
    _tell(f"{settings.preset}: {size} parameters, {tokenizer.vocab_size} tokens ({tokenizer.kind}) -> {folder}", quiet)
    stores = tokenized(training, tokenizer, quiet), tokenized(held_out, tokenizer, quiet)
    with _way_on(folder):
        return train(model, *stores, settings.train, folder, origin=origin_of(settings), quiet=quiet)


def _go_on(folder: Path, resolved: "Resolved[Settings]", device: str, quiet: bool) -> "Report":
    from gnomon.cli.recipe import text_of, tokenized
    from gnomon.data import Corpus, Tokenizer
    from gnomon.train import read_state, resume

    for key in resolved.origins:
        if not key.startswith("train."):
            raise BadValue(f"{key} belongs to the run in {folder} and stays as it is: leave it out, or start a new run")
    given = {key.removeprefix("train."): key for key in resolved.origins}
    changes = {name: getattr(resolved.config.train, name) for name in given}
    state = read_state(folder)
    config = state.config.changed(**changes)
    text = text_of(state, folder)
    training, held_out = Corpus.open(text.sources, text.text_key).split(text.held_out)
    tokenizer = Tokenizer.load(folder)
    _tell(f"{folder}: step {state.step} of {config.steps}", quiet)
    stores = tokenized(training, tokenizer, quiet), tokenized(held_out, tokenizer, quiet)
    with _way_on(folder):
        return resume(folder, *stores, device=device, changes=changes, quiet=quiet)


@contextmanager
def _way_on(folder: Path) -> Iterator[None]:
    """Whoever interrupts is told how to go on."""
    try:
        yield
    except KeyboardInterrupt:
        again = imports_again(click.get_current_context())
        click.echo(f"go on with: gnomon train --resume {shlex.quote(str(folder))}{again}", err=True)
        raise


def _tell(text: str, quiet: bool) -> None:
    if not quiet:
        click.echo(text, err=True)


def _as_json(report: "Report") -> dict[str, Any]:
    found = report.evaluation
    return {
        "run": report.folder,
        "steps": report.steps,
        "loss": found.loss,
        "perplexity": found.perplexity,
        "bits_per_byte": found.bits_per_byte,
        "held_out_tokens": found.targets,
        "samples": report.samples,
        "seconds": report.seconds,
        "tokens_per_second": report.tokens_per_second,
    }


def _written(report: "Report", again: str) -> str:
    samples = "".join(f"--- sample {n} ---\n{text}\n\n" for n, text in enumerate(report.samples, start=1))
    speed = f", {grouped(round(report.tokens_per_second))} tokens/s" if report.tokens_per_second else ""
    return (
        f"{report.folder}: step {report.steps}, {report.seconds:.0f} s{speed}\n"
        f"held out: {report.evaluation}\n\n{samples}"
        f"Let it write: gnomon generate {shlex.quote(str(report.folder))} --prompt 'def '{again}"
    )


__all__ = ["command"]
