"""The question `faults`: what the classic errors of position, mask and cache do to a real model's next token.

Each is played for real: the model reads the text with a Layout that says where tokens are not. A fault that changes
nothing under an encoding is not observable there, which is not the same as harmless.
"""

from collections.abc import Callable
from dataclasses import replace

import torch

from gnomon.errors import BadValue
from gnomon.explorer.flow import candidates, ids_of
from gnomon.explorer.questions import Answer, question
from gnomon.layout import Layout
from gnomon.models import DecoderOnly, Model
from gnomon.shapes import Float

PADS = 6  # tokens of padding, and of another document
SEEN = 1e-4  # of the largest logit, from which a difference is more than rounding


@question
def faults(model: Model, text: str) -> Answer:
    """The next token as it should be, and under each fault: its candidates, and the largest change of a logit."""
    if not isinstance(model, DecoderOnly) or not model.config.causal:
        raise BadValue(f"this model is {model.architecture}: a decoder is needed, which has a cache of its own")
    ids = ids_of(model, text, "prompt")
    if len(ids) < 3:
        raise BadValue("give a text of at least three tokens")
    right = _last(model, ids, Layout.dense(1, len(ids)))
    told = []
    for name, play in FAULTS.items():
        logits = play(model, ids)
        change = float((logits - right).abs().max())
        seen = change > SEEN * max(1.0, float(right.abs().max()))
        told.append({"name": name, "change": change, "seen": seen, "candidates": candidates(model, logits, 5)})
    return {"right": candidates(model, right, 5), "tokens": len(ids), "faults": told}


def _last(model: DecoderOnly, ids: list[int], at: Layout) -> Float:
    """Logits after the last token of a row that is read at once."""
    device = next(model.parameters()).device
    model.check(at.to(device))
    return model.head(model.hidden(torch.tensor([ids], device=device), at.to(device))[:, -1:])[0, -1].float()


def _decoded(model: DecoderOnly, ids: list[int], move: Callable[[Layout], Layout]) -> Float:
    """The same, with all but the last token in a cache and the last one placed by `move`."""
    device = next(model.parameters()).device
    row, cache = torch.tensor([ids], device=device), model.cache()
    model.hidden(row[:, :-1], cache=cache)
    assert cache.at is not None
    at = move(cache.at.then(1))
    return model.head(model.hidden(row[:, -1:], at, cache=cache))[0, -1].float()


def _moved(by: int) -> Callable[[DecoderOnly, list[int]], Float]:
    def play(model: DecoderOnly, ids: list[int]) -> Float:
        return _decoded(model, ids, lambda at: replace(at, pos=at.pos + by, kind="custom"))

    return play


def _at_zero(model: DecoderOnly, ids: list[int]) -> Float:
    return _decoded(model, ids, lambda at: replace(at, pos=torch.zeros_like(at.pos), kind="custom"))


def _padded(ids: list[int]) -> tuple[list[int], Layout]:
    """The text after some padding, as it should be read."""
    mask = torch.tensor([[False] * PADS + [True] * len(ids)])
    return [ids[0]] * PADS + ids, Layout.padded(mask)


def _counted_from_padding(model: DecoderOnly, ids: list[int]) -> Float:
    row, at = _padded(ids)
    return _last(model, row, replace(at, pos=torch.arange(len(row))[None]))


def _padding_seen(model: DecoderOnly, ids: list[int]) -> Float:
    row, at = _padded(ids)
    places = torch.arange(len(row))[None]
    return _last(model, row, replace(at, step=places, pos=(places - PADS).clamp(min=0), doc=torch.zeros_like(places)))


def _packed(ids: list[int]) -> tuple[list[int], Layout]:
    """The text after another document (its own beginning, backwards), as it should be read."""
    other = (ids[::-1] * PADS)[:PADS]
    return other + ids, Layout.packed([[PADS, len(ids)]])


def _not_restarted(model: DecoderOnly, ids: list[int]) -> Float:
    row, at = _packed(ids)
    return _last(model, row, replace(at, pos=torch.arange(len(row))[None]))


def _leaking(model: DecoderOnly, ids: list[int]) -> Float:
    row, at = _packed(ids)
    places = torch.arange(len(row))[None]
    return _last(model, row, replace(at, doc=torch.zeros_like(places), step=places, kind="custom"))


FAULTS: dict[str, Callable[[DecoderOnly, list[int]], Float]] = {
    "decode_at_zero": _at_zero,
    "decode_off_by_one": _moved(1),
    "decode_one_behind": _moved(-1),
    "counted_from_padding": _counted_from_padding,
    "padding_seen": _padding_seen,
    "packed_not_restarted": _not_restarted,
    "documents_leak": _leaking,
}

__all__ = ["FAULTS", "faults"]
