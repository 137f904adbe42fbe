"""Functional interpolation (FIRE; Li et al. 2023, arXiv:2310.04418, section 3): a network of a normalised distance.

    score = q . k * scale + f_h( psi(i - j) / psi(max(L, i)) )         psi(x) = log(c x + 1),  f = MLP 1 - 32 - heads

The query's own position i bounds the distances it can see, so the quotient stays in [0, 1] at any length: a longer text
is interpolated, not extrapolated. c and L are learned (L by a factor on `threshold`), and so is f, one for all layers.
The bias depends on i, not on distance alone, and means something only where nothing ahead is seen: causal attention. It
rises slowly past the training length. Where `threshold` is not below the training length, every query divides by the
same number and nothing is interpolated: lower it for short texts. Used for addition with Abacus embeddings (McLeish et
al. 2024). Their code is followed in the absolute values of c and L, in how the network starts and in its single hidden
layer, where a summary of the paper tells of two.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from gnomon.device import autocast_type
from gnomon.errors import BadValue, check_arguments, must_be
from gnomon.glossary import message
from gnomon.positions.base import PositionEncoding
from gnomon.shapes import Float, Int

WIDTH = 32  #: of the network's hidden layer
FIRST_C = 0.1
LEAST = 1e-6  #: added to what is divided by
PART = 2**12  #: pairs whose hidden layer is held at once


class FIRE(PositionEncoding):
    """A learned function of the distance, as a part of all that the query can look back on."""

    name = "fire"
    paper = "Li et al. 2023, arXiv:2310.04418"
    cite = """@misc{li2023functional,
      title = {Functional Interpolation for Relative Positions Improves Long Context Transformers},
      author = {Li, Shanda and You, Chong and Guruganesh, Guru and Ainslie, Joshua and Ontanon, Santiago and Zaheer,
        Manzil and Sanghai, Sumit and Yang, Yiming and Kumar, Sanjiv and Bhojanapalli, Srinadh},
      year = {2023}, eprint = {2310.04418}, archivePrefix = {arXiv}, url = {https://arxiv.org/abs/2310.04418},
    }"""
    acts = "score"
    extrapolation = "rises slowly"
    tiny = MappingProxyType({"threshold": 4.0})  # what texts of a few tokens pass
    one_sided = True

    @check_arguments
    def __init__(self, n_heads: int, threshold: float = 512.0) -> None:
        """threshold: L, in tokens, as it starts; queries before it are normalised alike. Choose it below the training
        length."""
        super().__init__()
        check_threshold(threshold)
        if n_heads < 1:
            raise BadValue(f"n_heads must be at least 1, got {n_heads}")
        self.n_heads, self.threshold = n_heads, threshold
        self.psi = nn.Parameter(torch.empty(2))  # c, and the factor on the threshold
        self.hidden = nn.Parameter(torch.empty(2, WIDTH))  # weights and biases
        self.weight = nn.Parameter(torch.empty(n_heads, WIDTH))
        self.shift = nn.Parameter(torch.empty(n_heads))
        self.reset_parameters()

    @classmethod
    def check_options(cls, options: Mapping[str, Any]) -> None:
        """A threshold is right or wrong by itself."""
        if "threshold" in options:
            check_threshold(options["threshold"])

    @classmethod
    def options_for(cls, length: int) -> dict[str, Any]:
        """The second half of a text is interpolated."""
        return {"threshold": length / 2}

    @torch.no_grad()
    def reset_parameters(self) -> None:
        """Draw the network anew, as torch draws linear layers."""
        self.psi.copy_(torch.tensor([FIRST_C, 1.0]))
        self.hidden.uniform_(-1, 1)
        for last in (self.weight, self.shift):
            last.uniform_(-(WIDTH**-0.5), WIDTH**-0.5)

    def heads(self) -> int:
        """How many heads the network speaks to."""
        return self.n_heads

    def share(self, q: Int, k: Int, dtype: torch.dtype = torch.float32) -> Float:
        """psi(|q - k|) / psi(max(L, q)): 0 at the query itself, at most 1 behind it."""
        c, factor = self.psi.to(dtype).abs().unbind()
        furthest = torch.maximum(q.to(dtype), factor * self.threshold)
        return torch.log1p(c * (q - k).abs().to(dtype)) / (torch.log1p(c * furthest) + LEAST)

    def bias(self, h: Tensor, q: Int, k: Int) -> Float:
        """f_h of the share: by one product for all heads, or unit by unit for one pair (fused kernels take no rows)."""
        dtype = h.dtype if h.is_floating_point() else torch.float32
        x, index = self.share(q, k, dtype), h.long()
        (slope, start), last, shift = self.hidden.to(dtype), self.weight.to(dtype), self.shift.to(dtype)
        if h.dim() == 0:
            return shift[index] + sum(last[index, u] * torch.relu(slope[u] * x + start[u]) for u in range(WIDTH))
        rows = index.flatten()
        with torch.autocast(autocast_type(x.device), enabled=False):
            units = straightened(slope, start, last[rows], shift[rows], x.detach())
            found = network(x.flatten(), *units)  # (heads, pairs)
        found = found.view(-1, *(1,) * (h.dim() - x.dim()), *x.shape)
        return found.transpose(0, -h.dim()).squeeze(0)

    @torch.no_grad()
    def describe(self, trained: int | None = None) -> list[str]:
        """Where interpolation begins."""
        c, factor = self.psi.float().abs().tolist()
        start = factor * self.threshold
        lines: list[str] = [
            message("encodings", "fire", heads=self.n_heads, width=WIDTH),
            message("encodings", "fire_start", c=c, start=start),
        ]
        if trained is None:
            return lines
        twice = "fire_twice" if start < trained else "fire_twice_never"
        return [*lines, message("encodings", twice, start=start, trained=trained)]

    def extra_repr(self) -> str:
        """Shown by print(module)."""
        return f"n_heads={self.n_heads}, threshold={self.threshold:g}"


def straightened(slope: Float, start: Float, last: Float, shift: Float, x: Float) -> tuple[Float, Float]:
    """The same network from 0 to the largest x, as hidden units (units, 2), slope and start, and last (heads, units).

    A unit that is never 0 in between is a line there, and one that always is does nothing: units with a knee stay, and
    two, x and 1, stand for all others and for the shift. (About a quarter of a fresh network's have knees.)
    """
    top = x.amax() if x.numel() else 1.0
    rising, ends = start > 0, slope * top + start > 0
    lines = last * (rising & ends)
    if torch.compiler.is_compiling():  # how many stay would be read off the values
        bent, lines = torch.arange(WIDTH, device=slope.device), torch.zeros_like(lines)
    else:
        bent = (rising != ends).nonzero().flatten()
    two = torch.eye(2, dtype=slope.dtype, device=slope.device)
    hidden = torch.cat([torch.stack([slope, start], 1)[bent], two])
    return hidden, torch.cat([last[:, bent], (lines @ slope)[:, None], (lines @ start + shift)[:, None]], 1)


def network(x: Float, hidden: Float, last: Float) -> Float:
    """x (N,) -> (heads, N): last (heads, units) times the hidden layer, which is held for a part of x at a time."""
    x = torch.stack([x, torch.ones_like(x)])
    if torch.compiler.is_compiling():
        return last @ torch.relu(hidden @ x)
    run: Callable[..., Float] = _Network.apply
    return run(x, hidden, last)


class _Network(torch.autograd.Function):
    """Forward and backward in parts that stay near the processor: the hidden layer of all pairs is never kept."""

    @staticmethod
    def forward(ctx: Any, x: Float, hidden: Float, last: Float) -> Float:
        ctx.save_for_backward(x, hidden, last)
        out = x.new_empty(len(last), x.shape[1])
        for part in _parts(x):
            torch.mm(last, torch.relu_(hidden @ x[:, part]), out=out[:, part])
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_out: Float) -> tuple[Float, ...]:
        x, hidden, last = ctx.saved_tensors
        dx, d_hidden, d_last = (torch.zeros_like(p) for p in (x, hidden, last))
        for part in _parts(x):
            units = torch.relu_(hidden @ x[:, part])
            d_last.addmm_(d_out[:, part], units.T)
            d_units = torch.ops.aten.threshold_backward(last.T @ d_out[:, part], units, 0)
            d_hidden.addmm_(d_units, x[:, part].T)
            dx[0, part] = hidden[:, 0] @ d_units
        return dx, d_hidden, d_last


def _parts(x: Float) -> list[slice]:
    return [slice(i, i + PART) for i in range(0, x.shape[1], PART)]


def check_threshold(threshold: float) -> None:
    """Raise BadValue unless it is a number of tokens above 0."""
    must_be("threshold", threshold, float)
    if not 0 < threshold < float("inf"):
        raise BadValue(f"threshold is a number of tokens above 0, below the length you train on; got {threshold}")


__all__ = ["FIRE"]
