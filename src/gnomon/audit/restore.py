"""A model is restored after a law: whatever the law does to it, afterwards it is as it was.

Laws change models: they draw weights anew, cast, switch to training. A deep copy is not always a model of its own (a
function that a part keeps still calls the original's parts), and some models cannot be copied at all. So laws change
the model itself, and its state is put back: weights, buffers, attributes, and what calls keep in lists, dicts, objects
and the variables of functions.
"""

import types
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from torch import nn

from gnomon.shapes import Float

MANY = 1000  #: entries of a container that is data, a vocabulary perhaps, and not looked through
PLAIN = (str, bytes, int, float, complex, bool, type(None), type, types.ModuleType, torch.dtype, torch.device)


@contextmanager
def restore_afterwards(*owners: Any) -> Iterator[None]:
    """While a `with` lasts, modules, objects and functions may change what they hold; afterwards they hold it again."""
    put_back: list[Callable[[], None]] = []
    _keep(list(owners), put_back)
    try:
        yield
    finally:
        with torch.no_grad():
            for put in put_back:
                put()


def _keep(found: list[Any], put_back: list[Callable[[], None]]) -> None:
    """Find all that hangs on these things; for each that can change, how to put back what it holds now."""
    seen: dict[int, Any] = {}  # the things themselves, so that no other one takes an address
    while found:
        thing = found.pop()
        if id(thing) in seen or isinstance(thing, PLAIN):
            continue
        seen[id(thing)] = thing
        if isinstance(thing, torch.Tensor):
            put_back.append(_tensor(thing))
        elif isinstance(thing, dict | list | set):
            put_back.append(_container(thing))
        elif isinstance(thing, types.CellType):
            put_back.append(_cell(thing))
        found.extend(_inside(thing))


def _inside(thing: Any) -> Iterable[Any]:
    """What hangs on a thing directly."""
    if isinstance(thing, dict | list | set | tuple | frozenset):
        return () if len(thing) >= MANY else thing.values() if isinstance(thing, dict) else thing
    if isinstance(thing, types.CellType):
        return _content(thing)
    if isinstance(thing, types.MethodType):
        return thing.__self__, thing.__func__
    if isinstance(thing, partial):
        return thing.func, thing.args, thing.keywords
    if isinstance(thing, types.FunctionType):
        return *(thing.__closure__ or ()), thing.__dict__
    torch_own = type(thing).__module__.startswith("torch.") and not isinstance(thing, nn.Module)
    held = None if torch_own else getattr(thing, "__dict__", None)
    return (held,) if isinstance(held, dict) else ()


def _tensor(x: torch.Tensor) -> Callable[[], None]:
    """Its numbers, where they lie (a cast puts others in their place), and that it was made by no call: writing into
    it while gradients are recorded makes it a part of that call's graph, which no later one can go back through."""
    if x.layout is not torch.strided or x.is_meta or 0 in x.stride():
        return _nothing
    data, own = x.data, x.is_leaf
    numbers = data.clone()

    def put() -> None:
        with torch.inference_mode(x.is_inference()):
            data.copy_(numbers)
            if x.data_ptr() != data.data_ptr() or x.dtype != data.dtype:
                x.data = data
        if own and not x.is_leaf:
            x.detach_()

    return put


def _container(held: dict[Any, Any] | list[Any] | set[Any]) -> Callable[[], None]:
    """The same entries in the same dict, list or set; nothing is touched where they are there still."""
    if isinstance(held, dict):
        return _mapping(held)
    entries = list(held)

    def put() -> None:
        if len(held) != len(entries) or any(a is not b for a, b in zip(held, entries, strict=True)):
            held.clear()
            held.extend(entries) if isinstance(held, list) else held.update(entries)

    return put


def _mapping(held: dict[Any, Any]) -> Callable[[], None]:
    entries = dict(held)

    def put() -> None:
        for name in [name for name in held if name not in entries]:
            del held[name]
        for name, value in entries.items():
            if name not in held or held[name] is not value:
                held[name] = value

    return put


def _cell(cell: types.CellType) -> Callable[[], None]:
    """The variable of a function."""
    content = _content(cell)

    def put() -> None:
        for value in content:
            cell.cell_contents = value

    return put


def _content(cell: types.CellType) -> list[Any]:
    """What is in it; nothing before it was given a value."""
    try:
        return [cell.cell_contents]
    except ValueError:
        return []


def _nothing() -> None:
    """Where nothing can be put back."""


def cast_while_asking(module: nn.Module, dtype: torch.dtype, ask: Callable[..., Float]) -> Callable[..., Float]:
    """`ask`, which calls the module, with the module cast to dtype as long as it takes."""

    def asked(*args: Any) -> Float:
        with restore_afterwards(module):
            module.to(dtype)
            return ask(*args)

    return asked


@torch.no_grad()
def draw(module: nn.Module, rng: torch.Generator) -> None:
    """Draw the weights of a module anew, as large as those of a trained one. A fixed table stays as it is."""
    weights = list(module.parameters())
    for weight in [w for w in weights if w.requires_grad] or weights:
        if weight.dim() > 1 and weight.is_floating_point():
            drawn = torch.randn(weight.shape, generator=rng) / weight.shape[-1] ** 0.5
            weight.copy_(drawn.to(weight))


__all__ = ["cast_while_asking", "draw", "restore_afterwards"]
