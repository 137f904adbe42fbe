"""Position encodings, one published method per file, chosen by name.

>>> import gnomon as gn
>>> gn.positions.get("rope", base=1e6)
rope(base=1000000.0)
>>> gn.positions.get("rope", scaling=gn.positions.YaRN(factor=4.0, original_length=2048)).options["scaling"]["kind"]
'yarn'
"""

from gnomon.positions.alibi import ALiBi
from gnomon.positions.base import NoPE, PositionEncoding
from gnomon.positions.ids import CAPE, Abacus, PositionIds, Randomized, RandomStart, recipe, recipes
from gnomon.positions.learned import Learned
from gnomon.positions.registry import encoding, get, names
from gnomon.positions.rope import RoPE, pairing_order
from gnomon.positions.scaling import NTK, DynamicNTK, Linear, Llama3, LongRoPE, Proportional, Scaling, YaRN
from gnomon.positions.sinusoidal import Sinusoidal, sin_cos, sinusoidal_table
from gnomon.positions.spec import Spec
from gnomon.positions.t5 import T5

__all__ = [
    "CAPE",
    "NTK",
    "T5",
    "ALiBi",
    "Abacus",
    "DynamicNTK",
    "Learned",
    "Linear",
    "Llama3",
    "LongRoPE",
    "NoPE",
    "PositionEncoding",
    "PositionIds",
    "Proportional",
    "RandomStart",
    "Randomized",
    "RoPE",
    "Scaling",
    "Sinusoidal",
    "Spec",
    "YaRN",
    "encoding",
    "get",
    "names",
    "pairing_order",
    "recipe",
    "recipes",
    "sin_cos",
    "sinusoidal_table",
]
