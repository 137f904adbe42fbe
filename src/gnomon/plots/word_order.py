"""Without position, attention cannot tell who bit whom: the proof on one sentence, in three languages.

Let P reorder tokens, A(x) be the scores and f(x) the outputs of a bidirectional stack without position. Then
A(Px) = P A(x) P^T and f(Px) = P f(x): equivariance. A mean over tokens does not change at all: invariance. Causal
stacks of two layers or more are another matter: their mask already tells the order.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from gnomon.attention.multihead import MultiHeadAttention
from gnomon.data import Tokenizer
from gnomon.errors import BadValue, check_arguments, short_repr, wrong
from gnomon.glossary import Words, words
from gnomon.layout import Layout, visible
from gnomon.models import DecoderOnly
from gnomon.plots.picture import Picture, draw
from gnomon.positions.base import Side
from gnomon.shapes import Float, Int
from gnomon.trace import Trace

ENCODINGS = ("none", "sinusoidal", "learned", "rope", "alibi", "t5")
SIZES: dict[str, Any] = {"d_model": 64, "n_heads": 4, "max_positions": 64, "init_std": 0.25}
MOST = 400  # tokens of a sentence of one's own


@dataclass(frozen=True)
class Sentence:
    """Words and their tokens: `words[i]` fills `spans[i]` of `ids`, blanks between words are tokens of their own."""

    words: list[str]
    ids: list[int]
    spans: list[slice]

    @property
    def text(self) -> str:
        """The sentence."""
        return " ".join(self.words)


@dataclass(frozen=True)
class Comparison:
    """What one encoding makes of the two sentences: largest differences, and layer 1's attention (T, T), mean of heads.

    scores   |A(b) - P A(a) P^T| of layer 1, before the softmax
    outputs  |f(b) - P f(a)| of the last layer
    pooled   |mean f(b) - mean f(a)|
    """

    position: str
    scores: float
    outputs: float
    pooled: float
    attention: tuple[Float, Float]


@dataclass(frozen=True)
class Order:
    """The whole demonstration.

    b has a's words in another order; where two runs of words change places, `swapped` says which, in a's counting of
    words. b's token t is a's token `back[t]`.
    causal: layers -> how far apart the outputs of a final full stop are in a causal stack without position.
    """

    lang: str
    seed: int
    layers: int
    a: Sentence
    b: Sentence
    swapped: tuple[slice, slice] | None
    back: list[int]
    comparisons: list[Comparison]
    causal: dict[int, float]

    def picture(self, position: str = "rope") -> Picture:
        """Attention over both sentences and the difference, without position and with one."""
        return draw(self, position)

    def _repr_png_(self) -> bytes:
        return self.picture().render()

    def to_dict(self) -> dict[str, Any]:
        """As plain data, attention left out."""
        return {
            "lang": self.lang,
            "seed": self.seed,
            "layers": self.layers,
            **SIZES,
            "a": {"text": self.a.text, "ids": self.a.ids},
            "b": {"text": self.b.text, "ids": self.b.ids},
            "token_of_a": self.back,
            "bidirectional": [
                {"position": c.position, "scores": c.scores, "outputs": c.outputs, "pooled": c.pooled}
                for c in self.comparisons
            ],
            "causal_without_position": [{"layers": n, "last_output": d} for n, d in self.causal.items()],
        }


@torch.no_grad()
@check_arguments
def order(
    lang: str = "en",
    encodings: tuple[str, ...] = ENCODINGS,
    seed: int = 0,
    layers: int = 2,
    sentences: Sequence[object] | None = None,
) -> Order:
    """Compare "the dog bit the man" with "the man bit the dog" under each encoding, byte by byte, in float64.

    sentences  two of one's own instead: the same words, in another order

    The stacks have random weights, the same under every encoding.
    """
    if layers < 1:
        raise BadValue(f"a stack has at least one layer, got {layers}")
    a, b = _sentences(words("order", lang), sentences)
    back = _original_places(a, b)
    comparisons = [_compare(name, a, b, back, seed, layers) for name in dict.fromkeys(("none", *encodings))]
    causal = {n: _last_outputs_differ(a, b, seed, n) for n in (1, 2, 3)}
    return Order(lang, seed, layers, a, b, _find_swap(a.words, b.words), back, comparisons, causal)


def _sentences(w: Words, given: Sequence[object] | None) -> tuple[Sentence, Sentence]:
    """The language's own pair, or the one that is given, once it is the same words twice."""
    if given is None:
        plain = w("sentence").split()
        i, j = plain.index(w("one")), plain.index(w("other"))
        return sentence(plain), sentence(_swap(plain, i, j))
    if len(given) != 2 or not all(isinstance(text, str) for text in given):
        raise wrong("sentences", given, "two sentences", 'such as ("Ann saw Bob", "Bob saw Ann")')
    one, other = (str(text).split() for text in given)
    if one == other:
        raise BadValue("the two sentences are the same: give the second one with words in another order")
    if Counter(one) != Counter(other):
        only = [list((Counter(x) - Counter(y)).elements()) for x, y in ((one, other), (other, one))]
        first, second = (short_repr(" ".join(found)) if found else "nothing" for found in only)
        raise BadValue(
            "two sentences in which only the order differs have the same words; only in the first: "
            f"{first}; only in the second: {second}"
        )
    a, b = sentence(one), sentence(other)
    if len(a.ids) > MOST:
        raise BadValue(f"a sentence has at most {MOST} tokens (bytes) here, got {len(a.ids)}: give a shorter one")
    return a, b


def sentence(plain: list[str]) -> Sentence:
    """Tokenize words one by one, a blank between them."""
    tokenizer, ids, spans = Tokenizer.bytes(), [], []
    for n, word in enumerate(plain):
        ids += tokenizer.encode(" ") if n else []
        start = len(ids)
        ids += tokenizer.encode(word)
        spans.append(slice(start, len(ids)))
    return Sentence(plain, ids, spans)


def stack(position: str, seed: int, layers: int, causal: bool, length: int = 0) -> DecoderOnly:
    """The model of this demonstration, in float64 and evaluation mode; for sentences of `length` tokens."""
    sizes = {**SIZES, "max_positions": max(SIZES["max_positions"], length)}
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = DecoderOnly(vocab_size=257, n_layers=layers, position=position, causal=causal, **sizes)
    return model.double().eval()


def _swap(plain: list[str], i: int, j: int) -> list[str]:
    swapped = list(plain)
    swapped[i], swapped[j] = plain[j], plain[i]
    return swapped


def _find_swap(a: list[str], b: list[str]) -> tuple[slice, slice] | None:
    """The two runs of words, as short as can be, whose exchange makes b of a; None where b is another reordering."""
    apart = [i for i, (x, y) in enumerate(zip(a, b, strict=True)) if x != y]
    low, high = apart[0], apart[-1] + 1
    x, y = a[low:high], b[low:high]
    for total in range(2, len(x) + 1):
        for n in range(1, total):  # the first run has n words, the second one the others
            m = total - n
            if x[len(x) - m :] + x[n : len(x) - m] + x[:n] == y:
                return slice(low, low + n), slice(high - m, high)
    return None


def _original_places(a: Sentence, b: Sentence) -> list[int]:
    """For each token of b, the place in a where it stood: words go with their spans, blanks in their order."""
    places: dict[str, list[slice]] = {}
    for word, span in zip(a.words, a.spans, strict=True):
        places.setdefault(word, []).append(span)
    blanks = iter(span.start - 1 for span in a.spans[1:])
    back: list[int] = []
    for n, word in enumerate(b.words):
        back += [next(blanks)] if n else []
        span = places[word].pop(0)
        back += range(span.start, span.stop)
    return back


def _compare(position: str, a: Sentence, b: Sentence, back: list[int], seed: int, layers: int) -> Comparison:
    model = stack(position, seed, layers, causal=False, length=len(a.ids))
    (s_a, f_a, w_a), (s_b, f_b, w_b) = (_read_model(model, x) for x in (a, b))
    return Comparison(
        position,
        float((s_b - s_a[:, back][:, :, back]).abs().max()),
        float((f_b - f_a[back]).abs().max()),
        float((f_b.mean(0) - f_a.mean(0)).abs().max()),
        (w_a, w_b),
    )


def _read_model(model: DecoderOnly, x: Sentence) -> tuple[Float, Float, Float]:
    """Layer 1's scores (H, T, T), the last outputs (T, D), and layer 1's weights (T, T), mean of heads."""
    ids, trace = torch.tensor([x.ids]), Trace()
    outputs = model.hidden(ids, trace=trace)
    return _first_scores(model, ids)[0], outputs[0], trace.attention[0][0].mean(0)


def _first_scores(model: DecoderOnly, ids: Int) -> Float:
    """(B, H, T, T) scores of layer 1 before the softmax, by their definition."""
    at, block, position = Layout.dense(*ids.shape), model.stack.blocks[0], model.position_of(0)
    attention = block.get_submodule("attention")
    assert isinstance(attention, MultiHeadAttention)
    x = block.get_submodule("around_attention.norm")(model.input(ids, at))
    q, (k, _) = attention.queries(x), attention.keys_values(x)
    q, k = position.turned(q, k, at)
    tables, ok = position.of_layer(position.prepare(at), 0), visible(at, at, causal=False)
    return position.scores(Side(q, at), Side(k, at), tables, ok, attention.d_head**-0.5)


def _last_outputs_differ(a: Sentence, b: Sentence, seed: int, layers: int) -> float:
    """How far apart a final full stop's outputs are in a causal stack without position."""
    model, stop = stack("none", seed, layers, True, len(a.ids) + 1), Tokenizer.bytes().encode(".")
    at_stop = [model.hidden(torch.tensor([x.ids + stop]))[0, -1] for x in (a, b)]
    return float((at_stop[0] - at_stop[1]).abs().max())


__all__ = ["ENCODINGS", "SIZES", "Comparison", "Order", "Sentence", "order", "sentence", "stack"]
