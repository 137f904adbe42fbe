"""A kind of task is one file: it is found by its name, and a run's state brings it back."""

import json
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from gnomon.errors import BadInput, BadValue
from gnomon.tasks import Kind, find, kinds, saved_kind
from gnomon.tasks import kind as kind_module
from gnomon.train import State, TrainConfig


def state_of(kind: Kind) -> State:
    """What a run would keep, as read back from its file."""
    return State(0, TrainConfig(), "", json.loads(json.dumps(kind.to_state())))


@pytest.mark.parametrize("name", sorted(kinds()))
def test_every_kind_has_defaults_and_comes_back_from_a_runs_state(name):
    kind = find(name)()
    assert kind.name == name
    assert kind.about.endswith(".")
    back = saved_kind(state_of(kind), Path("run"))
    assert back == kind.with_absolute_paths()
    assert back.to_state() == kind.to_state()


@pytest.mark.parametrize("name", sorted(kinds()))
def test_every_kind_says_what_its_model_is(name):
    kind = find(name)
    assert kind.preset is not None or {"architecture", "d_model", "n_layers", "n_heads"} <= set(kind.default_model)
    assert kind.takes is None or kind.takes in kind.__dataclass_fields__


def test_an_unknown_kind_names_the_nearest():
    with pytest.raises(BadValue, match="unknown task 'number': did you mean 'numbers'"):
        find("number")


def test_a_kind_of_your_own_is_known_once_it_is_defined(monkeypatch):
    monkeypatch.setattr(kind_module, "_KINDS", dict(kind_module._KINDS))

    @dataclass(frozen=True)
    class Mine(Kind):
        name = "mine"
        about = "Nothing yet."
        words: tuple[str, ...] = ("a",)

        def texts(self):
            return self.words

        def task(self, tokenizer, config, quiet=True):
            raise NotImplementedError

    assert find("mine") is Mine
    assert saved_kind(state_of(Mine(("b", "c"))), Path("run")) == Mine(("b", "c"))
    assert Mine().title() == "mine"
    with pytest.raises(BadValue, match="the task mine makes its own data: leave --data out"):
        Mine().task_on((), None, TrainConfig(), True)


def test_paths_are_kept_such_that_they_are_found_from_any_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert find("text")(("a.txt", "-", "stdlib")).with_absolute_paths().sources == (
        str(tmp_path / "a.txt"),
        "-",
        "stdlib",
    )
    assert find("pairs")(("a.tsv",)).with_absolute_paths().files == (str(tmp_path / "a.tsv"),)


@pytest.mark.parametrize("origin", [{}, {"task": "text"}, {"task": "text", "text": []}])
def test_a_state_that_does_not_say_its_task_is_told_how_to_go_on(origin):
    state = replace(state_of(find("text")()), origin=origin)
    with pytest.raises(BadInput, match=r"run does not say what it was trained on.*gnomon\.train\.resume"):
        saved_kind(state, Path("run"))


def test_settings_that_do_not_fit_their_task_are_named():
    for settings, message in (({"sorces": []}, "did you mean 'sources'"), ({"sources": [None]}, "sources must be")):
        state = replace(state_of(find("text")()), origin={"task": "text", "text": settings})
        with pytest.raises(BadInput, match=f"state of the run in run is damaged: text: .*{message}"):
            saved_kind(state, Path("run"))
