"""Pictures of what an encoding adds to scores: bias by head, and T5's map from distances to buckets."""

from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from gnomon.errors import BadValue, check_arguments
from gnomon.glossary import words
from gnomon.plots.picture import Picture, check_drawable
from gnomon.plots.resolve import Position, build_position, is_trained
from gnomon.plots.style import BLUE, ORDERED, colour_bar, gnomon_style, graded_colours, heat, name_lines, panels
from gnomon.positions import T5, PositionEncoding
from gnomon.positions.t5 import log_edges


@check_arguments
def bias(
    position: Position = "alibi", length: int = 128, n_heads: int = 8, causal: bool = True, lang: str = "en"
) -> Picture:
    """What each head adds to a score by distance, and the factor e^bias that this puts on its weight.

    length   the furthest distance; causal: drawn against tokens back, otherwise against both sides
    """
    w = words("plots", lang)
    check_drawable(n_heads * (4 * length + 1000), f"{n_heads} heads over {length} tokens")
    encoding = build_position(position, "score", n_heads=n_heads, causal=causal)
    gap = np.arange(0 if causal else -length, length + 1)
    lines = bias_by_distance(encoding, gap if causal else -gap)
    title, note = w("bias_title", name=encoding.name), w("bias_note")
    if any(True for _ in encoding.parameters()) and not is_trained(position):
        note += f" {w('untrained_note')}"
    with gnomon_style():
        figure, [[left, right]] = panels(title, note, (8.8, 4.3), columns=2)
        names = [w("head", number=h + 1) for h in range(len(lines))]
        head_lines(left, gap, lines, names)
        head_lines(right, gap, np.exp(lines), names)
        for axes, label in ((left, "bias"), (right, "weight_factor")):
            axes.set(xlabel=w("back" if causal else "ahead"), ylabel=w(label))
    shown = {f"head_{h + 1}": line.tolist() for h, line in enumerate(lines)}
    return Picture(figure, f"{title}. {note}", {"gap": gap.tolist(), **shown}, lang)


@check_arguments
def buckets(
    position: Position = "t5", length: int = 128, n_heads: int = 8, causal: bool = True, lang: str = "en"
) -> Picture:
    """T5's buckets: of every query and key among `length` tokens, and of every distance."""
    w = words("plots", lang)
    check_drawable(length**2 + 100 * n_heads, f"the buckets of {n_heads} heads over {length} tokens")
    encoding = build_position(position, "score", n_heads=n_heads, causal=causal)
    if not isinstance(encoding, T5):
        raise BadValue(f"{encoding.name} has no buckets; t5 does")
    places = torch.arange(length)
    gaps = places[None, :] - places[:, None]  # key - query, (T, S)
    matrix = encoding.bucket(gaps).double().numpy()
    if encoding.causal:
        matrix = np.where(gaps.numpy() > 0, np.nan, matrix)
    gap = torch.arange(0 if encoding.causal else 1 - length, length)
    step = encoding.bucket(-gap if encoding.causal else gap)
    title, note = w("buckets_title", name=encoding.name), w("buckets_note", furthest=_last_edge(encoding))
    with gnomon_style():
        figure, [[left, right]] = panels(title, note, (8.8, 4.2), columns=2, widths=(1, 1.05))
        image = heat(left, matrix, 0, encoding.n_buckets - 1, ORDERED)
        left.set(xlabel=w("key"), ylabel=w("query"))
        left.set_aspect("equal")
        colour_bar(figure, image, left, w("bucket"))
        right.step(gap.numpy(), step.numpy(), where="mid", color=BLUE)
        right.grid(axis="y")
        right.set(xlabel=w("back" if encoding.causal else "ahead"), ylabel=w("bucket"), ylim=(-1, encoding.n_buckets))
    edges = {int(b): int(g) for g, b in reversed(list(zip(gap.abs().tolist(), step.tolist(), strict=True)))}
    return Picture(figure, f"{title}. {note}", {"first_distance": dict(sorted(edges.items()))}, lang)


def bias_by_distance(encoding: PositionEncoding, back: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """(H, R) the bias between a query and the key `back` tokens before it (negative: after it)."""
    keys = int(back.max()) - torch.as_tensor(back)[None]
    query = torch.full_like(keys, int(back.max()))
    heads = torch.arange(encoding.heads(), dtype=torch.float64)[:, None]
    with torch.no_grad():
        found = encoding.bias(heads, query, keys)
    if found is None:
        raise BadValue(f"{encoding.name} says it acts on scores but gives no bias: it may depend on content")
    lines: npt.NDArray[np.float64] = found.double().expand(len(heads), len(back)).cpu().numpy()
    return lines


def head_lines(axes: Any, x: npt.NDArray[np.int64], lines: npt.NDArray[np.float64], names: list[str]) -> None:
    """One line a head, from dark to light, each named at its right end."""
    colours = graded_colours(len(lines))
    for line, colour in zip(lines, colours, strict=True):
        axes.plot(x, np.where(np.isfinite(line), line, np.nan), color=colour, linewidth=1.5)
    axes.set_xlim(x[0], x[-1])
    name_lines(axes, x[-1], [line[-1] for line in lines], names, colours)


def _last_edge(encoding: T5) -> int:
    """The distance from which on all keys share the last bucket."""
    n = encoding.n_buckets if encoding.causal else encoding.n_buckets // 2
    return log_edges(n // 2, n - n // 2, encoding.max_distance)[-1]


__all__ = ["bias", "bias_by_distance", "buckets", "head_lines"]
