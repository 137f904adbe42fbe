"""Why scores are divided by sqrt(d_k): without it the softmax saturates and its gradient vanishes.

For normal q and k the score q . k has standard deviation sqrt(d_k) (Vaswani et al. 2017, section 3.2.1, footnote 4).
The Jacobian of p = softmax(s) is diag(p) - p p^T, which is 0 where p is one-hot.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gnomon.errors import BadValue, check_arguments
from gnomon.glossary import words
from gnomon.plots.picture import Picture, check_drawable
from gnomon.plots.style import BLUE, ORANGE, gnomon_style, panels, plain_numbers

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Saturation:
    """What softmax does to scores of width d_k, over many draws.

    weights   (keys,) mean weight of the largest, second largest, ... key
    jacobian  (draws,) Frobenius norm of diag(p) - p p^T
    """

    weights: FloatArray
    jacobian: FloatArray


@check_arguments
def saturation(d_k: int = 512, keys: int = 16, scaled: bool = True, draws: int = 20000, seed: int = 0) -> Saturation:
    """Draw normal queries and keys of width d_k, take the softmax of their scores, measure it.

    Given q, the scores of normal keys are independent and normal with deviation |q|: they are drawn as such, which is
    exact and needs no keys of width d_k.
    """
    if d_k < 1 or keys < 1 or draws < 1:
        raise BadValue(f"d_k, keys and draws must be at least 1, got {d_k}, {keys} and {draws}")
    check_drawable(keys * draws, f"the softmax of {keys} keys in {draws} draws")
    rng = np.random.default_rng(seed)
    norm_q = np.sqrt(rng.chisquare(d_k, size=(draws, 1)))
    s = norm_q * rng.standard_normal((draws, keys)) * (d_k**-0.5 if scaled else 1.0)
    p = np.exp(s - s.max(1, keepdims=True))
    p /= p.sum(1, keepdims=True)
    return Saturation(np.sort(p, 1)[:, ::-1].mean(0), jacobian_norm(p))


def jacobian_norm(p: FloatArray) -> FloatArray:
    """Frobenius norm of diag(p) - p p^T for weights p (N, keys): sum p^2 - 2 sum p^3 + (sum p^2)^2, square root.

    Near a one-hot p this cancels, so the largest weight is written as one minus the others there.
    """
    rest = np.sort(p, 1)[:, :-1]
    r, r2 = rest.sum(1), (rest**2).sum(1)  # the largest weight is 1 - r
    diagonal = (r * (1 - r)) ** 2 + ((rest * (1 - rest)) ** 2).sum(1)
    with_largest = 2 * (1 - r) ** 2 * r2
    among_rest = r2**2 - (rest**4).sum(1)
    norm: FloatArray = np.sqrt(diagonal + with_largest + among_rest)
    return norm


@check_arguments
def scaling(d_k: int = 512, keys: int = 16, draws: int = 20000, seed: int = 0, lang: str = "en") -> Picture:
    """Softmax weights with and without the division by sqrt(d_k), and the Jacobian's norm as the width grows."""
    if keys < 2:
        raise BadValue(f"a softmax over one key always gives 1 and has no gradient to draw: take keys >= 2, got {keys}")
    w = words("plots", lang)
    widths = sorted({*(2**n for n in range(11)), d_k})
    measured = {
        (width, scaled): saturation(width, keys, scaled, draws, seed) for width in widths for scaled in (True, False)
    }
    title, note = w("scaling_title"), w("scaling_note", keys=keys)
    with gnomon_style():
        figure, [[left, right]] = panels(title, note, (8.8, 4.2), columns=2, widths=(1, 1.15))
        right.set(xscale="log", yscale="log", xlabel=w("head_width"), ylabel=w("jacobian"), xlim=(1, max(widths)))
        right.set_ylim(1e-5, 1)
        places = np.arange(1, keys + 1)
        for scaled, name, colour, shift in ((True, "scaled", BLUE, 0.2), (False, "unscaled", ORANGE, -0.2)):
            shown = measured[d_k, scaled]
            left.bar(places + shift, shown.weights, width=0.4, color=colour)
            left.text(0.97, 0.9 if scaled else 0.8, w(name), transform=left.transAxes, ha="right", color=colour)
            low, middle, high = (
                [float(np.quantile(measured[width, scaled].jacobian, q)) for width in widths] for q in (0.25, 0.5, 0.75)
            )
            right.fill_between(widths, low, high, color=colour, alpha=0.15, linewidth=0)
            right.plot(widths, middle, color=colour)
            at = float(np.median(shown.jacobian))
            right.annotate(
                w.number(at, ".2f" if at >= 0.01 else ".5f"),
                (d_k, at),
                xytext=(-6, 7 if scaled else -8),
                textcoords="offset points",
                ha="right",
                color=colour,
            )
            right.plot([d_k], [at], "o", color=colour, markersize=5)
        left.set(xlabel=w("keys_sorted", width=d_k), ylabel=w("attention_weight"), ylim=(0, 1))
        right.grid(axis="y")
        plain_numbers(right.xaxis)
        left.set_xticks([1, *range(4, keys + 1, 4)])
    medians = {
        name: float(np.median(measured[d_k, scaled].jacobian))
        for name, scaled in (("scaled", True), ("unscaled", False))
    }
    facts = {"d_k": d_k, "keys": keys, "draws": draws, "seed": seed, "median_jacobian_norm": medians}
    return Picture(figure, f"{title}. {note}", facts, lang)


__all__ = ["Saturation", "jacobian_norm", "saturation", "scaling"]
