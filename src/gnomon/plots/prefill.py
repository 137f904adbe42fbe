"""All tokens at once against one after another: what a Transformer can do in training and when it reads a
prompt, and what decoding, like a recurrent network, cannot."""

import time
from dataclasses import dataclass

import torch

from gnomon.errors import BadValue, check_arguments
from gnomon.generate import evaluation_mode
from gnomon.models import EncoderDecoder, Model
from gnomon.models.writer import Writer

MOST, WORK = 128, 2 * 10**9  # tokens that a timing reads at most, and tokens times parameters


@dataclass(frozen=True)
class Timing:
    """Seconds for the same logits of the same `tokens` tokens, and the largest difference between them."""

    tokens: int
    parallel: float
    sequential: float
    difference: float

    @property
    def ratio(self) -> float:
        """How many times as long the sequential way took."""
        return self.sequential / self.parallel


def affordable(model: Model, tokens: int) -> int:
    """How many of these tokens a timing reads: at most MOST, and so few that tokens times parameters are at most WORK.

    It bounds the work of large models: what is timed takes seconds, not minutes.
    """
    parameters = sum(p.numel() for p in model.parameters())
    return min(tokens, MOST, max(2, WORK // max(parameters, 1)))


@torch.no_grad()
@check_arguments
def parallel_and_sequential(model: Model, ids: list[int], repeats: int = 3, source: list[int] | None = None) -> Timing:
    """Time one forward over `ids` against as many steps of one token with a cache, in turns; the fastest of each.

    source  of an encoder-decoder: the ids that it looks at, encoded once before the clock starts

    Raises BadValue for a bidirectional model, which cannot decode.
    """
    if not isinstance(model, Writer) or not model.config.causal:
        raise BadValue("a bidirectional model reads all tokens at once or not at all: there is no decoding to time")
    row = torch.tensor([ids], device=next(model.parameters()).device)
    times: dict[str, float] = {}
    with evaluation_mode(model):
        memory = None
        if isinstance(model, EncoderDecoder):
            if not source:
                raise BadValue("an encoder-decoder decodes while it looks at a source: give its ids as source=[...]")
            memory = model.encode(torch.tensor([source], device=row.device))
        for _ in range(repeats):
            start = time.perf_counter()
            whole = model.head(model.hidden(row, memory=memory))
            _wait(row)
            times["parallel"] = min(times.get("parallel", float("inf")), time.perf_counter() - start)
            start = time.perf_counter()
            cache = model.cache("preallocated", capacity=len(ids))
            each = [model.hidden(row[:, t : t + 1], cache=cache, memory=memory) for t in range(len(ids))]
            steps = torch.cat([model.head(h) for h in each], 1)
            _wait(row)
            times["sequential"] = min(times.get("sequential", float("inf")), time.perf_counter() - start)
    return Timing(len(ids), times["parallel"], times["sequential"], float((whole - steps).abs().max()))


def _wait(x: torch.Tensor) -> None:
    """Until the device has done what it was told."""
    if x.device.type == "cuda":
        torch.cuda.synchronize(x.device)
    elif x.device.type == "mps":
        torch.mps.synchronize()


__all__ = ["MOST", "WORK", "Timing", "affordable", "parallel_and_sequential"]
