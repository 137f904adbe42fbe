"""Stacks of torch.nn: nn.TransformerEncoder, nn.TransformerDecoder, nn.Transformer.

They turn vectors into vectors, so a drawn embedding, positions of one's own and a head are put around them; laws then
ask what the stack does with masks.
"""

from collections.abc import Callable
from copy import copy
from typing import Any

import torch
from torch import nn

from gnomon.audit.adapters.documents import count_within_documents
from gnomon.audit.target import Ability, Target
from gnomon.errors import BadValue
from gnomon.models.model_settings import Architecture
from gnomon.positions import Sinusoidal
from gnomon.shapes import Bool, Float, Int

Stack = nn.TransformerEncoder | nn.TransformerDecoder | nn.Transformer


class Reader(nn.Module):
    """ids (B, T) -> logits (B, T, V) through a stack; what is not its own is drawn from the seed.

    tokens, head  as in any model; place: positions (B, T) -> vectors (B, T, D)
    """

    def __init__(self, stack: Stack, vocab: int, place: Callable[[Int], Float], rng: torch.Generator) -> None:
        super().__init__()
        some = next(stack.parameters())
        width = _first(stack).norm1.normalized_shape[0]
        self.tokens = nn.Embedding(vocab, width, _weight=torch.randn(vocab, width, generator=rng))
        self.stack, self.place = stack, place
        self.head = nn.Linear(width, vocab, bias=False)
        self.head.weight = nn.Parameter(torch.randn(vocab, width, generator=rng) / width**0.5)
        self.to(some.device, some.dtype)

    def vectors(self, ids: Int, positions: Int) -> Float:
        """ids, positions (B, T) -> (B, T, D)."""
        found: Float = self.tokens(ids)
        return found + self.place(positions).to(found)


class TorchNN(Target):
    """A stack of torch.nn.

    causal   whether an nn.TransformerEncoder is given the causal mask; decoders always are
    hinted   whether it is told `is_causal=True` beside the mask, which permits a faster kernel
    vocab    rows of the drawn embedding
    place    positions (B, T) -> vectors (B, T, D) that are added to the tokens'; by default sinusoids
    """

    def __init__(
        self,
        model: Stack | Reader,
        *,
        causal: bool = False,
        hinted: bool = False,
        vocab: int = 32,
        place: Callable[[Int], Float] | None = None,
        seed: int = 0,
    ) -> None:
        stack = model.stack if isinstance(model, Reader) else model
        if not isinstance(stack, Stack):
            raise BadValue(f"{type(stack).__name__} is one layer: put it into an nn.TransformerEncoder or Decoder")
        layer, some = _first(stack), next(stack.parameters())
        width = layer.norm1.normalized_shape[0]
        encodes = isinstance(stack, nn.TransformerEncoder)
        architecture: Architecture = "encoder-decoder"
        if encodes:
            architecture = "decoder-only" if causal else "encoder-only"
        can: set[Ability] = {"mask", "positions", "placed mask", "packed", "module"}
        super().__init__(
            f"nn.{type(stack).__name__}",
            vocab,
            architecture,
            layers=len(_layers(stack)),
            dtype=some.dtype,
            device=some.device,
            shift="changed" if place is None else "unknown",
            can=frozenset(can if encodes else can - {"packed"} | {"source"}),
            seed=seed,
        )
        own = model if isinstance(model, Reader) else Reader(stack, vocab, place or sinusoids(width), self.rng(901))
        self.reader, self.hinted = own.eval(), hinted
        self.rows_first, self.heads = bool(layer.self_attn.batch_first), layer.self_attn.num_heads
        self.source: tuple[Int, Bool | None] = (self.ids(1, 5, 902), None)

    def logits(
        self, ids: Int, mask: Bool | None = None, positions: Int | None = None, docs: Int | None = None
    ) -> Float:
        """See Target. Without positions, tokens are counted within the mask, or within each document."""
        B, T = ids.shape
        if positions is None:
            positions = _count_positions(ids, mask, docs)
        x = self._turned(self.reader.vectors(ids, positions))
        padding = None if mask is None else ~mask
        blocked = _future(T, ids.device) if self.causal else None
        if docs is not None:
            apart = docs[:, :, None] != docs[:, None, :]
            blocked = apart if blocked is None else apart | blocked
            blocked = blocked.repeat_interleave(self.heads, 0)
        stack, causal = self.reader.stack, self.hinted and docs is None
        if isinstance(stack, nn.TransformerEncoder):
            out = stack(x, blocked, padding, is_causal=causal)
        else:
            memory, unreal = self._memory(B)
            if isinstance(stack, nn.Transformer):
                memory, stack = stack.encoder(memory, src_key_padding_mask=unreal), stack.decoder
            out = stack(
                x,
                memory,
                blocked,
                tgt_key_padding_mask=padding,
                memory_key_padding_mask=unreal,
                tgt_is_causal=causal,
            )
        logits: Float = self.reader.head(self._turned(out))
        return logits

    def with_source(self, source: Int, mask: Bool | None = None) -> "TorchNN":
        """See Target."""
        self.need("source")
        other = copy(self)
        other.source = (source, mask)
        return other

    def _memory(self, B: int) -> tuple[Float, Bool | None]:
        """Vectors of the source, turned as the stack wants them, and what of it is padding."""
        ids, mask = self.source
        if len(ids) != B:
            ids = ids.expand(B, -1)
        vectors = self.reader.vectors(ids, _count_positions(ids, mask, None))
        return self._turned(vectors), None if mask is None else ~mask

    def _turned(self, x: Float) -> Float:
        return x if self.rows_first else x.transpose(0, 1)

    @property
    def module(self) -> nn.Module:
        """See Target."""
        return self.reader

    def with_module(self, module: nn.Module) -> "TorchNN":
        """See Target."""
        if not isinstance(module, Reader):
            raise BadValue(f"expected a Reader, got {type(module).__name__}")
        other = copy(self)
        other.reader = module.eval()
        return other

    def embedding(self) -> nn.Module:
        """See Target."""
        return self.reader.tokens

    def blocks(self) -> nn.ModuleList:
        """See Target."""
        return _layers(self.reader.stack)

    def embedding_and_head(self) -> tuple[nn.Parameter, nn.Parameter]:
        """See Target."""
        tokens: Any = self.reader.tokens.weight
        head: Any = self.reader.head.weight
        return tokens, head


def sinusoids(width: int) -> Callable[[Int], Float]:
    """Positions (B, T) -> (B, T, width): Vaswani et al. 2017, section 3.5, sines before cosines."""
    rates = torch.tensor(Sinusoidal(width).frequencies(), dtype=torch.float64)

    def place(positions: Int) -> Float:
        turns = positions.cpu()[..., None] * rates
        return torch.cat([turns.sin(), turns.cos()], -1)[..., :width]

    return place


def _layers(stack: Stack) -> nn.ModuleList:
    layers: Any = stack.decoder.layers if isinstance(stack, nn.Transformer) else stack.layers
    found: nn.ModuleList = layers
    return found


def _first(stack: Stack) -> Any:
    return _layers(stack)[0]


def _future(T: int, device: torch.device) -> Bool:
    """(T, T), True where a query must not look: torch.nn's masks say what is hidden."""
    return torch.ones(T, T, dtype=torch.bool, device=device).triu(1)


def _count_positions(ids: Int, mask: Bool | None, docs: Int | None) -> Int:
    """Positions (B, T): tokens counted among those that are real, or within each document."""
    if docs is not None:
        return count_within_documents(docs)
    real = torch.ones_like(ids) if mask is None else mask.long()
    return (real.cumsum(1) - 1).clamp(min=0)


__all__ = ["Reader", "TorchNN", "sinusoids"]
