"""`gnomon pull`: what there is, and the one that is asked for."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from gnomon.checkpoints import pull as pulling
from gnomon.checkpoints.pull import PUBLISHED
from gnomon.cli.main import cli


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GNOMON_CACHE", str(tmp_path))
    return tmp_path


def gnomon(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["pull", *arguments])


def put(cache: Path) -> Path:
    """A model that looks pulled."""
    published = PUBLISHED["smollm2-135m-instruct"]
    path = cache / "models" / f"smollm2-135m-instruct-{published.sha256[:12]}" / next(iter(published.files))
    path.parent.mkdir(parents=True)
    path.touch()
    return path


def test_the_list_says_size_licence_and_what_is_here(cache: Path) -> None:
    lines = gnomon().stdout.splitlines()
    assert [line.split()[:4] for line in lines] == [
        ["smollm2-135m-instruct", "93", "MB", "Apache-2.0"],
        ["all-minilm-l6-v2", "84", "MB", "Apache-2.0"],
    ]
    put(cache)
    assert gnomon().stdout.splitlines()[0].split()[1] == "here"


def test_the_list_for_programs(cache: Path) -> None:
    here = put(cache)
    models = json.loads(gnomon("--json").stdout)["models"]
    assert [(m["name"], m["path"]) for m in models] == [
        ("smollm2-135m-instruct", str(here)),
        ("all-minilm-l6-v2", None),
    ]
    assert models[0]["bytes"] == 92_871_040


def test_a_model_is_fetched_and_its_place_printed(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fetch(name: str, progress: pulling.Progress) -> Path:
        progress(10, 20)
        progress(20, 20)
        return cache / name

    monkeypatch.setattr(pulling, "pull", fetch)
    assert gnomon("all-minilm-l6-v2", "-q").stdout == f"{cache / 'all-minilm-l6-v2'}\n"
    payload = json.loads(gnomon("all-minilm-l6-v2", "--json").stdout)
    assert (payload["name"], payload["path"]) == ("all-minilm-l6-v2", str(cache / "all-minilm-l6-v2"))


def test_an_unknown_name_is_a_usage_error(cache: Path) -> None:
    result = gnomon("all-minilm")
    assert result.exit_code == 2
    assert "did you mean 'all-minilm-l6-v2'" in result.stderr
