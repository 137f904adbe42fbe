"""The loop (S22): read the prompts, look at what may follow, choose, append, and again until every row has ended."""

from collections.abc import Callable, Iterator, Sequence
from itertools import count

import torch

from gnomon.attention import Cache
from gnomon.errors import BadInput, BadValue
from gnomon.generate.feed import CacheKind, Feed
from gnomon.generate.logits import forbid
from gnomon.generate.model import LanguageModel
from gnomon.generate.prompts import Prompts, rows_of
from gnomon.generate.row import Ends, Generation, Row, Token
from gnomon.generate.strategies import GREEDY, Strategy
from gnomon.shapes import Float

Seeds = int | Sequence[int] | None


def generate(
    model: LanguageModel,
    prompts: Prompts,
    *,
    strategy: Strategy = GREEDY,
    max_new_tokens: int = 128,
    min_new_tokens: int = 0,
    seeds: Seeds = None,
    eos_ids: Sequence[int] | None = (),
    stop: str | Sequence[str] = (),
    cache: CacheKind | Cache = "growing",
    on_token: Callable[[Token], None] | None = None,
) -> list[Generation]:
    """Continue each prompt; all of them together, with one forward a step. A row does not depend on its batch mates.

    prompts         a text, a list of texts, a list of token ids, lists of these of any lengths, or a tensor of ids;
                    an empty one starts at the tokenizer's end-of-text
    strategy        Greedy(), Sample(...), or an object of yours that chooses ids from logits
    max_new_tokens  longest continuation; min_new_tokens: shortest, before which no end token is chosen and no stop
                    string looked for
    seeds           of the rows' draws: one per row; or one number s, and row i draws from s + i; None takes them from
                    torch's own generator
    eos_ids         tokens that end a row, besides the tokenizer's end-of-text; None: not even that one does
    stop            strings that end a row, and are cut off its text, however they are split over tokens
    cache           "growing", "preallocated", or "rolling" for a model with a window; or a cache of yours, which may
                    hold earlier tokens of the rows. Then the prompts are what it has not read yet. Afterwards it has
                    read all but the last token of each row, so generate(model, [g.ids[-1:] for g in out], cache=cache)
                    goes on as if it had never stopped
    on_token        called with each Token as it is written

    Never chosen: the model's padding id, and ids that its tokenizer has no text for. The model is in evaluation mode
    during each forward, and no gradients are kept. An interruption (Ctrl-C) leaves as KeyboardInterrupt; on_token has
    seen everything written up to then.

    Raises BadValue for what cannot be right, before anything is computed: a bidirectional model, an id outside the
    vocabulary, a prompt longer than a learned table. Where the table ends later, the row ends with "positions".
    """
    ends = ends_for(model, eos_ids, stop, min_new_tokens, max_new_tokens)
    rows, tokens = begin(model, prompts, strategy, seeds, ends, cache)
    for token in tokens:
        if on_token is not None:
            on_token(token)
    return [row.generation() for row in rows]


def ends_for(
    model: LanguageModel, eos_ids: Sequence[int] | None, stop: str | Sequence[str], at_least: int, at_most: int
) -> Ends:
    """When rows of this model end."""
    V, tokenizer = model.config.vocab_size, model.tokenizer
    if tokenizer is None and stop:
        raise BadValue("stop strings are looked for in text, and this model has no tokenizer: set model.tokenizer")
    for i in eos_ids or ():
        if not 0 <= i < V:
            raise BadValue(f"eos_ids holds {i}, which is not one of the {V} token ids, 0 to {V - 1}")
    own = () if eos_ids is None or tokenizer is None or tokenizer.eos_id is None else (tokenizer.eos_id,)
    stops = (stop,) if isinstance(stop, str) else tuple(stop)
    return Ends(frozenset([*own, *(eos_ids or ())]), stops, at_least, at_most)


def begin(
    model: LanguageModel, prompts: Prompts, strategy: Strategy, seeds: Seeds, ends: Ends, cache: CacheKind | Cache
) -> tuple[list[Row], Iterator[Token]]:
    """Check everything; return the rows, and the tokens, which are written into them as the iterator is advanced."""
    if not model.config.causal:
        raise BadValue("this model is bidirectional: tokens see those after them, so no text can be continued with it")
    held = isinstance(cache, Cache)
    goes_on = isinstance(cache, Cache) and cache.at is not None
    ids = rows_of(prompts, model.tokenizer, model.config.vocab_size, empty=not goes_on)
    if not isinstance(cache, Cache):
        cache = model.cache(cache, capacity=max(map(len, ids)) + ends.max_new_tokens - 1)
    feed = Feed(model, len(ids), cache, held)
    feed.check(ids, ends.max_new_tokens)
    rows = [
        Row(n, row, seed, ends, model.tokenizer)
        for n, (row, seed) in enumerate(zip(ids, seeds_for(seeds, len(ids)), strict=True))
    ]
    return rows, _write(feed, rows, strategy, ends)


def seeds_for(seeds: Seeds, n: int) -> list[int]:
    """One seed per row."""
    if seeds is None:
        return [int(seed) for seed in torch.randint(2**63 - 1, (n,))]
    numbers = [seeds + i for i in range(n)] if isinstance(seeds, int) else list(seeds)
    if len(numbers) != n or not all(0 <= seed < 2**63 for seed in numbers):
        raise BadValue(f"seeds is a whole number from 0 to 2^63 - 1, or one for each of the {n} rows; got {seeds!r}")
    return numbers


def _write(feed: Feed, rows: list[Row], strategy: Strategy, ends: Ends) -> Iterator[Token]:
    never, early = (torch.tensor(sorted(ids), device=feed.device) for ids in _forbidden(feed.model, ends))
    logits = feed.read([row.prompt_ids for row in rows])  # (B, V)
    for n in count(1):
        logits = forbid(logits, never)
        allowed = forbid(logits, early) if n <= ends.min_new_tokens else logits
        _check_finite(allowed, rows, n)
        ids = strategy.choose(allowed, [row.rng for row in rows])  # (B,)
        logprobs = logits.log_softmax(-1).gather(-1, ids[:, None])[:, 0]
        for row, token, logprob, full in zip(rows, ids.tolist(), logprobs.tolist(), feed.full(), strict=True):
            yield row.take(token, logprob, full)
        going = [i for i, row in enumerate(rows) if row.finish_reason is None]
        if not going:
            return
        feed.keep(going)
        rows = [rows[i] for i in going]
        logits = feed.read([row.ids[-1:] for row in rows])


def _forbidden(model: LanguageModel, ends: Ends) -> tuple[set[int], set[int]]:
    """The ids that are never chosen, and those that are not before min_new_tokens."""
    V, padding, tokenizer = model.config.vocab_size, model.config.padding_id, model.tokenizer
    never = set() if tokenizer is None else set(range(tokenizer.vocab_size, V))
    return never | ({padding} if padding is not None else set()), {i for i in ends.eos_ids if i < V}


def _check_finite(logits: Float, rows: list[Row], n: int) -> None:
    """Raise BadInput where a row has nothing to choose from, or NaN among it: a maximum shows both."""
    broken = ~logits.amax(-1).isfinite()
    if bool(broken.any()):
        row = rows[int(broken.nonzero()[0])].number
        raise BadInput(
            f"row {row}, new token {n}: the logits hold NaN or infinity, or every token is forbidden. The weights may "
            "be damaged, or numbers may have overflowed in float16: try float32"
        )


__all__ = ["Seeds", "begin", "ends_for", "generate", "seeds_for"]
