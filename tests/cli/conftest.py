"""A way to give the command line a command that exists for one test only."""

from collections.abc import Callable
from pathlib import Path

import pytest

import gnomon.cli
from gnomon.cli import main

AddCommand = Callable[[str, str], None]

RAISES = """
import signal

import click
from gnomon.errors import BadInput, BadValue, Terminated

@click.command()
@click.argument("what")
@click.option("--json", "as_json", is_flag=True)
@click.pass_context
def command(ctx, what, as_json):
    if what == "threshold":
        ctx.exit(1)
    raise {"value": BadValue("no such\\nthing"), "input": BadInput("half a file"), "interrupt": KeyboardInterrupt(),
           "missing": FileNotFoundError(2, "No such file or directory", "a.txt"), "full": OSError(28, "No space left"),
           "bug": ZeroDivisionError(), "terminated": Terminated(), "hung up": Terminated(signal.SIGHUP),
           "hostile": BadValue("no such " + "9" * 5000 + " thing"),
           "hostile words": BadValue("given '" + "a " * 2500 + "': no"),
           "memory": RuntimeError("DefaultCPUAllocator: can't allocate memory")}[what]
"""


@pytest.fixture
def add_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AddCommand:
    """add_command("name", body) puts a file beside the real commands, and its line into the table."""
    monkeypatch.setattr(gnomon.cli, "__path__", [*gnomon.cli.__path__, str(tmp_path)])

    def add(name: str, body: str) -> None:
        (tmp_path / f"{name}.py").write_text(body, encoding="utf-8")
        monkeypatch.setitem(main.COMMANDS, name, f"The help of {name}.")

    return add


@pytest.fixture
def raises(add_command: AddCommand) -> None:
    """The command `gnomon raises WHAT`, which fails in the way WHAT says."""
    add_command("raises", RAISES)
