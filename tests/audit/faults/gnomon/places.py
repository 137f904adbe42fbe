"""Faults about what becomes of positions that are added to token vectors."""

from collections.abc import Callable
from dataclasses import replace
from unittest.mock import patch

import torch

from faults.fault import Fault, OurFault, model
from faults.gnomon.tables import position_is_built_and_forgotten as forgotten
from gnomon.audit import Law
from gnomon.audit.laws import positions
from gnomon.layout import Layout
from gnomon.positions import Learned, PositionEncoding, Sinusoidal
from gnomon.shapes import Float, Int

TABLES: dict[str, type[PositionEncoding]] = {"learned": Learned, "sinusoidal": Sinusoidal}
REACHES, APART = positions.a_position_reaches_attention, positions.no_two_places_are_one
#: what is done to positions, its story, the law, how
PLACES: tuple[tuple[str, str, Law, Callable[[Int], Int]], ...] = (
    ("all looked up at 0", "The table is asked for position 0 alone, wherever tokens are.", REACHES, torch.zeros_like),
    ("taken modulo 8", "Positions begin anew after every 8 tokens.", APART, lambda at: at % 8),
    ("halved", "Two neighbours stand at one position.", APART, lambda at: at // 2),
)


def _moved(encoding: str, name: str, story: str, law: Law, moved: Callable[[Int], Int]) -> Fault:
    table = TABLES[encoding]
    healthy = table.vectors

    def vectors(self: PositionEncoding, at: Layout, dtype: torch.dtype = torch.float32) -> Float | None:
        return healthy(self, replace(at, pos=moved(at.pos)), dtype)

    return _fault(encoding, f"are {name}", story, law, lambda: patch.object(table, "vectors", vectors))


def _fault(encoding: str, what: str, story: str, law: Law, plant: Callable[[], object]) -> Fault:
    name = f"{encoding} positions {what}"
    return OurFault(name, "places", story, (law,), lambda broken: model(encoding), plant, "", (encoding,))


FAULTS = [
    *(_fault(table, "are never added", forgotten.story, REACHES, forgotten.plant) for table in TABLES),
    *(_moved(table, *place) for table in TABLES for place in PLACES),
]
