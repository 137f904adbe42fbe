"""An encoding of your own in one file: KERPLE's logarithmic bias (Chi et al. 2022, arXiv:2205.09921).

    score = q . k / sqrt(d) - r1 log(1 + r2 |i - j|)        r1, r2 > 0, learned by each head

Like ALiBi it lets far tokens fade, but by a curve that each head bends for itself. docs/own-encoding.md explains it.
"""

import torch
from torch import nn

from gnomon.positions import PositionEncoding


class Mine(PositionEncoding):
    name = "mine"
    paper = "Chi et al. 2022, arXiv:2205.09921"
    acts = "score"
    relative = True
    extrapolation = "flat"

    def __init__(self, n_heads: int) -> None:
        super().__init__()
        self.r = nn.Parameter(torch.rand(2, n_heads))  # r1 and r2 of every head, before they are made positive

    def heads(self) -> int:
        return self.r.shape[1]

    def bias(self, h, q, k):
        r1, r2 = nn.functional.softplus(self.r)[:, h.long()]
        return -r1 * torch.log1p(r2 * (q - k).abs())
