"""A small model of Gnomon's, described, so that laws about our own parts can build it with one setting changed.

Laws build it themselves, so that faults in constructors show. Weights are large (std 0.3, biases and norms noisy): with
the usual small initial values most faults change the logits by less than the tolerance.
"""

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import pairwise
from typing import Any, Protocol

import torch

from gnomon.attention.cache import Cache
from gnomon.audit.source_model import DecoderOverSource, EncoderLogits
from gnomon.audit.target import NotApplicable
from gnomon.blocks.experts import Experts
from gnomon.layout import Layout
from gnomon.models import DecoderOnly, ModelConfig
from gnomon.models.model_settings import Architecture
from gnomon.positions import PositionEncoding, Spec, encoding, get
from gnomon.shapes import Float, Int

VOCAB, D_MODEL, N_HEADS, D_HEAD, MAX_POSITIONS = 29, 32, 4, 8, 64
WINDOW, SINK_TOKENS = 5, 2  #: the widest, and the most, that short texts show
MODELS: Mapping[str, Any] = {
    "decoder-only": DecoderOnly,
    "encoder-only": EncoderLogits,
    "encoder-decoder": DecoderOverSource,
}
#: settings of a config that are sizes, or that say what becomes of the vectors: a small model has its own
OWN = {
    "vocab_size",
    "d_model",
    "n_layers",
    "n_heads",
    "architecture",
    "position",
    "max_positions",
    "d_head",
    "d_ff",
    "dropout",
    "init_std",
    "d_embed",
    "padding_id",
    "position_dim",
    "combine",
    "n_decoder_layers",
    "source_vocab_size",
    "n_types",
    "head",
    "n_classes",
    "pooling",
    "pooler",
    "embed_scale",
    "attention_scale",
}


class Logits(Protocol):
    """All that most of these laws ask of a model."""

    def __call__(self, ids: Int, at: Layout | None = None, cache: Cache | None = None) -> Float:
        """ids (B, T) -> logits (B, T, V)."""
        ...


@dataclass(frozen=True)
class SmallModel:
    """A model of two layers under one encoding.

    second        the encoding of the second layer where it is not the first one's
    architecture  an encoder-decoder is asked as a decoder over one source
    options       other settings of its config
    seed          of weights, ids, lengths and everything else that is drawn
    """

    spec: Spec
    architecture: Architecture = "decoder-only"
    second: Spec | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    seed: int = 0

    @classmethod
    def of(cls, name: str, architecture: Architecture = "decoder-only", seed: int = 0, **options: Any) -> "SmallModel":
        """That of an encoding by name, in the small setting its class gives for tests."""
        return cls(get(name, **encoding(name).tiny), architecture, None, options, seed)

    @classmethod
    def like(cls, config: ModelConfig, seed: int = 0) -> "SmallModel":
        """One of the same kind as a model: its encodings, masks, norms and blocks in a small size."""
        options = {f.name: getattr(config, f.name) for f in fields(config) if f.name not in OWN}
        if config.n_kv_heads not in (None, 1):
            options["n_kv_heads"] = N_HEADS if config.n_kv_heads == config.n_heads else 2
        windows = config.windows(2)
        options["window"] = tuple(None if w is None else min(w, WINDOW) for w in windows)
        if config.distinct_layers is not None:
            options["distinct_layers"] = min(config.distinct_layers, 2)
        options["sink_tokens"] = min(config.sink_tokens, SINK_TOKENS)
        if isinstance(experts := config.experts, Experts):
            n, dense = min(experts.n_experts, 4), [i for i in experts.dense_layers if i < 2]
            options["experts"] = replace(
                experts,
                n_experts=n,
                top_k=min(experts.top_k, n),
                d_ff=None,
                shared=min(experts.shared, 8),
                dense_layers=dense,
            )
        layers = config.position if isinstance(config.position, tuple) else (config.position,)
        second = next((spec for spec in layers if spec != layers[0]), None)
        return cls(layers[0], config.architecture, second, options, seed)

    @property
    def causal(self) -> bool:
        """Whether its tokens see only those before them."""
        return self.architecture == "encoder-decoder" or (
            self.architecture == "decoder-only" and bool(self.options.get("causal", True))
        )

    @property
    def window(self) -> int | None:
        """The narrowest window of its layers."""
        given = self.options.get("window")
        widths = [w for w in (given if isinstance(given, tuple | list) else [given]) if w is not None]
        return min(widths, default=None)

    def with_options(self, **changes: Any) -> "SmallModel":
        """The same with other options."""
        return replace(self, options={**self.options, **changes})

    def model(self, **changes: Any) -> Any:
        """The model, built anew (the same every time), in evaluation mode. `changes` are options too."""
        options = {**self.options, "causal": self.causal, **changes}
        if self.architecture == "encoder-decoder" and not options["causal"]:
            raise NotApplicable("a decoder that looks ahead is none")
        if self.spec.cls.one_sided and not (options["causal"] and self.architecture == "decoder-only"):
            raise NotApplicable(f"{self.spec.name} is for causal attention only")
        settings: dict[str, Any] = {
            "position": self.spec if self.second is None else [self.spec, self.second],
            "max_positions": MAX_POSITIONS,
            "init_std": 0.3,
            **options,
        }
        if settings.get("window") in (None, (None, None)):
            settings["sink_tokens"] = 0
        with torch.random.fork_rng(devices=[]), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that an encoder without position sees no order is asked for here
            torch.manual_seed(self.seed)
            model = MODELS[self.architecture](VOCAB, D_MODEL, 2, N_HEADS, **settings)
            add_noise(model)
        return model.eval()

    def encoding(self, second: bool = False) -> PositionEncoding:
        """The encoding alone, or that of the second layer, its parameters noisy."""
        wanted = {"d_model": D_MODEL, "d_head": D_HEAD, "n_heads": N_HEADS, "max_positions": MAX_POSITIONS}
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.seed)
            position = (self.second if second and self.second else self.spec).build(**wanted, causal=self.causal)
            add_noise(position)
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


@torch.no_grad()
def add_noise(module: torch.nn.Module) -> None:
    """Add noise to biases, norms and tables of positions, which start at 0, 1 or near 0 and would hide faults."""
    of_positions = {id(p) for m in module.modules() if isinstance(m, PositionEncoding) for p in m.parameters()}
    for p in module.parameters():
        if p.dim() == 1 or id(p) in of_positions:
            p.add_(torch.randn_like(p) * 0.3)


def decode(
    model: Logits,
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


def documents_alone(model: Logits, ids: Int, at: Layout) -> Float:
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


def real_logits(x: Float, at: Layout) -> Float:
    """x (B, T, ...) with 0 at padding: what stands there is nobody's business."""
    return x.masked_fill(~at.real[..., None], 0.0)


def flatten(*parts: Float) -> Float:
    """Several tensors as one, so that one number compares them all."""
    return torch.cat([part.detach().flatten() for part in parts])


__all__ = [
    "D_HEAD",
    "D_MODEL",
    "MAX_POSITIONS",
    "N_HEADS",
    "VOCAB",
    "Logits",
    "SmallModel",
    "add_noise",
    "decode",
    "documents_alone",
    "flatten",
    "real_logits",
]
