"""Log-scaled attention without position: queries grow with the logarithm of their place, so far contexts stay sharp.

    q_p <- beta(p) q_p          steps    beta = 1 + c ln(1 + floor((p + 1) / L))       Llama 4: c = 0.1, L = 8192
                                smooth   beta = 1 + c ln(max(1, (p + 1) / L))          DroPE; log-n: c = 1/ln L

A softmax over more keys spreads over more of them; a logit scale that grows with ln of the context undoes that
(Nakanishi 2025, Scalable-Softmax, arXiv:2501.19399). For layers without position, which it leaves without: order shows
in who may see whom, so attention is causal. Llama 4 (every fourth layer, after three with rope) has it, and DroPE
(Gelberg et al. 2025, arXiv:2512.12167), which trains with rope, drops it, trains on for a few per cent of the steps at
the old length L and reads further: there s = context / L stands in place of each query's own (p + 1) / L, and c is
fitted by perplexity at the new length, 0.412 for a model trained from scratch and 0.103 for SmolLM.
Up to L smooth is no position at all. A coefficient that does not fit sharpens too much or too little; SWAN-GPT
(arXiv:2504.08719) scales its layers without position for the same reason.
"""

from collections.abc import Mapping
from math import isfinite, log, log1p
from types import MappingProxyType
from typing import Any, ClassVar, Literal

import torch

from gnomon.errors import BadValue, check_arguments, must_be
from gnomon.glossary import message
from gnomon.layout import Layout
from gnomon.positions.base import PositionEncoding, Tables, position_dtype
from gnomon.shapes import Float

Growth = Literal["smooth", "steps"]


class LogScale(PositionEncoding):
    """No position, but a temperature that falls with the place of the query."""

    name = "log-scale"
    paper = "Nakanishi 2025, arXiv:2501.19399"
    cite = """@misc{nakanishi2025scalable,
      title = {Scalable-Softmax Is Superior for Attention},
      author = {Nakanishi, Ken M.},
      year = {2025}, eprint = {2501.19399}, archivePrefix = {arXiv}, url = {https://arxiv.org/abs/2501.19399},
    }"""
    used_by = "Llama 4"
    acts = "rotation"
    one_sided = True
    not_names: ClassVar[Mapping[str, str]] = {
        "drope": "train with rope, gnomon retrofit RUN --position log-scale, gnomon train --from (docs/recipes.md)"
    }
    extrapolation = "further than none, where the coefficient fits"
    tiny = MappingProxyType({"coefficient": 0.5, "length": 4})  # a scale that grows within a few tokens

    @check_arguments
    def __init__(self, coefficient: float = 0.1, length: int = 8192, growth: Growth = "smooth") -> None:
        """coefficient: c. length: L, up to which smooth changes nothing; the length of training. growth: see above."""
        super().__init__()
        _check(coefficient, length)
        self.coefficient, self.length, self.growth = coefficient, length, growth

    @classmethod
    def check_options(cls, options: Mapping[str, Any]) -> None:
        """A coefficient and a length are right or wrong by themselves."""
        _check(options.get("coefficient", 0.1), options.get("length", 1))

    @classmethod
    def options_for(cls, length: int) -> dict[str, Any]:
        """ln(p + 1) / ln(length) past the length: the default L of 8192 would be no scale at all within short tests."""
        return {"coefficient": round(1 / log(max(length, 3)), 4), "length": length}

    def prepare(self, at: Layout, dtype: torch.dtype = torch.float32) -> Tables:
        """(beta,), (B or 1, 1, T, 1), computed in float64 and cast last."""
        at = at.one_row()
        home = "cpu" if at.device.type == "mps" else at.device
        times = (at.pos.to(home, torch.float64) + 1) / self.length
        log_times = times.floor().log1p() if self.growth == "steps" else times.clamp(min=1).log()
        return ((1 + self.coefficient * log_times)[:, None, :, None].to(dtype).to(at.device),)

    def query(self, q: Float, tables: Tables) -> Float:
        """q (B, H, T, C) times beta, computed in float32 (float64 for float64) and rounded once."""
        assert tables is not None
        return (q.to(position_dtype(q.dtype)) * tables[0]).to(q.dtype)

    def describe(self, trained: int | None = None) -> list[str]:
        """The scale, and what it comes to at twice the trained length."""
        about = {"coefficient": self.coefficient, "length": self.length}
        lines: list[str] = [message("encodings", f"log_scale_{self.growth}", **about)]
        if trained is None:
            return lines
        times = 2 * trained / self.length
        grown = log1p(times // 1) if self.growth == "steps" else log(max(1.0, times))
        return [*lines, message("encodings", "log_scale_twice", times=1 + self.coefficient * grown)]

    @torch.no_grad()
    def preview(self, T: int = 64) -> tuple[Float | None, str]:
        """The scale of each query, (1, T)."""
        (beta,) = self.prepare(Layout.dense(1, T)) or ()
        return beta[0, :, :, 0], message("encodings", "look_log_scale", last=T - 1)

    def extra_repr(self) -> str:
        """Shown by print(module)."""
        return f"coefficient={self.coefficient:g}, length={self.length}, growth={self.growth}"


def _check(coefficient: float, length: int) -> None:
    must_be("coefficient", coefficient, float)
    must_be("length", length, int)
    if not (isfinite(coefficient) and coefficient >= 0) or length < 1:
        raise BadValue(
            f"log-scale takes a coefficient of at least 0 and a length of at least 1; got {coefficient} and {length}"
        )


__all__ = ["LogScale"]
