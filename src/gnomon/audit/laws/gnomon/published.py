"""The law that an encoding computes what its paper says, against formulas written out in plain Python.

Nothing here calls the code it checks except to get the numbers under test.
"""

import cmath
import math
from collections.abc import Callable
from decimal import Decimal, localcontext
from functools import cache
from typing import Any

import torch

from gnomon.audit.law import Evidence
from gnomon.audit.laws.gnomon import make_evidence, small_law
from gnomon.audit.laws.gnomon.encodings import FAR, layout_at
from gnomon.audit.small import D_HEAD, D_MODEL, SmallModel, flatten
from gnomon.audit.target import NotApplicable
from gnomon.layout import Layout
from gnomon.positions import get
from gnomon.shapes import Float

Pair = tuple[Float, Float]  # got, want


@small_law(
    "as published",
    hint="compare number by number with the paper's formula",
)
def as_published(s: SmallModel) -> Evidence:
    """The numbers are those of the paper's formula, to float32 rounding, up to position 131 072."""
    if s.spec.name not in FORMULAS:
        raise NotApplicable(f"no formula for {s.spec.name} is written down here")
    pairs = FORMULAS[s.spec.name](s)
    return make_evidence(flatten(*(got for got, _ in pairs)), flatten(*(want for _, want in pairs)), slack=1e-6)


def _numbers(values: Any) -> Float:
    return torch.tensor(values, dtype=torch.float64)


def sinusoidal(s: SmallModel) -> list[Pair]:
    """Vaswani et al. 2017, section 3.5; the concatenated form; tensor2tensor's (exponent over D/2 - 1)."""

    def angle(p: int, i: int, d: int, table: str) -> float:
        exponent = -i / max(d // 2 - 1, 1) if table == "tensor2tensor" else -2 * i / d
        return p * math.pow(10000.0, exponent)

    pairs = []
    for table in ("interleaved", "concatenated", "tensor2tensor"):
        for d in (D_MODEL, 7, 2):
            position = get("sinusoidal", table=table).build(d_model=d)
            got = position.vectors(layout_at(torch.tensor([FAR])))
            assert got is not None
            want = []
            for p in FAR:
                sines = [math.sin(angle(p, i, d, table)) for i in range((d + 1) // 2)]
                cosines = [math.cos(angle(p, i, d, table)) for i in range(d // 2)]
                if table == "interleaved":
                    want.append([(sines, cosines)[c % 2][c // 2] for c in range(d)])
                else:
                    want.append(sines + cosines)
            pairs.append((got[0], _numbers(want)))
    return pairs


def rope(s: SmallModel) -> list[Pair]:
    """Su et al. 2021, equation 15: channels a and b of a pair turn as the complex number a + ib."""
    pairs, d = [], D_HEAD
    for pairing in ("half", "interleaved"):
        for width in (d, d // 2):
            position = get("rope", pairing=pairing, rotary_dim=width).build(d_head=d)
            x = torch.linspace(-1, 1, d)
            turn = position.prepare(layout_at(torch.tensor([FAR])))
            got = position.query(x.expand(1, 1, len(FAR), d), turn)[0, 0]
            want = []
            for p in FAR:
                y = x.tolist()
                for i in range(width // 2):
                    a, b = (i, i + width // 2) if pairing == "half" else (2 * i, 2 * i + 1)
                    z = complex(y[a], y[b]) * cmath.exp(1j * p * 10000.0 ** (-2 * i / width))
                    y[a], y[b] = z.real, z.imag
                want.append(y)
            pairs.append((got, _numbers(want)))
    return pairs


def alibi(s: SmallModel) -> list[Pair]:
    """Press et al. 2022, section 3; for other head counts the authors' rule: a power of two, then every other slope
    of twice as many. Distances to 3000, where bfloat16 has lost the difference between neighbours."""

    def geometric(n: int) -> list[float]:
        return [2.0 ** (-8.0 * (h + 1) / n) for h in range(n)]

    pairs = []
    for n in (1, 3, 6, 8, 12):
        power = 2 ** int(math.log2(n))
        slopes = geometric(power) + geometric(2 * power)[::2][: n - power]
        for causal in (True, False):
            position = get("alibi").build(n_heads=n, causal=causal)
            at = layout_at(torch.tensor([[0, 1, 7, 2999, 3000]]))
            got = position.bias_tensor(at)
            assert got is not None
            pos = at.pos[0].tolist()
            want = _numbers([[[-m * abs(i - j) for j in pos] for i in pos] for m in slopes])
            pairs.append((_past(got[0]), _past(want)) if causal else (got[0], want))
    return pairs


def _past(x: Float) -> Float:
    """What a causal softmax can tell: scores of the past, less that of the token itself (rows may shift freely)."""
    return (x - x.diagonal(dim1=-2, dim2=-1)[..., None]).tril()


def t5(s: SmallModel) -> list[Pair]:
    """Raffel et al. 2020, section 2.1, and the authors' bucket map; logarithms to fifty digits."""

    @cache
    def bucket(gap: int, causal: bool, n: int, farthest: int) -> int:
        side = 0 if causal or gap <= 0 else n // 2
        n, r = (n, max(-gap, 0)) if causal else (n // 2, abs(gap))
        exact = n // 2
        if r < exact:
            return side + r
        with localcontext() as context:
            context.prec = 50
            log = (Decimal(r) / exact).ln() / (Decimal(farthest) / exact).ln() * (n - exact)
            return side + min(exact + int(log + Decimal("1e-40")), n - 1)

    pairs, reach = [], 200
    for causal in (True, False):
        for n, farthest in ((32, 128), (24, 324), (24, 162)):
            position = get("t5", n_buckets=n, max_distance=farthest).build(n_heads=2, causal=causal)
            numbered = position.get_parameter("weight")
            numbered.copy_(torch.arange(n)[:, None] + 100 * torch.arange(2))
            at = Layout.dense(1, 2 * reach + 1)
            got = position.bias_tensor(at.tokens(slice(reach, reach + 1)), at)
            assert got is not None
            want = [[bucket(j - reach, causal, n, farthest) + 100 * h for j in range(2 * reach + 1)] for h in range(2)]
            pairs.append((got[0, :, 0], _numbers(want)))
    return pairs


FORMULAS: dict[str, Callable[[SmallModel], list[Pair]]] = {
    "sinusoidal": sinusoidal,
    "rope": rope,
    "alibi": alibi,
    "t5": t5,
}

__all__ = ["FORMULAS"]
