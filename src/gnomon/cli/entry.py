"""The command `gnomon`: its front page, which waits for nothing, or what it is asked to do."""

import os
import sys

from gnomon.cli.front_page import COMMANDS, front_page, terminal_width


def main() -> None:
    """Run the command line on this process's arguments, and exit with its code."""
    if sys.argv[1:] not in (["--help"], ["-h"]) or sys.stdout is None or "_GNOMON_COMPLETE" in os.environ:
        from gnomon.cli.main import main as run

        return run()
    here = os.path.dirname(__file__)
    offered = {name: line for name, line in COMMANDS.items() if os.path.isfile(os.path.join(here, f"{name}.py"))}
    try:
        sys.stdout.write(front_page(offered, terminal_width()))
        sys.stdout.flush()
    except OSError:  # nobody reads on
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(1) from None


__all__ = ["main"]
