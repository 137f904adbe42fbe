"""Every way a command can fail becomes one line on standard error and one exit code.

| code | meaning |
| ---- | ------- |
| 0 | done |
| 1 | a threshold was missed: the command ran and the answer is "no" (the command calls `ctx.exit(THRESHOLD)`) |
| 2 | wrong usage, option or configuration |
| 3 | a file, folder, corpus or checkpoint that cannot be used; a disk or a memory that is full |
| 129 | a training was ended by SIGHUP, as its terminal was closed, and has saved |
| 130 | interrupted (Ctrl-C) |
| 141 | whoever read the output went away (`gnomon positions | head -1`): nothing is printed |
| 143 | a training was ended by SIGTERM, which schedulers send, and has saved |

Anything else is a fault of Gnomon's own and keeps its traceback. GNOMON_TRACEBACK=1 shows it for the others too.
"""

import os
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import click

from gnomon.cli.output import print_json
from gnomon.errors import BadValue, GnomonError, Terminated, shorten

THRESHOLD, USAGE, INPUT, INTERRUPTED, PIPE_CLOSED = 1, 2, 3, 130, 141
ENDED_BY = 128  #: and the number of the signal


def _message(error: Exception) -> str:
    if isinstance(error, click.UsageError) and error.ctx is not None:
        text = error.format_message().rstrip(".").replace(". (Did", " (Did")  # click: "No such option '--x'. (Did"
        return f"{text}{'' if text.endswith('?') else '.'} See '{error.ctx.command_path} --help'."
    if isinstance(error, click.ClickException):
        return error.format_message()
    if isinstance(error, OSError) and error.strerror:
        return error.strerror + (f": {error.filename}" if error.filename is not None else "")
    return str(error) or type(error).__name__


def _exit_code(error: Exception) -> int:
    if isinstance(error, click.ClickException):
        return error.exit_code
    return USAGE if isinstance(error, BadValue) else INPUT


def _memory_ran_out(error: Exception) -> bool:
    """Whether an error is Python's, numpy's or torch's way to say so; torch has a class for GPUs and words for CPUs."""
    words = ("can't allocate memory", "out of memory", "calculation overflowed", "multiplication overflow")
    return isinstance(error, MemoryError) or any(word in str(error) for word in words)


def _report(kind: str, message: str, exit_code: int, as_json: bool) -> click.exceptions.Exit:
    line = shorten(" ".join(message.split()))
    with suppress(OSError):  # a closed terminal may be what is reported
        click.echo(f"gnomon: {'' if exit_code > ENDED_BY else 'error: '}{line}", err=True)
    if as_json:
        with suppress(OSError):  # a full disk is what may be reported
            print_json({"error": {"kind": kind, "message": line, "exit_code": exit_code}})
    return click.exceptions.Exit(exit_code)


@contextmanager
def report_failures(as_json: bool) -> Iterator[None]:
    """Report the errors raised inside: one line on standard error, under --json an object on standard output too.

    What leaves is click's own Exit with the code, so that a shell and click's CliRunner see the same.
    """
    try:
        yield
        sys.stdout.flush()  # a closed pipe shows itself here rather than after the last handler
    except click.exceptions.NoArgsIsHelpError:
        raise  # `gnomon plot` alone prints its help
    except BrokenPipeError:
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115  the interpreter flushes it on its way out
        raise click.exceptions.Exit(PIPE_CLOSED) from None
    except Terminated as ended:
        raise _report("Terminated", f"ended by {ended.signal.name}", ENDED_BY + ended.signal, as_json) from None
    except KeyboardInterrupt:
        raise _report("Interrupted", "interrupted", INTERRUPTED, as_json) from None
    except (MemoryError, RuntimeError) as error:
        if not _memory_ran_out(error):
            raise
        if os.environ.get("GNOMON_TRACEBACK"):
            traceback.print_exc()
        message = f"this needs more memory than there is: choose smaller sizes ({error})"
        raise _report("MemoryError", message, INPUT, as_json) from error
    except (click.ClickException, GnomonError, OSError) as error:
        if os.environ.get("GNOMON_TRACEBACK"):
            traceback.print_exc()
        raise _report(type(error).__name__, _message(error), _exit_code(error), as_json) from error


__all__ = ["ENDED_BY", "INPUT", "INTERRUPTED", "PIPE_CLOSED", "THRESHOLD", "USAGE", "report_failures"]
