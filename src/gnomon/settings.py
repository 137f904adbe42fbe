"""Settings: dataclasses whose fields are each stated once, and what comes from the statement.

    @dataclass(frozen=True, kw_only=True)
    class ScoreSettings:
        \"\"\"Scores.\"\"\"

        softcap: Annotated[float | None, Setting("c of c tanh(s / c) ...", above=0, source="arXiv:...")] = None

gives the check of a value, the words of an error, a line of help, a row of a table, a parameter of a signature, and the
keyword that a type checker knows. A part of a model states the settings that it reads; a model's config inherits them.
"""

import inspect
import textwrap
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, Field, dataclass, fields
from functools import cache
from typing import Annotated, Any, Concatenate, ParamSpec, TypeVar, get_type_hints

from gnomon.errors import must_be, unknown
from gnomon.kinds import Setting, setting

P = ParamSpec("P")
T = TypeVar("T")
WIDTH = 120  # of help
DModel = Annotated[int, Setting("width of the residual stream", least=1, most=2**20)]


@dataclass(frozen=True)
class WidthSettings:
    """Width"""

    d_model: DModel


@dataclass(frozen=True, kw_only=True)
class LinearSettings:
    """Linear layers"""

    bias: Annotated[bool, Setting("biases in the linear layers")] = True


@dataclass(frozen=True, kw_only=True)
class DropoutSettings:
    """Dropout"""

    dropout: Annotated[
        float, Setting("share of the input, attention weights and residuals dropped in training", least=0, below=1)
    ] = 0.0


@cache
def _hints(kind: Any, whole: bool) -> dict[str, Any]:
    hints = get_type_hints(kind, include_extras=whole)
    return {field.name: hints[field.name] for field in fields(kind) if field.init}


def kinds_of(kind: type[Any]) -> dict[str, Any]:
    """The fields that a dataclass is made with, and their annotations with what these say of a setting."""
    key: Any = kind
    return _hints(key, True)


def annotations_of(kind: type[Any]) -> dict[str, Any]:
    """The fields that a dataclass is made with, and the types they are of."""
    key: Any = kind
    return _hints(key, False)


def check_fields(kind: type[Any], values: Mapping[str, object]) -> None:
    """Raise BadValue for a value that does not fit the field of its name, and for a name that no field has."""
    kinds = kinds_of(kind)
    for name, value in values.items():
        if name not in kinds:
            raise unknown("setting", name, kinds)
        must_be(name, value, kinds[name])


def make_settings(kind: type[T], **values: Any) -> T:
    """An object of this dataclass with these fields, each of them checked."""
    check_fields(kind, values)
    return kind(**values)


def values_of(kind: type[Any], source: Any) -> dict[str, Any]:
    """What `source` has for each field of this dataclass, by name: the settings that one part reads of a whole."""
    return {name: getattr(source, name) for name in kinds_of(kind)}


# ------------------------------------------------------------------ words


def setting_of(kind: type[Any], name: str) -> Setting:
    """What is said of a field."""
    found = setting(kinds_of(kind)[name])
    assert found is not None, f"{kind.__name__}.{name} has no Setting"
    return found


def groups(kind: type[Any]) -> Iterator[tuple[str, list[Field[Any]]]]:
    """The fields in their order, by the class that states them: the first line of its docstring, and its fields."""
    stated = {name: cls for cls in kind.__mro__ for name in inspect.get_annotations(cls)}
    for cls in reversed(kind.__mro__):
        if mine := [field for field in fields(kind) if stated.get(field.name) is cls]:
            yield inspect.cleandoc(cls.__doc__ or "").partition("\n")[0], mine


def help_line(kind: type[Any], name: str) -> str:
    """The meaning of a field with its range and its source."""
    said = setting_of(kind, name)
    more = "; ".join(filter(None, (said.range(), said.source)))
    return f"{said.meaning} ({more})" if more else said.meaning


def help_text(kind: type[Any]) -> str:
    """The fields, a line or two for each."""
    wide = max(len(field.name) for field in fields(kind)) + 4
    wrap = textwrap.TextWrapper(WIDTH, subsequent_indent=" " * wide, break_long_words=False)
    lines: list[str] = []
    for title, mine in groups(kind):
        lines += ["", title]
        for field in mine:
            wrap.initial_indent = f"  {field.name}".ljust(wide)
            lines += wrap.wrap(help_line(kind, field.name))
    return "\n".join(lines[1:])


def default_of(field: Field[Any]) -> Any:
    """A field's default; `inspect.Parameter.empty` where it has none."""
    if field.default_factory is not MISSING:
        return field.default_factory()
    return inspect.Parameter.empty if field.default is MISSING else field.default


def parameters_of(kind: type[Any]) -> list[inspect.Parameter]:
    """The fields as parameters: those that may be given by place, then keywords."""
    hints, found = annotations_of(kind), []
    for field in sorted((field for field in fields(kind) if field.init), key=lambda field: bool(field.kw_only)):
        how = inspect.Parameter.KEYWORD_ONLY if field.kw_only else inspect.Parameter.POSITIONAL_OR_KEYWORD
        found.append(inspect.Parameter(field.name, how, default=default_of(field), annotation=hints[field.name]))
    return found


def takes(kind: Callable[P, Any]) -> Callable[[Callable[..., None]], Callable[Concatenate[Any, P], None]]:
    """Of a constructor: its arguments are the fields of this dataclass, for type checkers and for `help`."""

    def decorate(constructor: Callable[..., None]) -> Callable[Concatenate[Any, P], None]:
        sign(constructor, kind)
        return constructor

    return decorate


def sign(function: Any, kind: Any) -> None:
    """Put the fields of a dataclass into a function's signature, in the place of its `**settings`."""
    own = [p for p in inspect.signature(function).parameters.values() if p.kind is not inspect.Parameter.VAR_KEYWORD]
    names = {p.name for p in own}
    function.__signature__ = inspect.Signature([*own, *(p for p in parameters_of(kind) if p.name not in names)])


__all__ = [
    "DModel",
    "DropoutSettings",
    "LinearSettings",
    "WidthSettings",
    "annotations_of",
    "check_fields",
    "default_of",
    "groups",
    "help_line",
    "help_text",
    "kinds_of",
    "make_settings",
    "parameters_of",
    "setting_of",
    "sign",
    "takes",
    "values_of",
]
