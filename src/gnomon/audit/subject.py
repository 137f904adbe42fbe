"""What a law is asked about: a tiny model, described. Laws build it themselves, so that faults in constructors show.

Weights are large (std 0.3, biases and norms noisy): with the usual small initial values most faults change the logits
by less than the tolerance.
"""

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Protocol

import torch

from gnomon.attention.cache import Cache
from gnomon.audit.told import ToldDecoder, ToldEncoder
from gnomon.blocks.residual import Placement
from gnomon.layout import Layout
from gnomon.models import DecoderOnly
from gnomon.models.model_settings import Architecture
from gnomon.norm import Norm
from gnomon.positions import PositionEncoding, Spec, encoding, get
from gnomon.shapes import Float, Int

VOCAB, D_MODEL, N_HEADS, D_HEAD, MAX_POSITIONS = 29, 32, 4, 8, 64
MODELS: Mapping[str, Any] = {"decoder-only": DecoderOnly, "encoder-only": ToldEncoder, "encoder-decoder": ToldDecoder}


class NotApplicable(Exception):
    """Raised by a check where its law says nothing about the subject; the message says why."""


class Model(Protocol):
    """All that most laws ask of a model."""

    def __call__(self, ids: Int, at: Layout | None = None, cache: Cache | None = None) -> Float:
        """ids (B, T) -> logits (B, T, V)."""
        ...


@dataclass(frozen=True)
class Subject:
    """A model of two layers under one encoding, and the settings that laws care about.

    second        the encoding of the second layer where it is not the first one's
    architecture  an encoder-decoder is asked as a decoder that has been told one source
    options       other settings of its config
    seed          of weights, ids, lengths and everything else that is drawn
    """

    spec: Spec
    causal: bool = True
    window: int | None = None
    n_kv_heads: int = N_HEADS
    placement: Placement = "pre"
    norm: Norm = "layernorm"
    tied: bool = True
    second: Spec | None = None
    architecture: Architecture = "decoder-only"
    options: Mapping[str, Any] = field(default_factory=dict)
    seed: int = 0

    def __post_init__(self) -> None:
        if self.architecture != "decoder-only":
            object.__setattr__(self, "causal", self.architecture == "encoder-decoder")

    @classmethod
    def of(cls, name: str, **settings: Any) -> "Subject":
        """The subject for an encoding by name, in the small setting its class gives for tests."""
        return cls(get(name, **encoding(name).tiny), **settings)

    def model(self, **changes: Any) -> Any:
        """The model, built anew (the same every time), in evaluation mode. `changes` go to its constructor."""
        if self.architecture == "encoder-decoder" and not changes.get("causal", True):
            raise NotApplicable("a decoder that looks ahead is none")
        bidirectional = not (changes.get("causal", self.causal) and self.architecture == "decoder-only")
        if self.spec.cls.one_sided and bidirectional:
            raise NotApplicable(f"{self.spec.name} is for causal attention only")
        settings: dict[str, Any] = {
            "position": self.spec if self.second is None else [self.spec, self.second],
            "max_positions": MAX_POSITIONS, "causal": self.causal, "window": self.window, "tied": self.tied,
            "n_kv_heads": self.n_kv_heads, "placement": self.placement, "norm": self.norm, "init_std": 0.3,
            **self.options,
        }  # fmt: skip
        if changes.get("window", self.window) is None:
            settings["sink_tokens"] = 0
        with torch.random.fork_rng(devices=[]), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that an encoder without position sees no order is asked for here
            torch.manual_seed(self.seed)
            model = MODELS[self.architecture](VOCAB, D_MODEL, 2, N_HEADS, **{**settings, **changes})
            stir(model)
        return model.eval()

    def encoding(self) -> PositionEncoding:
        """The encoding alone, its parameters stirred."""
        wanted = {"d_model": D_MODEL, "d_head": D_HEAD, "n_heads": N_HEADS, "max_positions": MAX_POSITIONS}
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.seed)
            position = self.spec.build(**wanted, causal=self.causal)
            stir(position)
        return position.eval()

    def rng(self) -> torch.Generator:
        """A fresh stream of random numbers, the same every time."""
        return torch.Generator().manual_seed(self.seed + 1)

    def ids(self, B: int, T: int) -> Int:
        """(B, T) token ids."""
        return torch.randint(VOCAB, (B, T), generator=self.rng())

    def normal(self, *shape: int, stream: int = 0) -> Float:
        """Normal numbers; another stream gives other ones."""
        return torch.randn(*shape, generator=torch.Generator().manual_seed(self.seed + 2 + stream))

    def cuts(self, T: int) -> list[int]:
        """T cut into chunks of random sizes."""
        inside = torch.randperm(T - 1, generator=self.rng())[: T // 3] + 1
        edges = [0, *sorted(inside.tolist()), T]
        return [b - a for a, b in pairwise(edges)]

    def must_be_causal(self) -> None:
        """Raise NotApplicable for a model that looks ahead."""
        if not self.causal:
            raise NotApplicable("the model looks at tokens to come, so it cannot go step by step")


@torch.no_grad()
def stir(module: torch.nn.Module) -> None:
    """Add noise to biases, norms and tables of positions, which start at 0, 1 or near 0 and would hide faults."""
    of_positions = {id(p) for m in module.modules() if isinstance(m, PositionEncoding) for p in m.parameters()}
    for p in module.parameters():
        if p.dim() == 1 or id(p) in of_positions:
            p.add_(torch.randn_like(p) * 0.3)


def decode(
    model: Model,
    ids: Int,
    chunks: Sequence[int],
    cache: Cache,
    at: Layout | None = None,
    place: Callable[[Layout], Layout] | None = None,
) -> Float:
    """Logits (B, T, V) of ids fed in chunks through the cache. `at` places the first chunk (default 0, 1, ..); the
    cache itself says where the others go, and `place` may spoil that."""
    out, start = [], 0
    for n in chunks:
        where = at if cache.at is None else cache.then(n)
        if cache.at is not None and place is not None:
            where = place(cache.then(n))
        out.append(model(ids[:, start : start + n], where, cache))
        start += n
    return torch.cat(out, 1)


def alone(model: Model, ids: Int, at: Layout) -> Float:
    """Logits (B, T, V) of every document of every row run by itself and put back in its place; 0 at padding."""
    out: Float | None = None
    for b in range(ids.shape[0]):
        for d in range(1 if at.doc is None else int(at.doc[b].amax()) + 1):
            here = at.real[b] if at.doc is None else at.doc[b] == d
            logits = model(ids[b, here][None])[0]
            out = logits.new_zeros(*ids.shape, logits.shape[-1]) if out is None else out
            out[b, here] = logits
    assert out is not None
    return out


def at_real(x: Float, at: Layout) -> Float:
    """x (B, T, ...) with 0 at padding: what stands there is nobody's business."""
    return x.masked_fill(~at.real[..., None], 0.0)


def joined(*parts: Float) -> Float:
    """Several tensors as one, so that one number compares them all."""
    return torch.cat([part.detach().flatten() for part in parts])


__all__ = [
    "D_HEAD", "D_MODEL", "MAX_POSITIONS", "N_HEADS", "VOCAB", "Model", "NotApplicable", "Subject", "alone", "at_real",
    "decode", "joined", "stir",
]  # fmt: skip
