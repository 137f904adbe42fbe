"""The laws about anybody's model, by name."""

from gnomon.audit.outside.laws import caches, order, padding
from gnomon.audit.outside.rule import Rule

RULES: dict[str, Rule] = {
    found.name: found for room in (order, caches, padding) for found in vars(room).values() if isinstance(found, Rule)
}

__all__ = ["RULES"]
