"""`gnomon positions` is the registry: what is in the one is in the other."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from click.testing import CliRunner

import gnomon as gn
from gnomon.cli.main import cli
from gnomon.positions.base import _REGISTRY
from gnomon.positions.kinship import SIZES

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
            cls.paper,
            cls.acts,
            cls.relative,
            cls.extrapolation,
        )


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


def test_recipes_for_position_ids_are_listed_in_every_language():
    found = json.loads(run("--json"))["recipes"]
    assert [row["name"] for row in found] == gn.positions.recipes()
    for lang, word in (("en", "sorted"), ("es", "ordenados"), ("pt", "ordenados")):
        [line] = [line for line in run("--lang", lang).splitlines() if line.startswith("randomized ")]
        assert word in line
        assert "Ruoss et al. 2023" in line


@pytest.mark.parametrize("width", [60, 80, 130])
def test_lists_and_pages_fit_the_terminal_and_papers_are_whole(width, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(width))
    listed = run("--lang", "es")
    assert {len(line) for line in listed.splitlines() if "…" in line} == ({width} if width < 130 else set())
    assert max(map(len, listed.splitlines())) <= max(width, 80)
    assert all(gn.positions.recipe(name).paper.split("arXiv:")[1] in listed for name in gn.positions.recipes())
    page = run("deberta")
    assert max(map(len, page.splitlines())) <= max(width, 72)  # a picture is 68 wide
    assert "(equation 4)" in page


def test_a_recipe_has_a_page_and_a_citation_of_its_own():
    page = run("randomized", "--lang", "pt")
    assert page.startswith("randomized  Ruoss et al. 2023, arXiv:2305.16843")
    assert "position.positions=randomized(2048)" in page
    assert "ordenados" in page
    entry = run("cite", "cape")
    assert "Rogozhnikov, Alex" in entry
    assert json.loads(run("cape", "--json"))["cite"] == entry.strip()
    assert gn.cite(gn.DecoderOnly(11, 16, 1, 2, position="rope(positions='cape')")) == gn.cite(["rope", "cape"])
    result = CliRunner().invoke(cli, ["positions", "cape", "--plot", "x.png"])
    assert "--plot cannot draw" in result.output


def test_what_is_drawn_at_random_looks_the_same_at_every_call():
    torch.manual_seed(1)
    first = run("shaw")
    torch.manual_seed(2)
    assert run("shaw") == first


def test_an_encoding_that_starts_at_zero_says_so_in_place_of_a_blank_picture():
    page = run("cope")
    assert "▕" not in page
    assert "as it begins, it is 0 at all positions up to 63" in page


def test_the_users_of_an_encoding_are_named_in_the_reader_s_language():
    assert "los modelos de sus autores" in run("fox", "--lang", "es")
    assert "conserva 0,5 de cada peso" in run("fox", "--lang", "es")


def test_an_encoding_of_ones_own_joins_the_list(outside):
    row = rows("--import", outside("hazy"))["hazy"]
    assert row["paper"] == "A notebook, 2026"
    assert row["parameters"] == SIZES["n_heads"]
    assert "| `hazy` | the score | relative | 8 | who knows | A notebook, 2026 |" in run("--markdown").splitlines()


def test_an_encoding_that_needs_more_than_sizes_is_listed_all_the_same(outside):
    assert rows("--import", outside("needy", ", secret"))["needy"]["parameters"] is None
    assert "| `needy` | the score | relative | ? | who knows | A notebook, 2026 |" in run("--markdown").splitlines()
    assert "Not counted" in run("needy")


# ------------------------------------------------------------------ one line each


@pytest.mark.parametrize("lang", ["en", "es", "pt"])
def test_the_list_is_one_line_each_within_80_columns(lang, monkeypatch):
    monkeypatch.setattr("gnomon.positions.base._REGISTRY", dict(_REGISTRY))
    for i in range(25 - len(gn.positions.names())):
        extrapolation = "falls apart at once, or after a while, or never, as the case may be and as it likes"
        type(f"Far{i}", (gn.PositionEncoding,), {"name": f"a-far-one-{i:02d}", "extrapolation": extrapolation})
    lines = run("--lang", lang).splitlines()
    assert max(map(len, lines)) <= 80
    listed = [line.split(" ")[0] for line in lines[1:]]
    assert listed[: len(gn.positions.names())] == gn.positions.names()


# ------------------------------------------------------------------ a page about one


@pytest.mark.parametrize(
    ("lang", "words"),
    [
        ("en", ["acts at", "queries, keys", "for causal attention only", "0 parameters", "rises slowly", "nearest"]),
        (
            "es",
            ["actúa en", "consultas, claves", "solo para atención causal", "0 parámetros", "sube despacio", "cercanas"],
        ),
        ("pt", ["atua em", "consultas, chaves", "só para atenção causal", "0 parâmetros", "sobe devagar", "próximas"]),
    ],
)
def test_a_page_says_all_about_one_in_three_languages(lang, words):
    page = run("xpos", "--lang", lang)
    formula, paper = "zeta_i^((m - n) / B)", "Sun et al. 2022, arXiv:2212.10554"
    for part in [*words, formula, paper, "gnomon positions cite xpos", "gnomon plot xpos"]:
        assert part in page
    rows = [line.strip()[1:-1] for line in page.splitlines() if line.strip().startswith("▕")]
    assert len(rows) == 8
    assert {len(row) for row in rows} == {64}
    assert len(set("".join(rows))) > 2  # shades


@pytest.mark.parametrize("name", gn.positions.names())
def test_every_encoding_has_a_page(name):
    page = run(name)
    assert page.startswith(f"{name}  {gn.positions.encoding(name).paper}\n\n  ")
    assert ("▕" in page) == (gn.positions.encoding(name).acts != "nowhere" and "No picture" not in page)


def test_the_page_as_data_is_what_classes_and_counters_say():
    found = json.loads(run("t5", "--json"))
    assert found["used_by"].startswith("T5, mT5")
    assert found["cost"]["parameters"] == 32 * 8
    assert found["nearest"][0] == {"name": "kerple", "differs_in": []}
    assert found["cite"] == gn.cite("t5")


def test_one_of_your_own_has_a_page_and_a_citation(outside):
    module = outside("misty")
    page = run("misty", "--import", module)
    assert "A notebook, 2026" in page
    assert "8 parameters" in page
    assert "▕" in page
    assert run("cite", "misty", "--import", module).startswith("@misc{misty,")


def test_a_name_is_written_as_in_the_papers_or_the_nearest_is_named():
    assert run("RoPE").startswith("rope  ")
    result = CliRunner().invoke(cli, ["positions", "rop"])
    assert result.exit_code == 2
    assert "did you mean 'rope'" in result.output


def test_a_picture_is_drawn_where_it_is_asked_for(tmp_path):
    output = run("alibi", "--plot", str(tmp_path / "a.svg"))
    assert (tmp_path / "a.svg").stat().st_size > 1000
    assert f"{tmp_path / 'a.svg'}: " in output


def test_citations_are_those_of_names_and_of_models_in_folders(tmp_path):
    from gnomon.checkpoints import save_model

    save_model(gn.DecoderOnly(11, 16, 1, 2, position="t5"), tmp_path / "model")
    assert run("cite", "rope", str(tmp_path / "model")) == gn.cite(["rope", "t5"]) + "\n"
    assert json.loads(run("cite", "rope", "--json"))["cite"] == gn.cite("rope")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["cite"], "takes names of encodings or folders"),
        (["rope", "t5"], "give one name, got rope, t5"),
        (["rope", "--markdown"], "--markdown prints the list"),
        (["--plot", "x.png"], "--plot draws one"),
        (["cite", "rope", "--plot", "x.png"], "--plot draws one"),
        (["none", "--plot", "x.png"], "there is nothing to draw"),
        (["rope", "--plot", "x.gif"], "x.gif"),
    ],
)
def test_what_cannot_be_asked_for_is_an_error(arguments, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(cli, ["positions", *arguments])
    assert result.exit_code == 2
    assert message in result.output
    assert not list(tmp_path.iterdir())


# ------------------------------------------------------------------ one file

NEW = '''"""Halving, a test.

    score = q . k * scale - |i - j| log 2
"""

import torch

from gnomon.positions.base import PositionEncoding


class Halving(PositionEncoding):
    """Every token further away weighs half as much."""

    name = "halving"
    paper = "Doe et al. 2026, arXiv:2601.00001"
    cite = """@misc{doe2026halving,
      title = {Halving},
    }"""
    acts = "score"
    relative = True
    extrapolation = "flat"

    def __init__(self, n_heads):
        super().__init__()
        self.n_heads = n_heads

    def heads(self):
        return self.n_heads

    def bias(self, h, q, k):
        return -0.6931471805599453 * (q - k).abs() * (h + 1) / (h + 1)
'''


@pytest.mark.slow
def test_a_new_encoding_touches_one_file(tmp_path):
    """Put into a copy of the package it is listed, built, explained, drawn, cited and in the lab's standard grid."""
    package = tmp_path / "gnomon"
    shutil.copytree(Path(gn.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    before = {path: path.read_bytes() for path in package.rglob("*") if path.is_file()}
    (package / "positions" / "halving.py").write_text(NEW)
    code = f"""
import sys; sys.path.insert(0, {str(tmp_path)!r}); sys.dont_write_bytecode = True
import torch, gnomon as gn
from gnomon.cli.main import cli
assert gn.__file__.startswith({str(tmp_path)!r})
model = gn.DecoderOnly(11, 16, 1, 2, position="halving")
assert model(torch.zeros(1, 4, dtype=torch.long)).shape == (1, 4, 11)
assert gn.cite(model).startswith("@misc{{doe2026halving,")
for arguments in ([], ["halving", "--plot", {str(tmp_path / "h.png")!r}], ["cite", "halving"]):
    cli(["positions", *arguments], standalone_mode=False)
"""
    env = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env)
    assert done.returncode == 0, done.stderr
    assert "score = q . k * scale - |i - j| log 2" in done.stdout
    after = {path: path.read_bytes() for path in package.rglob("*") if path.is_file()}
    assert {path.name for path in after if after[path] != before.get(path)} == {"halving.py"}
