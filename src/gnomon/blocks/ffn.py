"""The feed-forward network: the same two layers at every position.

FFN(x) = act(x W1 + b1) W2 + b2                (Vaswani et al. 2017, section 3.3; act = ReLU there, GELU in GPT-2)
gated    (act(x W_gate) * (x W_up)) W_down     (Shazeer 2020, arXiv:2002.05202; SwiGLU when act = SiLU)

clamped_swish    min(g, 7) sigmoid(1.702 min(g, 7)) * (min(max(u, -7), 7) + 1) with g = x W_gate + b_gate and
                 u = x W_up + b_up; gated only (gpt-oss, OpenAI 2025, arXiv:2508.10925, section 2.2, and its code)
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import torch
from torch import nn
from torch.nn import functional as F

from gnomon.errors import BadValue
from gnomon.kinds import Setting
from gnomon.linear import Linear
from gnomon.settings import LinearSettings, WidthSettings, make_settings, takes
from gnomon.shapes import Float

Activation = Literal["relu", "gelu", "gelu_tanh", "silu", "clamped_swish"]
UNGATED: dict[str, Callable[[Float], Float]] = {
    "relu": F.relu,
    "gelu": F.gelu,
    "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
    "silu": F.silu,
}
LIMIT, SLOPE = 7.0, 1.702  # of clamped_swish


def clamped_swish(gate: Float, up: Float) -> Float:
    """gpt-oss's gate over what it lets through."""
    g = gate.clamp(max=LIMIT)
    return g * torch.sigmoid(SLOPE * g) * (up.clamp(-LIMIT, LIMIT) + 1)


_GATES: dict[str, Callable[[Float, Float], Float]] = {"clamped_swish": clamped_swish}

Width = Annotated[
    int | None, Setting("hidden width; default 4 d_model, or 8/3 d_model when gated", least=1, most=2**24)
]


@dataclass(frozen=True, kw_only=True)
class FeedForwardSettings(LinearSettings):
    """Feed-forward network"""

    d_ff: Width = None
    activation: Annotated[
        Activation, Setting("gelu is the exact one, gelu_tanh is GPT-2's, clamped_swish gpt-oss's gate")
    ] = "gelu"
    gated: Annotated[
        bool, Setting("act(x W_gate) * (x W_up) instead of act(x W_up)", source="Shazeer 2020, arXiv:2002.05202")
    ] = False


@dataclass(frozen=True)
class NetworkSettings(FeedForwardSettings, WidthSettings):
    """A feed-forward network"""

    d_ff: Width = None


class FeedForward(nn.Module):
    """x (B, T, D) -> (B, T, D) through F hidden channels, gated or not."""

    @takes(NetworkSettings)
    def __init__(self, d_model: int, d_ff: int | None = None, **settings: Any) -> None:
        """The widths, and any other setting."""
        super().__init__()
        s = make_settings(NetworkSettings, d_model=d_model, d_ff=d_ff, **settings)
        if s.activation in _GATES and not s.gated:
            raise BadValue(f"{s.activation} is a function of a gate and of what it lets through: set gated=True")
        self.activation = s.activation
        width = default_width(d_model, s.gated) if d_ff is None else d_ff
        self.up = Linear(d_model, width, s.bias)
        self.gate = Linear(d_model, width, s.bias) if s.gated else None
        self.down = Linear(width, d_model, s.bias)

    def forward(self, x: Float) -> Float:
        """Each token on its own."""
        return self.down(self._hidden(x))

    def _hidden(self, x: Float) -> Float:
        if self.gate is None:
            return UNGATED[self.activation](self.up(x))
        if self.activation in _GATES:
            return _GATES[self.activation](self.gate(x), self.up(x))
        h: Float = UNGATED[self.activation](self.gate(x)) * self.up(x)
        return h

    def extra_repr(self) -> str:
        """Shown by print(module)."""
        return f"activation={self.activation}, gated={self.gate is not None}"


def default_width(d_model: int, gated: bool) -> int:
    """4 D; for gated networks 8/3 D rounded up to a multiple of 8, which has the same number of weights."""
    return -(-8 * d_model // 24) * 8 if gated else 4 * d_model


__all__ = ["Activation", "FeedForward", "FeedForwardSettings", "NetworkSettings", "default_width"]
