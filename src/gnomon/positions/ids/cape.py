"""CAPE (Likhomanenko et al. 2021, arXiv:2106.03143, section 3): positions are shifted, jittered and scaled in training.

    p_i -> (p_i + D + e_i) exp(l)       D from -shift .. shift and l from -ln scale .. ln scale, one for each text,
                                        e_i from -local .. local, one for each token

The model cannot rely on absolute numbers and learns distances that survive the changes, with any encoding that takes
fractions (sinusoidal in the paper). Tokens at several coordinates get a shift for each axis and one scale; DINOv3
trains its pictures so. local up to 0.5 keeps neighbours in order. Positions past shift and scale stay unmet, and a
bias made of whole distances (t5) rounds the jitter away. Outside training positions are as they are. The ranges, shift
5, local 0.5 and scale 1.03, are from the example for text of a public reimplementation (README of gcambara/cape).
"""

from dataclasses import dataclass
from math import isfinite, log
from typing import ClassVar

from gnomon.errors import BadValue
from gnomon.layout import Layout
from gnomon.positions.ids.base import PositionIds, documents, draw, move
from gnomon.shapes import Float, Int


@dataclass(frozen=True)
class CAPE(PositionIds):
    """Continuous positions, augmented in training.

    shift   the farthest that a whole text is moved, in positions
    local   the farthest that each token is moved by itself
    scale   the largest factor by which positions are stretched or shrunk
    """

    name: ClassVar[str] = "cape"
    paper: ClassVar[str] = "Likhomanenko et al. 2021, arXiv:2106.03143"
    cite: ClassVar[str] = """@misc{likhomanenko2021cape,
      title = {{CAPE}: Encoding Relative Positions with Continuous Augmented Positional Embeddings},
      author = {Likhomanenko, Tatiana and Xu, Qiantong and Synnaeve, Gabriel and Collobert, Ronan and
        Rogozhnikov, Alex},
      year = {2021}, eprint = {2106.03143}, archivePrefix = {arXiv}, url = {https://arxiv.org/abs/2106.03143},
    }"""
    formula: ClassVar[str] = "(i + shift + jitter) * scale"
    whole: ClassVar[bool] = False

    shift: float = 5.0
    local: float = 0.5
    scale: float = 1.03

    def __post_init__(self) -> None:
        """Raise BadValue for amounts that are none."""
        super().__post_init__()
        if not (
            self.shift >= 0 and self.local >= 0 and self.scale >= 1 and isfinite(self.shift + self.local + self.scale)
        ):
            raise BadValue(
                f"cape moves by at least 0 and scales by at least 1 (no change); got shift={self.shift}, "
                f"local={self.local}, scale={self.scale}"
            )

    def train(self, ids: Int, at: Layout) -> Layout:
        """Every document with draws of its own."""
        told = documents(at)
        places = at.pos[..., None] if at.coords is None else at.coords  # (B, T, A)
        A = places.shape[-1]

        def of_document(n: int) -> Float:
            u = draw(len(at.pos), told.most, n, device=at.device) * 2 - 1
            return u.gather(1, told.index[..., None].expand(-1, -1, n))

        jitter = (draw(*places.shape, device=at.device) * 2 - 1) * self.local
        stretch = (of_document(1) * log(self.scale)).exp()
        places = (places + of_document(A) * self.shift + jitter) * stretch
        if at.coords is None:
            return move(at, places[..., 0], at.length)
        return move(at, places.amax(-1), at.length).at_coords(places)


__all__ = ["CAPE"]
