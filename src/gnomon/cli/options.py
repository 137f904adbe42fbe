"""The options that commands share, so that one name means one thing everywhere.

    @click.command("train")
    @device_option
    @seed_option
    @config_options("train.lr=3e-4")
    @json_option
    @click.pass_context
    def command(ctx, device, seed, config_file, settings, as_json): ...

None of them imports torch: what a device or a number of threads means is asked of `gnomon.device` by the command.
"""

import os
import shlex
import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path

import click
from click.core import ParameterSource

from gnomon.errors import BadValue
from gnomon.glossary import LANGUAGES


class TakesModel(click.Command):
    """A command whose first argument is a model; `--model MODEL` anywhere among the others means the same."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put the model first."""
        for n, arg in enumerate(args):
            if arg == "--":
                break
            if arg == "--model" and n + 1 < len(args):
                args = [args[n + 1], *args[:n], *args[n + 2 :]]
                break
            if arg.startswith("--model="):
                args = [arg.removeprefix("--model="), *args[:n], *args[n + 1 :]]
                break
        return super().parse_args(ctx, args)


device_option = click.option(
    "--device",
    type=click.Choice(["auto", "cpu", "cuda", "mps"]),
    default="auto",
    show_default=True,
    help="Where to compute.",
)
dtype_option = click.option(
    "--dtype",
    type=click.Choice(["auto", "float32", "bfloat16", "float16", "float64"]),
    default="auto",
    show_default=True,
    help="Floating type of the products; auto takes bfloat16 only where this machine is fast at it.",
)
saved_dtype_option = click.option(
    "--dtype",
    type=click.Choice(["saved", "auto", "float32", "bfloat16", "float16", "float64"]),
    default="saved",
    show_default=True,
    help="Floating type of the products; saved: that of the weights (quantised ones: float32); auto: the fastest here.",
)
weights_option = click.option(
    "--weights",
    type=click.Choice(["float32", "float16", "bfloat16", "int8", "int4"]),
    help="Keep matrices in so many bits and multiply in float32: fewer are faster, and lose a little.",
)
ALIASES = {"max-tokens": "max-new-tokens", "temp": "temperature"}  # what other programs call them; help shows ours
also_called = {"token_normalize_func": lambda name: ALIASES.get(name, name)}
seed_option = click.option(
    "--seed", type=click.IntRange(0, 2**32 - 1), default=0, show_default=True, help="Same seed, same numbers."
)
threads_option = click.option(
    "--threads", type=click.IntRange(min=1), help="Threads to compute with.  [default: torch's choice]"
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object for programs.")


def _language_here() -> str:
    """The language of this terminal, as POSIX has it (the first of these that is set decides); else English. What
    programs read with --json does not hang on a terminal, and is English."""
    ctx = click.get_current_context(silent=True)
    if ctx is not None and ctx.meta.get("gnomon.cli.main"):
        return "en"
    locale = next((value for name in ("LC_ALL", "LC_MESSAGES", "LANG") if (value := os.environ.get(name))), "")
    language = locale[:2].lower()
    return language if language in LANGUAGES else "en"


lang_option = click.option(
    "--lang",
    type=click.Choice(list(LANGUAGES)),
    envvar="GNOMON_LANG",
    default=_language_here,
    show_default="this terminal's, else en",
    help="Language of what is printed and drawn.",
)
quiet_option = click.option("--quiet", "-q", is_flag=True, help="No progress, only the result.")


IMPORTED = "gnomon.imported"  # where a command's context keeps {what was typed: the module it names}


def _import_modules(ctx: click.Context, param: click.Parameter, given: tuple[str, ...]) -> None:
    """Import each of `given`, found from the current folder too, so that what they register is known by name."""
    if given:
        _look_first_in(Path.cwd())
        ctx.meta[IMPORTED] = {name: _import_module(name) for name in given}


def _look_first_in(folder: Path) -> None:
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))


def _import_module(given: str) -> str:
    """Import a module by its name or its file, and return the name."""
    file = Path(given).expanduser() if given.endswith(".py") or Path(given).name != given else None
    if file is not None and not (file.is_file() and file.suffix == ".py"):
        raise BadValue(
            f"--import {given}: there is no such Python file. Give a module's name, or a file such as mine.py"
        )
    name = given if file is None else file.stem
    if file is not None:
        _look_first_in(file.resolve().parent)
    try:
        module = import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and (name == error.name or name.startswith(f"{error.name}.")):
            raise BadValue(
                f"--import {given}: there is no such module in {Path.cwd()} or among the installed ones. "
                "Give a module's name, such as my_encoding for my_encoding.py, or the file itself."
            ) from error
        raise BadValue(f"--import {given}: it imports {error.name!r}, which is not installed.") from error
    except Exception as error:  # a user's module may fail in any way while it is imported
        raise BadValue(f"--import {given}: importing it failed with {type(error).__name__}: {error}") from error
    found = getattr(module, "__file__", None)
    if file is not None and (found is None or Path(found).resolve() != file.resolve()):
        raise BadValue(
            f"--import {given}: another module is called {name} already ({found or 'built in'}). Rename the file."
        )
    return name


def imported_modules(ctx: click.Context) -> tuple[str, ...]:
    """The names of the modules that --import brought in, for processes that must import them too."""
    return tuple(ctx.meta.get(IMPORTED, {}).values())


def import_arguments(ctx: click.Context) -> str:
    """What a command that goes on from this one must be given too: " --import MODULE" for each module, or nothing."""
    return "".join(f" --import {shlex.quote(given)}" for given in ctx.meta.get(IMPORTED, {}))


TOKENS = click.IntRange(1, 2**31 - 1)  # beyond it no runtime counts positions


import_option = click.option(
    "--import",
    metavar="MODULE",
    multiple=True,
    is_eager=True,
    expose_value=False,
    callback=_import_modules,
    help="Import a module of yours first, by name or file, for the encodings it defines; may be repeated.",
)


def reading_options(command: Callable[..., object]) -> Callable[..., object]:
    """What every command takes that reads with a model and reports: where, how, in which language, in which form."""
    options = (device_option, threads_option, import_option, lang_option, json_option, quiet_option)
    for option in reversed(options):
        command = option(command)
    return command


def config_options(example: str) -> Callable[[Callable[..., object]], Callable[..., object]]:
    """Add `--config FILE` and `--set KEY=VALUE`, given to the command as `config_file` and `settings`.

    `example` is a setting that this command has: "train.lr=3e-4".
    """
    file = click.option(
        "--config", "-c", "config_file", type=click.Path(path_type=Path), help="Read settings from a TOML file."
    )
    sets = click.option(
        "--set",
        "settings",
        metavar="KEY=VALUE",
        multiple=True,
        help=f"Set one setting by its dotted name, such as {example}; may be repeated.",
    )
    return lambda function: file(sets(function))


def typed_flags(ctx: click.Context, keys: Mapping[str, str]) -> dict[str, object]:
    """Collect the options that the user really typed, under their setting's name, for `load_config(flags=...)`.

    `keys` maps a parameter of the command to a dotted setting: `{"learning_rate": "optim.lr"}`. A flag that kept its
    default is left out, so that it does not outvote the file.
    """
    typed = (ParameterSource.COMMANDLINE, ParameterSource.ENVIRONMENT)
    return {key: ctx.params[name] for name, key in keys.items() if ctx.get_parameter_source(name) in typed}


__all__ = [
    "also_called",
    "config_options",
    "device_option",
    "dtype_option",
    "import_arguments",
    "import_option",
    "imported_modules",
    "json_option",
    "lang_option",
    "quiet_option",
    "reading_options",
    "saved_dtype_option",
    "seed_option",
    "threads_option",
    "typed_flags",
    "weights_option",
]
