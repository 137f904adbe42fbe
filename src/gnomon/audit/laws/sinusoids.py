"""A law of sinusoids within a whole model: their frequencies, read off what is added to one token at each place.

A verdict comes from known forms alone: the published ones, and those that a slip in the exponent gives. Another base is
a choice, and tables that are trained promise no frequency at all.
"""

from collections.abc import Callable, Iterator

import torch

from gnomon.audit.law import Evidence, law
from gnomon.audit.laws.embedding import first_block_input
from gnomon.audit.laws.heads import differing_first_tokens, require_unmixed
from gnomon.audit.target import NotApplicable, Target
from gnomon.shapes import Float

LONGEST, BASE = 128, 10000.0
Rates = Callable[[Float, int], tuple[Float, Float]]  #: pairs i (D/2), D -> exponents of the sines and of the cosines
PUBLISHED: tuple[Rates, ...] = (
    lambda i, D: (2 * i / D, 2 * i / D),  # Vaswani et al. 2017, section 3.5
    lambda i, D: (i / max(D / 2 - 1, 1), i / max(D / 2 - 1, 1)),  # as its authors' code, tensor2tensor, has it
)
SLIPS: dict[str, Rates] = {
    "sine and cosine of a pair turn at two rates: their exponents are j/d of each channel j, not 2i/d of both": (
        lambda i, D: (2 * i / D, (2 * i + 1) / D)
    ),
    "exponents are 2j/d of each channel j, where 2i/d of pair i is meant: frequencies fall twice as fast, and sine and "
    "cosine of a pair turn at two rates": lambda i, D: (4 * i / D, (4 * i + 2) / D),
    "exponents are 4i/d, not 2i/d: channels are counted in twos already, and frequencies fall twice as fast": (
        lambda i, D: (4 * i / D, 4 * i / D)
    ),
    "positions are multiplied by 10000^(2i/d), not divided: frequencies grow": lambda i, D: (-2 * i / D, -2 * i / D),
}


@law(
    "sinusoids are as published",
    source="Vaswani et al. 2017, section 3.5",
    hint="one exponent 2i/d for the sine and cosine of pair i, i from 0 to d/2 - 1",
    shrinks=False,
)
def sinusoids_as_published(t: Target, n: int) -> Evidence:
    """Where sinusoids are added to token vectors, sine and cosine of pair i turn by 10000^(-2i/d) a token."""
    T = t.nearest(LONGEST if t.limit is None else min(LONGEST, t.limit))
    require_unmixed(t, differing_first_tokens(t, T))
    x = first_block_input(t, t.ids(1, 1).expand(1, T).contiguous())[0].detach().double().cpu()
    got, D = x[1:] - x[0], x.shape[-1]
    slack = max(1e-3, 8 * torch.finfo(t.dtype).eps) * float(x.abs().amax())
    if D % 2 or T < 8 or bool((got.abs() <= slack).all()):
        raise NotApplicable(f"{t.name} adds no sinusoids to its token vectors")
    right = [fit_scale(table, got) for rates in PUBLISHED for table in tables(rates, T, D)]
    nearest = min(right, key=lambda want: float((got - want).abs().amax()))
    if bool((got - nearest).abs().amax() <= slack):
        return Evidence(got, nearest, torch.zeros_like(got), None, slack)
    for slip, rates in SLIPS.items():
        if any(bool((got - fit_scale(table, got)).abs().amax() <= slack) for table in tables(rates, T, D)):
            return Evidence(got, nearest, None, None, slack, slip)
    raise NotApplicable(
        f"what {t.name} adds to its token vectors are no sinusoids of base 10000, nor a known slip in them"
    )


def tables(rates: Rates, T: int, D: int) -> Iterator[Float]:
    """What is added at places 1 .. T - 1 less that at place 0 (T - 1, D), in each order of channels."""
    places, pairs = torch.arange(T, dtype=torch.float64)[:, None], torch.arange(D // 2, dtype=torch.float64)
    of_sines, of_cosines = rates(pairs, D)
    sines, cosines = (places * BASE**-of_sines).sin(), (places * BASE**-of_cosines).cos()
    for a, b in ((sines, cosines), (cosines, sines)):
        yield from (x[1:] - x[0] for x in (torch.stack([a, b], -1).flatten(1), torch.cat([a, b], 1)))


def fit_scale(table: Float, got: Float) -> Float:
    """The table times the one number that brings it nearest: sinusoids may be scaled."""
    return table * ((table * got).sum() / (table * table).sum())


__all__ = ["sinusoids_as_published"]
