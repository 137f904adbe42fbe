"""Faults seeded into Gnomon's own code, each in a model under an encoding that shows it."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import torch

from gnomon.audit.mutants import MUTANTS
from gnomon.audit.outside.adapters.gnomon import Gnomon
from gnomon.audit.outside.faults.fault import Fault, Planting
from gnomon.audit.subject import Subject
from gnomon.layout import Layout
from gnomon.positions import Learned, PositionEncoding, Sinusoidal
from gnomon.shapes import Float, Int

FAR: dict[str, Any] = {"options": {"max_positions": 8192}}  #: a model that far positions may be asked of
PAIR: dict[str, Any] = {"architecture": "encoder-decoder"}
#: mutant -> the law about targets that must fail, the encoding that shows it, and what the model needs besides
SEEDED: tuple[tuple[str, str, str, dict[str, Any]], ...] = (
    ("one token ahead", "causality", "alibi", {"window": 6}),
    ("the norm sees the whole row", "causality", "none", {}),
    ("the norm sees the batch", "batch mates change nothing", "rope", {}),
    ("position is built and forgotten", "order is seen", "learned", {"causal": False}),
    ("all rows take the first row", "every row has its own positions", "rope", {}),
    ("an absolute table stays under a relative encoding", "shift", "t5", {}),
    ("left padding is counted", "left padding changes nothing", "sinusoidal", {}),
    ("padding is seen", "left padding changes nothing", "alibi", {}),
    ("padding after the text is seen", "right padding changes nothing", "rope", {"causal": False}),
    ("holes are counted", "interior padding changes nothing", "learned", {}),
    ("an empty row is nan", "an empty row is harmless", "alibi", {}),
    ("documents leak", "packed = separate", "rope", {}),
    ("packed positions never restart", "packed = separate", "learned", {}),
    ("every step at position 0", "cached = full", "t5", {}),
    ("the newest key is lost", "cached = full", "none", {}),
    ("causal mask from the top left", "chunks = whole", "rope", {}),
    ("decoding counts slots", "padded rows decode at their own places", "sinusoidal", {}),
    ("reorder forgets values", "beam with cache = beam without", "rope", {}),
    ("beams forget whose source they read", "reorder = rerun", "rope", PAIR),
    ("dropout never stops", "dropout acts once", "alibi", {"options": {"dropout": 0.2}}),
    ("the tie is a copy", "ties are one tensor", "rope", {}),
    ("the tie is to a tensor long gone", "a saved model is the same", "rope", {}),
    ("a long call changes the base for good", "call history", "rope", {}),
    ("past the table the last row repeats", "past the table is an error", "learned", {}),
    ("positions in the models dtype", "bfloat16 moves no position", "sinusoidal", FAR),
    ("frequencies are cast with the model", "bfloat16 moves no position", "rope", FAR),
    ("angles by a matrix product", "autocast moves no position", "rope", FAR),
    ("window one too wide", "a window is as wide as it says", "rope", {"window": 3}),
    (
        "the padding of the source is seen",
        "source padding on the right changes nothing",
        "rope",
        {"architecture": "encoder-decoder"},
    ),
    ("resizing draws all rows anew", "resizing keeps old rows", "rope", {}),
)


REACHES, APART = "a position reaches attention", "no two places are one"
#: what is done to positions, its story, the law, how; each under a table that is learned and one of sines
PLACES: tuple[tuple[str, str, str, Callable[[Int], Int]], ...] = (
    ("all looked up at 0", "The table is asked for position 0 alone, wherever tokens are.", REACHES, torch.zeros_like),
    ("taken modulo 8", "Positions begin anew after every 8 tokens.", APART, lambda at: at % 8),
    ("halved", "Two neighbours stand at one position.", APART, lambda at: at // 2),
)
TABLES: dict[str, type[PositionEncoding]] = {"learned": Learned, "sinusoidal": Sinusoidal}


def _fault(name: str, law: str, encoding: str, more: dict[str, Any]) -> Fault:
    mutant = MUTANTS[name]
    return _made(name, mutant.kind, mutant.story, law, encoding, mutant.plant, **more)


def _made(
    name: str, kind: str, story: str, law: str, encoding: str, plant: Callable[[], Planting], **more: Any
) -> Fault:
    def made() -> Gnomon:
        return Gnomon(Subject.of(encoding, **more).model())

    def build() -> tuple[Gnomon, Gnomon]:
        return made(), made()

    return Fault(name, kind, story, law, build, plant)


def _of_places(encoding: str, name: str, story: str, law: str, moved: Callable[[Int], Int]) -> Fault:
    table = TABLES[encoding]
    healthy = table.vectors

    def vectors(self: PositionEncoding, at: Layout, dtype: torch.dtype = torch.float32) -> Float | None:
        return healthy(self, replace(at, pos=moved(at.pos)), dtype)

    def plant() -> Planting:
        return patch.object(table, "vectors", vectors)

    return _made(f"{encoding} positions are {name}", "places", story, law, encoding, plant)


def _faults() -> Iterator[Fault]:
    for seeded in SEEDED:
        yield _fault(*seeded)
    for encoding in TABLES:
        forgotten = MUTANTS["position is built and forgotten"]
        yield _made(
            f"{encoding} positions are never added", "places", forgotten.story, REACHES, encoding, forgotten.plant
        )
        for place in PLACES:
            yield _of_places(encoding, *place)


FAULTS = tuple(_faults())

__all__ = ["FAULTS", "SEEDED"]
