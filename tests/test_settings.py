"""A setting is stated once: its check, its help, its signature and its documentation come from one field."""

import inspect
import re
import subprocess
import sys
from dataclasses import dataclass, fields
from math import inf, nan
from pathlib import Path
from typing import Annotated

import pytest
from click.testing import CliRunner

import gnomon as gn
from gnomon.cli.main import cli
from gnomon.cli.settings import listing
from gnomon.kinds import Setting, options
from gnomon.settings import check_fields, groups, help_text, kinds_of, setting_of, takes, values_of

SIZES = {"vocab_size": 50, "d_model": 32, "n_layers": 1, "n_heads": 2}
PAGE = Path(__file__).parents[1] / "docs" / "settings.md"
NAMES = [field.name for field in fields(gn.ModelConfig)]


@dataclass(frozen=True, kw_only=True)
class Ears:
    """Ears"""

    width: Annotated[float | None, Setting("of each, in mm", above=0, below=90, source="Darwin 1871")] = None


@dataclass(frozen=True)
class Animal(Ears):
    """An animal"""

    legs: Annotated[int, Setting("to walk on", least=0, most=2**20)]


def test_every_setting_of_a_model_is_stated_by_one_class_and_says_what_it_means():
    stated = [name for cls in gn.ModelConfig.__mro__ for name in inspect.get_annotations(cls)]
    assert sorted(stated) == sorted(NAMES)
    for name in NAMES:
        assert setting_of(gn.ModelConfig, name).meaning


def test_no_number_outside_its_range_gets_into_a_config():
    tried = 0
    for name, kind in kinds_of(gn.ModelConfig).items():
        said = setting_of(gn.ModelConfig, name)
        beyond = [bound for bound in (said.above, said.below) if bound is not None]
        beyond += [] if said.least is None else [said.least - 1]
        beyond += [] if said.most is None else [said.most + 1]
        for value in [*beyond, *([inf, -inf, nan] if float in options(kind) else [])]:
            tried += 1
            with pytest.raises(gn.BadValue, match=f"^{name} must be "):
                gn.ModelConfig(**{**SIZES, name: value})
    assert tried > 60


def test_an_error_says_the_range_and_the_meaning():
    with pytest.raises(
        gn.BadValue, match=r"^width must be a number above 0 and below 90 or none, got 90; width: of each"
    ):
        check_fields(Animal, {"width": 90})
    with pytest.raises(
        gn.BadValue, match=r"^legs must be a whole number between 0 and 2\*\*20, got -1; legs: to walk on"
    ):
        check_fields(Animal, {"legs": -1})
    with pytest.raises(gn.BadValue, match="unknown setting 'wdth': did you mean 'width'"):
        check_fields(Animal, {"wdth": 1.0})
    check_fields(Animal, {"legs": 0, "width": 3})


def test_help_has_a_line_for_each_under_the_class_that_states_it():
    assert [(title, [field.name for field in mine]) for title, mine in groups(Animal)] == [
        ("Ears", ["width"]),
        ("An animal", ["legs"]),
    ]
    assert help_text(Animal).splitlines() == [
        "Ears",
        "  width  of each, in mm (above 0 and below 90; Darwin 1871)",
        "",
        "An animal",
        "  legs   to walk on (between 0 and 2**20)",
    ]


def test_a_constructor_takes_the_fields_as_its_arguments():
    class Cat:
        @takes(Animal)
        def __init__(self, legs: int, **settings):
            self.animal = Animal(legs, **settings)

    assert str(inspect.signature(Cat)) == "(legs: int, *, width: float | None = None)"
    assert Cat(4, width=3.0).animal == Animal(4, width=3.0)


def test_a_part_chooses_its_settings_from_a_whole():
    assert values_of(Ears, Animal(4, width=3.0)) == {"width": 3.0}


def test_help_and_the_command_head_the_settings_alike():
    titles = {title for title, _ in groups(gn.ModelConfig)}
    assert titles <= {line.strip() for line in (gn.ModelConfig.__doc__ or "").splitlines()[2:]}


def test_the_command_lists_every_setting_and_explains_one():
    assert [row["name"] for row in listing()] == NAMES
    result = CliRunner().invoke(cli, ["settings", "softcap"])
    assert result.output.startswith("Scores of attention\n  softcap = none    a number above 0 or none\n")
    result = CliRunner().invoke(cli, ["settings", "sofcap"])
    assert result.exit_code == 2
    assert "did you mean 'softcap'" in result.output


def test_the_page_of_settings_is_what_the_command_prints():
    printed = CliRunner().invoke(cli, ["settings", "--markdown"]).output
    command = "gnomon settings --markdown --lang en > docs/settings.md"
    assert command in printed
    assert PAGE.read_text(encoding="utf-8") == printed, f"renew it: {command}"


@pytest.mark.parametrize("lang", ["es", "pt"])
def test_every_word_about_a_setting_is_there_in_three_languages(lang):
    """But numbers, names and what is typed; a new setting brings its phrases into the glossary."""
    english, other = listing(), listing(lang)
    for here, there in zip(english, other, strict=True):
        typed = here["is"].startswith("'")  # 'pre' or 'post': only the or between them is a word
        assert there["meaning"] != here["meaning"], here["name"]
        assert there["group"] != here["group"] or here["group"] == "Dropout", here["group"]
        assert " or " not in there["is"]
        assert typed or there["is"] != here["is"], here["is"]
        assert not re.search(r"\b(section|and|in their code|rounded)\b", there["source"])
        assert (there["name"], there["default"]) == (here["name"], here["default"])


CALLS = """
import torch, gnomon as gn
x = torch.ones(1, 1, 3, 4)
gn.DecoderOnly(9, 16, 2, 4, position="alibi", softcap=3.0, window=[4, None])
gn.EncoderOnly(vocab_size=9, d_model=16, n_layers=2, n_heads=4, position=["rope", "none"])
gn.DecoderOnly(9, 16, 2, 4, softcap="much")
gn.DecoderOnly(9, 16, 2, 4, sofcap=3.0)
gn.EncoderDecoder(9, 16, 2)
gn.EncoderOnly(9, 16, 2, 4, architecture="decoder-only")
gn.attend(x, x, x, causal=False, softcap=2.0, kernel="dense")
gn.attend(x, x, x, sofcap=2.0)
gn.MultiHeadAttention(8, n_heads=2, qk_norm="joint", window=3)
gn.MultiHeadAttention(8, n_heads=2, qk_norm="both")
"""


@pytest.mark.slow
def test_a_type_checker_knows_the_keywords_of_a_model(tmp_path):
    pytest.importorskip("mypy")
    (tmp_path / "calls.py").write_text(CALLS)
    source, config = str(Path(gn.__file__).parents[1]), tmp_path / "mypy.ini"
    config.write_text(
        f"[mypy]\nmypy_path = {source}\nstrict = true\nfollow_imports = silent\nignore_missing_imports = true\n"
    )
    command = [sys.executable, "-m", "mypy", "--config-file", "mypy.ini", "--cache-dir", "cache", "calls.py"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    errors = [line for line in done.stdout.splitlines() if ": error:" in line]
    assert [line.partition(":")[2].partition(":")[0] for line in errors] == ["6", "7", "8", "9", "11", "13"], (
        done.stdout + done.stderr
    )
    for line, name in zip(errors, ("softcap", "sofcap", "n_heads", "architecture", "sofcap", "qk_norm"), strict=True):
        assert f'"{name}"' in line
