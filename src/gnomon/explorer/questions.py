"""What a page may ask: functions by name, each from a model and plain values to plain values and tensors.

    @question
    def norms(model: Model, text: str, layer: int = 0) -> Answer: ...

`POST /api/norms {"model": "...", "text": "..."}` calls it. Values are checked against the annotations, and what is
wrong comes back as the message of a BadValue. What is `told` bit by bit is a generator of answers. A tensor becomes
{"shape", "dtype", "data"}: its numbers in base64, as float32, or as float16 where there are many.
"""

import base64
import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

import torch

from gnomon.errors import BadValue, check_arguments, unknown
from gnomon.explorer.shelf import Shelf
from gnomon.models import Model

Answer = dict[str, Any]
F = TypeVar("F", bound=Callable[..., Answer])
Told = Callable[..., Iterator[Answer]]
T = TypeVar("T", bound=Told)
QUESTIONS: dict[str, Callable[..., Answer]] = {}
STORIES: dict[str, Told] = {}
MANY = 2**16  #: numbers of a tensor from which they are sent as float16
LONGEST = 8192  #: letters of a text
TOKENS = 1024  #: of a text that is traced


def question(function: F) -> F:
    """Let pages ask this function by its name."""
    QUESTIONS[function.__name__] = check_arguments(function)
    return function


def told(function: T) -> T:
    """Let pages ask this function by its name, and hear its answers one by one."""
    STORIES[function.__name__] = check_arguments(function)
    return function


def answered(shelf: Shelf, name: str, values: Mapping[str, Any]) -> Answer:
    """The answer to one question, as plain data. Raises BadValue for a question or a value that there is not."""
    if name not in QUESTIONS:
        raise unknown("question", name, {**QUESTIONS, **STORIES})
    with shelf.lock, torch.inference_mode():
        return plain(QUESTIONS[name](**_arguments(shelf, name, QUESTIONS[name], values)))


def telling(shelf: Shelf, name: str, values: Mapping[str, Any]) -> Iterator[Answer]:
    """The answers of a question that is told bit by bit. What is wrong with it is raised here, not at the first one.

    Each step may be taken in another thread: the lock and torch's inference mode are each thread's own, and are held
    for a step at a time.
    """
    with shelf.lock, torch.inference_mode():
        steps = STORIES[name](**_arguments(shelf, name, STORIES[name], values))
        first = next(steps, None)

    def rest() -> Iterator[Answer]:
        step = first
        while step is not None:
            yield plain(step)
            with shelf.lock, torch.inference_mode():
                step = next(steps, None)

    return rest()


def _arguments(shelf: Shelf, name: str, function: Callable[..., Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """What a function is called with; BadValue for a value that it does not take, or that is missing or too long."""
    given, takes = dict(values), inspect.signature(function).parameters
    for key, value in given.items():
        if key not in takes:
            raise unknown(f"value of the question {name}", key, takes)
        if isinstance(value, str) and len(value) > LONGEST:
            raise BadValue(f"{key} has {len(value)} letters, and the explorer reads {LONGEST} at most: give fewer")
    if missing := [key for key, each in takes.items() if each.default is each.empty and key not in given]:
        raise BadValue(f"the question {name} needs {', '.join(missing)}")
    return given | ({"model": shelf.get(str(given["model"]))} if "model" in takes else {})


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


__all__ = [
    "LONGEST",
    "QUESTIONS",
    "STORIES",
    "TOKENS",
    "Answer",
    "answered",
    "check_length",
    "packed",
    "plain",
    "question",
    "telling",
    "told",
]
