"""Sizes that an encoding can be built with: asked by its constructor, whoever calls that, and by a Spec."""

import inspect
from collections.abc import Callable, Mapping
from functools import wraps
from math import inf, isfinite, prod
from typing import Any

import torch

from gnomon.available_memory import room_for
from gnomon.errors import BadValue, wrong

LARGEST = 2**40  #: of any whole number
#: arguments that mean the same in every encoding: the least and the largest
LIMITS: Mapping[str, tuple[float, float]] = {
    "d_model": (1, 2**20),
    "d_head": (1, 2**20),
    "n_heads": (1, 2**16),
    "n_kv_heads": (1, 2**16),
    "n_layers": (0, 10_000),
    "std": (0, inf),
}
LARGE = 2**26  #: numbers from which on memory is asked for first


def check_numbers(name: str, options: Mapping[str, Any]) -> None:
    """Raise BadValue for numbers that are not finite, and whole ones that are no size or distance of anything."""
    for option, value in options.items():
        for number in value if isinstance(value, list | tuple) else (value,):
            if isinstance(number, bool) or not isinstance(number, int | float):
                continue
            if isinstance(number, int) and abs(number) > LARGEST:
                raise wrong(f"{option} of {name}", value, "a number of at most 2**40")
            if isinstance(number, float) and not isfinite(number):
                raise wrong(f"{option} of {name}", value, "a finite number")
            least, most = LIMITS.get(option, (-inf, inf))
            if number < least:
                raise BadValue(f"{name}: {option} must be at least {least}, got {value}")
            if number > most:
                raise BadValue(f"{name}: {option} must be at most {most}, got {value}")


def checked_constructor(name: str, init: Callable[..., None]) -> Callable[..., None]:
    """An encoding's `__init__` that raises BadValue for sizes that cannot be, and for more memory than there is."""
    signature = inspect.signature(init)

    @wraps(init)
    def build(self: Any, *args: Any, **options: Any) -> None:
        try:
            given = signature.bind(self, *args, **options).arguments
        except TypeError:  # as Python says it
            init(self, *args, **options)
            return
        check_numbers(name, given)
        try:
            _check_memory(name, type(self), init, given, args, options)
            init(self, *args, **options)
        except (MemoryError, RuntimeError) as error:  # what torch says of a size
            raise BadValue(f"{name} cannot be built with {_shown(given)}: {error or 'too little memory'}") from error

    return build


def _check_memory(
    name: str, cls: Any, init: Callable[..., None], given: Mapping[str, Any], args: Any, options: Any
) -> None:
    """Raise BadValue before memory is filled that is not there: the system may grant it, and kill the process."""
    sizes = [x for x in given.values() if isinstance(x, int) and x > 0]
    if prod(sizes) < LARGE or torch.empty(0).is_meta:
        return
    with torch.device("meta"):
        twin = cls.__new__(cls)
        init(twin, *args, **options)
    n_bytes = sum(p.numel() * p.element_size() for p in twin.parameters())
    room_for(n_bytes, f"{name} with {_shown(given)}", "choose smaller sizes")


def _shown(given: Mapping[str, Any]) -> str:
    return ", ".join(f"{key}={value!r}" for key, value in given.items() if key != "self")


__all__ = ["LIMITS", "check_numbers", "checked_constructor"]
