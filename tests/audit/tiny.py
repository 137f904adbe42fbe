"""A healthy little Transformer, written down in one piece so that a fault is one method of a subclass, and its target.

Tiny(position="rope")            table, sinusoid, rope, alibi, none
target(Tiny())                   every ability that a law about behaviour may need
"""

import math
from typing import Any

import torch
from torch import nn

from gnomon.audit import Target

VOCAB, D, HEADS = 23, 16, 2


class Block(nn.Module):
    def __init__(self, cross: bool) -> None:
        super().__init__()
        self.norm, self.qkv, self.out = nn.LayerNorm(D), nn.Linear(D, 3 * D), nn.Linear(D, D)
        self.ffn = nn.Sequential(nn.LayerNorm(D), nn.Linear(D, 2 * D), nn.GELU(), nn.Linear(2 * D, D))
        self.told = nn.ModuleDict({"q": nn.Linear(D, D), "kv": nn.Linear(D, 2 * D)}) if cross else None
        self.drop = nn.Dropout(0.1)

    def forward(self, x, model, positions, seen, past, told, source_mask):
        a, kept = model.attend(self, x, positions, seen, past)
        x = x + model.drop(self, a)
        if told is not None:
            x = x + model.cross(self, x, told, source_mask)
        return x + self.ffn(x), kept


class Tiny(nn.Module):
    """forward(ids (B, T)) -> logits (B, T, V). Positions count real tokens; a query sees real keys behind it."""

    hidden = -math.inf

    def __init__(
        self, position="rope", layers=2, limit=64, window=None, causal=True, cross=False, std=0.3, seed=0, vocab=VOCAB
    ):
        super().__init__()
        self.position, self.limit, self.window, self.causal = position, limit, window, causal
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            self.embedding = nn.Embedding(vocab, D)
            self.table = nn.Embedding(limit, D) if position == "table" else None
            self.blocks = nn.ModuleList(Block(cross) for _ in range(layers))
            self.norm, self.head = nn.LayerNorm(D), nn.Linear(D, vocab, bias=False)
            for p in self.parameters():
                if p.dim() > 1:
                    nn.init.normal_(p, std=std)
        self.reader = Tiny("rope", layers=1, causal=False, std=std, seed=seed + 1) if cross else None
        self.eval()

    def forward(self, ids, mask=None, positions=None, docs=None):
        return self.read(None, ids, mask, positions, docs)[0]

    def read(self, past, ids, mask=None, positions=None, docs=None, source=None, source_mask=None):
        """Logits of ids that follow `past`, and what follows then: keys and values of each layer, and the mask."""
        x, state = self.encode(past, ids, mask, positions, docs, source, source_mask)
        return self.head(x), state

    def encode(self, past, ids, mask=None, positions=None, docs=None, source=None, source_mask=None):
        B, T = ids.shape
        S = 0 if past is None else past[0][0].shape[2]
        real = torch.ones(B, S + T, dtype=torch.bool) if mask is None else mask
        if positions is None:
            positions = self.places(real, docs)[:, S:] if past is None else self.next_places(real, S)
        seen = self.visible(real, docs)[:, S:]
        x = self.start(ids, positions)
        told = None if source is None else self.reader.encode(None, source, source_mask)[0]
        state = []
        for n, block in enumerate(self.blocks):
            x, kept = block(x, self, positions, seen, None if past is None else past[n], told, source_mask)
            state.append(kept)
        return self.norm(x), state

    # ------------------------------------------------------------------ what faults replace

    def places(self, real, docs=None):
        """Positions (B, S) of all tokens so far."""
        if docs is None:
            return (real.cumsum(1) - 1).clamp(min=0)
        return torch.stack([(docs[:, : i + 1] == docs[:, i : i + 1]).sum(1) - 1 for i in range(docs.shape[1])], 1)

    def next_places(self, real, S):
        """Positions (B, T) of the tokens after the first S."""
        return self.places(real)[:, S:]

    def order(self, real):
        """Which queries (B, S, 1) come late enough for which keys (B, 1, S)."""
        step = real.cumsum(1)
        apart = step[:, :, None] - step[:, None]
        inside = apart < self.window if self.window else torch.ones_like(apart, dtype=torch.bool)
        return inside & (apart >= 0) if self.causal else inside

    def visible(self, real, docs=None):
        """Which query sees which key (B, S, S); padding sees itself, so that no row is empty."""
        seen = self.order(real) & real[:, None]
        if docs is not None:
            seen = seen & (docs[:, :, None] == docs[:, None])
        return seen | torch.eye(real.shape[1], dtype=torch.bool)

    def drop(self, block, a):
        return block.drop(a)

    def start(self, ids, positions):
        x = self.embedding(ids)
        if self.table is not None:
            return x + self.table(positions)
        if self.position == "sinusoid":
            angle = self.angles(positions, D)
            return x + torch.cat([angle.sin(), angle.cos()], -1).to(x.dtype)
        return x

    def angles(self, positions, width):
        """(B, T, width / 2) in float32, whatever the model's dtype."""
        with torch.autocast("cpu", enabled=False):
            rate = 100.0 ** (-torch.arange(0, width, 2, dtype=torch.float32) / width)
            return positions[..., None].float() * rate

    def rotate(self, x, positions):
        """x (B, H, T, C) turned in pairs (i, i + C/2)."""
        if self.position != "rope":
            return x
        angle = self.angles(positions, x.shape[-1])[:, None]
        a, b = x.chunk(2, -1)
        cos, sin = angle.cos().to(x.dtype), angle.sin().to(x.dtype)
        return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)

    def attend(self, block, x, positions, seen, past):
        q, k, v = (self.heads(part) for part in block.qkv(block.norm(x)).chunk(3, -1))
        q, k = self.rotate(q, positions), self.rotate(k, positions)
        at = positions
        if past is not None:
            k, v, at = torch.cat([past[0], k], 2), torch.cat([past[1], v], 2), torch.cat([past[2], positions], 1)
        scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
        if self.position == "alibi":
            apart = (positions[:, None, :, None] - at[:, None, None]).abs().float()
            scores = scores - (apart * torch.tensor([0.5, 0.1]).view(-1, 1, 1)).to(scores.dtype)
        scores = scores.masked_fill(~seen[:, None], self.hidden)
        mixed = (scores.softmax(-1).to(v.dtype) @ v).transpose(1, 2).flatten(2)
        return block.out(mixed), (k, v, at)

    def cross(self, block, x, told, source_mask):
        k, v = (self.heads(part) for part in block.told["kv"](told).chunk(2, -1))
        scores = self.heads(block.told["q"](x)) @ k.transpose(-1, -2) / math.sqrt(k.shape[-1])
        if source_mask is not None:
            scores = scores.masked_fill(~source_mask[:, None, None], -math.inf)
        return (scores.softmax(-1) @ v).transpose(1, 2).flatten(2)

    def heads(self, x):
        return x.unflatten(-1, (HEADS, -1)).transpose(1, 2)


class TinyTarget(Target):
    """A Tiny, with all that laws about behaviour may ask."""

    def __init__(self, model: Tiny, **more: Any) -> None:
        can = {"mask", "positions", "placed mask", "packed", "cache", "cached mask", "cached positions", "reorder"}
        said = {
            "vocab": model.embedding.num_embeddings,
            "architecture": "decoder-only" if model.causal else "encoder-only",
            "layers": len(model.blocks),
            "dtype": next(model.parameters()).dtype,
            "window": model.window,
            "limit": model.limit,
            "table_ends": model.table is not None,
            "shift": {"rope": "kept", "alibi": "kept", "none": "kept"}.get(model.position, "changed"),
            "can": frozenset(can | {"beam", "module"} | ({"source"} if model.reader else set())),
        }
        super().__init__(type(model).__name__, **{**said, **more})
        self.model = model
        self.source = None

    def logits(self, ids, mask=None, positions=None, docs=None):
        return self.model.read(None, ids, mask, positions, docs, **self._told(ids))[0]

    def step(self, state, ids, mask=None, positions=None):
        return self.model.read(state, ids, mask, positions, **self._told(ids))

    def reorder(self, state, index):
        return [tuple(x[index] for x in layer) for layer in state]

    def beam(self, ids, width, new, cached):
        return [self._beam(row, width, new, cached) for row in ids]

    def _beam(self, row, width, new, cached):
        """Plain beam search over one row, without an end."""
        logits, state = self.step(None, row[None])
        score, texts = torch.zeros(1), [[]]
        for _ in range(new):
            total = score[:, None] + logits[:, -1].log_softmax(-1)
            score, best = total.flatten().topk(width)
            rows, tokens = best // self.vocab, best % self.vocab
            texts = [[*texts[int(r)], int(i)] for r, i in zip(rows, tokens, strict=True)]
            if cached:
                logits, state = self.step(self.reorder(state, rows), tokens[:, None])
            else:
                logits = self.logits(torch.stack([torch.cat([row, torch.tensor(text)]) for text in texts]))
        return texts[0]

    def with_source(self, source, mask=None):
        other = self.with_module(self.model)
        other.source = source, mask
        return other

    def _told(self, ids):
        if self.model.reader is None:
            return {}
        source, mask = self.source or (torch.arange(5).expand(len(ids), 5), None)
        return {"source": source, "source_mask": mask}

    @property
    def module(self):
        return self.model

    def with_module(self, module):
        fields = ("layers", "dtype", "window", "limit", "table_ends", "shift", "can", "seed", "by_design")
        return type(self)(module, **{name: getattr(self, name) for name in fields})

    def embedding(self):
        return self.model.embedding

    def blocks(self):
        return self.model.blocks


def target(model: Tiny, **more: Any) -> TinyTarget:
    return TinyTarget(model, **more)
