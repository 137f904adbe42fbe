"""Two results of the lab beside each other: what differs in their settings, their numbers and their order."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gnomon.checkpoints.native import read_json
from gnomon.errors import BadInput
from gnomon.glossary import Words, words
from gnomon.lab.seeds import kendall
from gnomon.lab.summary import percent

Data = Mapping[str, Any]
APART = ("positions", "seed", "seeds", "device", "threads")  # that a comparison of rows does not depend on


@dataclass(frozen=True)
class Comparison:
    """Of two results of one size and training length each.

    settings    dotted name -> the values of A and of B, where they differ
    obstacles   why bits of A and B do not compare, as keys of the glossary: other_text, other_vocabulary, other_targets
    rows        position, length, a, b, change: of the encodings and lengths that both have
    only        the encodings that only A, and only B has
    tau         Kendall's tau between the two orders at the longest length in common; None below two encodings
    """

    a: str
    b: str
    settings: dict[str, tuple[Any, Any]]
    obstacles: list[str]
    rows: list[dict[str, Any]]
    only: tuple[list[str], list[str]]
    orders: tuple[list[str], list[str]]
    tau: float | None

    def to_dict(self) -> dict[str, Any]:
        """As JSON-ready data."""
        return {**vars(self), "settings": {name: list(pair) for name, pair in self.settings.items()}}

    def table(self, lang: str = "en") -> str:
        """As text for a terminal."""
        return "\n".join(_lines(self, words("grid", lang)))


def compare(a: str | Path, b: str | Path) -> Comparison:
    """Compare the results in two folders of the lab, or two report.json. BadInput where there is none.

    A folder with several sizes or training lengths has one result for each, below `panels`.
    """
    one, other = _read(a), _read(b)
    bits = [{row["label"]: _by_length(data, row) for row in data["rows"]} for data in (one, other)]
    both = [label for label in bits[0] if label in bits[1]]
    rows = [
        {"position": label, "length": n, "a": x, "b": bits[1][label][n], "change": bits[1][label][n] / x - 1}
        for label in both
        for n, x in bits[0][label].items()
        if n in bits[1][label]
    ]
    longest = max((row["length"] for row in rows), default=0)
    last = [row for row in rows if row["length"] == longest]
    orders = tuple([row["position"] for row in sorted(last, key=lambda row: row[side])] for side in ("a", "b"))
    tau = kendall([row["a"] for row in last], [row["b"] for row in last]) if len(last) > 1 else None
    return Comparison(
        a=str(a),
        b=str(b),
        settings=_different(one["settings"], other["settings"]),
        obstacles=list(_obstacles(one, other)),
        rows=rows,
        only=([x for x in bits[0] if x not in bits[1]], [x for x in bits[1] if x not in bits[0]]),
        orders=(orders[0], orders[1]),
        tau=tau,
    )


def _read(path: str | Path) -> Data:
    file = Path(path) / "report.json" if Path(path).is_dir() else Path(path)
    data = read_json(file)
    if "panels" in data:
        names = ", ".join(sorted(str(p) for p in (file.parent / "panels").glob("*")))
        raise BadInput(f"{file} holds several results: compare one of {names}")
    if not {"rows", "settings", "lengths", "targets"} <= data.keys():
        raise BadInput(f"{file} is no result of the lab: give a folder that `gnomon lab` wrote")
    return data


def _by_length(data: Data, row: Data) -> dict[int, float]:
    pairs = zip(data["lengths"], row["bits"], strict=True)
    return {n: x["value"] for n, x in pairs if x is not None}


def _different(one: Data, other: Data, prefix: str = "") -> dict[str, tuple[Any, Any]]:
    found: dict[str, tuple[Any, Any]] = {}
    for name in dict.fromkeys([*one, *other]):
        x, y = one.get(name), other.get(name)
        if isinstance(x, dict) and isinstance(y, dict):
            found |= _different(x, y, f"{prefix}{name}.")
        elif x != y and prefix + name not in APART:
            found[prefix + name] = (x, y)
    return found


def _obstacles(one: Data, other: Data) -> Iterator[str]:
    if one["about"]["corpus"]["sha256"] != other["about"]["corpus"]["sha256"]:
        yield "other_text"
    elif one["settings"]["vocab_size"] != other["settings"]["vocab_size"]:
        yield "other_vocabulary"
    elif one["targets"] != other["targets"]:
        yield "other_targets"


def _lines(found: Comparison, w: Words) -> Iterator[str]:
    yield w("compare_title", a=found.a, b=found.b)
    yield ""
    yield w("compare_settings" if found.settings else "compare_same")
    for name, (x, y) in found.settings.items():
        yield f"  {name}: {x} → {y}"
    if found.obstacles:
        yield w("compare_not", why=", ".join(w(key) for key in found.obstacles))
    yield ""
    yield w("compare_bits")
    lengths = sorted({row["length"] for row in found.rows})
    widest = max((len(row["position"]) for row in found.rows), default=0)
    yield " " * widest + "".join(f"{w.number(n):>26}" for n in lengths)
    for position in dict.fromkeys(row["position"] for row in found.rows):
        cells = {row["length"]: row for row in found.rows if row["position"] == position}
        yield position.ljust(widest) + "".join(f"{_cell(cells.get(n), w):>26}" for n in lengths)
    yield ""
    for which, names in zip("AB", found.only, strict=True):
        if names:
            yield w("only_in", which=which, names=", ".join(names))
    if found.tau is not None:
        yield w("compare_order", a=" < ".join(found.orders[0]), b=" < ".join(found.orders[1]), tau=found.tau)


def _cell(row: Data | None, w: Words) -> str:
    if row is None:
        return "–"
    return f"{w.number(row['a'], '.3f')} → {w.number(row['b'], '.3f')} {percent(row['change'], w)}"


__all__ = ["Comparison", "compare"]
