"""Mixtures of experts: of E feed-forward networks each token takes the k that a router chooses for it.

    p = softmax(x W_r + b_r)                                        (Shazeer et al. 2017, arXiv:1701.06538)
    y = sum over the k largest of p_e FFN_e(x)  [+ g FFN_shared(x)]

normalised   the k weights are divided by their sum (Mixtral, arXiv:2401.04088, section 2.1): a softmax over the k alone
shared       a network that every token takes besides (DeepSeekMoE, arXiv:2401.06066, section 3.2); g = sigmoid(x W_s)
             where it has a gate (Qwen2, arXiv:2407.10671), else 1

No expert has a capacity and no token is dropped, so a token's output depends on that token alone, whatever its batch.
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import cache, wraps
from typing import Annotated, Any

import torch
from torch import nn
from torch.nn import functional as F

from gnomon.blocks.ffn import FeedForward, FeedForwardSettings
from gnomon.errors import BadValue, must_be
from gnomon.kinds import Setting
from gnomon.linear import Linear
from gnomon.settings import check_fields
from gnomon.shapes import Float, Int


def never_compiled(method: Callable[..., Float]) -> Callable[..., Float]:
    """torch.compiler.disable for a method, without its import of the compiler, which takes longer than that of torch.
    Where the compiler was imported, something may be compiled: from then on its own disable is called."""

    @wraps(method)
    def run(*given: Any) -> Float:
        disable = _disabled if "torch._dynamo" in sys.modules else lambda method: method
        y: Float = disable(method)(*given)
        return y

    run._torchdynamo_disable = True  # type: ignore[attr-defined]  # what the compiler asks of a function that it meets
    return run


@cache
def _disabled(method: Callable[..., Float]) -> Callable[..., Float]:
    disable: Callable[..., Any] = torch.compiler.disable
    return disable(method)


@dataclass(frozen=True)
class Experts:
    """The settings of a mixture of experts."""

    n_experts: Annotated[int, Setting("how many networks there are", least=1, most=2**16)]
    top_k: Annotated[int, Setting("how many of them a token takes", least=1)] = 2
    d_ff: Annotated[int | None, Setting("width of each, default the model's d_ff", least=1, most=2**24)] = None
    normalised: Annotated[bool, Setting("the weights of those that a token takes sum to 1")] = True
    router_bias: Annotated[bool, Setting("a number per expert, added to the router's logits")] = False
    shared: Annotated[int, Setting("width of a network that every token takes besides", least=0, most=2**24)] = 0
    shared_gate: Annotated[bool, Setting("that network is weighted by a sigmoid of the token")] = False
    dense_layers: Annotated[
        Sequence[int], Setting("layers, counted from 0, with a plain feed-forward network", least=0)
    ] = ()

    def __post_init__(self) -> None:
        """Raise BadValue for numbers that no model can have."""
        check_fields(Experts, {field.name: getattr(self, field.name) for field in fields(self)})
        object.__setattr__(self, "dense_layers", tuple(self.dense_layers))
        if self.top_k > self.n_experts:
            raise BadValue(f"a token takes at most all {self.n_experts} experts; got top_k={self.top_k}")
        if self.shared_gate and not self.shared:
            raise BadValue("shared_gate weights the shared network: give its width, shared=...")

    def to_dict(self) -> dict[str, Any]:
        """As JSON-ready data."""
        return asdict(self) | {"dense_layers": list(self.dense_layers)}

    def within(self, n_layers: int, d_ff: int) -> "Experts | None":
        """The same, fully written out, in a model of so many layers and this width; None where no layer has any."""
        dense = tuple(layer for layer in sorted(set(self.dense_layers)) if layer < n_layers)
        width = d_ff if self.d_ff is None else self.d_ff
        return None if len(dense) == n_layers else replace(self, d_ff=width, dense_layers=dense)


def widths(experts: Experts | None, n_layers: int, d_ff: int) -> tuple[Experts | None, int]:
    """Experts fully written out, and d_ff; that of the experts where no layer has the model's own."""
    inner = None if experts is None else experts.within(n_layers, d_ff)
    return inner, d_ff if inner is None or inner.dense_layers or inner.d_ff is None else inner.d_ff


@dataclass(frozen=True, kw_only=True)
class MixtureSettings(FeedForwardSettings):
    """Mixture of experts"""

    experts: Annotated[
        Experts | Mapping[str, Any] | None,
        Setting("several feed-forward networks in a layer, of which a token takes some: {'n_experts': 8, 'top_k': 2}"),
    ] = None

    @property
    def mixture(self) -> Experts | None:
        """The same, in its one form."""
        return as_experts(self.experts)


def as_experts(experts: Any) -> Experts | None:
    """The settings of a mixture of experts from themselves or from saved data; BadValue for anything else."""
    if experts is None or isinstance(experts, Experts):
        return experts
    must_be("experts", experts, Mapping, "{'n_experts': 8, 'top_k': 2}")
    check_fields(Experts, experts)
    if "n_experts" not in experts:
        raise BadValue("experts need n_experts, how many there are")
    return Experts(**experts)


class MixtureOfExperts(nn.Module):
    """x (B, T, D) -> (B, T, D) through k of E feed-forward networks."""

    def __init__(self, d_model: int, experts: Experts, d_ff: int, expert: Callable[[int], FeedForward]) -> None:
        """d_ff: the width of an expert whose settings do not give one; expert: a network of the width it is called
        with."""
        super().__init__()
        width = d_ff if experts.d_ff is None else experts.d_ff
        self.top_k, self.normalised = experts.top_k, experts.normalised
        self.router = Linear(d_model, experts.n_experts, bias=experts.router_bias)
        self.experts = nn.ModuleList(expert(width) for _ in range(experts.n_experts))
        self.shared = expert(experts.shared) if experts.shared else None
        self.shared_gate = Linear(d_model, 1, bias=False) if experts.shared_gate else None

    def forward(self, x: Float) -> Float:
        """Each token on its own."""
        tokens = x.flatten(0, -2)
        weights, chosen = self.route(tokens)
        y: Float = (self.answers(tokens, chosen) * weights.to(x.dtype)[:, :, None]).sum(1)
        if self.shared is not None:
            gate = 1.0 if self.shared_gate is None else torch.sigmoid(self.shared_gate(tokens))
            y = y + gate * self.shared(tokens)
        return y.view(x.shape)

    def route(self, x: Float) -> tuple[Float, Int]:
        """x (N, D) -> the weights and the numbers of each token's experts, the heaviest first: (N, k) each."""
        logits = self.router(x)
        p = F.softmax(logits if logits.dtype == torch.float64 else logits.float(), -1)
        weights, chosen = p.topk(self.top_k, -1)
        return weights / weights.sum(-1, keepdim=True) if self.normalised else weights, chosen

    @never_compiled  # how many tokens an expert gets is known from values alone
    def answers(self, x: Float, chosen: Int) -> Float:
        """x (N, D) and its experts (N, k) -> what each of them makes of it, (N, k, D).

        Tokens are brought together by expert, so that each expert's matrices are read once. One that no token chose is
        left out, but where there are gradients: there its own is zero.
        """
        by_expert = chosen.flatten().argsort(stable=True)  # (N k): places in `chosen`, those of the first expert first
        counts = torch.bincount(chosen.flatten(), minlength=len(self.experts)).tolist()
        rows = torch.split(by_expert // self.top_k, counts)
        learns = torch.is_grad_enabled()
        parts = [expert(x[n]) for expert, n in zip(self.experts, rows, strict=True) if len(n) or learns]
        return torch.cat(parts)[by_expert.argsort()].view(*chosen.shape, -1)

    def extra_repr(self) -> str:
        """Shown by print(module)."""
        return f"top_k={self.top_k}, normalised={self.normalised}"


__all__ = ["Experts", "MixtureOfExperts", "MixtureSettings", "as_experts", "widths"]
