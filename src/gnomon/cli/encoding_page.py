"""The page about one encoding that `gnomon positions NAME` prints: what it is, costs and does, and what is near it."""

import re
import textwrap
from typing import TYPE_CHECKING, Any

from gnomon.glossary import Words, translate

if TYPE_CHECKING:
    from gnomon.models.position_cost import PositionCost
    from gnomon.positions import PositionEncoding, PositionIds

WIDTH = 64  #: positions that the picture shows
ROWS = 8
SHADES = " ░▒▓█"
#: property -> its word in the glossary
PROPERTIES = {
    "acts": "place",
    "kind": "kind",
    "one_sided": "sees",
    "learns": "learning",
    "ends": "length",
    "turns": "turning",
}


def facts(cls: "type[PositionEncoding]") -> dict[str, Any]:
    """All of it as data, for --json."""
    from dataclasses import asdict

    from gnomon.models.position_cost import LENGTH, position_cost
    from gnomon.positions.citation import cite
    from gnomon.positions.kinship import SIZES, formula, nearest, properties

    cost = position_cost(cls)
    return {
        "name": cls.name,
        "paper": cls.paper,
        "formula": formula(cls),
        **properties(cls),
        "extrapolation": cls.extrapolation,
        "says": _descriptions(cls),
        "used_by": cls.used_by,
        "cost": None if cost is None else {"tokens": LENGTH, **asdict(cost)},
        "sizes": dict(SIZES),
        "nearest": [{"name": other.name, "differs_in": differs} for other, differs in nearest(cls)],
        "cite": cite(cls),
    }


def page(cls: "type[PositionEncoding]", w: Words, width: int = 80) -> str:
    """The page as text, in lines of up to `width` letters. w: of the glossary's group "positions" """
    from gnomon.models.position_cost import position_cost
    from gnomon.positions.base import kind_of
    from gnomon.positions.kinship import formula, nearest

    kind = [] if cls.acts == "nowhere" else [w(kind_of(cls))]
    where = ", ".join([w(cls.acts), *kind, w("causal_only" if cls.one_sided else "both_sides")])
    near = "\n".join(_relative(other, differs, w) for other, differs in nearest(cls))
    breaks = [translate(cls.extrapolation, w.lang), *(translate(line, w.lang) for line in _descriptions(cls))]
    parts = [
        (w("acts_at"), where),
        (w("used_by"), translate(cls.used_by, w.lang) or w("nobody")),
        (w("extrapolation"), "\n".join(filter(None, breaks))),
        (w("costs"), _costs(position_cost(cls), w)),
        (w("nearest"), near),
    ]
    head = f"{cls.name}  {cls.paper}".rstrip()
    told = (f"{title}\n{_indent(text, width)}" for title, text in parts)
    texts = [head, _indent(formula(cls), width), *told, picture(cls, w, width)]
    more = w("more", cite=f"gnomon positions cite {cls.name}", plot=f"gnomon plot {cls.name}")
    return "\n\n".join(text for text in [*texts, more] if text)


def recipe_facts(cls: "type[PositionIds]") -> dict[str, Any]:
    """What is known of a recipe for position ids, as data."""
    from gnomon.positions.citation import cite

    return {"name": cls.name, "paper": cls.paper, "training": cls.formula, "cite": cite(cls)}


def recipe_page(cls: "type[PositionIds]", w: Words) -> str:
    """The page about a recipe."""
    from dataclasses import MISSING, fields

    needed = ["2048" for f in fields(cls) if f.default is MISSING]
    example = f"{cls.name}({', '.join(needed)})" if needed else cls.name
    training = f"{w('in_training')}\n  {translate(cls.formula, w.lang)}"
    more = w("recipe_more", name=cls.name, example=example)
    return "\n\n".join([f"{cls.name}  {cls.paper}".rstrip(), training, more])


def _indent(text: str, width: int) -> str:
    return "\n".join(part for line in text.splitlines() for part in _wrap_line(line, width - 2))


def _wrap_line(line: str, width: int) -> list[str]:
    """A line, indented. One that is too long is broken before the remark at its end, which a wide gap sets off, then
    between words."""
    if len(line) <= width:
        return [f"  {line}"]
    parts, first, lines = re.split(r" {3,}(?=\S+(?: \S+)*$)", line), "  ", []
    for part in parts:
        if len(first + part) <= width + 2:
            lines.append(first + part)
        else:
            lines += textwrap.wrap(part, width + 2, initial_indent=first, subsequent_indent="      ")
        first = "      "
    return lines


def _build(cls: "type[PositionEncoding]") -> "PositionEncoding | None":
    import torch

    from gnomon.errors import BadValue
    from gnomon.positions import Spec
    from gnomon.positions.kinship import SIZES
    from gnomon.positions.spec import forked_rng

    try:
        with forked_rng():
            torch.manual_seed(0)  # what is drawn at random looks the same at every call
            return Spec(cls).build(causal=True, **SIZES)
    except BadValue:
        return None


def _descriptions(cls: "type[PositionEncoding]") -> list[str]:
    """What the encoding says of itself where a model of SIZES was trained on all its positions."""
    from gnomon.positions.kinship import SIZES

    built = _build(cls)
    return [] if built is None else built.describe(SIZES["max_positions"])


def _costs(cost: "PositionCost | None", w: Words) -> str:
    """Parameters, operations and memory, in lines."""
    from gnomon.models.position_cost import LENGTH

    if cost is None:
        return w("cost_unknown")
    more = cost.cached - cost.cached_without
    cached = {"bytes": round(cost.cached), "more": round(more)}
    lines = [w("cost_parameters", count=cost.parameters)]
    lines.append(w("cost_reading", count=round(cost.reading), share=cost.of_reading, tokens=LENGTH, kernel=cost.kernel))
    lines.append(w("cost_writing", count=round(cost.writing), share=cost.of_writing, tokens=LENGTH))
    return "\n".join([*lines, w("cost_cached_more" if round(more) else "cost_cached", **cached)])


def _relative(other: "type[PositionEncoding]", differs: list[str], w: Words) -> str:
    if not differs:
        return w("near_alike", name=other.name)
    return w("near_differs", name=other.name, what=", ".join(w(PROPERTIES[key]) for key in differs))


def picture(cls: "type[PositionEncoding]", w: Words, width: int = 80) -> str:
    """What it does at the first positions, in shades, with a line that says what the rows and columns are."""
    built = _build(cls)
    matrix, caption = (None, "") if built is None else built.preview(WIDTH)
    if matrix is None:
        return ""
    step = max(1, -(-matrix.shape[0] // ROWS))
    shown = matrix[::step].detach().double().cpu()
    seen = shown[shown.isfinite()]
    low, high = (float(seen.min()), float(seen.max())) if len(seen) else (0.0, 0.0)
    if low == high and len(seen) == shown.numel():
        return _indent(w("nothing_to_see", value=low, last=WIDTH - 1), width)
    low -= 0.0 if len(seen) == shown.numel() else high - low or 1.0  # what is hidden lies below all that is seen
    level = ((shown.clamp(min=low) - low) / (high - low or 1.0) * (len(SHADES) - 1)).round().long()
    rows = ["".join(SHADES[i] for i in row) for row in level.tolist()]
    return "\n".join([*(f"  ▕{row}▏" for row in rows), _indent(translate(caption, w.lang), width)])


__all__ = ["facts", "page", "picture", "recipe_facts", "recipe_page"]
