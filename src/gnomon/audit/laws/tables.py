"""The law of context scaling: a model turns pairs by the angles that its config promises.

The promise is computed by `positions.scaling`, from the papers, and shares no line with the target. It is compared
within the trained length and past it, since dynamic and LongRoPE tables differ there.
"""

import torch

from gnomon.audit.law import Evidence, law
from gnomon.audit.target import Target
from gnomon.shapes import Float

SHORT, FAR, FARTHEST = 16, 16384, 65536  #: tokens of the texts; twice the target's limit instead of FAR, if it has one
CLOSE = 1e-3  #: ratios that differ by less are alike: tables are computed in float32


@law(
    "scaling as published",
    "angles",
    Target,
    source="Peng et al. 2024, arXiv:2309.00071; Chen et al. 2023, arXiv:2306.15595; Ding et al. 2024, arXiv:2402.13753",
    hint="compare the frequencies pair by pair with the paper's formula, and see that every key of the config is read",
    shown_by="rope with a context scaling",
    shrinks=False,
)
def scaling_as_published(t: Target, n: int) -> Evidence:
    """Frequencies, and the factor on cosines and sines, are those that the config promises."""
    lengths = SHORT, FAR if t.limit is None else min(max(2 * t.limit, 2 * SHORT), FARTHEST)
    ratios, causes = [], []
    for length in lengths:
        used, promised = (angular_speeds(angles) for angles in t.angles(length))
        ratios.append(ratio(used, promised))
        if differ_from_one(ratios[-1]):
            causes.append(f"in a text of {length} tokens {explain(used, promised)}")
    return Evidence(torch.stack(ratios), torch.ones_like(torch.stack(ratios)), None, None, CLOSE, "; ".join(causes[:1]))


def angular_speeds(angles: Float) -> Float:
    """Angles (T, pairs + 1) -> radians a token of each pair, and the factor on lengths last."""
    moved = angles[:2].double().diff(dim=0)[0]
    return torch.cat([moved[:-1], angles[-1, -1:].double()])


def ratio(got: Float, want: Float) -> Float:
    """got / want, 1 where both are 0."""
    return torch.where(want == got, 1.0, got / torch.where(want == 0, 1e-30, want))


def differ_from_one(ratios: Float) -> bool:
    """Whether any is not 1."""
    return bool(((ratios - 1).abs() > CLOSE).any())


def explain(used: Float, promised: Float) -> str:
    """What went wrong with the frequencies, fast pairs first, and the factor last."""
    g, w = used[:-1], promised[:-1]
    if not differ_from_one(ratio(g, w)):
        return f"cosines and sines are multiplied by {float(used[-1]):.5g}, not {float(promised[-1]):.5g}"
    if bool(((g == 0) != (w == 0)).any()):
        return f"{int((g == 0).sum())} pairs stand still, not {int((w == 0).sum())}"
    g, w = g[g > 0], w[w > 0]
    slow = w / g  # how many times too slow each pair turns
    first, last = float(slow[0]), float(slow[-1])
    if not differ_from_one(slow / slow[0]):
        if first > 1:
            return f"every pair turns {first:.4g} times too slowly"
        return f"the factor {1 / first:.4g} is ignored: every pair turns as without scaling"
    if first > 1 + CLOSE and last < 1 - CLOSE:
        return "the ramp is the wrong way round: fast pairs are stretched and slow ones kept"
    if first > 1 + CLOSE:
        return (
            f"the factor is applied to all pairs: the fastest, which keeps its pace, turns {first:.4g} times too slowly"
        )
    if is_geometric(g) and is_geometric(w):
        return f"the base is {base(g):.6g}, not {base(w):.6g}: it was not read, or does not grow as it should"
    if is_geometric(g):
        return "the factor is ignored: every pair turns as without scaling"
    worst = int((slow.log().abs()).argmax())
    return f"pair {worst} of {len(g)} turns {1 / float(slow[worst]):.4g} times as fast as promised"


def is_geometric(frequencies: Float) -> bool:
    """Whether each is the same part of the one before it, as without scaling."""
    steps = frequencies[1:] / frequencies[:-1]
    return len(steps) > 0 and not differ_from_one(steps / steps[0])


def base(frequencies: Float) -> float:
    """theta of theta^(-2 i / d)."""
    pairs = len(frequencies)
    return float((frequencies[0] / frequencies[-1]) ** (pairs / max(pairs - 1, 1)))


__all__ = ["angular_speeds", "base", "explain", "is_geometric", "ratio", "scaling_as_published"]
