"""`gnomon`: the frame of the command line.

A command is a file beside this one that defines `command`, and a line in COMMANDS. Help, completion and version read
the table alone, so that none of them waits for torch; a command's file is imported when that command is run.
"""

import os
import sys
import warnings
from importlib import import_module
from importlib.util import find_spec
from io import TextIOWrapper

import click
from click.shell_completion import CompletionItem

from gnomon import __version__
from gnomon.cli.failures import report_failures
from gnomon.cli.transliteration import ERR, OUT
from gnomon.errors import shorten, unknown

COMMANDS = {
    "demo": "Train the same small Transformer under each position encoding and compare them.",
    "train": "Train a model on your text, on the text that is already on this machine, or on another task.",
    "eval": "Measure a trained model on what was held out, with confidence intervals.",
    "generate": "Let a trained model write.",
    "chat": "Talk with a model that was trained for it.",
    "pull": "Fetch a real model by its name, or list those there are.",
    "predict": "Let a trained model label the spans of a text, or tell its class.",
    "fill": "Guess the gaps of a text.",
    "neighbors": "Show what a trained model keeps close together, and a map of it.",
    "lab": "Measure encodings beside each other, far past their training length.",
    "plot": "Draw an encoding, a mask, a norm: heat map, wavelengths, clock hands, scores, biases, gradients.",
    "explore": "Open a local page on which position, attention and generation can be seen to move.",
    "inspect": "Follow a text through a model: ids, vectors, positions, attention, output.",
    "audit": "Find faults of position, masks, caches and tying in any model.",
    "advise": "Recommend a way to let a model read further, or advise against it.",
    "extend": "Let a model read further than it was trained to.",
    "retrofit": "Give a model another position encoding.",
    "convert": "Write a model in the files of another program.",
    "order": "Show that without positions attention cannot tell who bit whom.",
    "positions": "List the position encodings there are.",
    "settings": "List the settings of a model, or explain some of them.",
    "plan": "Count a model's parameters and its cache before you build it.",
    "tokenizer": "Train a tokenizer, or see what one does to a text.",
    "doctor": "Say what this machine has and how fast it multiplies.",
    "completion": "Print the script that completes commands and options in your shell.",
}


def _module(name: str) -> str:
    return f"gnomon.cli.{name}"


class LazyGroup(click.Group):
    """A group that knows its commands by name and imports the one that is run."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names in the table's order; a name whose file is not there is not offered."""
        return [name for name in COMMANDS if find_spec(_module(name)) is not None]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the command's file; None where there is no such command."""
        if cmd_name not in self.list_commands(ctx):
            return None
        command: click.Command = import_module(_module(cmd_name)).command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Name the nearest command where the given one does not exist."""
        known = self.list_commands(ctx)
        if args[0] not in known and not args[0].startswith("-") and not ctx.resilient_parsing:
            raise unknown("command", args[0], known)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands from the table, importing none of them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, COMMANDS[name]) for name in self.list_commands(ctx)])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete command names from the table, importing none of them."""
        names = [name for name in self.list_commands(ctx) if name.startswith(incomplete)]
        items = [CompletionItem(name, help=COMMANDS[name]) for name in names]
        return items + click.Command.shell_complete(self, ctx, incomplete)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the group's own options; a mistake in them is reported like any other."""
        ctx.meta[__name__] = "--json" in args
        with report_failures(ctx.meta[__name__]):
            return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> None:
        """Run the command. What it returns is dropped: its exit code is what it raises or passes to `ctx.exit`."""
        with report_failures(ctx.meta[__name__]):
            super().invoke(ctx)


@click.command(cls=LazyGroup, name="gnomon", context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, message="gnomon %(version)s")
def cli() -> None:
    """Choose a Transformer's sense of position by name; see it, test it, measure it.

    Start with `gnomon demo`. Every command has --help, and --json for programs.
    """


def main() -> None:
    """Run the command line on this process's arguments, and exit with its code."""
    make_streams_sound()
    make_warnings_short()
    cli.main(prog_name="gnomon")


def make_streams_sound() -> None:
    """Give a process that was started with closed streams empty ones, and let no letter fail that they cannot write."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115  it lives as long as the process
        elif mode == "w" and isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors=ERR if name == "stderr" else OUT)


def make_warnings_short() -> None:
    """Show a warning as one line, without the place in a library's source; those about its future are for developers.
    Python's own -W and PYTHONWARNINGS leave everything as they say."""
    if sys.warnoptions:
        return
    for category in (DeprecationWarning, PendingDeprecationWarning, FutureWarning):
        warnings.simplefilter("ignore", category)

    def show(message: Warning | str, *_: object, **__: object) -> None:
        click.echo(f"gnomon: warning: {shorten(' '.join(str(message).split()))}", err=True)

    warnings.showwarning = show


__all__ = ["COMMANDS", "LazyGroup", "cli", "main"]
