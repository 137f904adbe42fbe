"""M-RoPE (Wang et al. 2024, Qwen2-VL, arXiv:2409.12191, section 2.1): time, row and column in the pairs of one RoPE.

    pair i turns by  c_i theta_i        c_i: the coordinate (t, y or x) that pair i reads,   theta_i = base^(-2i/d)

The frequencies are RoPE's; what differs is which coordinate a pair reads. `sections` counts the pairs of each axis:
contiguous, the fastest pairs are time's (Qwen2-VL and 2.5-VL: 16, 24, 24 of 64); interleaved, the axes take turns from
the fastest pair on, t y x t y x, and time keeps the rest, so that every axis has fast and slow pairs (Qwen3-VL,
arXiv:2511.21631: 24, 20, 20). Text, whose coordinates are all its position, gets 1-D RoPE, bit for bit. `Layout.mixed`
lays text and pictures out: after a picture of h x w text goes on after max(h, w) places instead of h w, so a context
holds more pictures. Past the trained positions it breaks as RoPE does, and takes the same scalings.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from gnomon.errors import BadValue, check_arguments, wrong
from gnomon.glossary import message
from gnomon.layout import Layout
from gnomon.positions.base import PositionEncoding, Tables
from gnomon.positions.rope import Pairing, RoPE
from gnomon.positions.scaling import Scaling
from gnomon.shapes import Float, Int


class MRoPE(PositionEncoding):
    """Rotary positions whose pairs read time, row or column."""

    name = "m-rope"
    paper = "Wang et al. 2024, arXiv:2409.12191"
    cite = """@misc{wang2024qwen2vl,
      title = {{Qwen2-VL}: Enhancing Vision-Language Model's Perception of the World at Any Resolution},
      author = {Wang, Peng and Bai, Shuai and Tan, Sinan and Wang, Shijie and Fan, Zhihao and Bai, Jinze and Chen,
        Keqin and Liu, Xuejing and Wang, Jialin and Ge, Wenbin and Fan, Yang and Dang, Kai and Du, Mengfei and Ren,
        Xuancheng and Men, Rui and Liu, Dayiheng and Zhou, Chang and Zhou, Jingren and Lin, Junyang},
      year = {2024}, eprint = {2409.12191}, archivePrefix = {arXiv}, url = {https://arxiv.org/abs/2409.12191},
    }"""
    used_by = "Qwen2-VL, Qwen2.5-VL, Qwen3-VL"
    acts = "rotation"
    relative = True
    for_text = False
    extrapolation = "breaks at about 1.2 to 1.4 times"

    @check_arguments
    def __init__(
        self,
        d_head: int,
        sections: Sequence[int] | None = None,
        interleaved: bool = False,
        base: float = 10000.0,
        pairing: Pairing = "half",
        scaling: Scaling | Mapping[str, Any] | None = None,
    ) -> None:
        """sections: pairs of each axis, d_head/2 in all; default a quarter for time, the rest halved (16, 24, 24).
        interleaved: the axes take turns among the pairs instead of having a stretch each. The rest: as of rope."""
        super().__init__()
        self.rope = RoPE(d_head, base, pairing, scaling=scaling)
        pairs = d_head // 2
        if sections is None:
            sections = [pairs - 2 * (3 * pairs // 8), 3 * pairs // 8, 3 * pairs // 8]
        check_sections(sections)
        if sum(sections) != pairs:
            raise BadValue(
                f"sections share out the {pairs} pairs of d_head={d_head}; got {list(sections)}, {sum(sections)}"
            )
        self.d_head, self.sections, self.interleaved = d_head, list(sections), interleaved

    @classmethod
    def check_options(cls, options: Mapping[str, Any]) -> None:
        """Sections, a base and a scaling are right or wrong by themselves."""
        if options.get("sections") is not None:
            check_sections(options["sections"])
        RoPE.check_options(options)

    @property
    def read_by(self) -> list[int]:
        """The axis that each pair reads, the fastest pair first."""
        axes = [axis for axis, n in enumerate(self.sections) for _ in range(n)]
        if not self.interleaved:
            return axes
        A, among = len(self.sections), [0] * len(axes)
        for axis, n in enumerate(self.sections[1:], start=1):
            for i in range(axis, min(n * A, len(axes)), A):
                among[i] = axis
        return among

    def frequencies(self) -> list[float]:
        """theta_i of every pair, in radians per token, scaled if they are."""
        return self.rope.frequencies()

    def prepare(self, at: Layout, dtype: torch.dtype = torch.float32) -> Tables:
        """(cos, sin), each (B or 1, 1, T, d_head/2): RoPE's, with each pair at the coordinate that it reads."""
        at = at.one_row()
        places = at.axes(len(self.sections))[..., torch.tensor(self.read_by, device=at.device)]
        return self.rope.tables(at, dtype, places)

    def regime(self, at: Layout) -> Int | None:
        """That of the scaling."""
        return self.rope.regime(at)

    def rotate(self, x: Float, tables: Tables) -> Float:
        """x (B, H, T, C) with every pair turned by the coordinate that it reads."""
        return self.rope.rotate(x, tables)

    def describe(self, trained: int | None = None) -> list[str]:
        """How many pairs each axis has, and RoPE's own sentences."""
        how = "m_rope_interleaved" if self.interleaved else "m_rope"
        return [message("encodings", how, sections=", ".join(map(str, self.sections))), *self.rope.describe(trained)]

    def extra_repr(self) -> str:
        """Shown by print(module)."""
        return f"sections={self.sections}, interleaved={self.interleaved}, {self.rope.extra_repr()}"


def check_sections(sections: Sequence[int]) -> None:
    """Raise BadValue unless these are numbers of pairs, one for each of two axes or more."""
    whole = isinstance(sections, Sequence) and not isinstance(sections, str) and all(type(n) is int for n in sections)
    if not whole or len(sections) < 2 or min(sections) < 0:
        raise wrong("sections", sections, "numbers of pairs of channels, one for each axis", "such as [16, 24, 24]")


__all__ = ["MRoPE", "check_sections"]
