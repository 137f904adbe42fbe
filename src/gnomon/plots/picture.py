"""Picture: a drawn figure that saves itself whole or not at all, and shows itself in a notebook."""

import io
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import singledispatch
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gnomon.available_memory import room_for
from gnomon.data.files import atomic
from gnomon.errors import BadValue, wrong
from gnomon.plots.style import gnomon_style, write_numbers

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FORMATS = ("png", "svg")
DPI = 160
COPIES = 6  # of the numbers, in float64, from the encoding to the pixels


@dataclass(frozen=True)
class Picture:
    """What the drawing functions return.

    figure  the matplotlib figure, yours to change before it is saved
    alt     what is to be seen, in a sentence, for those who do not see it; written into the file too
    facts   the numbers behind the picture, by name
    lang    the language of its words, in which its axes write their numbers too
    """

    figure: "Figure"
    alt: str
    facts: Mapping[str, Any] = field(default_factory=dict)
    lang: str = "en"

    def __post_init__(self) -> None:
        write_numbers(self.figure, self.lang)

    def save(self, path: str | Path) -> Path:
        """Write a PNG or SVG file, by the suffix of `path`; an older file stays until the new one is complete.

        Raises BadValue for another suffix and BadInput where nothing can be written.
        """
        path = Path(path)
        content = self.render(picture_format(path))
        with atomic(path) as file:
            file.write(content)
        return path

    def render(self, kind: str = "png") -> bytes:
        """The file's content. The same figure gives the same bytes: no date and no random names in it."""
        out = io.BytesIO()
        about: dict[str, Any] = {"Description": self.alt, **({"Date": None} if kind == "svg" else {})}
        with gnomon_style():
            self.figure.savefig(out, format=kind, dpi=DPI, metadata=about)
        return out.getvalue()

    def _repr_png_(self) -> bytes:
        return self.render("png")


@singledispatch
def draw(seen: object, *options: Any) -> Picture:
    """The picture of an object. Whoever can draw a kind of object registers its function here, so that the object need
    not import it: `@draw.register(Order)`."""
    raise wrong("what is drawn", seen, "what a function of gn.plots returned")


def check_drawable(numbers: int, what: str) -> None:
    """Raise BadValue for a picture of more numbers than fit into memory; drawing holds them several times over."""
    room_for(COPIES * 8 * numbers, f"a picture of {what}", "choose smaller sizes")


def picture_format(path: Path) -> str:
    """The suffix, "png" or "svg"; BadValue for any other."""
    kind = path.suffix.lower().removeprefix(".")
    if kind not in FORMATS:
        given = f"ends in {path.suffix!r}" if path.suffix else "has no suffix"
        raise BadValue(f"pictures are written as .png or .svg, but {str(path)!r} {given}: choose one of the two")
    return kind


__all__ = ["DPI", "FORMATS", "Picture", "check_drawable", "draw", "picture_format"]
