"""`gnomon positions` is the registry: what is in the one is in the other."""

import json

import pytest
from click.testing import CliRunner

import gnomon as gn
from gnomon.cli.main import cli
from gnomon.cli.positions import SIZES
from gnomon.positions.base import _REGISTRY

MINE = """
import torch
from gnomon.positions import PositionEncoding

class {title}(PositionEncoding):
    name = "{name}"
    paper = "A notebook, 2026"
    acts = "score"
    relative = True
    extrapolation = "who knows"

    def __init__(self, n_heads{more}):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(n_heads))

    def bias(self, h, q, k):
        return -self.weight[h.long()] * (q - k).abs()
"""


@pytest.fixture
def outside(tmp_path, monkeypatch):
    """outside(name, more): a module of the user's that defines an encoding; forgotten after the test."""
    monkeypatch.syspath_prepend(tmp_path)
    known = dict(_REGISTRY)

    def define(name, more=""):
        (tmp_path / f"my_{name}.py").write_text(MINE.format(name=name, title=name.title(), more=more))
        return f"my_{name}"

    yield define
    _REGISTRY.clear()
    _REGISTRY.update(known)


def run(*arguments):
    result = CliRunner().invoke(cli, ["positions", *arguments])
    assert result.exit_code == 0, result.output
    return result.output


def rows(*arguments):
    return {row["name"]: row for row in json.loads(run("--json", *arguments))["positions"]}


def test_every_encoding_is_listed_with_what_its_class_says():
    found = rows()
    assert list(found) == gn.positions.names()
    for name, row in found.items():
        cls = gn.positions.encoding(name)
        assert (row["paper"], row["acts"], row["relative"], row["extrapolation"]) == (
            cls.paper, cls.acts, cls.relative, cls.extrapolation,
        )  # fmt: skip


def test_parameters_are_those_of_the_stated_size():
    """A learned table of 2048 x 512 has 1 048 576; T5's has 32 buckets x 8 heads."""
    found = rows()
    assert found["learned"]["parameters"] == 2048 * 512 == 1_048_576
    assert found["t5"]["parameters"] == 32 * 8
    assert {found[name]["parameters"] for name in ("none", "sinusoidal", "rope", "alibi")} == {0}


def test_the_table_has_a_row_per_encoding_in_text_and_in_markdown():
    text, markdown = run().splitlines(), run("--markdown").splitlines()
    for name in gn.positions.names():
        assert any(line.startswith(f"{name} ") for line in text)
        assert any(line.startswith(f"| `{name}` |") for line in markdown)
    assert len({line.count("|") for line in markdown}) == 1
    assert len(markdown) == 2 + len(gn.positions.names())


def test_an_encoding_of_ones_own_joins_the_list(outside):
    row = rows("--import", outside("hazy"))["hazy"]
    assert row["paper"] == "A notebook, 2026"
    assert row["parameters"] == SIZES["n_heads"]
    assert "| `hazy` | the score | relative | 8 | who knows | A notebook, 2026 |" in run("--markdown").splitlines()


def test_an_encoding_that_needs_more_than_sizes_is_listed_all_the_same(outside):
    assert rows("--import", outside("needy", ", secret"))["needy"]["parameters"] is None
    assert [line for line in run().splitlines() if line.startswith("needy") and "?" in line]
