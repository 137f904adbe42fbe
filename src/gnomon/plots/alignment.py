"""Alignment: which words of a source a decoder looks at while it writes each word of its answer.

Cross-attention as a soft alignment: Bahdanau et al. 2015, arXiv:1409.0473, figure 3.
"""

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import torch

from gnomon.errors import BadValue, check_arguments
from gnomon.generate import evaluation_mode, generate
from gnomon.glossary import words
from gnomon.models import EncoderDecoder
from gnomon.plots.picture import Picture
from gnomon.plots.style import MUTED, ORANGE, SHARE, canvas, colour_bar, drawable, gnomon_style, heat
from gnomon.trace import Trace

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LONGEST = 64  # tokens of an answer that the model writes itself
MOST = 40  # tokens of either side that can still be read in a picture

Weights = npt.NDArray[np.floating]


@check_arguments
def alignment(model: EncoderDecoder, source: str, target: str | None = None, lang: str = "en") -> Picture:
    """Cross-attention of every head, and their mean, as pictures of source (columns) against target (rows).

    target  what is written about the source; by default what the model writes itself, greedily

    facts: "source" and "target", their tokens; "looked_at", for each token of the target the source token that gets
    most, over the mean of all heads; "weights", that mean (T, S). Raises BadValue for a model without a tokenizer, an
    empty source, and texts too long to be drawn.
    """
    source_ids, ids, end = _ids(model, source, target)
    trace = Trace()
    with torch.no_grad(), evaluation_mode(model):
        device = next(model.parameters()).device
        model(torch.tensor([source_ids], device=device), torch.tensor([[end, *ids]], device=device), trace=trace)
    weights = np.stack([layer[0].float().cpu().numpy() for layer in trace.cross])  # (L, H, T, S)
    w = words("alignment", lang)
    columns, rows = _shown(model, source_ids), [*_shown(model, ids), w("end")]
    mean = weights.mean((0, 1))
    facts = {
        "source": columns,
        "target": rows,
        "looked_at": [columns[i] for i in mean.argmax(1)],
        "weights": mean.tolist(),
    }
    return _draw(weights, mean, columns, rows, lang, facts)


def _ids(model: EncoderDecoder, source: str, target: str | None) -> tuple[list[int], list[int], int]:
    """Token ids of both sides, and the id that starts and ends the target."""
    tokenizer = model.tokenizer
    if tokenizer is None or tokenizer.eos_id is None:
        raise BadValue("an alignment of texts needs a model with a tokenizer that has an end-of-text token")
    source_ids = tokenizer.encode(source)
    if not source_ids:
        raise BadValue("the source is empty: give a text to be translated")
    if target is None:
        written = generate(model, source=[source_ids], max_new_tokens=LONGEST)[0].ids
        ids = [i for i in written if i != tokenizer.eos_id]
    else:
        ids = tokenizer.encode(target)
    for name, side in (("source", source_ids), ("target", ids)):
        if len(side) > MOST:
            raise BadValue(f"the {name} has {len(side)} tokens; more than {MOST} cannot be read in a picture")
    return source_ids, ids, tokenizer.eos_id


def _shown(model: EncoderDecoder, ids: list[int]) -> list[str]:
    """Each token as a label, without the space that separates it from the one before."""
    assert model.tokenizer is not None
    return [token.removeprefix("␣") or token for token in model.tokenizer.tokens(ids)]


def _draw(
    weights: Weights, mean: Weights, columns: list[str], rows: list[str], lang: str, facts: dict[str, object]
) -> Picture:
    w = words("alignment", lang)
    n_layers, n_heads, T, S = weights.shape
    small = max(1.5, 0.12 * S + 0.5)  # inches of a single head
    width, height = 2.6 + 0.42 * S + small * n_heads, max(1.6 + 0.36 * T + 1.0, 1.6 + 1.7 * n_layers)
    with gnomon_style():
        figure = canvas(w("title"), w("note"), (width, height))
        sides = figure.subfigures(1, 2, squeeze=False, width_ratios=[2.4 + 0.42 * S, small * n_heads])
        left, right = sides[0]
        axes = left.subplots()
        image = heat(axes, mean, 0, float(mean.max()), SHARE)
        axes.plot(mean.argmax(1), range(T), "o", color=ORANGE, markersize=4)
        axes.set_xticks(range(S), [drawable(c) for c in columns], rotation=40, ha="right", rotation_mode="anchor")
        axes.set_yticks(range(T), [drawable(r) for r in rows])
        colour_bar(left, image, axes, w("share"))
        for layer, line in enumerate(right.subplots(n_layers, n_heads, squeeze=False)):
            for head, one in enumerate(line):
                _single(one, weights[layer, head], w("head", layer=layer + 1, head=head + 1))
    return Picture(figure, f"{w('title')}: {' '.join(columns)} -> {' '.join(rows[:-1])}. {w('note')}", facts, lang)


def _single(axes: "Axes", weights: Weights, title: str) -> None:
    heat(axes, weights, 0, 1, SHARE)
    axes.set_title(title, fontsize=8, color=MUTED, pad=3)
    axes.set_xticks([])
    axes.set_yticks([])
    axes.spines[:].set_visible(True)
    axes.spines[:].set_linewidth(0.4)


__all__ = ["alignment"]
