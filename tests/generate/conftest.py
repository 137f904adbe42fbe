"""Models to generate with: tiny random ones whose choices differ from place to place, and one whose text is known."""

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import SimpleNamespace

import pytest
import torch
from torch import Tensor, nn

import gnomon as gn
from gnomon.attention import Cache, GrowingCache
from gnomon.data import Tokenizer

V = 64


class Chain(nn.Module):
    """A language model whose next token depends on the last one alone: `table` (V, V) holds the logits.

    It writes down the shape of every batch it reads and of every hidden state its head is asked about.
    """

    def __init__(self, table: Tensor, tokenizer: Tokenizer | None = None, padding_id: int | None = None) -> None:
        super().__init__()
        self.table, self.tokenizer = table, tokenizer
        self.config = SimpleNamespace(vocab_size=len(table), padding_id=padding_id, causal=True)
        self.reads: list[tuple[int, ...]] = []
        self.asked: list[tuple[int, ...]] = []

    def hidden(self, ids: Tensor, at: gn.Layout | None = None, cache: Cache | None = None) -> Tensor:
        self.reads.append(tuple(ids.shape))
        cache.extend(at)
        cache.commit()
        return self.table[ids]

    def head(self, h: Tensor) -> Tensor:
        self.asked.append(tuple(h.shape))
        return h

    def cache(self, kind: str = "growing", capacity: int = 0, rollback: int = 0) -> Cache:
        return GrowingCache()

    def check(self, at: gn.Layout) -> None:
        pass


class Markov(nn.Module):
    """A language model in which the last token alone decides: {token: {next: probability}}. What is not listed has
    probability 0, or hardly any where the listed ones do not add up to 1 (no sum is forced on them: these are the
    probabilities, and what is missing goes to the last token of the vocabulary)."""

    def __init__(self, table: Mapping[int, Mapping[int, float]], V: int) -> None:
        super().__init__()
        chances = torch.zeros(V, V)
        for i in range(V):
            for j, p in table.get(i, {i: 1.0}).items():
                chances[i, j] = p
            left = 1 - float(chances[i].sum())
            if left > 1e-6:
                chances[i, V - 1] += left
        self.logp = (chances / chances.sum(1, keepdim=True)).log()
        self.config = SimpleNamespace(vocab_size=V, padding_id=None, causal=True)
        self.tokenizer = None
        self.reads: list[tuple[int, ...]] = []

    def hidden(self, ids: Tensor, at: gn.Layout | None = None, cache: Cache | None = None) -> Tensor:
        self.reads.append(tuple(ids.shape))
        cache.extend(at)
        cache.commit()
        return self.logp[ids]

    def head(self, h: Tensor) -> Tensor:
        return h

    def cache(self, kind: str = "growing", capacity: int = 0, rollback: int = 0) -> Cache:
        return GrowingCache()

    def check(self, at: gn.Layout) -> None:
        pass

    def texts(self, start: int, end: int, most: int) -> Iterator[tuple[list[int], float]]:
        """All texts of up to `most` tokens with their log-probabilities: those that end, and those that are cut."""

        def go(ids: list[int], logp: float, last: int) -> Iterator[tuple[list[int], float]]:
            for i, p in enumerate(self.logp[last].tolist()):
                if p > -math.inf:
                    text = [*ids, i]
                    if i == end or len(text) == most:
                        yield text, logp + p
                    else:
                        yield from go(text, logp + p, i)

        return go([], 0.0, start)


def follows(pairs: dict[int, Sequence[int]], V: int) -> Tensor:
    """A table (V, V) of logits under which each id is followed by the given ones, the best first."""
    table = torch.full((V, V), -50.0)
    for i, best in pairs.items():
        for rank, j in enumerate(best):
            table[i, j] = 10.0 - rank
    return table


@pytest.fixture
def chain() -> Callable[..., Chain]:
    """chain({1: [2, 3]}, V): a model that writes 2 after 1, or else 3."""

    def build(pairs: dict[int, Sequence[int]], size: int = V, **kw: object) -> Chain:
        return Chain(follows(pairs, size), **kw)

    return build


@pytest.fixture
def scripted() -> Callable[..., Chain]:
    """scripted(b"text"): a model over bytes that writes the text after any id, each byte after the one before it."""

    def build(text: bytes, start: int = 0) -> Chain:
        assert len(set(text)) == len(text)  # each byte decides the next one
        line = [start, *text, 256]
        return Chain(follows({a: [b] for a, b in itertools.pairwise(line)}, 257), Tokenizer.bytes())

    return build


@pytest.fixture
def tiny() -> Callable[..., gn.DecoderOnly]:
    """tiny("alibi", window=5): a random model with weights large enough for its choices to depend on everything."""

    def build(position: str = "rope", seed: int = 0, **changes: object) -> gn.DecoderOnly:
        torch.manual_seed(seed)
        spec = gn.positions.get(position, **gn.positions.encoding(position).tiny)
        sizes = {
            "vocab_size": V,
            "d_model": 32,
            "n_layers": 2,
            "n_heads": 4,
            "max_positions": 64,
            "init_std": 0.5,
            "tied": False,
        }
        model = gn.DecoderOnly(position=spec, **{**sizes, **changes})
        for name, weight in model.named_parameters():
            if "position" in name:  # tables of learned positions and biases start small: position would hardly matter
                nn.init.normal_(weight, std=1.0)
        return model

    return build


@pytest.fixture
def by_hand() -> Callable[..., list[int]]:
    """by_hand(model, prompt, n): n greedy tokens without a cache, without a batch, reading everything at each step."""

    @torch.no_grad()
    def write(model: gn.DecoderOnly, prompt: Sequence[int], n: int) -> list[int]:
        ids = list(prompt)
        for _ in range(n):
            ids.append(int(model.eval()(torch.tensor([ids]))[0, -1].argmax()))
        return ids[len(prompt) :]

    return write


@pytest.fixture
def markov() -> type[Markov]:
    """markov({1: {2: 0.6, 3: 0.4}}, V): a model whose probabilities are known."""
    return Markov


@pytest.fixture
def encoder_decoder() -> Callable[..., gn.EncoderDecoder]:
    """encoder_decoder(seed): a tiny random one whose choices depend on everything."""

    def build(seed: int = 0, **changes: object) -> gn.EncoderDecoder:
        torch.manual_seed(seed)
        sizes = {"vocab_size": 12, "d_model": 16, "n_layers": 2, "n_heads": 4, "init_std": 0.5, "tied": False}
        return gn.EncoderDecoder(**{**sizes, "position": "rope", **changes}).eval()

    return build
