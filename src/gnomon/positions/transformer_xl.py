"""Transformer-XL's relative attention (Dai et al. 2019, arXiv:1901.02860, section 3.3).

    score_ij = ((q_i + u) . k_j + (q_i + v) . W_R R[i - j]) * scale
    R[r] = (sin(r theta_0), sin(r theta_1), ..., cos(r theta_0), cos(r theta_1), ...)       theta_n = 10000^(-2n/D)

A distance is a sinusoid of the model's width, which each layer projects with W_R as if it were a key; u and v take the
place of the query where content and distance count for themselves. u and v belong to a layer here, as in the models
that the authors released (the paper shares them between layers). Distances that training never showed have sinusoids
that it never saw. Also the attention of XLNet, which looks to both sides.

A sinusoid of a difference is a sum of products of sinusoids, so with y = W_R^T (q_i + v), in halves y_s and y_c,

    y . R[i - j] = (y_s sin i + y_c cos i) . cos j + (y_c sin i - y_s cos i) . sin j        (i and j times theta)

which needs no vector per distance, for any positions: fractional, sparse, or shifted. Where positions count up by one
a layer projects each distance once instead, so a pair of tokens costs a head's width and not the model's.
"""

import torch
from torch import nn

from gnomon.errors import BadValue, check_arguments
from gnomon.glossary import message
from gnomon.layout import Layout
from gnomon.positions.base import PositionEncoding
from gnomon.positions.frequencies import angles, check_base, turns
from gnomon.positions.hooks import Side, Tables, of_layer, position_dtype
from gnomon.positions.rows import skewed, straight
from gnomon.shapes import Bool, Float


class TransformerXL(PositionEncoding):
    """Queries meet projected sinusoids of distance; content and distance also count for themselves."""

    name = "transformer-xl"
    paper = "Dai et al. 2019, arXiv:1901.02860"
    cite = """@misc{dai2019transformerxl,
      title = {Transformer-{XL}: Attentive Language Models Beyond a Fixed-Length Context},
      author = {Dai, Zihang and Yang, Zhilin and Yang, Yiming and Carbonell, Jaime and Le, Quoc V.
                and Salakhutdinov, Ruslan},
      year = {2019}, eprint = {1901.02860}, archivePrefix = {arXiv}, url = {https://arxiv.org/abs/1901.02860},
    }"""
    used_by = "Transformer-XL, XLNet"
    acts = "attention"
    relative = True
    extrapolation = "rises slowly"

    @check_arguments
    def __init__(
        self, d_model: int, d_head: int, n_heads: int, n_layers: int = 1, base: float = 10000.0, std: float = 0.02
    ) -> None:
        """d_model: also the width of a sinusoid, even. base: its power is the longest wavelength over 2 pi, nearly.
        std: of W_R, u and v as they begin."""
        super().__init__()
        check_base(base)
        if min(d_model, d_head, n_heads, n_layers) < 1 or d_model % 2:
            raise BadValue(
                f"transformer-xl needs sizes of at least 1 and an even d_model; got d_model={d_model}, "
                f"d_head={d_head}, n_heads={n_heads}, n_layers={n_layers}"
            )
        self.d_model, self.d_head, self.n_heads, self.n_layers = d_model, d_head, n_heads, n_layers
        self.base, self.std, self.pair_width = base, std, 3 * n_heads
        self.weight = nn.Parameter(torch.empty(n_layers, n_heads, d_head, d_model))
        self.content = nn.Parameter(torch.empty(n_layers, n_heads, 1, d_head))  # u
        self.distance = nn.Parameter(torch.empty(n_layers, n_heads, 1, d_head))  # v
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw W_R, u and v anew."""
        for p in self.parameters():
            nn.init.normal_(p, std=self.std)

    def heads(self) -> int:
        """How many heads W_R projects to."""
        return self.n_heads

    def frequencies(self) -> list[float]:
        """theta of every pair of channels of a sinusoid, in radians per token."""
        return [self.base ** (-2 * n / self.d_model) for n in range(self.d_model // 2)]

    def prepare_for(self, at: Layout, k_at: Layout, dtype: torch.dtype = torch.float32) -> Tables:
        """For all layers: R (2 S - 1, D) from the key furthest ahead to the one furthest back, where positions count up
        by one and queries are worth it; elsewhere cosines and sines (B or 1, 1, S, D/2) of where keys sit."""
        same, S = at in (k_at, k_at.newest) and at.kind == k_at.kind == "dense", k_at.shape[1]
        if not same or at.shape[1] < self.d_head:
            return self.waves(k_at, position_dtype(dtype))
        turned = angles(torch.arange(S - 1, -S, -1, device="cpu"), self.frequencies())
        return (torch.cat([turned.sin(), turned.cos()], -1).to(at.device, position_dtype(dtype)),)

    def waves(self, at: Layout, dtype: torch.dtype) -> tuple[Float, Float]:
        """Cosines and sines (B or 1, 1, T, D/2) of these positions."""
        turned = angles(at.one_row().pos[:, None], self.frequencies())
        cos, sin = (x.to(at.device, dtype) for x in (turned.cos(), turned.sin()))
        return cos, sin

    def of_layer(self, tables: Tables, n: int) -> Tables:
        """W_R (H, C, D), u and v (H, 1, C) of a layer, and what `prepare_for` gave: waves, or R projected (H, N, C)."""
        weight, u, v = (of_layer(p, n) for p in (self.weight, self.content, self.distance))
        waves = tables or ()
        if len(waves) == 1:
            waves = (waves[0] @ weight.to(waves[0].dtype).transpose(-1, -2),)
        return weight, u, v, *waves

    def scores(self, q: Side, k: Side, tables: Tables, ok: Bool, scale: float) -> Float:
        """Content with u, and distance with v."""
        assert tables is not None
        weight, u, v, *waves = tables
        content, n = (q.x + u) @ k.x.transpose(-1, -2), k.x.shape[2]
        if len(waves) == 1 and (gap := straight(q.at, k.at, q.lag)) is not None:
            assert q.lag is not None
            first = (waves[0].shape[1] + 1) // 2 - n + q.lag
            return (content + skewed((q.x + v) @ waves[0][:, first : first + len(gap)].transpose(-1, -2), n)) * scale
        return (content + self.by_waves(q, k, weight, v, waves)) * scale

    def by_waves(self, q: Side, k: Side, weight: Float, v: Float, waves: list[Float]) -> Float:
        """(q + v) . W_R R of any positions, by the sum of two products. waves: of all keys, where they are there."""
        y_s, y_c = ((q.x + v) @ weight).chunk(2, -1)  # (B, H, T, D/2)
        cos, sin = self.waves(q.at, q.x.dtype)
        k_cos, k_sin = (x[:, :, : k.x.shape[2]] for x in waves) if len(waves) == 2 else self.waves(k.at, q.x.dtype)
        by_distance = (y_s * sin + y_c * cos) @ k_cos.transpose(-1, -2)
        return by_distance + (y_c * sin - y_s * cos) @ k_sin.transpose(-1, -2)

    def describe(self, trained: int | None = None) -> list[str]:
        """The projection, and the wavelengths."""
        lines = [message("encodings", "transformer_xl", heads=self.n_heads, width=self.d_model)]
        return [*lines, *turns(self.frequencies(), self.frequencies(), trained)]

    def extra_repr(self) -> str:
        """Shown by print(module)."""
        return f"d_model={self.d_model}, n_heads={self.n_heads}, n_layers={self.n_layers}, base={self.base:g}"


__all__ = ["TransformerXL"]
