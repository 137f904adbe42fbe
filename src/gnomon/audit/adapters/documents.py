"""Documents packed into rows, as laws speak of them: for each token the number of the document it belongs to.

Positions are counted here and not by `gnomon.layout`, which is among what the audit looks at.
"""

import torch

from gnomon.shapes import Int


def count_within_documents(docs: Int) -> Int:
    """Positions (B, T) that begin at 0 in each stretch of one document of docs (B, T)."""
    place = torch.arange(docs.shape[1], device=docs.device).expand(docs.shape)
    begins = torch.ones_like(docs, dtype=torch.bool)
    begins[:, 1:] = docs[:, 1:] != docs[:, :-1]
    return place - torch.where(begins, place, 0).cummax(1).values


__all__ = ["count_within_documents"]
