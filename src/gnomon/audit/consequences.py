"""Which broken laws may follow from another one that is broken too, so that a reader mends the cause first."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from gnomon.audit.finding import Finding
from gnomon.audit.laws import LAWS
from gnomon.audit.laws.padding import SWAPPED

AFTER = "may follow from"  #: how the note of such a finding begins
PADDED = tuple(name for name in LAWS if name.startswith(("left padding", "right padding", "interior padding")))
DECODED = ("padded rows decode at their own places", "rows padded on the right decode at their own places")
#: law -> laws that a model may break because it breaks this one; the first that is broken is named
FOLLOW: Mapping[str, tuple[str, ...]] = {
    "causality": (
        "the past is seen",
        "prefix = beginning",
        "prefix = beginning past the limit",
        "order is seen",
        "a position reaches attention",
        "cached = full",
        "chunks = whole",
        "crossing the limit in decoding",
        "reorder = rerun",
        "beam with cache = beam without",
        "packed = separate",
        "masked tokens get no gradient",
        "a window is as wide as it says",
        "windows reach as far as their layers",
        "the cache keeps the window",
        "the source is seen through the cache",
        *DECODED,
        *PADDED,
    ),
    "batch mates change nothing": (
        "the past is seen",
        "order is seen",
        "a position reaches attention",
        "every row has its own positions",
        "cached = full",
        "chunks = whole",
        "reorder = rerun",
        "beam with cache = beam without",
        "an empty row is harmless",
        "heads are interchangeable",
        "heads have projections",
        "rows keep their source",
        "source padding on the left changes nothing",
        "source padding on the right changes nothing",
        *DECODED,
        *PADDED,
    ),
    "cached = full": (
        "chunks = whole",
        "crossing the limit in decoding",
        "beam with cache = beam without",
        "the cache keeps the window",
        "the source is seen through the cache",
    ),
    "chunks = whole": (
        "crossing the limit in decoding",
        "beam with cache = beam without",
        "the cache keeps the window",
    ),
    "reorder = rerun": ("beam with cache = beam without",),
}


def attribute_root_causes(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """The findings, of which those that may follow from another one say so instead of their law's hint.

    A cause that was seen in the numbers stays, unless the numbers were taken over the wrong axis.
    """
    broken = {found.law: found for found in findings if found.verdict == "FAIL"}
    return tuple(_point_to(found, broken) if found.law in broken else found for found in findings)


def _point_to(found: Finding, broken: Mapping[str, Finding]) -> Finding:
    generic = found.note.startswith(LAWS[found.law].hint)
    for law, others in FOLLOW.items():
        if law in broken and found.law in others and (generic or broken[law].note == SWAPPED):
            return replace(found, note=f'{AFTER} "{law}", which is broken too: mend that first')
    return found


__all__ = ["AFTER", "FOLLOW", "attribute_root_causes"]
