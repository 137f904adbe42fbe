"""The one entrance: a model by whatever it is called.

a run folder                      what gnomon train writes
a Hugging Face folder             config.json and safetensors, one file or shards
a .gguf file                      what llama.cpp runs
the name of a pulled model        see gnomon pull
a name on the hub, OWNER/MODEL    fetched by huggingface_hub into its cache (HF_HOME), or found there (HF_HUB_OFFLINE)
"""

import re
from pathlib import Path
from typing import TypeVar, overload

import torch

from gnomon.checkpoints import native
from gnomon.checkpoints.native import CONFIG, PICKLED, check_architecture, read_json, run_folder
from gnomon.data.published import TOKENIZER_FILES
from gnomon.device import resolve_device, resolve_dtype
from gnomon.errors import BadInput, BadValue, check_arguments
from gnomon.models import Model
from gnomon.native import Kind as Stored
from gnomon.stored import store

M = TypeVar("M", bound=Model)
#: what is fetched of a hub's folder: no pickles, no weights of other frameworks
_FETCHED = (
    "config.json",
    "generation_config.json",
    "model*.safetensors",
    "model.safetensors.index.json",
    "1_Pooling/config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    *dict.fromkeys(file for files in TOKENIZER_FILES for file in files),
    "chat_template.jinja",
)
_PULLED_NAME = re.compile(r"[\w-][\w.-]*")
_HUB_NAME = re.compile(r"[\w-][\w.-]*/[\w-][\w.-]*")


@overload
def load(
    what: str | Path,
    device: torch.device | str = "cpu",
    dtype: torch.dtype | str | None = None,
    *,
    weights: Stored | None = None,
) -> Model: ...


@overload
def load(
    what: str | Path,
    device: torch.device | str = "cpu",
    dtype: torch.dtype | str | None = None,
    *,
    kind: type[M],
    weights: Stored | None = None,
) -> M: ...


@check_arguments
def load(
    what: str | Path,
    device: torch.device | str = "cpu",
    dtype: torch.dtype | str | None = None,
    *,
    kind: type[Model] = Model,
    weights: Stored | None = None,
) -> Model:
    """A model, ready to use (in eval mode), with its tokenizer as `.tokenizer` if it has one.

    what    a run folder, a Hugging Face folder, a .gguf file, the name of a pulled model, or a hub name OWNER/MODEL
    dtype   None keeps the one it is stored in (float32 for a quantised one); device, dtype: objects of torch or names,
            "auto" too
    kind    the architecture that is needed; another one is a BadInput
    weights     how matrices are kept for running: "float32", or in fewer bits "float16", "bfloat16", "int8", "int4"
                (see gnomon.stored). Arithmetic is float32; it writes faster, and can be neither trained nor saved

    Every weight and every setting is accounted for. Raises BadInput, saying what is missing, unknown or does not fit.
    Nothing is ever unpickled.
    """
    path = find(what)
    place = resolve_device(device) if isinstance(device, str) else device
    wanted = resolve_dtype(dtype, place) if isinstance(dtype, str) else dtype
    if weights is not None and wanted not in (None, torch.float32):
        raise BadValue(f"weights={weights!r} are multiplied in float32: leave dtype out, got {dtype}")
    model = _load(path, place, torch.float32 if weights == "float32" else wanted)
    check_architecture(model, kind, path)
    if weights is not None:
        store(model, weights)
        model.float()
    return model


def _load(path: Path, device: torch.device, dtype: torch.dtype | None) -> Model:
    if path.suffix == ".gguf":
        from gnomon.checkpoints import gguf

        return gguf.load(path, device, dtype or torch.float32)
    if (run_folder(path) / CONFIG).is_file() and "model_type" in read_json(path / CONFIG):
        from gnomon.checkpoints import hf

        return hf.load(path, device, dtype)
    return native.load(path, device, dtype)


def find(what: str | Path) -> Path:
    """The folder or file of a model, fetched first if it has to be."""
    path, name = Path(what).expanduser(), str(what)
    if path.exists() or path.suffix in (*PICKLED, ".gguf"):
        return path
    if _PULLED_NAME.fullmatch(name):
        from gnomon.checkpoints import pull

        if name in pull.PUBLISHED and pull.find(name) is None:
            raise BadInput(f"{name} was not fetched yet: gnomon pull {name} does")
        return pull.find(name) or path
    looks_local = path.is_absolute() or (path.parent != Path(".") and path.parent.exists())
    if _HUB_NAME.fullmatch(name) and not looks_local:
        return _fetch(name)
    return path


def _fetch(name: str) -> Path:
    """A hub's folder, in the hub library's own cache."""
    try:
        import huggingface_hub
    except ImportError as error:
        raise BadInput(f"there is no folder {name}; as a hub name it needs: pip install huggingface_hub") from error
    try:
        return Path(huggingface_hub.snapshot_download(name, allow_patterns=list(_FETCHED)))
    except Exception as error:  # of whatever library it reaches the network with
        reason = str(error).strip().split("\n")[0]
        raise BadInput(
            f"there is no folder {name}, and as a hub name it cannot be had: {type(error).__name__}: {reason}. "
            "Without a network only what the cache (HF_HOME) holds can be loaded; gnomon pull brings models another way"
        ) from error


__all__ = ["find", "load"]
