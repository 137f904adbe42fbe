"""What a page may ask: functions by name, each from a model and plain values to plain values and tensors.

    @question
    def norms(model: Model, text: str, layer: int = 0) -> Answer: ...

`POST /api/norms {"model": "...", "text": "..."}` calls it. Values are checked against the annotations, and what is
wrong comes back as the message of a BadValue. A tensor becomes {"shape", "dtype", "data"}: its numbers in base64, as
float32, or as float16 where there are many.
"""

import base64
import inspect
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import torch

from gnomon.errors import BadValue, check_arguments, unknown
from gnomon.explorer.shelf import Shelf
from gnomon.models import Model

Answer = dict[str, Any]
F = TypeVar("F", bound=Callable[..., Answer])
QUESTIONS: dict[str, Callable[..., Answer]] = {}
MANY = 2**16  #: numbers of a tensor from which they are sent as float16
LONGEST = 8192  #: letters of a text
TOKENS = 1024  #: of a text that is traced


def question(function: F) -> F:
    """Let pages ask this function by its name."""
    QUESTIONS[function.__name__] = check_arguments(function)
    return function


def answered(shelf: Shelf, name: str, values: Mapping[str, Any]) -> Answer:
    """The answer to one question, as plain data. Raises BadValue for a question or a value that there is not."""
    if name not in QUESTIONS:
        raise unknown("question", name, QUESTIONS)
    function, given = QUESTIONS[name], dict(values)
    takes = inspect.signature(function).parameters
    for key in given:
        if key not in takes:
            raise unknown(f"value of the question {name}", key, takes)
    for key, value in given.items():
        if isinstance(value, str) and len(value) > LONGEST:
            raise BadValue(f"{key} has {len(value)} letters, and the explorer reads {LONGEST} at most: give fewer")
    if missing := [key for key, each in takes.items() if each.default is each.empty and key not in given]:
        raise BadValue(f"the question {name} needs {', '.join(missing)}")
    with shelf.lock, torch.inference_mode():
        if "model" in takes:
            given["model"] = shelf.get(str(given["model"]))
        return plain(function(**given))


def check_length(model: Model, ids: list[int]) -> None:
    """Raise BadValue for more tokens than are traced here."""
    if len(ids) > TOKENS:
        raise BadValue(f"the text has {len(ids)} tokens, and the explorer traces {TOKENS} at most: give a shorter one")


def plain(value: Any) -> Any:
    """Tensors within a value as shape, dtype and base64."""
    if isinstance(value, torch.Tensor):
        return packed(value)
    if isinstance(value, Mapping):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    return value


def packed(x: torch.Tensor) -> Answer:
    """One tensor for a page to read."""
    x = x.detach().cpu()
    x = x.to(torch.int32) if not x.is_floating_point() else x.to(torch.float16 if x.numel() > MANY else torch.float32)
    data = base64.b64encode(x.contiguous().numpy().tobytes()).decode("ascii")
    return {"shape": list(x.shape), "dtype": str(x.dtype).removeprefix("torch."), "data": data}


__all__ = ["LONGEST", "QUESTIONS", "TOKENS", "Answer", "answered", "check_length", "packed", "plain", "question"]
