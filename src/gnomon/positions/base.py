"""What a position encoding is, and a choice of one that a model builds.

A method may act in three places; a class overrides only the hooks of the places where its method acts:

    1  input      x = combine(E[ids], vectors(at))                       sinusoidal, learned
    2  rotation   score = query(q) . key(k)                              rope, xpos
    3  score      score = q . k^T * scale + bias(h, q_pos, k_pos)        alibi, t5, kerple

The base class overrides none of them: it is NoPE (Kazemnejad et al. 2023, arXiv:2305.19466), a Transformer without
position. A new encoding is one file with one final subclass; importing the file is the registration (`registry.py`).
"""

import inspect
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, ClassVar, Literal, Self

import torch
from torch import Tensor, nn

from gnomon.data import Tokenizer
from gnomon.errors import BadValue, must_be, wrong
from gnomon.glossary import message
from gnomon.layout import Layout, Positions, check_layouts, layout_of, visible
from gnomon.positions.ids import PositionIds
from gnomon.shapes import Bool, Float, Int
from gnomon.show import card, matrix_image

Acts = Literal["nowhere", "input", "rotation", "score"]
Tables = tuple[Float, ...] | None

_REGISTRY: dict[str, type["PositionEncoding"]] = {}


class PositionEncoding(nn.Module):
    """Base of all encodings, and itself the encoding that does nothing.

    A subclass states `name`, `paper`, `acts`, `relative` and `extrapolation` (what happens past the training length)
    and overrides hooks. It keeps no state but learnable parameters: tables are computed from the Layout of the tokens.
    """

    name: ClassVar[str] = ""
    paper: ClassVar[str] = ""
    acts: ClassVar[Acts] = "nowhere"
    relative: ClassVar[bool] = False  #: scores depend on positions only through their differences
    extrapolation: ClassVar[str] = ""  #: what to expect past the training length, in a few words
    not_names: ClassVar[Mapping[str, str]] = {}  #: what people look for by name though it is an option -> how to ask
    options_elsewhere: ClassVar[Mapping[str, str]] = {}  #: other libraries' words for an option -> ours
    d_head: int = 0  #: the width of a head; 0 where a method is built for any
    pair_width: ClassVar[int] = 1  #: numbers that `bias` holds at once for a pair of tokens, if more than one a head
    one_sided: bool = False  #: for causal attention only, the class or as it was built: ahead its numbers mean nothing

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if not cls.name:
            raise BadValue(f"class {cls.__name__} needs a name: the word people choose it by, e.g. name = 'mine'")
        _check_place(cls)
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
        return self.prepare(at, wide(dtype))

    def read(self, k: Float, tables: Tables) -> Iterator[tuple[slice, Float]]:
        """Place 2, after the cache: parts of the queries, and the keys (B, K, S, C') that each is multiplied with, made
        of those that a cache holds, (B, K, S, C). All queries are one part, unless numbers would overflow."""
        yield slice(None), k

    def turned(self, q: Float, k: Float, at: Layout, k_at: Layout | None = None) -> tuple[Float, Float]:
        """Place 2, all of it: queries (B, H, T, C) and keys (B, K, S, C) as they are multiplied, without a cache."""
        tables = self.prepare_for(at, at if k_at is None else k_at, q.dtype)
        held = self.key(k, tables if k_at is None else self.prepare(k_at, wide(k.dtype)))
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

    def scores(self, q: Float, k: Float, q_at: Layout, k_at: Layout, ok: Bool, scale: float) -> Float:
        """The scores themselves, (B, H, T, S), for methods whose position depends on content (Shaw, CoPE).

        `ok` (B, 1, T, S) says who may be seen; masking is done by the caller. Overriding this leaves the fast kernels.
        """
        s = (q @ k.transpose(-1, -2)) * scale
        b = self.bias_tensor(q_at, k_at, n_heads=q.shape[1], dtype=s.dtype)
        return s if b is None else s + b

    def values(self, p: Float, v: Float, q_at: Layout, k_at: Layout) -> Float:
        """The weighted sum of values, (B, H, T, C); methods with positions in the values (Shaw) override it."""
        return p @ v

    # ---------------------------------------------------------------- used alone, in anybody's model

    def forward(self, x: Float, at: Layout | Positions | None = None) -> Float:
        """The encoding as a layer. Positions are 0..T-1, or those of `at`: a Layout, or bare positions (T,) or (B, T).

        input     x (B, T, D)     -> x + vectors
        rotation  x (B, H, T, C)  -> x turned as queries are
        score     x (B, H, T, S)  -> scores + bias; queries are the last T of the S positions
        """
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
        dtype = wide(x.dtype)
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
        h = torch.arange(heads, device=q.device, dtype=wide(dtype))[:, None, None]
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
        facts = {**_facts(type(self)), "built with": self.extra_repr(), "parameters": f"{size:,}"}
        matrix, caption = self.look()
        image = "" if matrix is None else matrix_image(matrix.double().cpu().numpy(), caption)
        return card(self.name, facts, image, caption)

    @torch.no_grad()
    def look(self, T: int = 64) -> tuple[Float | None, str]:
        """A matrix (rows, T) that shows what this encoding does at positions 0..T-1, and what its axes are."""
        at = Layout.dense(1, T, next((p.device for p in self.parameters()), None))
        try:
            self.check(at)
        except BadValue:
            return None, ""
        if self.acts == "input":
            v = self.vectors(at)
            return None if v is None else v[0].T, f"dimensions (down) of positions 0 to {T - 1} (across)"
        if self.acts == "rotation":
            tables = self.prepare(at)
            return None if tables is None else tables[0][0, 0].T, f"first table of positions 0 to {T - 1} (across)"
        b = self.bias_tensor(at.tokens(slice(-1, None)), at) if self.acts == "score" else None
        return None if b is None else b[0, :, 0], f"bias of each head (down) for keys 0 to {T - 1}, query {T - 1}"

    @classmethod
    def check_options(cls, options: Mapping[str, Any]) -> None:
        """Raise BadValue for options that are wrong whatever the model's sizes; the constructor checks the rest."""

    @classmethod
    def tiny(cls, **sizes: int) -> "Spec":
        """A small valid setting for tests and demonstrations; override where the defaults do not fit a tiny model."""
        return Spec(cls, MappingProxyType({}))


#: where the hooks of a class take effect
_PLACES: Mapping[str, Acts] = {
    "vectors": "input", "query": "rotation", "key": "rotation", "rotate": "rotation",
    "read": "rotation", "bias": "score", "scores": "score", "values": "score",
}  # fmt: skip


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
    acts = "nowhere"
    extrapolation = "fair to about 1.5 times"


# -------------------------------------------------------------------- chosen, not yet built


@dataclass(frozen=True)
class Spec:
    """An encoding chosen but not yet built: a class, its options, and a recipe for the positions that it reads, if any.
    Two equal specs are the same choice."""

    cls: type[PositionEncoding]
    options: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    positions: PositionIds | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        """How it is copied and pickled (and with it a model): a read-only mapping cannot be."""
        return _spec, (self.cls, dict(self.options), self.positions)

    @property
    def name(self) -> str:
        """The name it was chosen by."""
        return self.cls.name

    @property
    def acts(self) -> Acts:
        """Where it acts: nowhere, input, rotation or score."""
        return self.cls.acts

    def takes(self, option: str) -> bool:
        """Whether its class has this option."""
        return option in parameters_of(self.cls)

    def build(self, **sizes: Any) -> PositionEncoding:
        """Build the module. `sizes` are the model's (d_model, d_head, n_heads, causal, max_positions ...): the class
        takes those its constructor names, options given by hand win. Random parameters come from a stream of their
        own, so that the rest of a model starts with the same weights under every encoding."""
        wanted = parameters_of(self.cls)
        missing = [
            p
            for p, default in wanted.items()
            if default is inspect.Parameter.empty and p not in {**sizes, **self.options}
        ]
        if missing:
            raise BadValue(f"{self.name} needs {', '.join(missing)}; got {', '.join(sorted(sizes)) or 'nothing'}")
        try:
            return self._built(wanted, sizes)
        except BadValue:
            raise
        except (TypeError, ValueError, ArithmeticError, RuntimeError) as error:  # what torch and Python say of it
            raise BadValue(f"{self!r} cannot be built: {error}") from error

    def _built(self, wanted: Mapping[str, Any], sizes: Mapping[str, Any]) -> PositionEncoding:
        with forked_rng():
            return self.cls(**{**{k: v for k, v in sizes.items() if k in wanted}, **self.options})

    def fitted(self, tokenizer: Tokenizer) -> Self:
        """The same choice, its recipe for positions fitted to a vocabulary."""
        return self if self.positions is None else replace(self, positions=self.positions.fitted(tokenizer))

    def with_options(self, **options: Any) -> Self:
        """The same choice with options added, those already given by hand kept."""
        known = parameters_of(self.cls)
        more = {k: v for k, v in options.items() if k in known}
        return replace(self, options=MappingProxyType({**more, **self.options}))

    def __hash__(self) -> int:
        return hash((self.cls, tuple(sorted((k, repr(v)) for k, v in self.options.items())), self.positions))

    def __repr__(self) -> str:
        recipe = {} if self.positions is None else {"positions": str(self.positions)}
        return f"{self.name}({', '.join(f'{k}={v!r}' for k, v in {**self.options, **recipe}.items())})"

    def _repr_html_(self) -> str:
        return card(repr(self), _facts(self.cls))

    def to_dict(self) -> dict[str, Any]:
        """As plain data for config.json; `get(**data)` brings it back."""
        recipe = {} if self.positions is None else {"positions": self.positions.to_dict()}
        return {"name": self.name, **self.options, **recipe}


def _facts(cls: type[PositionEncoding]) -> dict[str, str]:
    """What a class says about its method, for people."""
    kind = "relative" if cls.relative else "absolute"
    return {"paper": cls.paper, "acts": cls.acts, "kind": kind, "past the training length": cls.extrapolation}


def _spec(cls: type[PositionEncoding], options: dict[str, Any], positions: PositionIds | None = None) -> Spec:
    """A Spec from a plain dict of options."""
    return Spec(cls, MappingProxyType(options), positions)


@contextmanager
def forked_rng() -> Iterator[None]:
    """Draw from a stream derived from torch's seed, leaving torch's own where it was."""
    devices = range(torch.cuda.device_count()) if torch.cuda.is_available() and torch.cuda.is_initialized() else []  # type: ignore[no-untyped-call]
    with torch.random.fork_rng(devices=devices):
        torch.manual_seed((torch.initial_seed() + 0x6E6F6D) % 2**63)
        yield


def parameters_of(cls: type[PositionEncoding]) -> dict[str, Any]:
    """The constructor's parameters and their defaults; none for a class that has no constructor of its own."""
    if cls.__init__ is nn.Module.__init__:
        return {}
    return {p.name: p.default for p in list(inspect.signature(cls.__init__).parameters.values())[1:]}


def wide(dtype: torch.dtype) -> torch.dtype:
    """The dtype in which positions are computed for tensors of `dtype`: float64 for float64, else float32."""
    return torch.float64 if dtype == torch.float64 else torch.float32


__all__ = ["Acts", "NoPE", "PositionEncoding", "Spec", "Tables", "forked_rng", "parameters_of", "wide"]
