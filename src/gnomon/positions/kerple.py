"""Kernelised relative bias (KERPLE; Chi et al. 2022, arXiv:2205.09921, section 4): far keys fade by a learned curve.

    logarithmic   score = q . k * scale - r1 log(1 + r2 |i - j|)       r1, r2 > 0
    power         score = q . k * scale - r1 |i - j|^r2                r1 > 0,  0 < r2 <= 2

Each head learns its r1 and r2. In the logarithmic form weights fall as a power of distance, (1 + r2 |i - j|)^-r1, so
far keys keep some; the power form with r2 = 1 is ALiBi with a learned slope. Perplexity stays flat past the training
length, unless a head has learned an r1 near 0 and then sees distances that training never showed. Used in research
comparisons, trained in forks of GPT-NeoX. Here r1 and r2 are learned as logarithms (r2 of the power form as the logit
of r2 / 2), which keeps them in range and every gradient alive; the authors clamp them at 0.01. They start as there:
r1 uniform in (0, 2) and r2 in (0, 1), in the power form the other way round.
"""

from collections.abc import Mapping
from typing import Any, Literal, get_args

import torch
from torch import Tensor, nn

from gnomon.errors import BadValue, check_arguments, must_be, unknown
from gnomon.glossary import message
from gnomon.positions.base import PositionEncoding
from gnomon.shapes import Float, Int

Form = Literal["logarithmic", "power"]
LEAST = 1e-2  #: of what r1 and r2 start as


class Kerple(PositionEncoding):
    """A penalty on distance whose curve each head learns: two numbers a head, shared by all layers."""

    name = "kerple"
    paper = "Chi et al. 2022, arXiv:2205.09921"
    cite = """@misc{chi2022kerple,
      title = {{KERPLE}: Kernelized Relative Positional Embedding for Length Extrapolation},
      author = {Chi, Ta-Chung and Fan, Ting-Han and Ramadge, Peter J. and Rudnicky, Alexander I.},
      year = {2022}, eprint = {2205.09921}, archivePrefix = {arXiv}, url = {https://arxiv.org/abs/2205.09921},
    }"""
    acts = "score"
    relative = True
    extrapolation = "flat"

    @check_arguments
    def __init__(self, n_heads: int, form: Form = "logarithmic") -> None:
        """n_heads: any number. form: "logarithmic" (the paper's best) or "power"."""
        super().__init__()
        check_form(form)
        if n_heads < 1:
            raise BadValue(f"n_heads must be at least 1, got {n_heads}")
        self.n_heads, self.form = n_heads, form
        self.weight = nn.Parameter(torch.empty(2, n_heads))
        self.reset_parameters()

    @classmethod
    def check_options(cls, options: Mapping[str, Any]) -> None:
        """A form is right or wrong by itself."""
        if "form" in options:
            check_form(options["form"])

    @torch.no_grad()
    def reset_parameters(self) -> None:
        """Draw r1 and r2 anew."""
        self.weight.uniform_()
        self.weight[0 if self.form == "logarithmic" else 1] *= 2
        self.weight.clamp_(LEAST, 2 - LEAST)
        r1, r2 = self.weight
        self.weight.copy_(torch.stack([r1.log(), r2.log() if self.form == "logarithmic" else (r2 / 2).logit()]))

    def heads(self) -> int:
        """How many heads have a curve."""
        return self.n_heads

    def rates(self, dtype: torch.dtype = torch.float32) -> Float:
        """(2, H) r1 and r2 of every head."""
        first, second = self.weight.to(dtype)
        return torch.stack([first.exp(), second.exp() if self.form == "logarithmic" else 2 * second.sigmoid()])

    def bias(self, h: Tensor, q: Int, k: Int) -> Float:
        """-r1 log(1 + r2 |q - k|) or -r1 |q - k|^r2."""
        dtype = h.dtype if h.is_floating_point() else torch.float32
        rates, index = self.rates(dtype), h.long()
        r1, r2 = rates[0][index], rates[1][index]
        gap = (q - k).abs().to(dtype)
        return -r1 * (torch.log1p(r2 * gap) if self.form == "logarithmic" else gap.pow(r2))

    @torch.no_grad()
    def describe(self, trained: int | None = None) -> list[str]:
        """The curves of the heads, and how far down the furthest token is."""
        (low1, low2), (high1, high2) = (found.tolist() for found in self.rates().aminmax(dim=1))
        ranges = {"low1": low1, "high1": high1, "low2": low2, "high2": high2}
        lines: list[str] = [message("encodings", f"kerple_{self.form}", heads=self.n_heads, **ranges)]
        if trained is None:
            return lines
        furthest = self.bias(torch.arange(self.n_heads), torch.tensor(2 * trained), torch.tensor(0))
        return [*lines, message("encodings", "alibi_twice", down=-float(furthest.max()))]

    def extra_repr(self) -> str:
        """Shown by print(module)."""
        return f"n_heads={self.n_heads}, form={self.form}"


def check_form(form: object) -> None:
    """Raise BadValue unless it is one of the two."""
    must_be("form", form, str, 'it is "logarithmic" or "power"')
    if form not in get_args(Form):
        raise unknown("form of kerple", str(form), get_args(Form))


__all__ = ["Kerple"]
