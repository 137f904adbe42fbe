"""The laws by name: what must hold for every model, whatever its encoding. `gn.audit.LAWS["causality"](subject)`."""

from gnomon.audit.law import Law
from gnomon.audit.laws import caches, encodings, history, kernels, order, padding, published, sources, weights

LAWS: dict[str, Law] = {
    found.name: found
    for room in (caches, history, padding, order, encodings, published, kernels, weights, sources)
    for found in vars(room).values()
    if isinstance(found, Law)
}

__all__ = ["LAWS"]
