"""The options that all commands share."""

import re
import sys
from ast import literal_eval

import click
import pytest
from click.testing import CliRunner

from gnomon.cli.main import cli
from gnomon.glossary import LANGUAGES

ECHO = """
import click
from gnomon.cli.options import *
from gnomon.cli import options

@click.command()
@options.device_option
@options.dtype_option
@options.seed_option
@options.threads_option
@options.lang_option
@options.quiet_option
@options.import_option
@options.config_options("a.b=1")
@options.json_option
@click.pass_context
def command(ctx, **given):
    click.echo(sorted(given.items()))
    click.echo(options.typed_flags(ctx, {"seed": "train.seed", "device": "device"}))
"""


def echoed(*arguments):
    result = CliRunner().invoke(cli, ["echo", *arguments])
    assert result.exit_code == 0, result.output
    return result.output.splitlines()


@pytest.fixture(autouse=True)
def _echo(add_command):
    add_command("echo", ECHO)


def test_the_defaults_are_auto_and_seed_0():
    given = dict(literal_eval(echoed()[0]))
    assert given == {
        "device": "auto",
        "dtype": "auto",
        "seed": 0,
        "threads": None,
        "lang": "en",
        "quiet": False,
        "config_file": None,
        "settings": (),
        "as_json": False,
    }


def test_the_example_of_set_is_a_setting_of_that_command():
    """Each command that takes --set names one that it has."""
    from gnomon.cli.config import load_config, plain_settings
    from gnomon.cli.train_settings import settings_of
    from gnomon.lab import LabSettings
    from gnomon.models import preset
    from gnomon.tasks import find

    takes = {
        "train": lambda text: load_config(settings_of(find("text")), sets=[text]),
        "lab": lambda text: load_config(LabSettings, sets=[text]),
        "plan": lambda text: preset("mini-gpt", **plain_settings(sets=[text])),
        "inspect": lambda text: preset("mini-gpt", **plain_settings(sets=[text])),
    }
    found = {}
    for name in cli.list_commands(None):
        for option in cli.get_command(None, name).params:
            if "--set" in option.opts and "such as" in (option.help or ""):
                found[name] = re.search(r"such as (\S+);", option.help).group(1)
    found.pop("echo")
    assert found.keys() == takes.keys()
    for name, example in found.items():
        takes[name](example)


def test_only_typed_flags_outvote_the_file():
    assert echoed()[1] == "{}"
    assert literal_eval(echoed("--seed", "0")[1]) == {"train.seed": 0}


@pytest.mark.parametrize(
    "wrong",
    [("--device", "gpu"), ("--dtype", "float8"), ("--lang", "fr"), ("--seed", "-1"), ("--threads", "0")],
)
def test_a_value_that_cannot_be_is_refused_by_name(wrong):
    result = CliRunner().invoke(cli, ["echo", *wrong])
    assert result.exit_code == 2
    assert f"'{wrong[0]}'" in result.stderr


def test_import_finds_a_module_in_the_current_folder(tmp_path, monkeypatch):
    (tmp_path / "my_ground_module.py").write_text("loaded = True")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [place for place in sys.path if place != ""])
    echoed("--import", "my_ground_module")
    assert sys.modules.pop("my_ground_module").loaded


@pytest.mark.parametrize(
    "given", ["mine/my_filed_module.py", "./mine/my_filed_module.py", "{folder}/my_filed_module.py"]
)
def test_import_takes_a_file_too(tmp_path, monkeypatch, given):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "my_filed_module.py").write_text("loaded = True")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    echoed("--import", given.format(folder=tmp_path / "mine"))
    assert sys.modules.pop("my_filed_module").loaded
    assert str(tmp_path / "mine") in sys.path  # where worker processes find it by its name


@pytest.mark.parametrize(
    ("file", "expected"),
    [
        ("nowhere/mine.py", "there is no such Python file"),
        ("./folder", "there is no such Python file"),
        ("folder/json.py", "another module is called json already"),
    ],
)
def test_a_file_that_cannot_be_imported_is_one_line_and_exit_2(tmp_path, monkeypatch, file, expected):
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "json.py").write_text("")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [place for place in sys.path if place != ""])
    result = CliRunner().invoke(cli, ["echo", "--import", file])
    assert (result.exit_code, len(result.stderr.splitlines())) == (2, 1)
    assert f"--import {file}: " in result.stderr
    assert expected in result.stderr


@pytest.mark.parametrize(
    ("content", "name", "expected"),
    [
        (None, "my_absent_module", "there is no such module"),
        (None, "my_absent_module.inner", "there is no such module"),
        ("import my_absent_dependency", "my_needy_module", "imports 'my_absent_dependency', which is not installed"),
        ("1 / 0", "my_faulty_module", "failed with ZeroDivisionError: division by zero"),
        ("def (", "my_broken_module", "failed with SyntaxError"),
    ],
)
def test_a_module_that_cannot_be_imported_is_one_line_and_exit_2(tmp_path, monkeypatch, content, name, expected):
    if content is not None:
        (tmp_path / f"{name}.py").write_text(content)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    result = CliRunner().invoke(cli, ["echo", "--import", name])
    assert (result.exit_code, len(result.stderr.splitlines())) == (2, 1)
    assert f"--import {name}: " in result.stderr
    assert expected in result.stderr


@pytest.mark.parametrize("command", ["generate", "inspect", "eval", "neighbors", "chat", "fill", "predict", "convert"])
@pytest.mark.parametrize("spelling", [["--model", "no-such-model"], ["--model=no-such-model"]])
def test_a_model_may_be_named_by_an_option_too(command, spelling):
    more = {
        "fill": ["x"],
        "predict": ["x"],
        "neighbors": ["x"],
        "generate": ["-p", "x"],
        "convert": ["--to", "hf", "-o", "x"],
    }
    result = CliRunner().invoke(cli, [command, *more.get(command, []), *spelling])
    assert result.exit_code == 3, result.output
    assert "no-such-model" in result.stderr


# a script, ids and a text: nothing of their own
SPEAK_NO_LANGUAGE = {"completion", "encode", "decode"}


def commands(group=cli, ctx=None):
    """Every command there is, by name, those within groups too."""
    ctx = click.Context(group)
    for name in group.list_commands(ctx):
        command = group.get_command(ctx, name)
        yield from commands(command) if isinstance(command, click.Group) else [(name, command)]


@pytest.mark.parametrize(
    ("name", "command"), list(commands()), ids=lambda value: value if isinstance(value, str) else ""
)
def test_every_command_that_says_or_draws_something_takes_a_language(name, command):
    """One option, the same everywhere."""
    options = {option.name: option for option in command.params}
    assert ("lang" in options) != (name in SPEAK_NO_LANGUAGE)
    if "lang" in options:
        assert options["lang"].envvar == "GNOMON_LANG"
        assert list(options["lang"].type.choices) == list(LANGUAGES)


@pytest.mark.slow
@pytest.mark.parametrize(
    "arguments",
    [
        ("order", "--layers", "1", "--position", "rope"),
        ("plan", "mini-gpt"),
        ("positions",),
        ("audit", "--laws"),
        ("settings",),
        ("inspect", "--preset", "mini-llama", "--trained", "64"),
        ("inspect", "--preset", "mini-gpt", "--ids", "1,2,3"),
        ("plot", "alibi", "--length", "8"),
    ],
)
def test_what_programs_read_does_not_hang_on_the_language_of_a_terminal(arguments, tmp_path, monkeypatch):
    """Nor on --lang, but for the words of a picture and the sentence of an experiment that it chooses."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GNOMON_LANG")
    shown = {}
    for lang in ("en_US.UTF-8", "es_CL.UTF-8", "pt_BR.UTF-8"):
        monkeypatch.setenv("LC_ALL", lang)
        found = CliRunner().invoke(cli, [*arguments, "--json"])
        assert found.exit_code == 0, found.output
        shown[lang] = found.stdout
    assert len(set(shown.values())) == 1
    if arguments[0] not in ("order", "plot"):
        assert CliRunner().invoke(cli, [*arguments, "--json", "--lang", "es"]).stdout in shown.values()
        assert CliRunner().invoke(cli, [*arguments, "--lang", "es"]).stdout != CliRunner().invoke(cli, arguments).stdout


@pytest.mark.parametrize("lang", ["es", "pt"])
def test_a_terminal_is_spoken_to_in_its_language(monkeypatch, lang):
    monkeypatch.delenv("GNOMON_LANG")
    monkeypatch.setenv("LC_ALL", f"{lang}.UTF-8")
    assert (
        CliRunner().invoke(cli, ["plan", "mini-gpt"]).stdout
        == CliRunner().invoke(cli, ["plan", "mini-gpt", "--lang", lang]).stdout
    )
