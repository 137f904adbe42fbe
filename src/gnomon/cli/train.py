"""`gnomon train`: a model from text or another task, kept in a run folder, stopped and resumed at will."""

import shlex
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeGuard

import click

from gnomon.cli.options import (
    config_options,
    device_option,
    dtype_option,
    import_arguments,
    import_option,
    json_option,
    lang_option,
    quiet_option,
    seed_option,
    threads_option,
    typed_flags,
)
from gnomon.cli.output import measures_json, print_json
from gnomon.errors import BadInput, BadValue
from gnomon.glossary import translate, words

if TYPE_CHECKING:
    import torch

    from gnomon.cli.config import Resolved
    from gnomon.cli.train_settings import TrainSettings
    from gnomon.models import Model
    from gnomon.tasks import Kind
    from gnomon.train import TrainReport

# The options that are settings, and the names these have in a TOML file and for --set; {task} is that of the task.
FLAGS = {
    "sources": "{task}.sources",
    "text_key": "{task}.text_key",
    "held_out": "{task}.held_out",
    "source": "{task}.source",
    "target": "{task}.target",
    "tokenizer": "tokenizer",
    "vocab_size": "vocab_size",
    "preset": "preset",
    "position": "position.name",
    "steps": "train.steps",
    "batch_size": "train.batch_size",
    "length": "train.length",
    "lr": "train.lr",
    "seed": "train.seed",
    "dtype": "train.dtype",
    "optimizer": "train.optimizer",
    "schedule": "train.schedule",
    "save_minutes": "train.save_minutes",
    "keep": "train.keep",
    "keep_best": "train.keep_best",
    "workers": "train.workers",
    "parallel": "train.parallel",
    "lora_rank": "train.lora_rank",
}


@click.command("train")
@click.argument("sources", nargs=-1)
@click.option("--output", "-o", type=click.Path(path_type=Path), help="New run folder.  [default: in runs/]")
@click.option("--resume", type=click.Path(path_type=Path), metavar="RUN", help="Go on with the run in this folder.")
@click.option("--from", "begin", metavar="MODEL", help="Train this model further, with its tokenizer, as a new run.")
@click.option("--task", help="What to learn; gnomon train --task list tells.  [default: text]")
@click.option("--source", help="Language that is read (numbers): en, es, pt, pt-br or digits.")
@click.option("--target", help="Language that is written (numbers).")
@click.option("--preset", help="mini-gpt, mini-llama or gpt2-small.  [default: mini-gpt, or the task's]")
@click.option("--position", help="Position encoding; its options: --set position.base=1e6.  [default: the preset's]")
@click.option("--tokenizer", help="bpe, bytes, characters, or a tokenizer.json.  [default: bpe]")
@click.option("--vocab-size", type=int, help="Tokens of a bpe vocabulary.  [default: the preset's]")
@click.option("--text-key", help="Key of the text in JSONL files.  [default: text]")
@click.option("--held-out", type=float, help="Share of the data held out for evaluation.  [default: 0.05]")
@click.option("--steps", type=int, help="Optimizer steps.  [default: 2500, or the task's]")
@click.option("--batch-size", type=int, help="Rows a step.  [default: 16, or the task's]")
@click.option("--length", type=int, help="Tokens a row.  [default: 64, or the task's]")
@click.option("--lr", type=float, help="Highest learning rate.  [default: 0.003; gpt2-small 0.0006; or the task's]")
@click.option("--schedule", help="How the learning rate falls: cosine, linear or wsd.  [default: cosine]")
@click.option("--optimizer", help="adamw, or muon for the matrices.  [default: adamw]")
@click.option("--lora-rank", type=int, help="With --from: train changes of this rank to its matrices, not all of it.")
@click.option("--save-minutes", type=float, help="Save when so many minutes have passed, besides every 500 steps.")
@click.option("--keep", type=int, help="Saves to keep, older ones in checkpoints/.  [default: 1]")
@click.option("--keep-best", is_flag=True, help="Keep the model of the least held-out loss in best/.")
@click.option("--workers", type=int, help="Processes that make batches ahead.  [default: 0]")
@click.option("--parallel", help="Under torchrun: ddp, or fsdp to share the weights.  [default: ddp]")
@seed_option
@device_option
@dtype_option
@threads_option
@config_options("train.lr=3e-4")
@import_option
@lang_option
@json_option
@quiet_option
@click.pass_context
def command(
    ctx: click.Context,
    /,
    output: Path | None,
    resume: Path | None,
    begin: str | None,
    task: str | None,
    device: str,
    threads: int | None,
    config_file: Path | None,
    settings: tuple[str, ...],
    lang: str,
    as_json: bool,
    quiet: bool,
    **_: object,  # the settings, which typed_flags reads
) -> None:
    """Train a model on SOURCES: files, folders, JSONL, - for standard input, or stdlib.

    stdlib, the default, is the source text of this machine's Python library. Ctrl-C, SIGTERM or SIGHUP saves and stops;
    --resume RUN goes on as if nothing had happened. Every setting can be given as --set train.warmup=200,
    --set model.d_model=256 (gnomon settings lists those of a model) or --set position.base=1e6, or under the same names
    in a TOML file. With --task it learns something else than a text. --from MODEL fine-tunes a model instead of a new
    one, for example one that gnomon retrofit made. Several processes train one model under torchrun:
    torchrun --nproc-per-node=2 -m gnomon train SOURCES -o RUN.
    """
    from gnomon.cli.config import resolve_config
    from gnomon.cli.train_settings import chosen_kind, complete_settings, settings_of
    from gnomon.device import resolve_device, set_threads
    from gnomon.tasks import saved_kind
    from gnomon.train import read_state
    from gnomon.train.ranks import Ranks, process_group

    if task == "list":
        click.echo(_kinds(lang))
        return
    set_threads(threads)
    if resume is not None and output is not None:
        raise BadValue("--resume goes on in the run's own folder: leave --output out")
    if resume is not None and begin is not None:
        raise BadValue("--resume goes on with a run, --from starts a new one from a model: one of the two")
    if resume is None:
        kind = chosen_kind(task, config_file, settings)
    else:
        kind = type(saved_kind(read_state(resume), resume))
    resolved = resolve_config(settings_of(kind), config_file, settings, _flags(ctx, kind))
    with process_group(resolve_device(device)) as where:
        first = Ranks.here().first
        quiet = quiet or not first
        if resume is not None:
            report = _resume(resume, resolved, where, quiet, lang)
        elif _has_begun(output):
            report = _resume(output, None, where, quiet, lang)
        else:
            model = None if begin is None else _load_start(begin, resolved)
            report = _start(complete_settings(resolved), output, where, quiet, lang, begin, model)
    if first and as_json:
        print_json(_as_json(report))
    elif first:
        click.echo(_text(report, import_arguments(ctx), lang))


def _has_begun(output: Path | None) -> TypeGuard[Path]:
    """Whether torchrun started us again and the run folder holds a state. BadValue where it could not be found then."""
    from gnomon.checkpoints.native import WEIGHTS
    from gnomon.train.ranks import launched, restarted

    if launched() and output is None:
        raise BadValue("under torchrun name the run folder, so that all processes use the same one: --output RUN")
    return restarted() and output is not None and (output / WEIGHTS).is_file()


def _flags(ctx: click.Context, kind: "type[Kind]") -> dict[str, object]:
    """The options that were typed, under the names of this task's settings."""
    from gnomon.cli.train_settings import sources_key

    flags = typed_flags(ctx, {name: key.format(task=kind.name) for name, key in FLAGS.items()})
    sources = ctx.params["sources"]
    flags.pop(f"{kind.name}.sources", None)
    return {**flags, sources_key(kind): sources} if sources else flags


def _kinds(lang: str) -> str:
    from gnomon.tasks import kinds

    known = kinds()
    width = max(map(len, known))
    return "\n".join(f"{name:{width}}  {translate(kind.about, lang)}" for name, kind in known.items())


def _load_start(source: str, resolved: "Resolved[TrainSettings]") -> "Model":
    """The model that is trained further; BadValue for settings that would make it another one."""
    from gnomon.checkpoints import load

    for key in resolved.origins:
        if key.partition(".")[0] in ("preset", "tokenizer", "vocab_size", "position", "model"):
            raise BadValue(f"{key} belongs to the model of --from, which is built already: leave it out")
    model = load(source, dtype="float32")
    if model.tokenizer is None:
        raise BadInput(f"{source} has no tokenizer, so it cannot read what it shall be trained on")
    return model


def _start(
    settings: "TrainSettings",
    output: Path | None,
    where: "torch.device",
    quiet: bool,
    lang: str,
    begin: str | None,
    begun: "Model | None",
) -> "TrainReport":
    from gnomon.cli.train_settings import free_folder, lengthen, make_model, make_tokenizer
    from gnomon.train import train
    from gnomon.train.folder import new_folder
    from gnomon.train.loop import ours
    from gnomon.train.ranks import Ranks

    kind = settings.kind
    if begun is not None:
        lengthen(begun, settings.train.length)
    with ours(output or free_folder(settings), new_folder) as folder:  # before the data are read, which takes time
        _tell(translate(kind.describe(), lang), quiet)
        tokenizer = make_tokenizer(settings) if begun is None or begun.tokenizer is None else begun.tokenizer
        model = make_model(settings, tokenizer, where) if begun is None else begun.to(where)
        size = sum(p.numel() for p in model.parameters())
        name = model.architecture if begun is not None or settings.preset is None else settings.preset
        sizes = {"size": size, "tokens": tokenizer.vocab_size, "kind": tokenizer.kind}
        _tell(words("train", lang)("model", name=name, folder=folder, **sizes), quiet)
        with Ranks.here().first_alone():
            task = kind.task(tokenizer, settings.train, quiet)
        origin = {"preset": settings.preset, "from": begin, **kind.to_state()}
        with _explain_interrupt(folder, lang):
            return train(model, task, settings.train, folder, origin=origin, quiet=quiet, lang=lang)


def _resume(
    folder: Path, resolved: "Resolved[TrainSettings] | None", where: "torch.device", quiet: bool, lang: str
) -> "TrainReport":
    """Resume a run; without settings to change where torchrun started it again."""
    from gnomon.data import Tokenizer
    from gnomon.tasks import saved_kind
    from gnomon.train import read_state, resume
    from gnomon.train.folder import old_folder
    from gnomon.train.loop import ours
    from gnomon.train.ranks import Ranks

    changes = {} if resolved is None else _changes(folder, resolved)
    with ours(folder, old_folder):
        state = read_state(folder)
        config = state.config.with_changes(**changes)
        with Ranks.here().first_alone():
            task = saved_kind(state, folder).task(Tokenizer.load(folder), config, quiet)
        _tell(words("train", lang)("step_of", folder=folder, step=state.step, steps=config.steps), quiet)
        with _explain_interrupt(folder, lang):
            return resume(folder, task, device=where, changes=changes, quiet=quiet, lang=lang)


def _changes(folder: Path, resolved: "Resolved[TrainSettings]") -> dict[str, Any]:
    """The settings of training that were typed; BadValue for others, which belong to the run."""
    if others := [key for key in resolved.origins if not key.startswith("train.")]:
        belong, stay, them = ("belongs", "stays as it is", "it") if len(others) == 1 else ("belong", "stay", "them")
        raise BadValue(
            f"{', '.join(others)} {belong} to the run in {folder} and {stay}: leave {them} out, or start a new run"
        )
    names = [key.removeprefix("train.") for key in resolved.origins]
    return {name: getattr(resolved.config.train, name) for name in names}


@contextmanager
def _explain_interrupt(folder: Path, lang: str) -> Iterator[None]:
    """Tell a user who interrupts how to resume."""
    from gnomon.train.ranks import Ranks

    try:
        yield
    except KeyboardInterrupt:
        again = import_arguments(click.get_current_context())
        command = f"gnomon train --resume {shlex.quote(str(folder))}{again}"
        with suppress(OSError):  # the terminal may be what ended it
            _tell(words("train", lang)("go_on", command=command), not Ranks.here().first)
        raise


def _tell(text: str, quiet: bool) -> None:
    if not quiet:
        click.echo(text, err=True)


def _as_json(report: "TrainReport") -> dict[str, Any]:
    return {
        "run": report.folder,
        "steps": report.steps,
        **measures_json(report.evaluation),
        "samples": report.samples,
        "seconds": report.seconds,
        "tokens_per_second": report.tokens_per_second,
    }


def _text(report: "TrainReport", again: str, lang: str) -> str:
    from gnomon.tasks import saved_kind
    from gnomon.train import read_state

    w = words("train", lang)
    kind = saved_kind(read_state(report.folder), report.folder)
    samples = "".join(f"{w('sample', n=n)}\n{text}\n\n" for n, text in enumerate(report.samples, start=1))
    notes = "".join(f"{note}\n" for note in report.evaluation.notes)
    speed = f", {w('speed', speed=round(report.tokens_per_second))}" if report.tokens_per_second else ""
    what, colon, command = kind.next_step(report.folder).partition(": ")
    return (
        f"{w('step', folder=report.folder, step=report.steps, seconds=report.seconds)}{speed}\n"
        f"{w('held_out', evaluation=report.evaluation.in_words(lang))}\n{notes}\n"
        f"{samples}{translate(what, lang)}{colon}{command}{again}"
    )


__all__ = ["command"]
