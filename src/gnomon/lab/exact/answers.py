"""Answers that a model writes itself, greedily and with a cache, many of one shape at once.

Three measures that must not be mixed (Newman et al. 2020, arXiv:2010.07174): a model that has to say where its answer
ends learns lengths, and fails at new ones where it still knows what to write.

    tokens    the share of right tokens when the answer's length is forced: END cannot be written
    exact     answers right in every token, of forced length
    stopped   answers right in every token, which the model also ended itself; None for one that never learned to
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from gnomon.generate import evaluation_mode
from gnomon.lab.exact.examples import ANSWER, BLANK, END, SPECIAL, START, Pair, framed
from gnomon.lab.protocols import has_positions
from gnomon.models import DecoderOnly
from gnomon.shapes import Bool, Int


@dataclass(frozen=True)
class Scores:
    """Of every example: the share of right tokens, whether all are, and whether the model stopped there as well."""

    tokens: list[float]
    exact: list[bool]
    stopped: list[bool] | None


def answered(model: DecoderOnly, pairs: Sequence[Pair], eos: bool) -> Scores | None:
    """Ask a model all questions; None where its encoding has no such positions."""
    shapes: dict[tuple[int, int], list[int]] = defaultdict(list)
    for i, (question, answer) in enumerate(pairs):
        shapes[len(question), len(answer)].append(i)
    tokens, exact, stopped = [0.0] * len(pairs), [False] * len(pairs), [False] * len(pairs)
    longest = max(sum(shape) + 2 for shape in shapes)
    recipe = model.recipe
    too_few = recipe is not None and recipe.in_reading and recipe.reach(longest) < longest  # positions to draw from
    if too_few or not has_positions(model, longest):
        return None
    device = next(model.parameters()).device
    for (asked, m), members in shapes.items():
        rows = torch.tensor([framed(pairs[i]) for i in members], device=device)
        prompt, wanted = rows[:, : asked + 2], rows[:, asked + 2 :]
        forced, ended = written(model, prompt, m) if model.config.causal else (filled(model, prompt, m), None)
        right = forced == wanted
        for i, row, stop in zip(members, right, right.all(1) if ended is None else right.all(1) & ended, strict=True):
            tokens[i], exact[i], stopped[i] = float(row.float().mean()), bool(row.all()), bool(stop)
    return Scores(tokens, exact, stopped if eos and model.config.causal else None)


@torch.no_grad()
def written(model: DecoderOnly, prompt: Int, m: int) -> tuple[Int, Bool]:
    """prompt (B, T) -> the m tokens written after it (B, m), and whether the model, left alone, ends there and not
    before (B,). One pass serves both: while END is not the likeliest token, forced and free writing are the same."""
    cache, said = model.cache(), []
    early = torch.zeros(len(prompt), dtype=torch.bool, device=prompt.device)
    with evaluation_mode(model):
        logits = model.head(model.hidden(prompt, cache=cache)[:, -1])
        for _ in range(m):
            logits[:, [START, ANSWER, BLANK]] = -torch.inf
            early |= logits.argmax(-1) == END
            logits[:, END] = -torch.inf
            said.append(logits.argmax(-1))
            logits = model.head(model.hidden(said[-1][:, None], cache=cache)[:, -1])
        logits[:, [START, ANSWER, BLANK]] = -torch.inf
    return torch.stack(said, 1), ~early & (logits.argmax(-1) == END)


@torch.no_grad()
def filled(model: DecoderOnly, prompt: Int, m: int) -> Int:
    """prompt (B, T) -> what the model puts into m blanks after it (B, m), in one forward."""
    ids = torch.cat([prompt, prompt.new_full((len(prompt), m), BLANK)], 1)
    with evaluation_mode(model):
        logits = model.head(model.hidden(ids)[:, -m:])
    return logits[..., SPECIAL:].argmax(-1) + SPECIAL


__all__ = ["Scores", "answered", "filled", "written"]
