"""The explorer without a server: the same page, with answers that were recorded, in a folder that opens from a disk.

A page asks the same questions whether a server answers or a recording does: an answer is kept under the question's name
and its values as JSON, and the page looks it up. What was not recorded, it says so. Panels of pure maths need none.
"""

import json
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, get_args

from gnomon.errors import BadInput, GnomonError
from gnomon.explorer.app import static
from gnomon.explorer.flow import Stage
from gnomon.explorer.questions import STORIES, answered, telling
from gnomon.explorer.shelf import Shelf
from gnomon.glossary import LANGUAGES, words
from gnomon.models import DecoderOnly, EncoderDecoder, Model
from gnomon.models.stack import Stack

RECORDING = "recording.js"
HEADS = 64  #: heads that are recorded of a model and text, at most
VECTORS = 600  #: single vectors likewise
AUDITED = 2_000_000  # parameters of a model whose audit is recorded
Asked = tuple[str, dict[str, Any]]


def export(shelf: Shelf, folder: str | Path, texts: Sequence[str] = ()) -> Path:
    """Write the page and what was recorded of each model, and return the folder. texts: to record, besides the usual.

    The folder must not exist, be empty, or hold an earlier export; it is written whole or not at all. Raises BadInput
    where it cannot be."""
    folder = Path(folder).expanduser()
    if folder.exists() and not (folder.is_dir() and (not any(folder.iterdir()) or (folder / RECORDING).is_file())):
        raise BadInput(f"{folder} holds something else than an export: give a folder that does not exist yet")
    recording = record(shelf, texts)
    folder.parent.mkdir(parents=True, exist_ok=True)
    new = Path(mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    try:
        shutil.copytree(static(), new, dirs_exist_ok=True)
        page = (new / "index.html").read_text(encoding="utf-8")
        own = f'<script defer src="./{RECORDING}"></script>\n    '
        (new / "index.html").write_text(page.replace("<script defer", f"{own}<script defer", 1), encoding="utf-8")
        data = json.dumps(recording, ensure_ascii=True, separators=(",", ":"), allow_nan=False)
        (new / RECORDING).write_text(f"globalThis.GNOMON_RECORDING={data};\n", encoding="utf-8")
        new.chmod(0o755)
        if folder.exists():
            shutil.rmtree(folder)
        new.rename(folder)
    except BaseException:
        shutil.rmtree(new, ignore_errors=True)
        raise
    return folder


def record(shelf: Shelf, texts: Sequence[str] = ()) -> dict[str, Any]:
    """The models, the texts of each panel and model, and the answers by `key`."""
    answers: dict[str, Any] = {}
    shown: dict[str, list[str]] = {}
    for name, values in [("lab", {"run": ""}), *(ask for model in shelf.names for ask in _asked(shelf, model, texts))]:
        try:
            found = list(telling(shelf, name, values)) if name in STORIES else answered(shelf, name, values)
        except GnomonError:
            continue  # a text that this model cannot read; the page says that it was not recorded
        answers[key(name, values)] = found
        panel = {"write": "generate", "beams": "generate"}.get(name, name)
        if "text" in values:
            kept = shown.setdefault(f"{panel} {values['model']}", [])
            kept += [values["text"]] if values["text"] not in kept else []
    return {"models": shelf.names, "texts": shown, "answers": answers}


def key(name: str, values: dict[str, Any]) -> str:
    """The name of an answer, as the page makes it."""
    return f"{name} {json.dumps(values, sort_keys=True, separators=(',', ':'), ensure_ascii=False)}"


def _asked(shelf: Shelf, name: str, texts: Sequence[str]) -> Iterator[Asked]:
    """What the panels ask of a model with the settings that they open with, and with others near by."""
    model, about = shelf.get(name), {"model": name}
    own = _first_text(name, model)
    for text in dict.fromkeys([own, *texts]):
        yield from _flows(model, {**about, "text": text})
    for text in dict.fromkeys([*(words("order", lang)("sentence") for lang in LANGUAGES), *texts]):
        last = len(text.split()) - 1
        for open_ in (False, True):
            yield "order", {**about, "text": text, "first": 1, "second": last, "both_sides": open_}
    if isinstance(model, DecoderOnly):
        for text in dict.fromkeys([own, *texts]):
            yield "faults", {**about, "text": text}
    if isinstance(model, DecoderOnly | EncoderDecoder):
        for text in dict.fromkeys([_first_prompt(name, model, own), *texts]):
            yield from _writings({**about, "text": text})
    word = {"tiny-numbers-es-en": "dos"}.get(name, "self" if name.startswith("tiny-") else "king")
    yield "nearby", {**about, "word": word, "minus": "", "plus": "", "top": 20}
    for lang in LANGUAGES:
        for grow in (None, "interpolate", "tile", "zero"):
            yield "position_table", {**about, "grow": grow, "lang": lang}
        if sum(p.numel() for p in model.parameters()) < AUDITED and name in ("tiny-rope", shelf.names[0]):
            yield "audit", {**about, "lang": lang}


def _flows(model: Model, about: dict[str, Any]) -> Iterator[Asked]:
    sides = ("reader", "writer") if isinstance(model, EncoderDecoder) else ("writer",)
    depth = max(part.depth for part in model.modules() if isinstance(part, Stack))
    heads = model.config.n_heads if depth * model.config.n_heads <= HEADS else 1
    for side in sides:
        for layer in range(depth):
            for head in range(heads):
                yield "flow", {**about, "target": "", "layer": layer, "head": head, "side": side}
    tokens = len(model.tokenizer.encode(about["text"])) + 1 if model.tokenizer is not None else 0
    stages = get_args(Stage) if tokens * depth * len(get_args(Stage)) <= VECTORS else ("layer",)
    for layer in range(depth):
        for stage in stages:
            for token in range(tokens):
                values = {**about, "target": "", "layer": layer, "side": "writer", "token": token, "stage": stage}
                yield "vector", values


def _writings(about: dict[str, Any]) -> Iterator[Asked]:
    how = {"max_new_tokens": 32, "seed": 0}
    yield "write", {**about, **how, "strategy": "greedy"}
    yield "beams", {**about, "width": 4, "max_new_tokens": 24, "length_penalty": 1}
    for seed in range(3):
        for temperature in (0.5, 0.8, 1.2):
            sample = {"temperature": temperature, "top_k": 0, "top_p": 0.95, "min_p": 0}
            yield "write", {**about, **how, **sample, "seed": seed, "strategy": "sample"}


def _first_text(name: str, model: Model) -> str:
    """What the page asks first of a model; see explorer/src/panels/flow/flow.ts."""
    if "numbers-es" in name:
        return "doscientos cuarenta y uno"
    return "def __init__(self, name):" if name.startswith("tiny-") else "The dog bit the man because it was hungry."


def _first_prompt(name: str, model: Model, text: str) -> str:
    if isinstance(model, EncoderDecoder):
        return text
    return "def " if name.startswith("tiny-") else "The capital of France is"


__all__ = ["RECORDING", "export", "key", "record"]
