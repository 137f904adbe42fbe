"""How to cite the methods that a model uses: BibTeX, stated once in the file of each encoding."""

import re
from collections.abc import Iterator
from inspect import cleandoc

from torch import nn

from gnomon.errors import wrong
from gnomon.positions.base import PositionEncoding
from gnomon.positions.ids import PositionIds, recipe, recipes
from gnomon.positions.registry import encoding
from gnomon.positions.spec import Spec


def cite(what: object) -> str:
    """BibTeX entries for the position encodings of `what`: a model, an encoding, a Spec or a name; several in a list.
    A recipe for position ids counts as one, by its name or in a model or Spec that uses it.

    An encoding whose class has no `cite` gets an entry made of its `paper`. Each entry occurs once.

    >>> print(cite("rope").splitlines()[0])
    @misc{su2021roformer,

    Raises BadValue for an unknown name, and for what holds no encoding.
    """
    return "\n\n".join(dict.fromkeys(_entry(cls) for cls in _methods(what)))


def _methods(what: object) -> Iterator[type[PositionEncoding | PositionIds]]:
    """The classes of the encodings in it, then that of its recipe."""
    if isinstance(what, str):
        yield recipe(what) if what in recipes() else encoding(what)
    elif isinstance(what, PositionIds):
        yield type(what)
    elif isinstance(what, Spec):
        yield what.cls
        if what.positions is not None:
            yield type(what.positions)
    elif isinstance(what, type) and issubclass(what, PositionEncoding | PositionIds):
        yield what
    elif isinstance(what, nn.Module) and (found := _parts(what)):
        yield from found
        held = (vars(part).get("recipe") for part in what.modules())
        yield from (type(one) for one in held if isinstance(one, PositionIds))
    elif isinstance(what, list | tuple):
        for one in what:
            yield from _methods(one)
    else:
        raise wrong("what", what, "a model with a position encoding, an encoding, a Spec or a name", 'cite("rope")')


def _parts(module: nn.Module) -> list[type[PositionEncoding]]:
    """The encodings in a module that are not parts of others. NoPE counts only where there is no other: a model whose
    position comes in at the input has it in every layer."""
    parts = dict(module.named_modules())
    found = {name: part for name, part in parts.items() if isinstance(part, PositionEncoding)}
    inner = {
        name for name in found for other in found if name != other and name.startswith(f"{other}." if other else "")
    }
    classes = list(dict.fromkeys(type(part) for name, part in found.items() if name not in inner))
    return [cls for cls in classes if cls.acts != "nowhere"] or classes


def _entry(cls: type[PositionEncoding | PositionIds]) -> str:
    """The BibTeX entry of a method."""
    if cls.cite:
        return cleandoc(cls.cite)
    key = re.sub(r"[^\w-]+", "-", cls.name) or "encoding"
    return f"@misc{{{key},\n  title = {{{cls.name}}},\n  note = {{{cls.paper or cls.__qualname__}}},\n}}"


__all__ = ["cite"]
