"""A command with others below it: its first argument may name one, anything else is its own.

    @click.command("lab", cls=nested({"tasks": "What it does, in a line."}))

`gnomon lab tasks ...` is then the command in `cli/lab_tasks.py`, which is imported when it is run.
"""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

import click
from click.shell_completion import CompletionItem


def nested(commands: Mapping[str, str]) -> type[click.Command]:
    """A class of commands with `commands` below it: name -> what it does."""

    class Nested(click.Command):
        """The command itself, or the one below it that the first argument names."""

        def make_context(
            self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
        ) -> click.Context:
            """The context of the command that is run."""
            if not args or args[0] not in commands:
                return super().make_context(info_name, args, parent, **extra)
            below: click.Command = import_module(f"gnomon.cli.{self.name}_{args[0]}").command
            return below.make_context(f"{info_name} {args[0]}", args[1:], parent, **extra)

        def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
            """Its options, then the commands below it."""
            super().format_options(ctx, formatter)
            with formatter.section("Commands"):
                formatter.write_dl([(f"{self.name} {name}", about) for name, about in commands.items()])

    return Nested


def names_or_files(
    commands: Mapping[str, str],
) -> Callable[[click.Context, click.Parameter, str], list[CompletionItem]]:
    """The `shell_complete` of the command's first argument: commands below it, and files."""

    def complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        below = [CompletionItem(name, help=about) for name, about in commands.items() if name.startswith(incomplete)]
        return [*below, CompletionItem(incomplete, type="file")]

    return complete


__all__ = ["names_or_files", "nested"]
