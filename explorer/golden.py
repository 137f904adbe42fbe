"""Writes golden.json: what the library says, which the page's own arithmetic must repeat to 1e-6.

    python explorer/golden.py     writes it beside this file; tests/explorer/test_golden.py checks that it is current

Each section belongs to the panel of the same name: a list of cases, each with what is `given` and what is `expected`.
"""

import json
import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

import gnomon as gn
from gnomon.positions import sinusoidal_table

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
