"""The laws about anybody's model, by name."""

from types import ModuleType

from gnomon.audit.outside.adapters.positions import Bare
from gnomon.audit.outside.laws import (
    bare,
    caches,
    copies,
    embedding,
    heads,
    history,
    limits,
    loss,
    order,
    padding,
    parts,
    places,
    precision,
    sinusoids,
    sources,
    tables,
    weights,
    windows,
)
from gnomon.audit.outside.rule import Rule
from gnomon.audit.outside.target import Target


def _of(*rooms: ModuleType) -> dict[str, Rule]:
    return {found.name: found for room in rooms for found in vars(room).values() if isinstance(found, Rule)}


#: History comes first: later laws make long calls, and a model that keeps something of them is to be caught before.
MODELS = _of(
    history,
    order,
    places,
    sinusoids,
    caches,
    padding,
    windows,
    limits,
    precision,
    sources,
    embedding,
    heads,
    weights,
    copies,
    parts,
    loss,
    tables,
)
BARE = _of(tables, bare)  #: about bare position modules (`adapters.positions`)
RULES = MODELS | BARE


def concerns(law: Rule, t: Target) -> bool:
    """Whether a law speaks of such a target at all: of a bare position module, or of a model."""
    return law.name in (BARE if isinstance(t, Bare) else MODELS)


__all__ = ["BARE", "MODELS", "RULES", "concerns"]
