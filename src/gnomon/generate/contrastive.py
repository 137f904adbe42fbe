"""Contrastive search: a probable token whose state is unlike all the states before it.

    x_t = argmax_{v in V^(k)}  (1 - alpha) p(v | x_<t)  -  alpha max_{j < t} cos(h_v, h_j)

Su et al. 2022, arXiv:2202.06417, equation 5; h are the last hidden states, V^(k) the k most probable tokens.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch.nn.functional import normalize

from gnomon.errors import BadValue, check_arguments
from gnomon.generate.decoding_batch import DecodingBatch
from gnomon.generate.logits import top_k
from gnomon.generate.row import Row, Token
from gnomon.generate.rules import Rules
from gnomon.generate.search import Search
from gnomon.shapes import Float, Int


@check_arguments
@dataclass(frozen=True)
class Contrastive(Search):
    """alpha 0, or k 1, is greedy. The states compared with are those of the prompt and of what was written.

    k       candidates at each step, all read in one forward
    alpha   from 0 to 1, what likeness to earlier states costs
    """

    k: int = 4
    alpha: float = 0.6

    def __post_init__(self) -> None:
        """Raise BadValue for a setting that cannot be right."""
        if self.k < 1:
            raise BadValue(f"k counts candidates, so it is at least 1; got {self.k}")
        if not 0 <= self.alpha <= 1:
            raise BadValue(f"alpha lies between 0 and 1, got {self.alpha}")

    def slots(self, new: int) -> int:
        """Every token is read, the last one too: its state is compared."""
        return new

    def write(self, batch: DecodingBatch, rows: list[Row], rules: Rules) -> Iterator[Token]:
        """One forward a step for the candidates of all rows; it gives the next step its logits too."""
        h = batch.hidden([row.prompt_ids for row in rows])  # (B, T, D)
        logits = batch.logits(h[:, -1:])[:, 0]
        states = [normalize(x[-len(row.prompt_ids) :], dim=-1) for x, row in zip(h, rows, strict=True)]
        while True:
            view, full = rules.apply_strictly(logits, [row.history() for row in rows]), batch.full()
            chances, ids = self._candidates(view.allowed)  # (B, k)
            chosen, k = [0] * len(rows), ids.shape[1]  # the most probable, where no position is left to compare at
            open_rows = [n for n in range(len(rows)) if not full[n]]
            if open_rows:
                batch.keep([n for n in open_rows for _ in range(k)])
                h = batch.hidden([[i] for n in open_rows for i in ids[n].tolist()])  # (B' k, 1, D)
            for m, n in enumerate(open_rows):
                chosen[n] = self._best(chances[n], h[m * k : (m + 1) * k, 0], states[n])
            logprobs, top = view.logprobs(), view.best()
            for n, row in enumerate(rows):
                token = int(ids[n, chosen[n]])
                yield row.take(token, float(logprobs[n, token]), full[n], top[n])
            going = {n: m * k + chosen[n] for m, n in enumerate(open_rows) if rows[n].finish_reason is None}
            if not going:
                return
            batch.keep(list(going.values()))
            h = h[torch.tensor(list(going.values()), device=h.device)]
            logits = batch.logits(h)[:, 0]
            states = [torch.cat([states[n], normalize(x, dim=-1)]) for n, x in zip(going, h, strict=True)]
            rows = [rows[n] for n in going]

    def _candidates(self, allowed: Float) -> tuple[Float, Int]:
        """Probabilities and ids (B, k) of the most probable tokens, the best first."""
        k = min(self.k, allowed.shape[-1])
        ids = top_k(allowed, k).topk(k).indices  # top_k gives ties at the edge to the lower id
        return allowed.softmax(-1).gather(-1, ids), ids

    def _best(self, chances: Float, candidates: Float, states: Float) -> int:
        """Which of the candidates (k, D) is best by equation 5; one that is not allowed has probability 0 and loses."""
        likeness = (normalize(candidates, dim=-1) @ states.T).amax(-1)
        worth = (1 - self.alpha) * chances - self.alpha * likeness.to(chances.dtype)
        return int(worth.where(chances > 0, -torch.inf).argmax())


__all__ = ["Contrastive"]
