"""Settings: a dataclass's defaults < a TOML file < `--set key=value` < the command's own flags.

A setting is a field, named by its dotted path (`optim.lr`); nested dataclasses are tables of the file. A key that no
field has is an error that names the nearest one, and a value is checked against the field's type, so that nothing
which was written is silently left out.

    @dataclass(frozen=True)
    class Run:
        steps: int = 1000
        optim: Optim = field(default_factory=Optim)

    load_config(Run, file=Path("run.toml"), sets=["optim.lr=3e-4"], flags={"steps": 10})
"""

import dataclasses
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Generic, Literal, TypeVar, Union, get_args, get_origin

from gnomon.errors import BadValue, unknown
from gnomon.kinds import in_words
from gnomon.settings import annotations_of

T = TypeVar("T")
DEEPEST = 8  # parts of a dotted name


class _Text(str):
    """A value typed on the command line: text until the field's type says what it is."""


@dataclass(frozen=True)
class Resolved(Generic[T]):
    """A configuration, and for each setting that is not a default, where its value came from."""

    config: T
    origins: Mapping[str, str]

    def show(self) -> str:
        """One line per setting: its name, its value and where that came from."""
        rows = [(f"{key} = {value!r}", self.origins.get(key, "default")) for key, value in _leaves(self.config)]
        width = max((len(text) for text, _ in rows), default=0)
        return "\n".join(f"{text:{width}}  # {origin}" for text, origin in rows)


def load_config(
    kind: type[T],
    file: Path | None = None,
    sets: Sequence[str] = (),
    flags: Mapping[str, object] | None = None,
) -> T:
    """Build a `kind` from its defaults, `file`, `sets` ("a.b=c") and `flags` (dotted name -> value), the last winning.

    Raises BadValue for a file that is not there or not TOML, an unknown key, a value of the wrong type, and a field
    without a default that nobody set; each message names where the key stands.
    """
    return resolve_config(kind, file, sets, flags).config


def resolve_config(
    kind: type[T],
    file: Path | None = None,
    sets: Sequence[str] = (),
    flags: Mapping[str, object] | None = None,
) -> Resolved[T]:
    """Do what `load_config` does and keep where each value came from."""
    sources: list[tuple[str, Mapping[str, object]]] = []
    if file is not None:
        sources.append((str(file), _read_toml(file)))
    sources += [(f"--set {text}", _nested(*_split(text))) for text in sets]
    sources += [(f"flag {key}", _nested(key, value)) for key, value in (flags or {}).items()]

    values: dict[str, object] = {}
    origins: dict[str, str] = {}
    for origin, table in sources:
        for key, annotation, raw in _settings(kind, table, "", origin):
            value = _convert(annotation, raw, origin if origin == f"flag {key}" else f"{origin}: {key}")
            before = values.get(key)
            values[key] = {**before, **value} if isinstance(before, dict) and isinstance(value, dict) else value
            origins[key] = origin
    return Resolved(_build(kind, MISSING, values, ""), origins)


def plain_settings(file: Path | None = None, sets: Sequence[str] = (), taken: Sequence[str] = ()) -> dict[str, object]:
    """Read `file` and `sets` without a dataclass to check them against, for what checks its own keys: an encoding's
    options, the changes to a preset. Values are read as TOML would; what is no TOML value is a plain word. BadValue for
    a key that is `taken`, because the command gives it another way."""
    settings = {} if file is None else _read_toml(file)
    for text in sets:
        key, value = _split(text)
        _put(settings, key.split("."), _parse(value), text)
    for key in taken:
        if key in settings:
            raise BadValue(f"{key} is no setting here, the command itself gives it: leave --set {key} out")
    return settings


def _put(table: dict[str, object], path: Sequence[str], value: object, text: str) -> None:
    for name in path[:-1]:
        below = table.setdefault(name, {})
        if not isinstance(below, dict):
            raise BadValue(f"--set {text}: {name} is {below!r}, not a group of settings")
        table = below
    table[path[-1]] = value


def _read_toml(file: Path) -> dict[str, object]:
    try:
        settings = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise BadValue(f"cannot read the configuration {str(file)!r}: {error.strerror}") from error
    except (ValueError, RecursionError) as error:  # a whole number with too many digits is a plain ValueError
        raise BadValue(f"{file} is not TOML: {error}") from error
    if not _numbers_fit(settings):
        raise BadValue(f"{file} is not TOML: a whole number has 64 bits there")
    return settings


def _split(text: str) -> tuple[str, _Text]:
    key, equals, value = text.partition("=")
    parts = [part.strip() for part in key.split(".")]
    if not equals or not all(parts) or len(parts) > DEEPEST:
        raise BadValue(f"--set {text}: expected KEY=VALUE, the dotted name of a setting and what it shall be")
    return ".".join(parts), _Text(value.strip())


def _nested(key: str, value: Any) -> dict[str, object]:
    for name in reversed(key.split(".")):
        value = {name: value}
    return value


def _settings(
    kind: type[Any], table: Mapping[str, object], prefix: str, origin: str
) -> Iterator[tuple[str, Any, object]]:
    """Yield (dotted name, annotation, raw value) for each entry of `table`, which is shaped like `kind`."""
    hints = annotations_of(kind)
    for name, raw in table.items():
        key = prefix + name
        if name not in hints:
            raise unknown(f"setting in {origin}:", key, [prefix + known for known in hints])
        inner = _dataclass_of(hints[name])
        if inner is None:
            yield key, hints[name], raw
            continue
        below = _parse(raw) if isinstance(raw, _Text) else raw
        if not isinstance(below, Mapping):
            names = ", ".join(annotations_of(inner))
            raise BadValue(f"{origin}: {key} is a group of settings ({names}), given {raw!r}")
        yield from _settings(inner, below, f"{key}.", origin)


def _dataclass_of(annotation: Any) -> type[Any] | None:
    members = get_args(annotation) if get_origin(annotation) in (Union, UnionType) else (annotation,)
    return next((member for member in members if isinstance(member, type) and dataclasses.is_dataclass(member)), None)


def _parse(text: _Text) -> object:
    """Read a value as TOML would (`3e-4`, `true`, `[1, 2]`, `{a = 1}`); what is no TOML value is a plain word."""
    try:
        table: dict[str, object] = tomllib.loads(f"value = {text}")
    except (ValueError, RecursionError):
        return str(text)
    return table["value"] if table.keys() == {"value"} and _numbers_fit(table) else str(text)


def _numbers_fit(value: object) -> bool:
    """Whether the whole numbers in a value have the 64 bits that TOML gives them."""
    if isinstance(value, dict | list):
        return all(map(_numbers_fit, value.values() if isinstance(value, dict) else value))
    return type(value) is not int or -(2**63) <= value < 2**63


def _convert(annotation: Any, raw: object, where: str) -> object:
    """Check `raw` against `annotation` and return it in that type; BadValue says what was expected."""
    wrong = BadValue(f"{where}: expected {in_words(annotation)}, given {raw!r}")
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin in (Union, UnionType):
        return _convert_any_of(arguments, raw, where, wrong)
    if isinstance(raw, _Text):
        raw = str(raw) if annotation in (str, Path) or origin is Literal else _parse(raw)
    if origin is Literal:
        for choice in arguments:
            if str(choice) == str(raw):
                return choice
        raise wrong
    if origin in (list, tuple):
        return _convert_sequence(annotation, raw, where, wrong)
    if origin is dict and isinstance(raw, Mapping):
        return {key: _convert(arguments[1], item, f"{where}.{key}") for key, item in raw.items()}
    if annotation is NoneType and raw in (None, "none"):
        return None
    if annotation is float and isinstance(raw, int | float) and not isinstance(raw, bool):
        return float(raw)
    if annotation is int and isinstance(raw, float) and raw.is_integer():  # steps = 1e4
        return int(raw)
    if annotation is Path and isinstance(raw, str | Path):
        return Path(raw)
    if annotation in (Any, object) or type(raw) is annotation:
        return raw
    raise wrong


def _convert_any_of(members: Sequence[Any], raw: object, where: str, wrong: BadValue) -> object:
    # A plain word is the last thing a value can be: `int | str` reads 12 as a number.
    for member in sorted(members, key=lambda member: member in (str, Path)):
        try:
            return _convert(member, raw, where)
        except BadValue:
            continue
    raise wrong


def _convert_sequence(annotation: Any, raw: object, where: str, wrong: BadValue) -> object:
    if not isinstance(raw, list | tuple):
        raise wrong
    arguments = get_args(annotation)
    if get_origin(annotation) is list or arguments[-1] is ...:
        members = [arguments[0]] * len(raw)
    else:
        members = list(arguments)
    if len(members) != len(raw):
        raise wrong
    items = [_convert(member, item, f"{where}[{i}]") for i, (member, item) in enumerate(zip(members, raw, strict=True))]
    return items if get_origin(annotation) is list else tuple(items)


def _build(kind: type[Any], default: Any, values: Mapping[str, object], prefix: str) -> Any:
    """Make a `kind`: `default` with `values` in their places, or a new one where there is no default."""
    given: dict[str, object] = {}
    for field in dataclasses.fields(kind):
        key = prefix + field.name
        fallback = _default(field) if default is MISSING else getattr(default, field.name)
        inner = _dataclass_of(annotations_of(kind).get(field.name))
        if inner is not None and any(name.startswith(f"{key}.") for name in values):
            given[field.name] = _build(inner, MISSING if fallback is None else fallback, values, f"{key}.")
        elif key in values:
            given[field.name] = values[key]
        elif fallback is MISSING:
            raise BadValue(f"the setting {key} is missing: give it in the file, or with --set {key}=...")
    return kind(**given) if default is MISSING else dataclasses.replace(default, **given)


def _default(field: dataclasses.Field[Any]) -> Any:
    return field.default if field.default_factory is MISSING else field.default_factory()


def _leaves(config: Any, prefix: str = "") -> Iterator[tuple[str, object]]:
    for field in dataclasses.fields(config):
        value = getattr(config, field.name)
        if dataclasses.is_dataclass(value):
            yield from _leaves(value, f"{prefix}{field.name}.")
        else:
            yield prefix + field.name, value


__all__ = ["Resolved", "load_config", "plain_settings", "resolve_config"]
