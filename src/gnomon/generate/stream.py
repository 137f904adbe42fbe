"""Text as it is written, in pieces that never break a character and never show part of a stop string."""

from collections.abc import Iterator, Sequence

from gnomon.attention import Cache
from gnomon.errors import BadValue
from gnomon.generate.constraints import NO_CONSTRAINTS, Constraints
from gnomon.generate.decoding_batch import CacheKind
from gnomon.generate.loop import Request, Strategy, begin, ends_for
from gnomon.generate.model import LanguageModel
from gnomon.generate.prompts import Prompts
from gnomon.generate.strategies import GREEDY


def stream(
    model: LanguageModel,
    prompt: Prompts | None = None,
    *,
    source: Prompts | None = None,
    strategy: Strategy = GREEDY,
    max_new_tokens: int = 128,
    min_new_tokens: int = 0,
    seed: int | None = None,
    eos_ids: Sequence[int] | None = (),
    stop: str | Sequence[str] = (),
    constraints: Constraints = NO_CONSTRAINTS,
    cache: CacheKind | Cache = "growing",
) -> Iterator[str]:
    """The pieces of one continuation, each as soon as it is certain; joined they are `generate(...)[0].text`.

    The arguments are those of `generate`, for one prompt and one seed. What is wrong with them is raised here, not at
    the first piece. For several prompts at once, or for more than the text, give `generate` an `on_token`.

    >>> for piece in stream(model, "def "):                                                     # doctest: +SKIP
    ...     print(piece, end="", flush=True)
    """
    if model.tokenizer is None:
        raise BadValue("a stream is text, and this model has no tokenizer to write it with: set model.tokenizer")
    ends = ends_for(model, eos_ids, stop, min_new_tokens, max_new_tokens)
    rows, tokens = begin(model, Request(prompt, source, strategy, seed, ends, constraints, 0, cache))
    if len(rows) != 1:
        raise BadValue(f"a stream has one prompt, got {len(rows)}; use generate with on_token for several")
    return (token.piece for token in tokens if token.piece)


__all__ = ["stream"]
