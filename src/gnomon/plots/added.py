"""The picture of encodings that act in attention: what position adds to scores, over texts drawn at random."""

import numpy as np
import torch

from gnomon.errors import BadValue, check_arguments
from gnomon.glossary import words
from gnomon.plots.biases import head_lines
from gnomon.plots.picture import Picture, check_drawable
from gnomon.plots.resolve import Position, build_position, is_trained
from gnomon.plots.style import gnomon_style, panels

DRAWS = 64


@check_arguments
def added(
    position: Position = "shaw",
    length: int = 64,
    d_model: int = 64,
    d_head: int = 32,
    n_heads: int = 8,
    causal: bool = True,
    seed: int = 0,
    lang: str = "en",
) -> Picture:
    """What each head adds to a score by distance: its mean over drawn texts, and how far it differs between them.

    length   the furthest distance; causal: drawn against tokens back, otherwise against both sides
    facts    "gap", and for each head "mean_1", "spread_1" (the standard deviation), ...
    """
    w = words("plots", lang)
    T = length + 1 if causal else 2 * length + 1
    check_drawable(DRAWS * n_heads * T * T, f"{n_heads} heads over {T} tokens in {DRAWS} drawn texts")
    encoding = build_position(position, "attention", d_model=d_model, d_head=d_head, n_heads=n_heads, causal=causal)
    if encoding.one_sided and not causal:
        raise BadValue(f"{encoding.name} is for causal attention only, so it has one side to draw: leave this out")
    with torch.no_grad():
        of_last = encoding.added(T, seed, DRAWS)[:, :, length].double().numpy()  # (draws, H, T)
    gap = np.arange(0 if causal else -length, length + 1)
    lines = of_last[..., ::-1] if causal else of_last
    parts = {"mean": lines.mean(0), "spread": lines.std(0)}
    title, note = w("added_title", name=encoding.name), w("added_note", draws=DRAWS)
    if any(True for _ in encoding.parameters()) and not is_trained(position):
        note += f" {w('untrained_note')}"
    with gnomon_style():
        figure, [panes] = panels(title, note, (8.8, 4.3), columns=2)
        names = [w("head", number=h + 1) for h in range(lines.shape[1])]
        for axes, (label, shown) in zip(panes, parts.items(), strict=True):
            head_lines(axes, gap, shown, names)
            axes.set(xlabel=w("back" if causal else "ahead"), ylabel=w(f"added_{label}"))
    facts = {f"{label}_{h + 1}": line.tolist() for label, shown in parts.items() for h, line in enumerate(shown)}
    return Picture(figure, f"{title}. {note}", {"gap": gap.tolist(), **facts}, lang)


__all__ = ["added"]
