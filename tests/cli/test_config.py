"""Settings: defaults < file < --set < flags, typed, and never one left out in silence."""

import json
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gnomon.cli.config import load_config, plain_settings, resolve_config
from gnomon.errors import BadValue


@dataclass(frozen=True)
class Optim:
    lr: float = 1e-3
    betas: tuple[float, float] = (0.9, 0.95)
    schedule: Literal["cosine", "constant"] = "cosine"


@dataclass(frozen=True)
class Run:
    steps: int = 100
    name: str = "run"
    tied: bool = True
    window: int | None = None
    layers: int | str = 2
    lengths: tuple[int, ...] = (64,)
    out: Path = Path("runs")
    options: dict[str, Any] = field(default_factory=dict)
    optim: Optim = field(default_factory=Optim)

    def __post_init__(self) -> None:
        if self.steps < 1:
            raise BadValue(f"steps must be at least 1, given {self.steps}")


@dataclass(frozen=True)
class NeedsText:
    text: str
    inner: Optim | None = None


@pytest.fixture
def file(tmp_path):
    def write(text: str) -> Path:
        path = tmp_path / "run.toml"
        path.write_text(text, encoding="utf-8")
        return path

    return write


def test_nothing_given_is_the_defaults():
    assert load_config(Run) == Run()


def test_flags_win_over_sets_over_the_file_over_defaults(file):
    path = file("steps = 1\nname = 'file'\ntied = false\n[optim]\nlr = 1.0\nschedule = 'constant'")
    resolved = resolve_config(Run, path, ["steps=2", "name=set", "optim.lr=2"], {"steps": 3})
    assert resolved.config == Run(steps=3, name="set", tied=False, optim=Optim(lr=2.0, schedule="constant"))
    assert resolved.origins == {
        "steps": "flag steps",
        "name": "--set name=set",
        "tied": str(path),
        "optim.lr": "--set optim.lr=2",
        "optim.schedule": str(path),
    }


def test_the_last_of_two_sets_wins():
    assert load_config(Run, sets=["steps=1", "steps=2"]).steps == 2


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("steps=1e4", Run(steps=10_000)),
        ("name=12", Run(name="12")),
        ("name=a=b", Run(name="a=b")),
        ("name=", Run(name="")),
        ("tied=false", Run(tied=False)),
        ("window=16", Run(window=16)),
        ("window=none", Run()),
        ("layers=4", Run(layers=4)),
        ("layers=all", Run(layers="all")),
        ("lengths=[64, 128]", Run(lengths=(64, 128))),
        ("out=a/b", Run(out=Path("a/b"))),
        ("options.base=5e5", Run(options={"base": 5e5})),
        ("optim.betas=[0.5, 1]", Run(optim=Optim(betas=(0.5, 1.0)))),
        ("optim={lr = 3, schedule = 'constant'}", Run(optim=Optim(lr=3.0, schedule="constant"))),
    ],
)
def test_a_set_is_read_in_its_fields_type(text, expected):
    config = load_config(Run, sets=[text])
    assert config == expected
    assert repr(config) == repr(expected)  # 1 and 1.0 are equal, and are not the same type


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("steps=fast", "steps: expected a whole number, given 'fast'"),
        ("steps=1.5", "steps: expected a whole number, given '1.5'"),
        ("steps=true", "steps: expected a whole number, given 'true'"),
        ("optim.lr=true", "optim.lr: expected a number, given 'true'"),
        ("tied=1", "tied: expected true or false, given '1'"),
        ("window=wide", "window: expected a whole number or none, given 'wide'"),
        ("optim.schedule=cosin", "optim.schedule: expected 'cosine' or 'constant', given 'cosin'"),
        ("optim.betas=[0.5]", "optim.betas: expected"),
        ("lengths=64", "lengths: expected"),
        ("lengths=[1.5]", "lengths[0]: expected a whole number, given 1.5"),
        ("optim=fast", "optim is a group of settings (lr, betas, schedule), given 'fast'"),
        ("steps", "expected KEY=VALUE"),
        ("=3", "expected KEY=VALUE"),
    ],
)
def test_a_wrong_value_says_where_it_stands_and_what_was_expected(text, expected):
    with pytest.raises(BadValue) as caught:
        load_config(Run, sets=[text])
    assert str(caught.value).startswith(f"--set {text}: ")
    assert expected in str(caught.value)


MANY = "9" * 5000


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"steps={MANY}", "steps: expected a whole number"),
        (f"steps=0x{MANY}", "steps: expected a whole number"),
        (f"optim.lr=0x{MANY}", "optim.lr: expected a number"),
        (f"lengths=[0x{MANY}]", "lengths: expected"),
        ("steps=1\nother=2", "steps: expected a whole number"),
        ("a." * 5000 + "a=1", "expected KEY=VALUE"),
        ("steps..x=1", "expected KEY=VALUE"),
        ("lengths=" + "[" * 5000, "lengths: expected"),
    ],
)
def test_a_value_of_thousands_of_letters_is_refused_in_a_few(text, expected):
    with pytest.raises(BadValue) as caught:
        load_config(Run, sets=[text])
    assert expected in str(caught.value)
    assert len(str(caught.value)) < 600


@pytest.mark.parametrize("text", [f"steps = {MANY}", f"steps = 0x{MANY}", f"[options]\nx = [{{y = 0x{MANY}}}]", "\0"])
def test_a_file_with_a_number_that_toml_does_not_have_is_not_toml(file, text):
    with pytest.raises(BadValue, match=r"run\.toml is not TOML"):
        load_config(Run, file(text))


TOML = st.recursive(
    st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(max_size=5) | st.dates() | st.datetimes(),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text("abc", min_size=1, max_size=3), inner)
    ),
    max_leaves=5,
)
SETTINGS = [*(field.name for field in fields(Run)), "optim.lr", "optim.betas", "optim.schedule"]


def toml(value: object) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {toml(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(toml, value)) + "]"
    if isinstance(value, str):
        return json.dumps(value).replace("\\ud", "d")
    return value.isoformat() if hasattr(value, "isoformat") else str(value).lower()


@given(key=st.sampled_from(SETTINGS), value=TOML)
@settings(max_examples=150, deadline=None)
def test_whatever_stands_in_a_file_or_a_set_it_is_read_or_refused(tmp_path_factory, key, value):
    path = tmp_path_factory.getbasetemp() / "any.toml"
    path.write_text(f"{key} = {toml(value)}", encoding="utf-8", errors="replace")
    for source in ({"file": path}, {"sets": [f"{key}={toml(value)}"]}, {"sets": [f"{key}={value}"]}):
        with suppress(BadValue):
            load_config(Run, **source)


def test_a_key_that_the_command_gives_itself_is_refused():
    assert plain_settings(sets=["base=3"], taken=["name"]) == {"base": 3}
    with pytest.raises(BadValue, match="name is no setting here"):
        plain_settings(sets=["name=x"], taken=["name"])


def test_an_unknown_key_names_the_nearest_and_the_file(file):
    path = file("[optim]\nlrr = 1.0")
    with pytest.raises(BadValue, match=r"'optim\.lrr'.*did you mean 'optim\.lr'") as caught:
        load_config(Run, path)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("source", [{"sets": ["stepz=1"]}, {"flags": {"stepz": 1}}])
def test_an_unknown_key_is_an_error_wherever_it_comes_from(source):
    with pytest.raises(BadValue, match="did you mean 'steps'"):
        load_config(Run, **source)


def test_a_file_that_is_not_there_and_one_that_is_not_toml_are_named(file, tmp_path):
    with pytest.raises(BadValue, match=r"none\.toml"):
        load_config(Run, tmp_path / "none.toml")
    with pytest.raises(BadValue, match=r"run\.toml is not TOML"):
        load_config(Run, file("steps = "))


def test_a_setting_without_a_default_must_be_given():
    with pytest.raises(BadValue, match="the setting text is missing.*--set text="):
        load_config(NeedsText)
    assert load_config(NeedsText, sets=["text=hi"]) == NeedsText("hi")


def test_a_group_that_is_none_by_default_is_made_when_one_of_its_settings_is_given():
    assert load_config(NeedsText, sets=["text=hi", "inner.lr=2"]) == NeedsText("hi", Optim(lr=2.0))


def test_tables_of_free_keys_are_merged_key_by_key(file):
    config = load_config(Run, file("[options]\nbase = 1\npairing = 'half'"), ["options.base=2"])
    assert config.options == {"base": 2, "pairing": "half"}


def test_the_classes_own_checks_still_run():
    with pytest.raises(BadValue, match="steps must be at least 1"):
        load_config(Run, sets=["steps=0"])


def test_show_lists_every_setting_with_its_value_and_origin():
    lines = resolve_config(Run, sets=["optim.lr=3e-4"]).show().splitlines()
    assert len(lines) == 11
    assert [line.split("#")[1].strip() for line in lines if line.startswith("optim.lr =")] == ["--set optim.lr=3e-4"]
    assert sum(line.endswith("# default") for line in lines) == 10


words = st.text(st.characters(categories=["L", "N"]), min_size=1)


@given(steps=st.integers(1, 2**60), name=words, tied=st.booleans(), lr=st.floats(allow_nan=False, allow_infinity=False))
def test_whatever_is_written_with_set_comes_back(steps, name, tied, lr):
    sets = [f"steps={steps}", f"name={name}", f"tied={str(tied).lower()}", f"optim.lr={lr!r}"]
    expected = replace(Run(), steps=steps, name=name, tied=tied, optim=Optim(lr=lr))
    assert load_config(Run, sets=sets) == expected
