"""What laws may ask of anybody's model: ids go in, logits come out; all else only where the model offers it.

Only `logits` must be written. Each further method belongs to an ability; a target lists in `can` the abilities it has,
and a law that needs another one is "not applicable", with the reason.

    mask          logits(ids, mask=...)                    which tokens are real
    positions     logits(ids, positions=...)               where tokens sit
    placed mask   logits(ids, mask=..., positions=...)     both at once
    packed        logits(ids, docs=...)                    which document each token belongs to
    cache         step(state, ids)                         token by token; "cached mask", "cached positions": with those
    reorder       reorder(state, index)                    rows of a cache are taken anew
    beam          beam(ids, width, new, cached)
    source        with_source(source, mask)                the decoder of an encoder-decoder, over another source
    loss          loss(ids)                                what it is trained on
    padded loss   padded_loss(ids, mask)                   the same of a batch with padding
    module        module, and what is found in it: embedding(), blocks(), weights of both ends; editable()
    save          saved(folder)                            written and read again
    resize        resized(rows)                            with another vocabulary
    angles        angles(length)                           what it turns pairs by, and what its config promises
    causal        of every model that is no encoder        a token sees only those before it and itself

Laws call with gradients off, and turn them on (`torch.enable_grad`) where they need them: an adapter decides neither.
"""

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal

import torch
from torch import nn

from gnomon.audit.compare import difference, largest
from gnomon.audit.restore import draw, restore_afterwards
from gnomon.errors import BadValue
from gnomon.models.model_settings import Architecture
from gnomon.shapes import Bool, Float, Int

Ability = Literal[
    "mask",
    "positions",
    "placed mask",
    "packed",
    "cache",
    "cached mask",
    "cached positions",
    "reorder",
    "beam",
    "source",
    "loss",
    "padded loss",
    "module",
    "save",
    "resize",
    "angles",
    "causal",
]
LACKS: Mapping[Ability, str] = {
    "mask": "takes no mask of real tokens",
    "positions": "takes no positions",
    "placed mask": "takes no positions beside a mask of real tokens",
    "packed": "takes no packed documents",
    "cache": "has no cache",
    "cached mask": "has no cache that takes a mask of real tokens",
    "cached positions": "has no cache that takes positions",
    "reorder": "has a cache whose rows cannot be reordered",
    "beam": "has no beam search",
    "source": "reads no source",
    "loss": "computes no loss",
    "padded loss": "computes no loss of a batch with padding",
    "module": "is no torch module that could be looked into",
    "save": "cannot be saved and read again",
    "resize": "cannot change its vocabulary",
    "angles": "shows no table of angles",
    "causal": "looks at tokens to come, as an encoder does",
}
OTHERS = "asked of other kinds of models, or of a Target of your own"  #: where an ability would make no sense
SOURCE_STREAM = 901  #: stream of the source that an encoder-decoder reads until it is given another
#: what an encoding promises when all positions move by the same amount: the logits stay, or they change
Shift = Literal["kept", "changed", "unknown"]


def must_have_numbers(module: nn.Module) -> None:
    """Raise BadValue for weights on the meta device, which nothing can be computed with."""
    empty = next((name for name, weight in module.named_parameters() if weight.is_meta), None)
    if empty is not None:
        raise BadValue(f"{empty} is on the meta device, without numbers: load or draw the weights, then audit")


class NotApplicable(Exception):
    """Raised by a check where its law says nothing about the target; the message says why."""


@dataclass(frozen=True)
class Because:
    """Why a target breaks a law on purpose, and where its own documentation says so."""

    reason: str
    link: str


@dataclass
class Target:
    """A model, described for laws.

    vocab        ids are drawn from 0 .. vocab - 1, without those in `special`
    layers       depth; with dtype and size of the logits it decides what is tolerated
    pad          the id that stands in padded places; None: any may stand there
    window       width of the sliding window, the token itself included, if every layer has it
    limit        positions there are in a table, or that the encoding was trained or scaled to; None: no end known
    table_ends   whether position `limit` does not exist (a table), rather than being untrained
    shift        what moving all positions promises
    routed       whether tokens are sent to experts, so that a rounding may send one elsewhere
    slots        sides, "left" or "interior", where padding may count as positions: nobody pads such a model there
    by_design    law -> why the target breaks it on purpose
    seed         of all that is drawn
    """

    what: ClassVar[str] = "model"
    bare: ClassVar[bool] = False  #: whether it is a position module by itself, which laws about models do not concern

    name: str
    vocab: int
    architecture: Architecture = "decoder-only"
    layers: int = 2
    dtype: torch.dtype = torch.float32
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))
    special: frozenset[int] = frozenset()
    pad: int | None = None
    window: int | None = None
    limit: int | None = None
    table_ends: bool = False
    shift: Shift = "unknown"
    routed: bool = False
    slots: frozenset[str] = frozenset()
    can: frozenset[Ability] = frozenset()
    by_design: Mapping[str, Because] = field(default_factory=dict)
    seed: int = 0
    #: lengths of the short texts that it answers, where somebody looked
    lengths: frozenset[int] | None = field(default=None, init=False)
    #: its optional arguments that no law gives, each with the argument of an adapter that would tell how
    unused_arguments: tuple[tuple[str, str], ...] = field(default=(), init=False)
    own_weights: bool = field(default=True, init=False)  #: False where they were drawn anew

    # ------------------------------------------------------------------ what it computes

    def logits(
        self, ids: Int, mask: Bool | None = None, positions: Int | None = None, docs: Int | None = None
    ) -> Float:
        """ids (B, T) -> (B, T, V); of an encoder without a vocabulary its vectors.

        mask (B, T): True where a token is real, positions then being what the target makes of it unless they are given
        too; positions (B, T), from 0, each row its own; docs (B, T): which document of its row a token belongs to, each
        starting at position 0 of its own.
        """
        raise NotImplementedError

    def step(self, state: Any, ids: Int, mask: Bool | None = None, positions: Int | None = None) -> tuple[Float, Any]:
        """Logits (B, T, V) of ids (B, T) that follow what `state` holds (None: nothing), and the state after them.

        mask (B, S + T) covers all tokens so far; positions (B, T) these ones. The state given may be used up.
        """
        raise NotApplicable(self.lacks("cache"))

    def by_cache(self) -> Iterator["Target"]:
        """The target with each kind of cache that it has."""
        yield self

    def reorder(self, state: Any, index: Int) -> Any:
        """The state with its rows taken in the order of index (B)."""
        raise NotApplicable(self.lacks("reorder"))

    def beam(self, ids: Int, width: int, new: int, cached: bool) -> list[list[int]]:
        """The best `new` tokens after each row of ids (B, T), by a beam of this width, with or without a cache."""
        raise NotApplicable(self.lacks("beam"))

    def with_source(self, source: Int, mask: Bool | None = None) -> "Target":
        """The same encoder-decoder, whose decoder reads this source (B, S)."""
        raise NotApplicable(self.lacks("source"))

    def loss(self, ids: Int) -> Float:
        """The scalar that training on ids (B, T) minimises, its logits shifted as the target shifts them."""
        raise NotApplicable(self.lacks("loss"))

    def padded_loss(self, ids: Int, mask: Bool) -> Float:
        """The same of ids whose real tokens are where mask (B, T) is True."""
        raise NotApplicable(self.lacks("padded loss"))

    # ------------------------------------------------------------------ what it consists of

    @property
    def module(self) -> nn.Module:
        """The torch module itself, in evaluation mode."""
        raise NotApplicable(self.lacks("module"))

    def with_module(self, module: nn.Module) -> "Target":
        """The same target around another module of its class, such as a copy in another dtype."""
        raise NotApplicable(self.lacks("module"))

    @contextmanager
    def editable(self, dtype: torch.dtype | None = None) -> Iterator["Target"]:
        """The target around its module, cast to dtype if one is given, which may be changed while a `with` lasts:
        afterwards it is as it was. What is asked of this target meanwhile is asked of the changed module too."""
        with restore_afterwards(self.module):
            other = self.with_module(self.module)
            if dtype is not None:
                other.module.to(dtype)
                other.dtype = dtype
            yield other

    @contextmanager
    def redraw(self) -> Iterator["Target"]:
        """The target with weights drawn anew while a `with` lasts, as large as vectors of a trained model.

        Laws hold whatever the weights. Fresh ones are often so small, or zero, that no fault of theirs shows.
        """
        with self.editable() as other:
            if self.own_weights:
                draw(other.module, self.rng(6))
            other.own_weights = False
            yield other

    def copy(self) -> "Target":
        """The target around a deep copy of its module, which laws about copies ask for; others use `editable`."""
        try:
            return self.with_module(deepcopy(self.module))
        except NotApplicable:
            raise
        except Exception as raised:  # whatever anybody's module raises
            raise NotApplicable(f"{self.name} cannot be copied: {type(raised).__name__}: {raised}") from raised

    def fresh(self) -> "Target | None":
        """The target as it was before any call, where nothing that calls leave behind goes with it."""
        return None

    def moves(self, room: int) -> tuple[int, ...]:
        """How far laws move all positions, if there is room for `room`."""
        return (room,)

    def embedding(self) -> nn.Module:
        """The module that turns ids into vectors (B, T, D)."""
        raise NotApplicable(f"{self.name} does not say which part embeds its tokens")

    def blocks(self) -> nn.ModuleList:
        """Its blocks, from the first to the last; each is given its input (B, T, D) first."""
        raise NotApplicable(f"{self.name} does not say which parts are its blocks")

    def embedding_and_head(self) -> tuple[nn.Parameter, nn.Parameter]:
        """The weight (V, D) that embeds tokens and the one that scores them."""
        raise NotApplicable(f"{self.name} does not say which weight scores its tokens")

    @property
    def promises_tie(self) -> bool | None:
        """Whether both ends are to be one tensor; None where nobody says."""
        return None

    @property
    def promises_scale(self) -> float | None:
        """What token vectors are to be multiplied by; None where nobody says."""
        return None

    @property
    def uses_all(self) -> bool:
        """Whether every weight is meant to have a part in the logits of every text."""
        return False

    def save_and_load(self, folder: Path) -> "Target":
        """Written into the folder and read again."""
        raise NotApplicable(self.lacks("save"))

    def resize(self, rows: int) -> "Target":
        """A copy with a vocabulary of `rows`."""
        raise NotApplicable(self.lacks("resize"))

    def angles(self, length: int) -> tuple[Float, Float]:
        """Angles (T, pairs) that it turns pairs by in a text of `length` tokens, and those that its config promises by
        the published formula, both with the factor on the lengths of vectors as a last column."""
        raise NotApplicable(self.lacks("angles"))

    # ------------------------------------------------------------------ for laws

    def undo_afterwards(self) -> AbstractContextManager[None]:
        """What a law does while a `with` lasts is forgotten, where that costs little."""
        return nullcontext()

    @property
    def can_redraw(self) -> bool:
        """Whether its weights are its own still, and may be drawn anew."""
        return self.own_weights and "module" in self.can

    @property
    def causal(self) -> bool:
        """Whether a token sees only those before it and itself."""
        return self.architecture != "encoder-only"

    def need(self, *abilities: Ability) -> None:
        """Raise NotApplicable, with the reason, unless the target has them all."""
        for ability in abilities:
            if not (self.causal if ability == "causal" else ability in self.can):
                raise NotApplicable(self.lacks(ability))

    def must_read_apart(self) -> None:
        """Raise NotApplicable where a read without the cache may go through it."""

    def lacks(self, ability: Ability) -> str:
        """Why a law that needs this ability does not apply."""
        return OTHERS if ability == "source" else f"{self.name} {LACKS[ability]}"

    def nearest(self, n: int) -> int:
        """The length of a text nearest to n that it answers, as far as anybody looked."""
        if self.table_ends and self.limit is not None:
            n = min(n, self.limit)
        return n if self.lengths is None else min(self.lengths, key=lambda known: abs(known - n))

    def rng(self, stream: int = 0) -> torch.Generator:
        """A fresh stream of random numbers, the same every time; another stream gives others."""
        return torch.Generator().manual_seed(self.seed * 1009 + stream)

    def ids(self, B: int, T: int, stream: int = 0) -> Int:
        """(B, T) ids without a special meaning, drawn."""
        known = torch.arange(min(self.vocab, 50_000))
        plain = known[~torch.isin(known, torch.tensor(sorted(self.special), dtype=torch.long))]
        return plain[torch.randint(len(plain), (B, T), generator=self.rng(stream))].to(self.device)

    def other(self, ids: Int) -> Int:
        """Ids of the same shape that differ everywhere."""
        drawn = self.ids(ids.shape[0], ids.shape[1], stream=77)
        for stream in range(78, 142):
            if not bool((drawn == ids).any()):
                break
            drawn = torch.where(drawn == ids, self.ids(ids.shape[0], ids.shape[1], stream), drawn)
        return drawn

    def fill_padding(self, ids: Int, mask: Bool) -> Int:
        """ids with what stands in padded places where mask (B, T) is False."""
        return ids if self.pad is None else ids.masked_fill(~mask, self.pad)

    def tolerance(self, want: Float) -> float:
        """What two right computations may differ by, at the size of the logits.

        64 roundings a layer of float32, in a float64 model too, whose norms and tables are often held in float32. Below
        float32 most roundings of both are the same: what is left grows like a random walk, 4 a step. Both are measured
        on healthy models of 1 to 30 layers and are several times what those show.
        """
        eps = max(torch.finfo(self.dtype).eps, torch.finfo(torch.float32).eps)
        depth = self.layers + 1
        roundings = 64 * depth if eps == torch.finfo(torch.float32).eps else 4 * depth**0.5
        return roundings * eps * max(largest(want), 1e-6)

    def broken_weight(self) -> str:
        """Name of the first weight that holds NaN or an infinity; "" where there is none, or none is seen."""
        if "module" not in self.can:
            return ""
        weights = ((name, w.detach()) for name, w in self.module.named_parameters() if w.is_floating_point())
        return next((name for name, weight in weights if not bool(weight.float().isfinite().all())), "")

    def noise(self) -> float:
        """How far the logits move if each number of the embedding is rounded once more; 0 where nobody can tell.

        Large weights make a model so steep that roundings alone move its logits by more than the tolerance.
        """
        try:
            ids = self.ids(2, 12)
            with self.editable() as nudged:
                weight = next(nudged.embedding().parameters())
                sign = torch.randint(0, 2, weight.shape, generator=self.rng(5)).to(weight) * 2 - 1
                weight.data.mul_(1 + sign * max(torch.finfo(weight.dtype).eps, torch.finfo(torch.float32).eps))
                moved = nudged.logits(ids)
            return difference(moved, self.logits(ids))
        except Exception:  # whatever a model raises that is changed: then nothing is known
            return 0.0


__all__ = [
    "LACKS",
    "OTHERS",
    "SOURCE_STREAM",
    "Ability",
    "Because",
    "NotApplicable",
    "Shift",
    "Target",
    "must_have_numbers",
]
