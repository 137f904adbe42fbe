"""The same model in the files of another program: a run folder, a Hugging Face folder, a GGUF file."""

from copy import deepcopy
from pathlib import Path
from typing import Any, Literal, get_args

from torch import nn

from gnomon.checkpoints.hf import save_hf
from gnomon.checkpoints.loading import load
from gnomon.checkpoints.native import save_model
from gnomon.checkpoints.staging import check_free
from gnomon.device import resolve_dtype
from gnomon.errors import BadValue, check_arguments, unknown

Kind = Literal["hf", "native", "gguf"]
Precision = Literal["float32", "float16", "bfloat16", "q8_0"]


@check_arguments
def convert(
    model: nn.Module | str | Path,
    output: str | Path,
    to: Kind,
    dtype: Precision | None = None,
    family: str | None = None,
) -> Path:
    """Write a model, or what `load` knows by this name, with its tokenizer in the files of another program.

    output   a folder, or a .gguf file, that is not there yet; nothing is written over
    to       "hf": a Hugging Face folder, "native": a run folder, "gguf": what llama.cpp runs
    dtype    of the weights, default as they are ("gguf": float32); "q8_0" is for "gguf" alone
    family   "hf": the model_type to write, default the first that can hold the model

    Returns the path. Raises BadValue where the files cannot say all that the model is; the message tells what would
    get lost, and nothing is written.
    """
    check_conversion(output, to, dtype, family)
    whole = model if isinstance(model, nn.Module) else load(model, dtype=None if to == "gguf" else dtype)
    if to == "gguf":
        from gnomon.checkpoints import gguf  # its package is asked for only where it is needed

        precision: Any = dtype or "float32"
        return gguf.save(whole, output, precision)
    if dtype is not None and next(whole.parameters()).dtype != resolve_dtype(dtype):
        whole = deepcopy(whole).to(resolve_dtype(dtype))
    return save_model(whole, output) if to == "native" else save_hf(whole, output, family)


def check_conversion(output: str | Path, to: str, dtype: str | None, family: str | None) -> None:
    """Raise BadValue for what cannot be asked for, before a model is loaded."""
    if to not in get_args(Kind):
        raise unknown("kind of files", to, get_args(Kind))
    if dtype is not None and dtype not in get_args(Precision):
        raise unknown("dtype", dtype, get_args(Precision))
    if family is not None and to != "hf":
        raise BadValue(f"a family is a kind of Hugging Face folder, and the files shall be {to}: leave it out, or hf")
    if dtype == "q8_0" and to != "gguf":
        raise BadValue("q8_0 is a precision of GGUF files: convert to gguf, or take float32, float16 or bfloat16")
    check_free(output)


__all__ = ["Kind", "Precision", "check_conversion", "convert"]
