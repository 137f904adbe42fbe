"""The question `position_table`: what a loaded model adds at its input, how alike its rows are, and where it ends."""

import torch
from torch.nn import functional as F

from gnomon.errors import BadValue
from gnomon.explorer.questions import Answer, question
from gnomon.glossary import translate
from gnomon.layout import Layout
from gnomon.models import Model
from gnomon.models.similarity import token_vectors
from gnomon.positions import Learned, PositionEncoding
from gnomon.positions.learned import Growth

MOST = 512  #: rows that are sent


@question
def position_table(model: Model, grow: Growth | None = None, lang: str = "en") -> Answer:
    """The first rows (T, D) of the position vectors, their cosines (T, T), their lengths and those of the tokens.

    grow: "interpolate", "tile" or "zero" shows a learned table of twice the rows. Without vectors at the input, only
    what the model's encodings say of themselves."""
    added = model.input.position
    facts: Answer = {
        "encodings": [
            {"name": e.name, "acts": e.acts, "says": [translate(line, lang) for line in e.describe(_trained(model))]}
            for e in model.encodings()
            if e.name != "none" or added is None
        ],
        "trained": _trained(model),
    }
    if added is None:
        return {**facts, "rows": 0}
    rows = _rows(model, added)
    if grow is not None:
        if not isinstance(added, Learned):
            raise BadValue(f"{added.name} has no table to grow: it is computed for any position")
        added, rows = added.grow(2 * added.max_positions, grow), 2 * added.max_positions
    shown = min(rows, MOST)
    every = -(-rows // shown)
    at = torch.arange(0, rows, every)
    found = added.vectors(Layout.placed(at.tolist()))
    assert found is not None  # it acts at the input
    vectors = found[0].float()
    tokens = token_vectors(model) if model.tokenizer is not None else None
    unit = F.normalize(vectors, dim=-1)
    return {
        **facts,
        "name": added.name,
        "rows": rows,
        "every": every,
        "width": vectors.shape[1],
        "values": vectors,
        "cosines": unit @ unit.T,
        "lengths": vectors.norm(dim=-1),
        "token_length": None if tokens is None else float(tokens.norm(dim=-1).mean()) * model.input.tokens.scale,
        "learned": isinstance(added, Learned),
        "past": _past(added, rows),
    }


def _trained(model: Model) -> int | None:
    return model.config.max_positions


def _rows(model: Model, added: PositionEncoding) -> int:
    return added.max_positions if isinstance(added, Learned) else (_trained(model) or 256)


def _past(added: PositionEncoding, rows: int) -> str | None:
    """What happens at the first position past the end; None where there is no end."""
    try:
        added.check(Layout.dense(1, rows + 1))
    except BadValue as error:
        return str(error)
    return None


__all__ = ["position_table"]
