"""Pictures of frequencies: how many tokens each pair of channels takes for a turn, and what that does to scores."""

import math

import numpy as np
import numpy.typing as npt
import torch

from gnomon.errors import BadValue, check_arguments
from gnomon.glossary import grouped, words
from gnomon.layout import Layout
from gnomon.plots.picture import Picture, check_drawable
from gnomon.plots.resolve import Position, build_position
from gnomon.plots.resolve import build_rotation as pairs_of
from gnomon.plots.style import BLUE, FAINT, MUTED, ORANGE, gnomon_style, mark, panels, plain_numbers
from gnomon.positions import PositionEncoding
from gnomon.shapes import Float

POINTS = 300  # distances at which scores are taken, at most


@check_arguments
def wavelengths(
    position: Position = "rope", trained: int = 2048, d_head: int = 128, d_model: int = 128, lang: str = "en"
) -> Picture:
    """Wavelength 2 pi / theta_i of every pair of a sinusoidal or rotary encoding, against the training length."""
    w = words("plots", lang)
    check_drawable(20 * max(d_head, d_model), f"the wavelengths of {max(d_head, d_model)} channels")
    encoding = pairs_of(position, d_head=d_head, d_model=d_model)
    waves = 2 * math.pi / np.array([theta for theta in encoding.frequencies() if theta])  # those that turn
    pairs, turning = np.arange(len(waves)), waves <= trained
    title, note = w("wavelengths_title", name=encoding.name), w("wavelengths_note")
    with gnomon_style():
        figure, [[axes]] = panels(title, note, (7.2, 4.4))
        axes.set(yscale="log", xlabel=w("pair"), ylabel=w("wavelength_tokens"), xlim=(-1, len(waves)))
        # Set, because matplotlib would choose them from the first line alone, whose ends rounding may tear apart.
        axes.set_ylim(min(waves.min(), trained) / 2, max(waves.max(), trained) * 2)
        axes.grid(axis="y")
        axes.axhline(trained, color=MUTED, linewidth=0.9, linestyle=(0, (4, 3)))
        axes.annotate(
            w("trained_on", length=grouped(trained)),
            (0, trained),
            xycoords=("axes fraction", "data"),
            xytext=(4, 4),
            textcoords="offset points",
            fontsize=8.5,
            color=MUTED,
        )
        plain_numbers(axes.yaxis)
        for which, colour, text, side in ((turning, BLUE, "turning", 1), (~turning, ORANGE, "not_turning", -1)):
            axes.scatter(pairs[which], waves[which], s=22, color=colour, linewidths=0)
            if which.any():
                middle = pairs[which][which.sum() // 2]
                axes.annotate(
                    w(text, count=int(which.sum())),
                    (middle, waves[middle]),
                    xytext=(13 * side, -5 * side),
                    textcoords="offset points",
                    ha="left" if side > 0 else "right",
                    va="center",
                    color=colour,
                )
    facts = {
        "trained": trained,
        "pairs": len(waves),
        "complete_a_turn": int(turning.sum()),
        "shortest": float(waves.min()),
        "longest": float(waves.max()),
    }
    return Picture(figure, f"{title}. {note}", facts, lang)


@check_arguments
def scores(
    position: Position = "rope",
    length: int = 4096,
    d_head: int = 64,
    trained: int | None = None,
    draws: int = 256,
    seed: int = 0,
    lang: str = "en",
) -> Picture:
    """The score of a rotary encoding against distance, divided by the norms: for keys equal to their query, and for
    random ones. Normal queries and keys; mean and one standard deviation over `draws`.

    length   the furthest distance; trained: a training length to mark
    """
    w = words("plots", lang)
    check_drawable(2 * POINTS * draws * d_head, f"{draws} scores of heads of width {d_head}")
    encoding = build_position(position, "rotation", d_head=d_head, n_heads=1)
    width = encoding.d_head or d_head
    rng = torch.Generator().manual_seed(seed)
    q, k = torch.randn(2, draws, width, generator=rng, dtype=torch.float64)
    distance = distances(length)
    curves = {
        "aligned": against_distance(encoding, q, q, distance),
        "random": against_distance(encoding, q, k, distance),
    }
    title, note = w("scores_title", name=encoding.name), w("scores_note", draws=draws)
    with gnomon_style():
        figure, [[axes]] = panels(title, note, (7.2, 4.4))
        axes.set_xscale("symlog", linthresh=1, linscale=0.4)
        axes.set(xlabel=w("distance_tokens"), ylabel=w("score_over_norms"), xlim=(0, length))
        plain_numbers(axes.xaxis)
        axes.axhline(0, color=FAINT, linewidth=1)
        for name, colour, above in (("aligned", BLUE, 0.16), ("random", ORANGE, -0.24)):
            mean, spread = curves[name].mean(0).numpy(), curves[name].std(0).numpy()
            axes.fill_between(distance, mean - spread, mean + spread, color=colour, alpha=0.15, linewidth=0)
            axes.plot(distance, mean, color=colour, linewidth=1.4)
            spot = min(4, len(distance) - 1)
            axes.text(distance[spot], mean[spot] + above, w(name), va="center", color=colour)
        if trained is not None:
            mark(axes, trained, w("trained_on", length=grouped(trained)))
    facts = {
        "distance": distance.tolist(),
        **{f"{name}_mean": curve.mean(0).tolist() for name, curve in curves.items()},
        **{f"{name}_spread": curve.std(0).tolist() for name, curve in curves.items()},
    }
    return Picture(figure, f"{title}. {note}", facts, lang)


def distances(furthest: int, points: int = POINTS) -> npt.NDArray[np.int64]:
    """0 and whole distances up to `furthest`, evenly spread on a logarithmic scale."""
    if furthest < 1:
        raise BadValue(f"the furthest distance must be at least 1, got {furthest}")
    steps = np.geomspace(1, furthest, points).round().astype(np.int64)
    return np.unique(np.concatenate([[0], steps]))


@torch.no_grad()
def against_distance(encoding: PositionEncoding, q: Float, k: Float, distance: npt.NDArray[np.int64]) -> Float:
    """q, k (N, C) -> scores (N, R) over |q| |k|: the query sits `distance` tokens after its key, which sits at 0; with
    heads that differ, each takes some of the draws."""
    pairs = torch.stack([torch.zeros(len(distance), dtype=torch.long), torch.as_tensor(distance)], 1)
    k_at = Layout(pairs, pairs, None, pairs + 1)
    N, any_number = len(q), type(encoding).heads is PositionEncoding.heads
    heads = N if any_number else encoding.heads()
    found = []
    for start in range(0, N, heads):
        index = torch.arange(start, start + heads) % N
        here_q, here_k = (x[index, None].expand(len(distance), -1, n, -1) for x, n in ((q, 1), (k, 2)))
        turned_q, turned_k = encoding.turned(here_q, here_k, k_at.tokens(slice(1, None)), k_at)
        found.append((turned_q[:, :, 0] * turned_k[:, :, 0]).sum(-1).T)
    cosine: Float = torch.cat(found)[:N] / (q.norm(dim=-1) * k.norm(dim=-1))[:, None]
    return cosine


__all__ = ["against_distance", "distances", "scores", "wavelengths"]
