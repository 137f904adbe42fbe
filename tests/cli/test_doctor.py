"""`gnomon doctor` says what is so on this machine."""

import json
import platform

import pytest
import torch
from click.testing import CliRunner

from gnomon.cli.main import cli


@pytest.fixture(scope="module")
def report():
    result = CliRunner().invoke(cli, ["doctor", "--device", "cpu", "--json"])
    assert result.exit_code == 0, result.output
    return json.loads(result.output)


def test_versions_are_those_in_use(report):
    assert report["libraries"]["torch"].partition("+")[0] == torch.__version__.partition("+")[0]
    assert report["python"] == platform.python_version()


def test_the_device_asked_for_is_the_one_examined(report):
    assert report["device"] == "cpu"
    assert report["device"] in report["devices"]


def test_speeds_are_measured_for_every_dtype_and_agree_with_autos_choice(report):
    speeds = report["matmul_gflops"]
    assert set(speeds) == {"float32", "bfloat16", "float16", "float64"}
    assert min(speeds.values()) > 0
    if speeds["bfloat16"] < 0.5 * speeds["float32"]:
        assert report["dtype"] == "float32"


def test_the_text_at_hand_is_the_standard_library(report):
    assert report["text"]["bytes"] > 5_000_000
    assert report["text"]["files"] > 300


@pytest.mark.slow
def test_threads_asked_for_are_the_threads_in_use():
    before = torch.get_num_threads()
    try:
        for n in (2, 1):
            shown = CliRunner().invoke(cli, ["doctor", "--threads", str(n), "--json"]).output
            assert json.loads(shown)["threads"] == n
    finally:
        torch.set_num_threads(before)


def test_for_people_it_is_one_row_per_thing(report):
    shown = CliRunner().invoke(cli, ["doctor"]).output
    assert [line.split()[0] for line in shown.splitlines()] == [
        "gnomon",
        "libraries",
        "devices",
        "threads",
        "products",
        "text",
        "cache",
    ]
    assert report["libraries"]["torch"] in shown


def test_a_device_that_is_not_here_is_one_line_and_exit_2():
    absent = "mps" if not torch.backends.mps.is_available() else "cuda"
    result = CliRunner().invoke(cli, ["doctor", "--device", absent])
    assert (result.exit_code, len(result.stderr.splitlines())) == (2, 1)
    assert f"'{absent}' is not available here" in result.stderr
