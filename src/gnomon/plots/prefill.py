"""All tokens at once against one after another (S28): what a Transformer can do in training and when it reads a
prompt, and what decoding, like a recurrent network, cannot."""

import time
from dataclasses import dataclass

import torch

from gnomon.errors import BadValue, checked
from gnomon.generate import evaluating
from gnomon.models import DecoderOnly


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


@torch.no_grad()
@checked
def parallel_and_sequential(model: DecoderOnly, ids: list[int], repeats: int = 3) -> Timing:
    """Time one forward over `ids` against as many steps of one token with a cache, in turns; the fastest of each.

    Raises BadValue for a bidirectional model, which cannot decode.
    """
    if not model.config.causal:
        raise BadValue("a bidirectional model reads all tokens at once or not at all: there is no decoding to time")
    row = torch.tensor([ids], device=next(model.parameters()).device)
    times: dict[str, float] = {}
    with evaluating(model):
        for _ in range(repeats):
            start = time.perf_counter()
            whole = model(row)
            _wait(row)
            times["parallel"] = min(times.get("parallel", float("inf")), time.perf_counter() - start)
            start = time.perf_counter()
            cache = model.cache("preallocated", capacity=len(ids))
            steps = torch.cat([model(row[:, t : t + 1], cache=cache) for t in range(len(ids))], 1)
            _wait(row)
            times["sequential"] = min(times.get("sequential", float("inf")), time.perf_counter() - start)
    return Timing(len(ids), times["parallel"], times["sequential"], float((whole - steps).abs().max()))


def _wait(x: torch.Tensor) -> None:
    """Until the device has done what it was told."""
    if x.device.type == "cuda":
        torch.cuda.synchronize(x.device)
    elif x.device.type == "mps":
        torch.mps.synchronize()


__all__ = ["Timing", "parallel_and_sequential"]
