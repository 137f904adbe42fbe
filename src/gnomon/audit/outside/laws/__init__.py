"""The laws about anybody's model, by name."""

from gnomon.audit.outside.laws import bare, caches, embedding, heads, loss, order, padding, tables, weights
from gnomon.audit.outside.rule import Rule

RULES: dict[str, Rule] = {
    found.name: found
    for room in (order, caches, padding, embedding, heads, weights, loss, tables, bare)
    for found in vars(room).values()
    if isinstance(found, Rule)
}

__all__ = ["RULES"]
