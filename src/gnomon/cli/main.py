"""`gnomon`: the frame of the command line.

A command is a file beside this one that defines `command`, and a line in `front_page.COMMANDS`. Help, completion and
version read the table alone, so that none of them waits for torch; a command's file is imported when it is run.
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
from gnomon.cli.front_page import COMMANDS, SUMMARY, front_page, terminal_width
from gnomon.cli.transliteration import ERR, OUT
from gnomon.errors import shorten, unknown


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

    def get_help(self, ctx: click.Context) -> str:
        """The page of `gnomon --help`, which does not wait for click either."""
        width = ctx.terminal_width or terminal_width()
        return front_page({name: COMMANDS[name] for name in self.list_commands(ctx)}, width).rstrip("\n")

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
    pass


cli.help = SUMMARY


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
