"""One JSON object, whatever numbers the library hands over."""

import json
from pathlib import Path

import numpy as np
import pytest

from gnomon.cli.output import SCHEMA_VERSION, print_json


def printed(capsys, payload):
    print_json(payload)
    return json.loads(capsys.readouterr().out, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))


def test_the_object_begins_with_its_schema_version(capsys):
    assert next(iter(printed(capsys, {"a": 1}).items())) == ("schema_version", SCHEMA_VERSION)


def test_numpys_numbers_are_numbers_and_true_is_true(capsys):
    shown = printed(
        capsys, {"f": np.float32(0.5), "i": np.int64(3), "b": True, "n": None, "t": (1, 2.5), "p": Path("a")}
    )
    assert shown == {"schema_version": 1, "f": 0.5, "i": 3, "b": True, "n": None, "t": [1, 2.5], "p": "a"}
    assert shown["b"] is True


@pytest.mark.parametrize("value", [float("nan"), float("inf"), np.float32("-inf")])
def test_what_json_cannot_say_is_null(capsys, value):
    assert printed(capsys, {"deep": [{"x": value}]})["deep"] == [{"x": None}]


def test_text_stays_readable(capsys):
    print_json({"título": "Posición"})
    assert '"título": "Posición"' in capsys.readouterr().out


def test_an_object_that_is_no_data_is_refused():
    with pytest.raises(TypeError):
        print_json({"x": object()})
