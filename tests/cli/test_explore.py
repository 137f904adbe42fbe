"""`gnomon explore`: it says where the page is, and serves it until it is interrupted."""

import json
import signal
import subprocess
import sys
import urllib.request

import pytest
from click.testing import CliRunner

from gnomon.cli.main import cli


def test_a_model_that_is_not_there_is_an_error_before_anything_is_served():
    result = CliRunner().invoke(cli, ["explore", "no-such-model", "--no-open"])
    assert result.exit_code == 3
    assert "no-such-model" in result.output


@pytest.mark.slow
def test_it_serves_until_it_is_interrupted():
    command = [sys.executable, "-m", "gnomon", "explore", "--no-open", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            said = json.loads("".join(_object(process.stdout)))
            with urllib.request.urlopen(said["url"].split("#")[0], timeout=20) as answer:
                assert b"explorer.js" in answer.read()
        finally:
            process.send_signal(signal.SIGINT)
        assert process.wait(20) in (0, 130)
        assert "Traceback" not in process.stderr.read()


def _object(lines):
    """The lines of one JSON object."""
    for line in lines:
        yield line
        if line == "}\n":
            return
