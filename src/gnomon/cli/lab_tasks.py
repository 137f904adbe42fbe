"""`gnomon lab tasks NAME`: encodings on tasks with exact answers, asked longer questions than they were trained on."""

from pathlib import Path

import click

from gnomon.cli.config import load_config
from gnomon.cli.experiments import names
from gnomon.cli.options import (
    config_options,
    import_option,
    imported_modules,
    json_option,
    lang_option,
    quiet_option,
    seed_option,
    typed_flags,
)
from gnomon.cli.output import print_json
from gnomon.glossary import words

FLAGS = {"steps": "train.steps", "lr": "train.lr", "batch_size": "train.batch_size"}


def factors(ctx: click.Context, param: click.Parameter, value: str) -> tuple[float, ...]:
    """The callback of an option that lists numbers."""
    try:
        return tuple(float(part) for part in value.split(","))
    except ValueError:
        raise click.BadParameter(f"{value!r} is not a list of numbers such as 1,1.5,2", ctx, param) from None


@click.command("tasks")
@click.argument("tasks", nargs=-1, metavar="[NAME]...")
@click.option("--positions", callback=names, metavar="NAMES", help="Such as 'rope,alibi'.  [default: five]")
@click.option("--length", type=click.IntRange(2), default=10, show_default=True, help="Longest question trained on.")
@click.option("--factors", callback=factors, default="1,1.5,2,3", show_default=True, help="Multiples of it asked.")
@click.option("--seeds", type=click.IntRange(1), default=1, show_default=True, help="Models for each encoding.")
@click.option("--eos/--no-eos", default=True, show_default=True, help="Whether models learn to end their answers.")
@click.option("--count", type=click.IntRange(1), default=100, show_default=True, help="Questions in each stretch.")
@click.option("--steps", type=int, help="Training steps of each model.  [default: 1500]")
@click.option("--lr", type=float, help="Highest learning rate.")
@click.option("--batch-size", type=int, help="Questions a step.")
@click.option("--workers", type=click.IntRange(min=1), help="Models to train at once.  [default: one per core]")
@click.option("--executor", default="processes", show_default=True, help="serial, processes, ray or ray://HOST:PORT.")
@click.option("--output", "-o", type=click.Path(path_type=Path), help="Folder that keeps the results.")
@seed_option
@config_options("train.stop_at=1.0")
@import_option
@lang_option
@json_option
@quiet_option
@click.pass_context
def command(
    ctx: click.Context,
    /,
    tasks: tuple[str, ...],
    positions: tuple[str, ...] | None,
    length: int,
    factors: tuple[float, ...],
    seeds: int,
    eos: bool,
    count: int,
    workers: int | None,
    executor: str,
    output: Path | None,
    seed: int,
    config_file: Path | None,
    settings: tuple[str, ...],
    lang: str,
    as_json: bool,
    quiet: bool,
    **_: object,  # those that typed_flags reads
) -> None:
    """Train small models on short questions with exact answers, and ask them longer ones.

    NAME is one or more tasks, or "all"; without any, they are listed. No question that is asked was trained on, and
    answers are written by the model itself. Of each stretch of lengths it shows exact answers of forced length, answers
    that the model also ended itself, and right tokens. Settings of model and training: --set model.d_model=128.

    \b
    gnomon lab tasks
    gnomon lab tasks copy-unique --positions 'rope,alibi' --seeds 5
    gnomon lab tasks recall --length 16 --factors 1,2,4 --json
    """
    from gnomon.lab.exact.report import ENCODINGS
    from gnomon.lab.exact.report import tasks as asked
    from gnomon.lab.exact.settings import ExactSettings
    from gnomon.lab.exact.tasks import exact_tasks
    from gnomon.lab.progress import Progress

    if not tasks:
        if as_json:
            listed = [{"name": t.name, "about": t.about, "source": t.source} for t in exact_tasks().values()]
            print_json({"tasks": listed})
        else:
            click.echo(_listed(lang))
        return
    how = load_config(ExactSettings, config_file, settings, typed_flags(ctx, FLAGS))
    with Progress(quiet or as_json) as progress:
        found = asked(
            "all" if "all" in tasks else tasks,
            positions or ENCODINGS,
            train_length=length,
            factors=factors,
            seeds=seeds,
            seed=seed,
            eos=eos,
            count=count,
            model=how.model,
            train=how.train,
            folder=output,
            workers=workers,
            executor=executor,
            imports=imported_modules(ctx),
            watch=progress,
        )
    if as_json:
        print_json(found.to_dict())
    else:
        click.echo(found.table(lang))


def _listed(lang: str) -> str:
    from gnomon.glossary import translate
    from gnomon.lab.exact.tasks import exact_tasks

    width = max(map(len, exact_tasks()))
    lines = [f"  {t.name:<{width}}  {translate(t.about, lang)}" for t in exact_tasks().values()]
    return "\n".join([words("exact", lang)("tasks"), "", *lines])


__all__ = ["command"]
