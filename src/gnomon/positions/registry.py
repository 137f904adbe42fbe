"""The registry: encodings chosen by name. A file dropped into this package, or imported from elsewhere, is in it."""

import importlib
import pkgutil
from types import MappingProxyType
from typing import Any, Protocol, get_type_hints, runtime_checkable

from gnomon.errors import BadValue, must_be, unknown
from gnomon.glossary import synonyms
from gnomon.positions import base
from gnomon.positions.base import PositionEncoding
from gnomon.positions.ids import position_ids, recipes
from gnomon.positions.notation import call, split
from gnomon.positions.spec import Spec, parameters_of


def _kinds(cls: type[PositionEncoding]) -> dict[str, Any]:
    """The annotations of the constructor, where they can be read."""
    try:
        return get_type_hints(cls.__init__)
    except NameError:  # of a class of one's own
        return {}


def _discover() -> None:
    """Import every file of this package, so that a file dropped in is known without being listed anywhere."""
    package = importlib.import_module(__package__ or "gnomon.positions")
    for module in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"{package.__name__}.{module.name}")


def names() -> list[str]:
    """The names of all known encodings, "none" first, then alphabetical."""
    _discover()
    return sorted(base._REGISTRY, key=lambda n: (n != "none", n))


def encoding(name: str) -> type[PositionEncoding]:
    """The class behind a name, whether it is written rope, RoPE or ROPE."""
    how = f"one of {', '.join(sorted(base._REGISTRY))}; a model takes a ready object as it is"
    must_be("the name of a position encoding", name, str, how)
    if name not in base._REGISTRY:
        _discover()
    same = {known.casefold(): cls for known, cls in base._REGISTRY.items()}
    cls = base._REGISTRY.get(name) or same.get(name.casefold())
    if cls is not None:
        return cls
    for other in base._REGISTRY.values():
        if advice := other.not_names.get(name.casefold()):
            raise BadValue(f"{name!r} is no position encoding: {advice}")
    if name in recipes():
        raise BadValue(
            f"{name!r} is a recipe for position ids, not a position encoding: give it to one that reads positions, "
            f"get('rope', positions={name!r}); gnomon positions {name} describes it"
        )
    raise unknown("position encoding", name, base._REGISTRY, synonyms())


def get(name: str, *, positions: Any = None, **options: Any) -> Spec:
    """Choose an encoding by name: `get("rope", base=1e6)`. The model builds it, or you do with `.build(...)`.

    positions: a recipe for where tokens are said to sit, such as `Randomized(2048)` or its text, "randomized(2048)". It
    is applied where a batch enters a model, to all layers alike.

    Raises BadValue for an unknown name or option, listing the known ones, and for a value that no model could use.
    """
    cls = encoding(name)
    known, kinds = parameters_of(cls), _kinds(cls)
    for option in options:
        if option not in known:
            raise unknown(f"option of {cls.name}", option, known, cls.options_elsewhere)
    cls.check_options(options)
    for option in kinds.keys() & options.keys():
        must_be(option, options[option], kinds[option])
    plain = {k: v.to_dict() if isinstance(v, PlainData) else v for k, v in options.items()}
    recipe = None if positions is None else position_ids(positions)
    if recipe is not None and cls.acts == "nowhere":
        raise BadValue(f"{cls.name} reads no positions, so {recipe} would change nothing: leave positions out")
    return Spec(cls, MappingProxyType(plain), recipe)


def parse(text: str) -> Spec:
    """The encoding that a text names: `rope`, or `rope(base=200, pairing="half")`. BadValue where it names none."""
    name, values, options = call(text)
    if name in recipes():
        encoding(name)  # which says what it is
    if values:
        raise BadValue(f"cannot read the options of {text!r}: expected NAME(OPTION=VALUE, ...), values as in Python")
    return get(name, **options)


def parse_list(text: str) -> tuple[Spec, ...]:
    """The encodings of a list: `rope, rope(base=200), none`, also within brackets; one where there is one."""
    return tuple(map(parse, split(text.strip().removeprefix("[").removesuffix("]"))))


def label(*specs: Spec) -> str:
    """The text for an encoding: its name, with the options given by hand. Several are a list, `[rope, none]`; `parse`
    and `parse_list` read them."""
    texts = [repr(spec) if spec.options or spec.positions is not None else spec.name for spec in specs]
    return texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"


@runtime_checkable
class PlainData(Protocol):
    """An option that is an object of its own; a Spec keeps it as data, which can be saved."""

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""


__all__ = ["PlainData", "encoding", "get", "label", "names", "parse", "parse_list"]
