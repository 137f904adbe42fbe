"""Every failure is one line on standard error and one exit code, for click's runner and for a real process."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from gnomon.cli.main import cli

CASES = {
    "value": (2, "no such thing"),
    "input": (3, "half a file"),
    "missing": (3, "No such file or directory: a.txt"),
    "full": (3, "No space left"),
    "interrupt": (130, "interrupted"),
    "terminated": (143, "ended by SIGTERM"),
    "hung up": (129, "ended by SIGHUP"),
    "memory": (
        3,
        "this needs more memory than there is: choose smaller sizes (DefaultCPUAllocator: can't allocate memory)",
    ),
    "hostile": (2, f"no such {'9' * 60} ... (4880 left out) ... {'9' * 60} thing"),
    "hostile words": (2, f"given '{'a ' * 29}a ... (4882 left out) ... {'a ' * 29}': no"),
}


@pytest.mark.parametrize(("what", "expected"), CASES.items(), ids=CASES)
def test_a_failure_is_one_line_and_its_code(raises, what, expected):
    result = CliRunner().invoke(cli, ["raises", what])
    kind = "" if what in ("interrupt", "terminated", "hung up") else "error: "  # whoever interrupts has made no error
    assert (result.exit_code, result.stderr) == (expected[0], f"gnomon: {kind}{expected[1]}\n")
    assert result.stdout == ""


@pytest.mark.parametrize(("what", "expected"), CASES.items(), ids=CASES)
def test_under_json_a_failure_is_an_object_too(raises, what, expected):
    shown = json.loads(CliRunner().invoke(cli, ["raises", what, "--json"]).stdout)
    assert shown["schema_version"] == 1
    assert (shown["error"]["exit_code"], shown["error"]["message"]) == expected


def test_a_usage_error_under_json_is_an_object_too():
    result = CliRunner().invoke(cli, ["nonsense", "--json"])
    assert json.loads(result.stdout)["error"]["exit_code"] == result.exit_code == 2


def test_a_suggestion_ends_with_one_mark(raises):
    result = CliRunner().invoke(cli, ["raises", "value", "--jsom"])
    assert "Did you mean '--json'?" in result.stderr
    assert not re.search(r"\?\)?\.|\. \(", result.stderr)
    assert result.stderr.endswith("See 'gnomon raises --help'.\n")


def test_a_missed_threshold_exits_1_and_says_nothing_more(raises):
    result = CliRunner().invoke(cli, ["raises", "threshold"])
    assert (result.exit_code, result.output) == (1, "")


def test_a_fault_of_our_own_keeps_its_traceback(raises):
    assert isinstance(CliRunner().invoke(cli, ["raises", "bug"]).exception, ZeroDivisionError)


def test_the_traceback_of_a_users_error_is_shown_on_request(raises, monkeypatch):
    monkeypatch.setenv("GNOMON_TRACEBACK", "1")
    assert "Traceback" in CliRunner().invoke(cli, ["raises", "value"]).stderr


def command_line(tmp_path: Path, body: str) -> list[str]:
    """A real `gnomon odd` for a process of its own, where `odd` is a command with this body."""
    (tmp_path / "odd.py").write_text(f"import time, click\n@click.command()\ndef command():\n    {body}\n")
    code = f"""
import gnomon.cli
from gnomon.cli import main
gnomon.cli.__path__.append({str(tmp_path)!r})
main.COMMANDS["odd"] = "Odd."
main.main()
"""
    return [sys.executable, "-c", code, "odd"]


def test_ctrl_c_exits_130_with_one_line(tmp_path):
    line = command_line(tmp_path, "click.echo('ready'); time.sleep(60)")
    with subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGINT)
        _, error = process.communicate(timeout=30)
    assert (process.returncode, error) == (130, "gnomon: interrupted\n")


def test_a_librarys_warning_is_one_line_without_its_source(tmp_path):
    body = "import warnings; warnings.warn('too\\nlong'); warnings.warn('old', DeprecationWarning); click.echo('done')"
    plain = {name: value for name, value in os.environ.items() if name != "PYTHONWARNINGS"}
    shown = subprocess.run(command_line(tmp_path, body), env=plain, capture_output=True, text=True, check=True)
    assert (shown.stdout, shown.stderr) == ("done\n", "gnomon: warning: too long\n")


@pytest.mark.parametrize("body", ["print('one line')", "[click.echo('a line') for _ in range(100_000)]"])
def test_a_reader_that_goes_away_is_no_error(tmp_path, body):
    reader, writer = os.pipe()
    os.close(reader)
    line = command_line(tmp_path, body)
    buffered = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    gone = subprocess.run(line, env=buffered, stdout=writer, stderr=subprocess.PIPE, timeout=60, check=False)
    os.close(writer)
    assert (gone.returncode, gone.stderr) == (141, b"")
