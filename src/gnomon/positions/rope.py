"""Rotary positions (RoPE; Su et al. 2021, arXiv:2104.09864, eq. 15): queries and keys turn, their scores see distance.

    (R_m q) . (R_n k) = q . R_(n-m) k        pair i turns by  m theta_i,   theta_i = base^(-2i/d)

Two pairings are in use and differ by a fixed permutation of channels: "half" pairs (i, i + d/2) (GPT-NeoX, Llama in
Hugging Face files), "interleaved" pairs (2i, 2i+1) (the paper, GPT-J, Meta's Llama files). Rotation is per head, after
the projections, never on values. Phases past the training length are unseen: it breaks at about 1.2 to 1.4 times.
"""

from collections.abc import Mapping
from typing import Any, ClassVar, Literal, get_args

import torch

from gnomon.errors import BadValue, check_arguments, must_be, unknown
from gnomon.glossary import message
from gnomon.layout import Layout, Positions
from gnomon.native import attention as native
from gnomon.positions.base import PositionEncoding, Tables, position_dtype
from gnomon.positions.frequencies import angles, check_base, pair_angles, turns
from gnomon.positions.scaling import SCALINGS, Scaling, plain_frequencies, scaling_hint
from gnomon.positions.scaling import scaling as from_settings
from gnomon.shapes import Float, Int

Pairing = Literal["half", "interleaved"]


class RoPE(PositionEncoding):
    """Rotary position embedding, whole or partial, any base, both pairings."""

    name = "rope"
    paper = "Su et al. 2021, arXiv:2104.09864"
    cite = """@misc{su2021roformer,
      title = {{RoFormer}: Enhanced Transformer with Rotary Position Embedding},
      author = {Su, Jianlin and Lu, Yu and Pan, Shengfeng and Murtadha, Ahmed and Wen, Bo and Liu, Yunfeng},
      year = {2021}, eprint = {2104.09864}, archivePrefix = {arXiv}, url = {https://arxiv.org/abs/2104.09864},
    }"""
    used_by = "GPT-NeoX, GPT-J, Llama, Mistral, Qwen, Gemma, Phi, OLMo, DeepSeek"
    acts = "rotation"
    relative = True
    extrapolation = "breaks at about 1.2 to 1.4 times"
    not_names: ClassVar[Mapping[str, str]] = {kind: scaling_hint(kind) for kind in SCALINGS}
    options_elsewhere: ClassVar[Mapping[str, str]] = {
        "theta": "base",
        "rope_theta": "base",
        "rope_scaling": "scaling",
        "factor": "scaling",
        "partial_rotary_factor": "fraction",
        "rotary_pct": "fraction",
        "dim": "rotary_dim",
        "interleaved": "pairing",
    }

    @check_arguments
    def __init__(
        self,
        d_head: int,
        base: float = 10000.0,
        pairing: Pairing = "half",
        rotary_dim: int | None = None,
        fraction: float | None = None,
        scaling: Scaling | Mapping[str, Any] | None = None,
    ) -> None:
        """d_head: width of a head. base: of the wavelengths. pairing: which channels form a pair.
        rotary_dim or fraction: rotate only the first channels, as a width or as a part of d_head (GPT-NeoX: 0.25).
        scaling: how a longer context is read, an object of `positions.scaling` or its plain data."""
        super().__init__()
        if pairing not in get_args(Pairing):
            raise unknown("pairing", pairing, get_args(Pairing))
        check_base(base)
        if rotary_dim is not None and fraction is not None:
            raise BadValue(f"give rotary_dim or fraction, not both; got {rotary_dim} and {fraction}")
        if fraction is not None:
            rotary_dim = int(d_head * fraction)
        self.d_head, self.base, self.pairing = d_head, base, pairing
        self.rotary_dim = d_head if rotary_dim is None else rotary_dim
        if self.rotary_dim % 2 or not 0 < self.rotary_dim <= d_head:
            raise BadValue(
                f"rope turns pairs of channels: the rotary width must be even and between 2 and d_head={d_head}, "
                f"got {self.rotary_dim}. Choose an even d_head, or set rotary_dim or fraction"
            )
        self.scaling = None if scaling is None else from_settings(scaling)
        self.frequencies()  # what this width cannot have is known now

    @classmethod
    def check_options(cls, options: Mapping[str, Any]) -> None:
        """A base and a scaling are wrong or right by themselves."""
        if "base" in options:
            check_base(options["base"])
        if options.get("scaling") is not None:
            from_settings(options["scaling"])

    def frequencies(self) -> list[float]:
        """theta_i of every pair, in radians per token, scaled if they are."""
        if self.scaling is not None:
            return self.scaling.frequencies(self.base, self.rotary_dim)
        return plain_frequencies(self.base, self.rotary_dim)

    def prepare(self, at: Layout, dtype: torch.dtype = torch.float32) -> Tables:
        """(cos, sin), each (B or 1, 1, T, rotary_dim/2), from float64 angles, cast last."""
        return self.tables(at.one_row(), dtype)

    def tables(self, at: Layout, dtype: torch.dtype, places: Int | None = None) -> tuple[Float, Float]:
        """The same where each pair reads a place of its own: places (B, T, P), default the position for all pairs."""
        theta = self._frequencies_at(at)
        a = (angles(at.pos, theta) if places is None else pair_angles(places, theta)).unsqueeze(1)
        m = 1.0 if self.scaling is None else self.scaling.magnitude
        return (a.cos() * m).to(dtype).to(at.device), (a.sin() * m).to(dtype).to(at.device)

    def _frequencies_at(self, at: Layout) -> list[float] | Float:
        """(P,), or (B or 1, T, P) where they depend on the length of each token's text."""
        length = at.length.cpu() if at.device.type == "mps" else at.length  # there is no float64 there
        by_length = None if self.scaling is None else self.scaling.frequencies_at(length, self.base, self.rotary_dim)
        return self.frequencies() if by_length is None else by_length

    def regime(self, at: Layout) -> Int | None:
        """That of the scaling."""
        return None if self.scaling is None else self.scaling.regime(at.length)

    def rotate(self, x: Float, tables: Tables) -> Float:
        """Turn every pair of the first rotary_dim channels of x (B, H, T, C); the rest pass. Computed in float32
        (float64 for float64), rounded once to x's dtype."""
        assert tables is not None
        if x.shape[-1] != self.d_head:
            raise BadValue(f"rope was built for d_head={self.d_head}, got heads of width {x.shape[-1]}")
        cos, sin = tables
        done = native.rotate(x.to(position_dtype(x.dtype)), cos, sin, self.pairing == "interleaved")
        if done is not None:
            return done.to(x.dtype)
        r, rest = x[..., : self.rotary_dim], x[..., self.rotary_dim :]
        r = r.to(position_dtype(x.dtype))
        if self.pairing == "half":
            a, b = r.chunk(2, -1)
            turned = torch.cat([torch.addcmul(a * cos, b, sin, value=-1), torch.addcmul(b * cos, a, sin)], -1)
        else:
            a, b = r[..., 0::2], r[..., 1::2]
            turned = torch.stack([a * cos - b * sin, b * cos + a * sin], -1).flatten(-2)
        turned = turned.to(x.dtype)
        return torch.cat([turned, rest], -1) if rest.shape[-1] else turned

    def describe(self, trained: int | None = None) -> list[str]:
        """Wavelengths, pairs that never complete a turn, scaling."""
        now = [theta for theta in self.frequencies() if theta]  # without the pairs that stand still, the last ones
        about = {"width": self.d_head, "base": self.base, "pairing": self.pairing}
        lines: list[str] = [message("encodings", "rope", turning=2 * len(now), **about)]
        lines += turns(plain_frequencies(self.base, self.rotary_dim)[: len(now)], now, trained)
        if self.scaling is None:
            return lines
        slower = self.scaling.explain(self.base, self.rotary_dim)[: len(now)]
        stay = sum(factor < 1.001 for factor in slower)
        settings = ", ".join(f"{key} {value}" for key, value in self.scaling.to_dict().items())
        by_length = "" if self.scaling.regime(torch.zeros(1)) is None else "_by_length"
        turn = {"stay": stay, "pairs": len(slower), "magnitude": float(self.scaling.magnitude)}
        return [
            *lines,
            message("encodings", f"rope_scaling{by_length}", settings=settings),
            message("encodings", "rope_as_trained", **turn)
            if stay == len(slower)
            else message("encodings", "rope_slower", **turn, slower=float(max(slower))),
        ]

    def sin_cos(self, at: Layout | Positions) -> tuple[Float, Float]:
        """The sines and the cosines, each (B, T, rotary_dim/2) in float32, that turn a token at these positions."""
        tables = self.prepare(at if isinstance(at, Layout) else Layout.placed(at))
        assert tables is not None
        cos, sin = tables
        return sin[:, 0], cos[:, 0]

    def extra_repr(self) -> str:
        """Shown by print(module)."""
        scaled = "" if self.scaling is None else f", scaling={self.scaling}"
        return f"d_head={self.d_head}, rotary_dim={self.rotary_dim}, base={self.base:g}, pairing={self.pairing}{scaled}"


def pairing_order(d: int, to: Pairing, heads: int = 1) -> Int:
    """Row order that carries projection weights from the other pairing to `to`: `weight[pairing_order(C, "half", H)]`.

    d is the rotary width of one head (= d_head when all of it turns); one block of d rows per head.

    >>> pairing_order(8, "half").tolist()
    [0, 2, 4, 6, 1, 3, 5, 7]
    """
    for name, size in (("d", d), ("heads", heads)):
        must_be(name, size, int)
    must_be("to", to, str)
    if to not in get_args(Pairing):
        raise unknown("pairing", to, get_args(Pairing))
    if d < 2 or d % 2 or heads < 1:
        raise BadValue(f"d is an even width of at least 2, heads at least 1; got {d} and {heads}")
    one = torch.arange(d).view(d // 2, 2).T if to == "half" else torch.arange(d).view(2, d // 2).T
    return (torch.arange(heads)[:, None] * d + one.reshape(1, d)).flatten()


__all__ = ["Pairing", "RoPE", "pairing_order"]
