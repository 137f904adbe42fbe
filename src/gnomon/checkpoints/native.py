"""Run folders: a model as files that any program can read, replaced so that a crash never costs the last good one.

    RUN/config.json         the model's config, the dtype of its weights, the version of this format; where it has
                            them, names of classes ("labels"), ids that end a text ("ends"), those before it and
                            at its beginning ("start", "first")
    RUN/model.safetensors   the weights by name, each once: a tied head has none of its own
    RUN/tokenizer.json      in the format of the tokenizers library; absent for a model of bare ids

Nothing is ever unpickled, here or anywhere in Gnomon: a pickle file runs code when it is opened, JSON and safetensors
only hold data.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar, overload

import safetensors
import torch
from safetensors.torch import save as to_bytes
from torch import Tensor, nn

from gnomon.checkpoints.staging import WEIGHTS, draft, has_interrupted_save
from gnomon.checkpoints.weights import Weights, assign_weights, check_layer_count, mismatch_error
from gnomon.data import Tokenizer
from gnomon.data.lock import check_name
from gnomon.device import DTYPES, resolve_device, resolve_dtype
from gnomon.errors import BadInput, BadValue, check_arguments, unknown
from gnomon.models import Model, ModelConfig
from gnomon.models.meta import build_on_meta
from gnomon.models.snapshot import snapshot
from gnomon.models.weight_names import plain_name
from gnomon.positions import names

FORMAT = 1  # goes up when an older Gnomon could not read the folder
CONFIG, TOKENIZER = "config.json", "tokenizer.json"
PICKLED = (".pt", ".pth", ".bin", ".ckpt", ".pkl", ".pickle")
M = TypeVar("M", bound=Model)


# ------------------------------------------------------------------ saving


@check_arguments
def save_model(model: nn.Module, folder: str | Path, tokenizer: Tokenizer | None = None) -> Path:
    """Write a model, and the tokenizer given or else its own, into a run folder; returns the folder.

    The model may be compiled or wrapped for parallel training. What the folder held before stays whole until all of the
    new is on the disk. Raises BadInput where it cannot be written, for example on a full disk, and BadValue for a model
    that would not come back from the files: some part of it was replaced by what its config does not say.
    """
    with draft(folder) as new:
        write_model(model, new, tokenizer)
    return Path(folder)


def write_model(model: nn.Module, new: Path, tokenizer: Tokenizer | None = None, step: int | None = None) -> None:
    """Write the files of a model into a draft; the training step it is from goes into the header of the weights."""
    inner = unwrap(model)
    tokenizer = inner.tokenizer if tokenizer is None else tokenizer
    whole = snapshot(inner, tokenizer)
    about = {
        "format": FORMAT,
        "dtype": _common_dtype(whole.weights),
        "tokenizer": None if tokenizer is None else TOKENIZER,
        "model": whole.config.to_dict(),
    }
    if inner.labels is not None:
        about["labels"] = list(inner.labels)
    if inner.prompts:
        about["prompts"] = dict(inner.prompts)
    if inner.ends:
        about["ends"] = list(inner.ends)
    if inner.start is not None:
        about["start"] = inner.start
    if inner.first is not None:
        about["first"] = inner.first
    write_json(new / CONFIG, about)
    if tokenizer is not None:
        tokenizer.save(new)
    write_tensors(new / WEIGHTS, whole.weights, {} if step is None else {"step": str(step)})


def write_json(path: Path, data: Mapping[str, Any]) -> None:
    """Write JSON for people too: indented, in the order given."""
    path.write_text(json.dumps(data, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def write_tensors(path: Path, tensors: Mapping[str, Tensor], metadata: dict[str, str] | None = None) -> None:
    """Write named tensors as safetensors. It writes several keys of metadata in any order: with one, equal tensors are
    equal bytes."""
    whole = {name: tensor.detach().to("cpu").contiguous() for name, tensor in tensors.items()}
    path.write_bytes(to_bytes(whole, metadata))


def unwrap(model: nn.Module) -> Model:
    """The model inside what torch.compile or a parallel wrapper returned."""
    for part in model.modules():
        if isinstance(part, Model):
            return part
    raise BadValue(f"a run folder holds a gnomon model, got {type(model).__name__}")


def _common_dtype(weights: Mapping[str, Tensor]) -> str:
    found = sorted({str(tensor.dtype).removeprefix("torch.") for tensor in weights.values()})
    if len(found) != 1 or found[0] not in DTYPES:
        raise BadValue(
            f"the weights are {' and '.join(found)}, but a run folder holds one dtype of {', '.join(DTYPES)}: "
            "cast the model first, for example model.float()"
        )
    return found[0]


# ------------------------------------------------------------------ loading


@overload
def load(folder: str | Path, device: torch.device | str = "cpu", dtype: torch.dtype | str | None = None) -> Model: ...


@overload
def load(
    folder: str | Path, device: torch.device | str = "cpu", dtype: torch.dtype | str | None = None, *, kind: type[M]
) -> M: ...


def load(
    folder: str | Path,
    device: torch.device | str = "cpu",
    dtype: torch.dtype | str | None = None,
    *,
    kind: type[Model] = Model,
) -> Model:
    """The model of a run folder, ready to use (in eval mode), with its tokenizer as `.tokenizer` and its classes as
    `.labels`.

    dtype   None keeps the one it was saved in; device, dtype: objects of torch or names, "auto" too
    kind    the architecture that is needed; another one in the folder is a BadInput

    Every weight is checked by name, shape and dtype. Raises BadInput, saying what is missing, broken or does not fit.
    """
    folder = run_folder(Path(folder))
    about = read_config(folder)
    stored = DTYPES[about["dtype"]]
    weights = Weights([_present_files(folder / WEIGHTS)])
    model = _build(about["model"], weights, folder / CONFIG)
    check_architecture(model, kind, folder)
    named = _names_in_file(model.to(stored), weights, folder / WEIGHTS)
    place = resolve_device(device) if isinstance(device, str) else device
    wanted = resolve_dtype(dtype, place) if isinstance(dtype, str) else dtype or stored
    assign_weights(model, {name: weights.tensor(found, wanted) for name, found in named.items()}, place)
    model.tokenizer = None if about["tokenizer"] is None else _tokenizer(folder / TOKENIZER, model.config.vocab_size)
    model.labels, model.prompts = _labels(about, folder / CONFIG), _prompts(about, folder / CONFIG)
    model.ends, model.start, model.first = _marks(about, model.config.vocab_size, folder / CONFIG)
    return model


def check_architecture(model: Model, kind: type[Model], folder: Path) -> None:
    """Raise BadInput unless a loaded model is of the architecture that is needed."""
    if not isinstance(model, kind):
        raise BadInput(
            f"{folder} holds a model that is {model.architecture}; this needs one that is {kind.architecture}"
        )


def run_folder(path: Path) -> Path:
    """The folder itself; BadInput for everything else that people try to load."""
    check_name(path)
    if path.suffix in PICKLED:
        raise _pickle_error(path)
    if path.is_file():
        raise BadInput(f"{path} is a file: give the run folder, which holds {CONFIG}, {WEIGHTS} and {TOKENIZER}")
    if not path.is_dir():
        raise BadInput(
            f"there is no run folder {path}: gnomon train --output {path} makes one. A Hugging Face or GGUF model is "
            "named by its path, one on the hub by OWNER/MODEL; gnomon pull lists real models"
        )
    pickles = sorted(p.name for p in path.iterdir() if p.suffix in PICKLED)
    if pickles and not any(path.glob("*.safetensors")):
        raise _pickle_error(path / pickles[0])
    return path


def _pickle_error(path: Path) -> BadInput:
    return BadInput(
        f"{path} is a pickle file, which can run any code when it is opened, so Gnomon never does. If you trust it: "
        f"safetensors.torch.save_file(torch.load({str(path)!r}, weights_only=True), {WEIGHTS!r})"
    )


def _present_files(path: Path) -> Path:
    if not path.is_file():
        if path.name == WEIGHTS and has_interrupted_save(path.parent):
            raise BadInput(f"{path.parent} holds no model yet: its first save is not done, or was cut short")
        raise BadInput(f"{path.parent} is no whole run folder: {path.name} is missing")
    return path


def read_json(path: Path) -> dict[str, Any]:
    """The object in a JSON file; BadInput where it is missing, cut off or something else."""
    try:
        data = json.loads(_present_files(path).read_bytes())
    except OSError as error:
        raise BadInput(f"cannot read {path}: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise BadInput(f"{path} is cut off or no JSON: {error}") from error
    if not isinstance(data, dict):
        raise BadInput(f"{path} holds a JSON {type(data).__name__}, not an object")
    return data


def read_config(folder: Path) -> dict[str, Any]:
    """config.json with all its keys, known to be of a format this version reads."""
    file = folder / CONFIG
    about = read_json(file)
    needed = ("format", "dtype", "tokenizer", "model")
    if missing := [key for key in needed if key not in about]:
        raise BadInput(f"{file} was not written by Gnomon: it has no {', '.join(map(repr, missing))}")
    if about["format"] != FORMAT:
        raise BadInput(f"{file} has format {about['format']}, this Gnomon reads format {FORMAT}: install a newer one")
    if not isinstance(about["dtype"], str) or about["dtype"] not in DTYPES or not isinstance(about["model"], dict):
        raise BadInput(f"{file}: dtype must be one of {', '.join(DTYPES)} and model an object")
    return about


def _build(config: Mapping[str, Any], weights: Weights, file: Path) -> Model:
    """A model of this config without memory, whatever sizes the config asks for."""
    position = config.get("position", "rope")
    for choice in position if isinstance(position, list) else [position]:
        name = str(choice.get("name") if isinstance(choice, dict) else choice)
        if name not in names():
            raise BadInput(
                f"{file}: {unknown('position encoding', name, names())}. If it is your own, import the module that "
                "defines it first: --import MODULE on the command line"
            )
    try:
        whole = ModelConfig.from_dict(config)
        check_layer_count(whole, len(weights.found), file.parent)
        return build_on_meta(whole)
    except (ValueError, TypeError, RuntimeError) as error:  # a value that no model can have
        raise BadInput(f"{file}: {error}") from error


def _labels(about: Mapping[str, Any], file: Path) -> tuple[str, ...] | None:
    labels = about.get("labels")
    if labels is None:
        return None
    if not isinstance(labels, list) or not all(isinstance(label, str) for label in labels):
        raise BadInput(f"{file}: labels must be a list of texts, the names of the classes")
    return tuple(labels)


def _prompts(about: Mapping[str, Any], file: Path) -> dict[str, str]:
    prompts = about.get("prompts", {})
    if not isinstance(prompts, dict) or not all(isinstance(text, str) for text in prompts.values()):
        raise BadInput(f"{file}: prompts must be texts by name")
    return prompts


def _marks(about: Mapping[str, Any], vocab_size: int, file: Path) -> tuple[tuple[int, ...], int | None, int | None]:
    """The ids that end a text, the one before it, and its first."""
    ends, start, first = about.get("ends", []), about.get("start"), about.get("first")
    given = [*ends, *(i for i in (start, first) if i is not None)] if isinstance(ends, list) else [None]
    if not all(type(i) is int and 0 <= i < vocab_size for i in given):
        raise BadInput(f"{file}: ends must be a list of token ids below {vocab_size}, start and first such ids")
    return tuple(ends), start, first


def _tokenizer(file: Path, vocab_size: int) -> Tokenizer:
    return check_vocabulary(Tokenizer.load(_present_files(file)), vocab_size, file)


def check_vocabulary(tokenizer: Tokenizer, vocab_size: int, file: Path) -> Tokenizer:
    """The tokenizer; BadInput if it has ids that the model has no row for."""
    if tokenizer.vocab_size > vocab_size:
        raise BadInput(
            f"{file} has {tokenizer.vocab_size} tokens, but the model of {CONFIG} knows {vocab_size}: "
            "it belongs to another model"
        )
    return tokenizer


def read_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    """The tensors of a safetensors file, mapped into memory, and the metadata of its header."""
    try:
        with safetensors.safe_open(_present_files(path), framework="pt") as file:
            return {name: file.get_tensor(name) for name in file.keys()}, file.metadata() or {}  # noqa: SIM118
    except (safetensors.SafetensorError, OSError) as error:
        raise BadInput(f"{path} is cut off or no safetensors file: {error}. Restore it from a copy") from error


def fill(model: nn.Module, tensors: Mapping[str, Tensor], source: Path) -> None:
    """Copy tensors into the model's weights, in place, so that ties and optimizers keep what they hold.

    Raises BadInput, and changes nothing, unless names, shapes and dtypes all fit; it lists those that do not.
    """
    own = snapshot(unwrap(model)).weights
    kinds = {name: _kind(tuple(tensor.shape), tensor.dtype) for name, tensor in tensors.items()}
    named = _match_names(own, kinds, source)
    with torch.no_grad():
        for name, tensor in own.items():
            tensor.copy_(tensors[named[name]])


def _names_in_file(model: nn.Module, weights: Weights, source: Path) -> dict[str, str]:
    """Our names -> those in the file. Only headers are read."""
    kinds = {name: _kind(stored.shape, weights.dtype(name)) for name, stored in weights.found.items()}
    return _match_names(model.state_dict(), kinds, source)


def _match_names(own: Mapping[str, Tensor], kinds: Mapping[str, str], source: Path) -> dict[str, str]:
    """The name in a file of each of our weights; BadInput, which lists what does not fit, unless all fit."""
    found = {plain_name(name): name for name in kinds}
    if len(found) < len(kinds):
        raise BadInput(f"{source} holds a weight twice, under its own name and under that of a wrapper")
    want = {name: _kind(tuple(tensor.shape), tensor.dtype) for name, tensor in own.items()}
    missing, unused = [*(want.keys() - found.keys())], [*(found.keys() - want.keys())]
    different = [
        f"{name} is {kinds[found[name]]}, expected {want[name]}"
        for name in want.keys() & found.keys()
        if kinds[found[name]] != want[name]
    ]
    if missing or unused or different:
        raise mismatch_error(source, f"the model of {CONFIG}", missing=missing, unused=unused, different=different)
    return found


def _kind(shape: tuple[int, ...], dtype: torch.dtype) -> str:
    return f"{shape} {str(dtype).removeprefix('torch.')}"


__all__ = [
    "CONFIG",
    "PICKLED",
    "TOKENIZER",
    "WEIGHTS",
    "check_architecture",
    "check_vocabulary",
    "draft",
    "fill",
    "load",
    "plain_name",
    "read_config",
    "read_json",
    "read_tensors",
    "run_folder",
    "save_model",
    "unwrap",
    "write_json",
    "write_model",
    "write_tensors",
]
