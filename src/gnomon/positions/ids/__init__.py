"""Position ids: recipes for where tokens are said to sit, one per file, for any encoding that reads positions.

>>> import gnomon as gn
>>> gn.positions.get("rope", positions=gn.positions.Randomized(max=2048))
rope(positions='randomized(max=2048)')
>>> gn.positions.get("rope", positions="randomized(2048)").positions.max
2048
"""

from gnomon.positions.ids.abacus import Abacus
from gnomon.positions.ids.base import PositionIds, documents, draw, move, position_ids, recipe, recipes
from gnomon.positions.ids.cape import CAPE
from gnomon.positions.ids.random_start import RandomStart
from gnomon.positions.ids.randomized import Randomized

__all__ = [
    "CAPE",
    "Abacus",
    "PositionIds",
    "RandomStart",
    "Randomized",
    "documents",
    "draw",
    "move",
    "position_ids",
    "recipe",
    "recipes",
]
