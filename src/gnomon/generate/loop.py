"""The loop: read the prompts, look at what may follow, choose, append, and again until every row has ended."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch

from gnomon.attention import Cache
from gnomon.errors import BadValue, must_be, wrong
from gnomon.generate.constraints import NO_CONSTRAINTS, Constraints
from gnomon.generate.decoding_batch import CacheKind, DecodingBatch
from gnomon.generate.model import LanguageModel, Marked, WritesFirst
from gnomon.generate.prompts import Prompts, encode_prompts
from gnomon.generate.row import Ends, Generation, Row, Token
from gnomon.generate.rules import Rules
from gnomon.generate.search import Search, Stepwise
from gnomon.generate.source import encode_sources, read_sources
from gnomon.generate.strategies import GREEDY, Chooser

Strategy = Search | Chooser
Seeds = int | Sequence[int] | None


def generate(
    model: LanguageModel,
    prompts: Prompts | None = None,
    *,
    source: Prompts | None = None,
    strategy: Strategy = GREEDY,
    max_new_tokens: int = 128,
    min_new_tokens: int = 0,
    seed: Seeds = None,
    eos_ids: Sequence[int] | None = (),
    stop: str | Sequence[str] = (),
    constraints: Constraints = NO_CONSTRAINTS,
    top_logprobs: int = 0,
    cache: CacheKind | Cache = "growing",
    on_token: Callable[[Token], None] | None = None,
) -> list[Generation]:
    """Continue each prompt; all of them together, with one forward a step. A row does not depend on its batch mates.

    prompts         a text, a list of texts, a list of token ids, lists of these of any lengths, or a tensor of ids;
                    an empty one starts at the tokenizer's end-of-text. Of an encoder-decoder they are the beginning of
                    what it writes (a text after the tokens that start it, ids as they are); None: nothing is given
    source          what an encoder-decoder reads first, in the same forms, one for each prompt
    strategy        Greedy(), Sample(...), Beam(...), DiverseBeam(...), Contrastive(...), Speculative(...), Lookup(...),
                    a Search of yours, or any object that chooses ids from logits
    max_new_tokens  longest continuation; min_new_tokens: shortest. Before it no end token is chosen, and a stop string
                    that is complete earlier is ordinary text
    seed            of the draws: a number s, and row i draws from s + i; or a list of one per row; None takes them
                    from torch's own generator
    eos_ids         tokens that end a row, besides the tokenizer's end-of-text and the model's own ends; None: not even
                    those do
    stop            strings that end a row, and are cut off its text: the first one to be complete, of several with the
                    same last letter the longest, however they are split over tokens
    constraints     Constraints(...): penalties, bans, a given beginning. Where no prompts are given, `model.first`,
                    if there is one, stands before a beginning that is a text; one of ids is taken as it is
    top_logprobs    with each token, this many of the tokens that were most probable to the model
    cache           "growing", "preallocated", or "rolling" for a model with a window; or a cache of yours, which may
                    hold earlier tokens of the rows. Then the prompts are what it has not read yet. Afterwards it has
                    read all but the last token of each row, so generate(model, [g.ids[-1:] for g in out], cache=cache)
                    goes on as if it had never stopped
    on_token        called with each Token as it is written; of a beam, as soon as all that may still win agree on it

    Never chosen: the model's padding id, and ids that its tokenizer has no text for. The model is in evaluation mode
    during each forward, and no gradients are kept. An interruption (Ctrl-C) leaves as KeyboardInterrupt; on_token has
    seen everything written up to then.

    Raises BadValue for what cannot be right, before anything is computed: a bidirectional model, a missing source, an
    id outside the vocabulary, a prompt longer than a learned table. Where the table ends later, the row ends with
    "positions". BadInput where constraints leave a row no token, or the model's logits are not numbers.
    """
    must_be("on_token", on_token, Callable | None, "a function that is given each Token")
    ends = ends_for(model, eos_ids, stop, min_new_tokens, max_new_tokens)
    rows, tokens = begin(model, Request(prompts, source, strategy, seed, ends, constraints, top_logprobs, cache))
    for token in tokens:
        if on_token is not None:
            on_token(token)
    return [row.generation() for row in rows]


def ends_for(
    model: LanguageModel, eos_ids: Sequence[int] | None, stop: str | Sequence[str], at_least: int, at_most: int
) -> Ends:
    """When rows of this model end."""
    must_be("model", model, LanguageModel, "a model that writes: gn.DecoderOnly(...), or gn.load(folder)")
    for name, number in (("min_new_tokens", at_least), ("max_new_tokens", at_most)):
        must_be(name, number, int)
    must_be("eos_ids", eos_ids, Sequence | None, "such as [2]")
    must_be("stop", stop, str | Sequence, "such as '\\n' or ['.', '!']")
    for i in eos_ids or ():
        must_be("an id of eos_ids", i, int)
    for text in () if isinstance(stop, str) else stop:
        must_be("a stop string", text, str)
    V, tokenizer = model.config.vocab_size, model.tokenizer
    if tokenizer is None and stop:
        raise BadValue("stop strings are looked for in text, and this model has no tokenizer: set model.tokenizer")
    for i in eos_ids or ():
        if not 0 <= i < V:
            raise BadValue(f"eos_ids holds {i}, which is not one of the {V} token ids, 0 to {V - 1}")
    stops = (stop,) if isinstance(stop, str) else tuple(stop)
    if eos_ids is None:
        return Ends(frozenset(), stops, at_least, at_most)
    own = () if tokenizer is None or tokenizer.eos_id is None else (tokenizer.eos_id,)
    marked = model.ends if isinstance(model, Marked) else ()
    return Ends(frozenset([*own, *marked, *eos_ids]), stops, at_least, at_most)


@dataclass(frozen=True)
class Request:
    """What is to be written, as people ask for it; `generate` explains each field."""

    prompts: Prompts | None
    source: Prompts | None
    strategy: Strategy
    seed: Seeds
    ends: Ends
    constraints: Constraints
    top_logprobs: int
    cache: CacheKind | Cache


def begin(model: LanguageModel, ask: Request) -> tuple[list[Row], Iterator[Token]]:
    """Check everything; return the rows, and the tokens, which are written into them as the iterator is advanced."""
    must_be("top_logprobs", ask.top_logprobs, int)
    must_be("constraints", ask.constraints, Constraints, "gn.Constraints(...)")
    must_be("cache", ask.cache, Cache | str, "'growing', 'preallocated', 'rolling', or what model.cache() made")
    if not model.config.causal:
        raise BadValue("this model is bidirectional: tokens see those after them, so no text can be continued with it")
    search = _search(ask.strategy)
    mine = ask.cache if isinstance(ask.cache, Cache) else None
    sources = encode_sources(model, ask.source, mine)
    ids = _prompts(model, ask.prompts, sources, goes_on=mine is not None and mine.at is not None)
    B, slots = len(ids), search.slots(ask.ends.max_new_tokens)
    cache = _cache(model, ask.cache, max(map(len, ids)) + slots, search.rollback())
    batch = DecodingBatch(model, B, cache, held=mine is not None)
    batch.check(ids, slots)
    seeds = seeds_for(ask.seed, B)
    rows = [
        Row(n, ids[n], seeds[n], ask.ends, model.tokenizer, () if sources is None else sources[n]) for n in range(B)
    ]
    rules = Rules(model, ask.ends, ask.constraints, ask.top_logprobs, batch.device, _first(model, ask))
    return rows, _write(search, batch, rows, rules)


def _search(strategy: Strategy) -> Search:
    if isinstance(strategy, Search):
        return strategy
    if (
        isinstance(strategy, type) or not isinstance(strategy, Chooser) or hasattr(strategy, "dtype")
    ):  # arrays choose too
        raise wrong("strategy", strategy, "an object such as Greedy(), Sample(0.8) or Beam(4)")
    return Stepwise(strategy)


def _write(search: Search, batch: DecodingBatch, rows: list[Row], rules: Rules) -> Iterator[Token]:
    """The source is read once, then the search writes. A held cache is left as if it had read each row in order."""
    sources = [row.source_ids for row in rows]
    if any(sources):
        batch.cache.memory = read_sources(batch.model, sources, batch.device)
    apart = batch.held and not search.in_place
    yield from search.write(batch.fork() if apart else batch, list(rows), rules)
    if apart:
        batch.read([row.prompt_ids + row.ids[:-1] for row in rows])


def _prompts(
    model: LanguageModel, prompts: Prompts | None, sources: Sequence[Sequence[int]] | None, goes_on: bool
) -> list[list[int]]:
    if prompts is None and sources is None:
        raise BadValue("there is nothing to go on from: give a prompt, a text or token ids ('' starts a document)")
    start = model.start if isinstance(model, Marked) else None
    prompts = [[] if start is None else [start] for _ in sources or ()] if prompts is None else prompts
    lead = None if sources is None else _lead(model, start)
    ids = encode_prompts(prompts, model.tokenizer, model.config.vocab_size, empty=not goes_on, lead=lead)
    if sources is not None and len(ids) != len(sources):
        raise BadValue(f"there are {len(sources)} sources but {len(ids)} prompts: give one prompt per source, or none")
    return ids


def _lead(model: LanguageModel, start: int | None) -> list[int]:
    """What an encoder-decoder's text begins with: the token that starts it, and the one that it writes first."""
    eos = None if model.tokenizer is None else model.tokenizer.eos_id
    first = model.first if isinstance(model, WritesFirst) else None
    return [i for i in (eos if start is None else start, first) if i is not None]


def _first(model: LanguageModel, ask: Request) -> int | None:
    """The token that the model writes first of itself; prompts and prefixes of ids are taken as they are."""
    given = ask.prompts is not None or (not isinstance(ask.constraints.prefix, str) and len(ask.constraints.prefix) > 0)
    return model.first if isinstance(model, WritesFirst) and not given else None


def _cache(model: LanguageModel, asked: CacheKind | Cache, capacity: int, rollback: int) -> Cache:
    return asked if isinstance(asked, Cache) else model.cache(asked, capacity=capacity, rollback=rollback)


def seeds_for(seed: Seeds, n: int) -> list[int]:
    """One seed per row."""
    if seed is None:
        return [int(drawn) for drawn in torch.randint(2**63 - 1, (n,))]
    must_be("seed", seed, int | Sequence, "a number s (row i draws from s + i), or one for each row")
    numbers = [seed + i for i in range(n)] if isinstance(seed, int) else list(seed)
    for one in numbers:
        must_be("a seed", one, int)
    if len(numbers) != n or not all(0 <= one < 2**63 for one in numbers):
        raise BadValue(f"seed is a whole number from 0 to 2^63 - 1, or one for each of the {n} rows; got {seed!r}")
    return numbers


__all__ = ["Request", "Seeds", "Strategy", "begin", "ends_for", "generate", "seeds_for"]
