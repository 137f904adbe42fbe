"""What a position encoding is.

A method may act in four places; a class overrides only the hooks of the place where its method acts:

    1  input      x = combine(E[ids], vectors(at))                       sinusoidal, learned
    2  rotation   score = query(q) . key(k)                              rope, xpos
    3  score      score = q . k^T * scale + bias(h, q_pos, k_pos)        alibi, t5, kerple
    4  attention  score = scores(q, k);  out = values(softmax, v)        shaw, transformer-xl, deberta, cope, fox

The base class overrides none of them: it is NoPE (Kazemnejad et al. 2023, arXiv:2305.19466), a Transformer without
position. A new encoding is one file with one final subclass; importing the file is the registration (`registry.py`).
"""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from gnomon.errors import BadValue, must_be, wrong
from gnomon.glossary import message
from gnomon.layout import Layout, Positions, check_layouts, layout_of, visible
from gnomon.positions.hooks import Acts, Projection, Side, Tables, position_dtype
from gnomon.positions.sizes import checked_constructor
from gnomon.shapes import Bool, Float, Int
from gnomon.show import card, matrix_image

_REGISTRY: dict[str, type["PositionEncoding"]] = {}


class PositionEncoding(nn.Module):
    """Base of all encodings, and itself the encoding that does nothing.

    A subclass states `name`, `paper`, `acts`, `relative` and `extrapolation` (what happens past the training length)
    and overrides hooks. It keeps no state but learnable parameters: tables are computed from the Layout of the tokens.
    """

    name: ClassVar[str] = ""
    paper: ClassVar[str] = ""
    cite: ClassVar[str] = ""  #: the paper as a BibTeX entry
    used_by: ClassVar[str] = ""  #: models that have it
    formula: ClassVar[str] = ""  #: default: the indented lines at the head of the module's docstring
    acts: ClassVar[Acts] = "nowhere"
    relative: ClassVar[bool] = False  #: scores depend on positions only through their differences
    extrapolation: ClassVar[str] = ""  #: what to expect past the training length, in a few words
    not_names: ClassVar[Mapping[str, str]] = {}  #: what people look for by name though it is an option -> how to ask
    options_elsewhere: ClassVar[Mapping[str, str]] = {}  #: other libraries' words for an option -> ours
    d_head: int = 0  #: the width of a head; 0 where a method is built for any
    d_model: int = 64  #: the width of the model; any number where a method does not ask for it
    for_text: ClassVar[bool] = True  #: tokens one after another are all it needs; False where they sit at coordinates
    order_only: ClassVar[bool] = False  #: order and content count, and what a position's number is never does
    pair_width: int = 1  #: numbers that `bias` or `scores` holds at once for a pair of tokens, if more than one a head
    state_width: int = 0  #: numbers that `state` leaves in the cache for a token, in each layer
    tiny: ClassVar[Mapping[str, Any]] = {}  #: options that fit a tiny model, where the defaults do not
    one_sided: bool = False  #: for causal attention only, the class or as it was built: ahead its numbers mean nothing

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if not cls.name:
            raise BadValue(f"class {cls.__name__} needs a name: the word people choose it by, e.g. name = 'mine'")
        _check_place(cls)
        if "__init__" in vars(cls):
            setattr(cls, "__init__", checked_constructor(cls.name, cls.__init__))  # noqa: B010
        other = _REGISTRY.get(cls.name)
        if other is not None and (other.__module__, other.__qualname__) != (cls.__module__, cls.__qualname__):
            raise BadValue(f"the name {cls.name!r} already belongs to {other.__module__}.{other.__qualname__}")
        _REGISTRY[cls.name] = cls

    # ---------------------------------------------------------------- the hooks, place by place

    def vectors(self, at: Layout, dtype: torch.dtype = torch.float32) -> Float | None:
        """Place 1: (B, T, D) vectors for these tokens (B = 1 where all rows are alike), or None."""
        return None

    def check(self, at: Layout) -> None:
        """Raise if this method has no meaning at these positions (a learned table past its rows).

        Called where a batch enters the model, never inside a compiled step.
        """

    def prepare(self, at: Layout, dtype: torch.dtype = torch.float32) -> Tables:
        """Place 2: tables for these tokens, computed once per forward by the model and handed to every layer."""
        return None

    def regime(self, at: Layout) -> Int | None:
        """Place 2: (B, T) numbers that differ where tokens have different tables because their texts differ in length;
        None where the length of a text does not matter. A text whose regime changes is read again from the start."""
        return None

    def frequencies(self) -> list[float]:
        """Radians per token of every pair of channels, for methods made of sines; 0 where a pair stands still."""
        return []

    def describe(self, trained: int | None = None) -> list[str]:
        """What this encoding is made of, in sentences, and what happens at twice the `trained` length, if known.

        The base class has no position to speak of.
        """
        return [message("encodings", "none"), message("encodings", "none_twice")]

    def query(self, q: Float, tables: Tables) -> Float:
        """Place 2: (B, H, T, C) queries with their positions turned in."""
        return self.rotate(q, tables)

    def key(self, k: Float, tables: Tables) -> Float:
        """Place 2: (B, K, S, C) keys with their positions turned in, before they enter a cache."""
        return self.rotate(k, tables)

    def rotate(self, x: Float, tables: Tables) -> Float:
        """Place 2, for methods that treat queries and keys alike."""
        return x

    def prepare_for(self, at: Layout, k_at: Layout, dtype: torch.dtype = torch.float32) -> Tables:
        """Place 2: the tables of a forward whose queries, of this dtype, sit at `at`, and all keys at `k_at`, which
        ends with `at`. For methods that turn keys when they are read; the others need tables of the new tokens only."""
        return self.prepare(at, position_dtype(dtype))

    def read(self, k: Float, tables: Tables) -> Iterator[tuple[slice, Float]]:
        """Place 2, after the cache: parts of the queries, and the keys (B, K, S, C') that each is multiplied with, made
        of those that a cache holds, (B, K, S, C). All queries are one part, unless numbers would overflow."""
        yield slice(None), k

    def turned(self, q: Float, k: Float, at: Layout, k_at: Layout | None = None) -> tuple[Float, Float]:
        """Place 2, all of it: queries (B, H, T, C) and keys (B, K, S, C) as they are multiplied, without a cache."""
        tables = self.prepare_for(at, at if k_at is None else k_at, q.dtype)
        held = self.key(k, tables if k_at is None else self.prepare(k_at, position_dtype(k.dtype)))
        (_, keys), *more = self.read(held, tables)
        if more:
            raise BadValue(f"{self.name} cannot turn queries that are so far apart at once: give it fewer of them")
        return self.query(q, tables), keys

    def bias(self, h: Tensor, q: Int, k: Int) -> Float | None:
        """Place 3: what is added to the scaled score of head h between positions q and k.

        A broadcastable function: (H,1,1), (B,1,T,1), (B,1,1,S) give a dense tensor, scalars give one number, so the
        same code serves every kernel. `h` arrives in the dtype that scores are computed in.
        """
        return None

    def of_layer(self, tables: Tables, n: int) -> Tables:
        """Place 4: the tables of the n-th layer this encoding serves: those of `prepare`, and its parameters there."""
        return tables

    def project(self, tables: Tables, queries: Projection, keys: Projection) -> Tables:
        """Place 4: a layer's tables once it has projected them as it projects its tokens (DeBERTa)."""
        return tables

    def state(self, x: Float, tables: Tables, at: Layout, held: tuple[Float, Layout] | None = None) -> Float | None:
        """Place 4: what `scores` must know of each token besides its key: (B, N, T, W), cached beside k and v.

        Made from what the layer reads, x (B, T, D) at `at`; held: the states of tokens read before, and where they sit.
        Float32 or wider, 0 at padding, and a token's state depends on its own document alone.
        """
        return None

    def scores(self, q: Side, k: Side, tables: Tables, ok: Bool, scale: float) -> Float:
        """Place 4: the scores (B, H, T, S). `ok` (B, 1, T, S) says who may be seen; the caller hides the others.

        Called with one block of the queries at a time, so it holds (T, S) numbers, never (T, S, C). What training
        changes reaches it by `tables` and the states.
        """
        s = (q.x @ k.x.transpose(-1, -2)) * scale
        b = self.bias_tensor(q.at, k.at, n_heads=q.x.shape[1], dtype=s.dtype)
        return s if b is None else s + b

    def values(self, p: Float, v: Float, tables: Tables, q_at: Layout, k_at: Layout, lag: int | None = None) -> Float:
        """Place 4: the weighted sum of values, (B, H, T, C), for methods with positions in the values (Shaw). lag: see
        `Side`."""
        return p @ v

    # ---------------------------------------------------------------- used alone, in anybody's model

    def forward(self, x: Float, at: Layout | Positions | None = None) -> Float:
        """The encoding as a layer. Positions are 0..T-1, or those of `at`: a Layout, or bare positions (T,) or (B, T).

        input     x (B, T, D)     -> x + vectors
        rotation  x (B, H, T, C)  -> x turned as queries are
        score     x (B, H, T, S)  -> scores + bias; queries are the last T of the S positions

        What acts in attention needs queries, keys and values: give it to `gn.MultiHeadAttention` or `gn.attend`.
        """
        if self.acts == "attention":
            raise BadValue(f"{self.name} is no layer: it acts in attention, gn.MultiHeadAttention(...)(x, position)")
        shape = {
            "nowhere": "any shape",
            "input": "(batch, tokens, d_model)",
            "rotation": "(batch, heads, tokens, d_head)",
            "score": "(batch, heads, queries, keys)",
        }[self.acts]
        if not isinstance(x, Tensor) or not x.is_floating_point():
            raise wrong(f"x, what {self.name} as a layer is given,", x, f"a floating-point tensor, {shape}")
        if self.acts == "nowhere":
            return x
        if x.dim() != shape.count(",") + 1:
            raise BadValue(f"{self.name} called as a layer takes {shape}, got shape {tuple(x.shape)}")
        tokens = {"input": 1, "rotation": 2, "score": 3}[self.acts]  # the axis whose places are told
        at = layout_of(at, x.shape[0], x.shape[tokens], x.device, takes_positions=True)
        self.check(at)
        dtype = position_dtype(x.dtype)
        if self.acts == "input":
            vectors = self.vectors(at, dtype)
            if vectors is not None and vectors.shape[-1] != x.shape[-1]:
                raise BadValue(f"{self.name} was built for d_model={vectors.shape[-1]}, got tokens of {x.shape[-1]}")
            return x if vectors is None else x + vectors.to(x.dtype)
        if self.acts == "rotation":
            return self.query(x, self.prepare(at, dtype))
        bias = self.bias_tensor(at.tokens(slice(-x.shape[-2], None)), at, x.shape[1], dtype)
        return x if bias is None else (x.to(dtype) + bias).to(x.dtype)

    def apply(self, q: Any, k: Any = None, position_ids: Layout | Positions | None = None) -> Any:
        """Place 2 in your own attention: q (B, H, T, C) and k (B, K, T, C) as they are multiplied, at `position_ids`
        (B, T) or (T,), else 0..T-1.

        With one argument it is torch's `Module.apply(fn)`, which a parent module calls on its children.
        """
        if k is None and callable(q):
            return super().apply(q)
        for name, x in (("q", q), ("k", k)):
            if not isinstance(x, Tensor) or x.dim() != 4 or not x.is_floating_point():
                how = f"{self.name}.apply(q, k)"
                raise wrong(name, x, "a floating-point tensor, (batch, heads, tokens, d_head)", how)
        if q.shape[2] != k.shape[2]:
            raise BadValue(f"queries are {q.shape[2]} tokens long and keys {k.shape[2]}: rotate each where it is made")
        return self.turned(q, k, layout_of(position_ids, q.shape[0], q.shape[2], q.device, "position_ids", True))

    def bias_tensor(
        self, q_at: Layout, k_at: Layout | None = None, n_heads: int | None = None, dtype: torch.dtype = torch.float32
    ) -> Float | None:
        """The bias of place 3 as a tensor, (B or 1, H, T, S), for `scaled_dot_product_attention(attn_mask=...)`.

        It holds position only: add your mask to it, or take `score_mask`, which has both. Computed in float32 (float64
        for float64) and rounded once to `dtype`.
        """
        k_at = q_at if k_at is None else k_at
        check_layouts(q_at=q_at, k_at=k_at)
        must_be("n_heads", n_heads, int | None)
        must_be("dtype", dtype, torch.dtype)
        q, k = q_at.one_row(), k_at.one_row()
        heads = n_heads if n_heads is not None else self.heads()
        if type(self).heads is not PositionEncoding.heads and heads != self.heads():
            raise BadValue(f"{self.name} was built for n_heads={self.heads()}, got {heads} heads")
        h = torch.arange(heads, device=q.device, dtype=position_dtype(dtype))[:, None, None]
        bias = self.bias(h, q.pos[:, None, :, None], k.pos[:, None, None, :])
        return None if bias is None else bias.to(dtype)

    def score_mask(
        self,
        q_at: Layout,
        k_at: Layout | None = None,
        causal: bool = True,
        window: int | None = None,
        n_heads: int | None = None,
        dtype: torch.dtype = torch.float32,
    ) -> Float:
        """Bias where a query may see a key, -inf where it may not: (B or 1, H or 1, T, S), added after the scale."""
        k_at = q_at if k_at is None else k_at
        check_layouts(q_at=q_at, k_at=k_at)
        must_be("dtype", dtype, torch.dtype)
        ok = visible(q_at.one_row(), k_at.one_row(), causal, window)
        return self.add_bias(ok, q_at, k_at, n_heads, dtype)

    def add_bias(
        self, ok: Bool, q_at: Layout, k_at: Layout, n_heads: int | None = None, dtype: torch.dtype = torch.float32
    ) -> Float:
        """A mask of truth values (B or 1, 1, T, S) made additive: the bias where true, -inf where false."""
        bias = self.bias_tensor(q_at, k_at, n_heads, dtype) if self.acts == "score" else None
        zero = torch.zeros((), dtype=dtype, device=ok.device)
        return torch.where(ok, zero if bias is None else bias, float("-inf"))

    def heads(self) -> int:
        """How many heads `bias` speaks about; methods that act on scores know it."""
        raise BadValue(f"{self.name or 'this encoding'} does not know a number of heads; pass n_heads")

    # ---------------------------------------------------------------- looked at, in a notebook

    def _repr_html_(self) -> str:
        size = sum(p.numel() for p in self.parameters())
        known = {**facts(type(self)), "built with": self.extra_repr(), "parameters": f"{size:,}"}
        matrix, caption = self.preview()
        image = "" if matrix is None else matrix_image(matrix.cpu().double().numpy(), caption)
        return card(self.name, known, image, caption)

    @torch.no_grad()
    def preview(self, T: int = 64) -> tuple[Float | None, str]:
        """A matrix (rows, T) that shows what this encoding does at positions 0..T-1, and what its axes are."""
        at = Layout.dense(1, T, next((p.device for p in self.parameters()), None))
        try:
            self.check(at)
        except BadValue:
            return None, ""
        if self.acts == "input":
            v = self.vectors(at)
            return None if v is None else v[0].T, message("encodings", "look_input", last=T - 1)
        if self.acts == "rotation":
            tables = self.prepare(at)
            return None if tables is None else tables[0][0, 0].T, message("encodings", "look_rotation", last=T - 1)
        if self.acts == "attention":
            return self.added(T)[0, :, -1], message("encodings", "look_attention", last=T - 1)
        known = type(self).heads is not PositionEncoding.heads
        last = at.tokens(slice(-1, None))
        b = self.bias_tensor(last, at, None if known else 1) if self.acts == "score" else None
        return None if b is None else b[0, :, 0], message("encodings", "look_score", last=T - 1)

    def added(self, T: int, seed: int = 0, draws: int = 1) -> Float:
        """Place 4: (draws, H, T, T) what an encoding adds to the scores of T tokens (queries down, keys across) of a
        text whose vectors are drawn at random, from a normal distribution."""
        rng, at = torch.Generator().manual_seed(seed), Layout.dense(draws, T)
        H, C, D = self.heads(), self.d_head, self.d_model
        x = torch.randn(draws, T, D, generator=rng)
        weights = torch.randn(2, D, H * C, generator=rng) / D**0.5
        queries, keys = (partial(_project, weight=w, heads=H) for w in weights)
        tables = self.project(self.of_layer(self.prepare(at), 0), queries, keys)
        state, ok, scale = self.state(x, tables, at), visible(at, at, self.one_sided), C**-0.5
        q, k = Side(queries(x), at, state), Side(keys(x), at, state)
        plain: Float = q.x @ k.x.transpose(-1, -2) * scale
        return self.scores(q, k, tables or (), ok, scale) - plain

    @classmethod
    def options_for(cls, length: int) -> dict[str, Any]:
        """Options for training on texts of so many tokens, where the defaults suit longer ones; the lab takes them."""
        return {}

    @classmethod
    def places_keys(cls) -> bool:
        """Whether it matters to a score where its key sits; not to a method that changes queries alone, or nothing."""
        hooks = _PLACES.keys() - {"query"}
        return any(getattr(cls, hook) is not getattr(PositionEncoding, hook) for hook in hooks)

    @classmethod
    def check_options(cls, options: Mapping[str, Any]) -> None:
        """Raise BadValue for options that are wrong whatever the model's sizes; the constructor checks the rest."""


#: where the hooks of a class take effect
_PLACES: Mapping[str, Acts] = {
    "vectors": "input",
    "query": "rotation",
    "key": "rotation",
    "rotate": "rotation",
    "read": "rotation",
    "bias": "score",
    "of_layer": "attention",
    "project": "attention",
    "state": "attention",
    "scores": "attention",
    "values": "attention",
}


def _check_place(cls: type[PositionEncoding]) -> None:
    """Raise BadValue where `acts` does not say what the hooks do: a hook at another place would never be called."""
    hooks = [hook for hook in _PLACES if getattr(cls, hook) is not getattr(PositionEncoding, hook)]
    lost = [hook for hook in hooks if _PLACES[hook] != cls.acts]
    if lost:
        raise BadValue(
            f"class {cls.__name__} overrides {lost[0]}, which is used where an encoding acts at "
            f"{_PLACES[lost[0]]!r}, but says acts = {cls.acts!r}: set acts = {_PLACES[lost[0]]!r}"
        )
    if cls.acts != "nowhere" and not hooks:
        own = ", ".join(hook for hook, place in _PLACES.items() if place == cls.acts)
        raise BadValue(f"class {cls.__name__} says acts = {cls.acts!r} but overrides none of {own}")


class NoPE(PositionEncoding):
    """No position: causal attention of two layers or more still sees order, bidirectional attention sees none."""

    name = "none"
    paper = "Kazemnejad et al. 2023, arXiv:2305.19466"
    cite = """@misc{kazemnejad2023impact,
      title = {The Impact of Positional Encoding on Length Generalization in Transformers},
      author = {Kazemnejad, Amirhossein and Padhi, Inkit and Ramamurthy, Karthikeyan Natesan and Das, Payel and Reddy,
        Siva},
      year = {2023}, eprint = {2305.19466}, archivePrefix = {arXiv}, url = {https://arxiv.org/abs/2305.19466},
    }"""
    used_by = "SmolLM3, Llama 4, Command R7B and EXAONE 4, in some of their layers"
    acts = "nowhere"
    formula = "score = q . k * scale"
    extrapolation = "fair to about 1.5 times"


def _project(x: Float, weight: Float, heads: int) -> Float:
    """x (B, T, D) -> (B, H, T, C)."""
    return (x @ weight).view(*x.shape[:2], heads, -1).transpose(1, 2)


def facts(cls: type[PositionEncoding]) -> dict[str, str]:
    """What a class says about its method, for people."""
    kind = kind_of(cls)
    return {"paper": cls.paper, "acts": cls.acts, "kind": kind, "past the training length": cls.extrapolation}


def kind_of(cls: type[PositionEncoding]) -> str:
    """relative, absolute, or contextual: what it knows of positions."""
    return "contextual" if cls.order_only else "relative" if cls.relative else "absolute"


__all__ = [
    "Acts",
    "NoPE",
    "PositionEncoding",
    "Projection",
    "Side",
    "Tables",
    "facts",
    "kind_of",
    "position_dtype",
]
