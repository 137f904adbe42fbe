"""Writes golden.json: what the library says, which the page's own arithmetic must repeat to 1e-6.

    python explorer/golden.py     writes it beside this file; tests/explorer/test_golden.py checks that it is current

Each section belongs to the panel of the same name: a list of cases, each with what is `given` and what is `expected`.
"""

import json
import math
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

import gnomon as gn
from gnomon.positions import sinusoidal_table
from gnomon.positions.scaling import NTK, DynamicNTK, Linear, Llama3, LongRoPE, Proportional, YaRN

Cases = list[dict[str, Any]]
SECTIONS: dict[str, Callable[[], Cases]] = {}


def section(function: Callable[[], Cases]) -> Callable[[], Cases]:
    """Let this function's cases be written under its name."""
    SECTIONS[function.__name__] = function
    return function


def case(expected: Any, **given: Any) -> dict[str, Any]:
    """One case, its numbers with as many digits as matter."""
    return {"given": given, "expected": rounded(expected)}


def rounded(x: Any) -> Any:
    """Plain data with ten significant digits; no infinities, which JSON does not have: "inf", "-inf"."""
    if isinstance(x, dict):
        return {key: rounded(value) for key, value in x.items()}
    if isinstance(x, torch.Tensor | np.ndarray):
        return rounded(x.tolist())
    if isinstance(x, list | tuple):
        return [rounded(each) for each in x]
    if isinstance(x, float):
        return float(f"{x:.10g}") + 0.0 if math.isfinite(x) else str(x)
    return x


@section
def sinusoid() -> Cases:
    """Tables of each published layout."""
    shapes = [(5, 8, 10000.0), (3, 7, 10000.0), (2, 6, 50.0), (2, 64, 10000.0)]
    return [
        case(sinusoidal_table(n, d, base, layout), length=n, d=d, base=base, layout=layout)
        for n, d, base in shapes
        for layout in ("interleaved", "concatenated", "tensor2tensor")
    ]


@section
def rotary() -> Cases:
    """Frequencies and magnitude under each context scaling; vectors turned in both pairings, whole and in part."""
    of = {"factor": 4.0, "trained": 64, "length": 200, "fraction": 0.5}
    rises = tuple(4.0 ** (i / 7) for i in range(8))
    kinds = {
        "none": None,
        "linear": Linear(4.0),
        "ntk": NTK(4.0),
        "yarn": YaRN(4.0, 64),
        "llama3": Llama3(4.0, 64),
        "dynamic": DynamicNTK(4.0, 64, freeze=200),
        "longrope": LongRoPE(4.0, 64, short_factor=(1.0,) * 8, long_factor=rises),
        "proportional": Proportional(4.0, fraction=0.5),
    }
    made = []
    for kind, scaling in kinds.items():
        for base in (10000.0, 500.0):
            rope = gn.positions.get("rope", base=base, scaling=scaling).build(d_head=16)
            size = 1.0 if scaling is None else scaling.magnitude
            expected = {"frequencies": rope.frequencies(), "magnitude": size}
            made.append(case(expected, base=base, d=16, scaling={"kind": kind, **of}))
    x = [1.0, 2.0, 3.0, 4.0]
    for pairing in ("half", "interleaved"):
        for p in (1, 5):
            made.append(_turned(x, p, pairing, 4))
        made.append(_turned([0.5, -1.0, 2.0, 0.25, 3.0, -0.75], 11, pairing, 4))
    return made


def _turned(x: list[float], p: int, pairing: str, width: int) -> dict[str, Any]:
    rope = gn.positions.get("rope", pairing=pairing, rotary_dim=width).build(d_head=len(x))
    q = torch.tensor(x, dtype=torch.float64)[None, None, None]
    turned = rope.rotate(q, rope.prepare(gn.Layout.placed([p]), torch.float64))
    return case(turned.flatten(), x=x, p=p, pairing=pairing, base=10000.0, width=width)


@section
def biases() -> Cases:
    """Biases by head and gap (key - query), T5's buckets, and FIRE's share. What is learned is set to the example."""
    plain = {"split": False, "buckets": 16, "furthest": 32, "power": False, "r1": 1.5, "r2": 0.25}
    plain |= {"threshold": 8.0, "width": 16, "base": 10000.0}
    made = []
    for heads in (1, 4, 6):
        for causal in (True, False):
            gaps = list(range(-20, 1)) if causal else list(range(-20, 21))
            for name, options, changed in _biases(heads, causal):
                encoding = gn.positions.get(name, **options).build(n_heads=heads, causal=causal)
                _set_example(encoding, heads)
                given = {"name": name, "heads": heads, "causal": causal, **plain, **changed}
                made.append(case(_bias(encoding, heads, gaps), gaps=gaps, query=30, **given))
    for n, furthest, causal in ((32, 128, True), (32, 128, False), (12, 20, True)):
        t5 = gn.positions.get("t5", n_buckets=n, max_distance=furthest).build(n_heads=1, causal=causal)
        gaps = [-300, -128, -127, -64, -33, -32, -17, -16, -9, -8, -7, -1, 0, 1, 5, 16, 90, 200]
        made.append(case(t5.bucket(torch.tensor(gaps)), buckets=n, furthest=furthest, causal=causal, gaps=gaps))
    pairs = [[5, 5], [5, 0], [40, 30], [100, 1]]
    q, k = torch.tensor(pairs).T
    share = gn.positions.get("fire", threshold=16.0).build(n_heads=1).share(q, k, torch.float64)
    return [*made, case(share.detach(), pairs=pairs, threshold=16.0)]


def _biases(heads: int, causal: bool) -> Iterator[tuple[str, dict[str, Any], dict[str, Any]]]:
    """(name, options, how the page says them)."""
    yield "alibi", {}, {}
    if not causal and heads % 2 == 0:
        yield "alibi", {"sides": "split"}, {"split": True}
    yield "hard-alibi", {}, {}
    yield "sandwich", {"width": 16}, {}
    yield "t5", {"n_buckets": 16, "max_distance": 32}, {}
    yield "kerple", {"form": "logarithmic"}, {}
    yield "kerple", {"form": "power"}, {"power": True}


@torch.no_grad()
def _set_example(encoding: gn.PositionEncoding, heads: int) -> None:
    """The page's example of what is learned."""
    falls = (heads - torch.arange(heads)) / heads
    if encoding.name == "kerple":
        r2 = torch.full((heads,), 0.25)
        second = r2.log() if encoding.form == "logarithmic" else (r2 / 2).logit()
        encoding.weight.copy_(torch.stack([(1.5 * falls).log(), second]))
    if encoding.name == "t5":
        n = encoding.n_buckets if encoding.causal else encoding.n_buckets // 2
        bucket = torch.arange(encoding.n_buckets)[:, None]
        encoding.weight.copy_(1 - 5 * falls * (bucket % n) / (n - 1) - 0.4 * (bucket >= n))


@torch.no_grad()
def _bias(encoding: gn.PositionEncoding, heads: int, gaps: list[int]) -> torch.Tensor:
    """(H, G) the bias between a query at 30 and keys at 30 + gap."""
    encoding, query = encoding.double(), torch.tensor(30)
    return encoding.bias(torch.arange(heads, dtype=torch.float64)[:, None], query, query + torch.tensor(gaps))


@section
def masks() -> Cases:
    """Positions of each kind of row, and who sees whom in it, as rows of 0 and 1."""
    T, n = 10, 4
    rows = {
        "dense": gn.Layout.dense(1, T),
        "left": gn.Layout.padded(torch.arange(T)[None] >= n),
        "right": gn.Layout.padded(torch.arange(T)[None] < T - n),
        "packed": gn.Layout.packed([[4, 4, 2]]),
        "prefix": gn.Layout.prefix(n, T),
    }
    made = []
    for kind, at in rows.items():
        for causal, window, sinks in ((True, 0, 0), (False, 0, 0), (True, 3, 0), (True, 3, 2), (False, 2, 0)):
            seen = gn.visible(at, at, causal, window or None, sinks)[0, 0].int().tolist()
            expected = {"pos": at.pos[0].tolist(), "rows": ["".join(map(str, row)) for row in seen]}
            made.append(case(expected, kind=kind, length=T, n=n, causal=causal, window=window, sinks=sinks))
    return made


def text() -> str:
    """The file as it should be."""
    parts = [
        f"{json.dumps(name)}: [\n" + ",\n".join(json.dumps(each) for each in make()) + "\n]"
        for name, make in SECTIONS.items()
    ]
    return "{\n" + ",\n".join(parts) + "\n}\n"


if __name__ == "__main__":
    out = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).with_name("golden.json")
    out.write_text(text(), encoding="utf-8")
    print(f"{out}: {len(SECTIONS)} sections, gnomon {gn.__version__}")
