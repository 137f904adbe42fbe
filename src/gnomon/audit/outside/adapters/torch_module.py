"""Anybody's torch module or function, described by hand.

Torch(model)                                                  # ids (B, T) -> logits (B, T, V)
Torch(model, masked=lambda ids, mask: model(ids, attention_mask=mask))
Torch(model, stepped=lambda state, ids: model.step(ids, state))
"""

from collections.abc import Callable, Iterator
from copy import copy
from typing import Any

import torch
from torch import nn

from gnomon.audit.outside.target import Ability, Shift, Target
from gnomon.audit.subject import NotApplicable
from gnomon.errors import BadValue
from gnomon.models.config import Architecture
from gnomon.shapes import Bool, Float, Int


class Torch(Target):
    """A module or function from ids (B, T) to logits (B, T, V), and what else it can do, each thing as a function.

    masked    (model, ids, mask (B, T), True where real) -> logits
    placed    (model, ids, positions (B, T)) -> logits
    placed_mask  (model, ids, mask, positions) -> logits
    packed    (model, ids, docs (B, T)) -> logits
    stepped   (model, state or None, ids (B, T)) -> (logits, state)
    loss      (model, ids) -> scalar, as training computes it

    Each is given the model, so that it can be asked about a copy too. A module is looked into: its embedding is the
    nn.Embedding with a row for each id, its blocks are the longest nn.ModuleList (or nn.Sequential), its head is the
    last nn.Linear with an output for each id.
    """

    def __init__(
        self,
        model: Callable[..., Any],
        *,
        name: str = "",
        vocab: int | None = None,
        architecture: Architecture = "decoder-only",
        masked: Callable[[Any, Int, Bool], Float] | None = None,
        placed: Callable[[Any, Int, Int], Float] | None = None,
        placed_mask: Callable[[Any, Int, Bool, Int], Float] | None = None,
        packed: Callable[[Any, Int, Int], Float] | None = None,
        stepped: Callable[[Any, Any, Int], tuple[Float, Any]] | None = None,
        loss: Callable[[Any, Int], Float] | None = None,
        tied: bool | None = None,
        shift: Shift = "unknown",
        window: int | None = None,
        limit: int | None = None,
        table_ends: bool = False,
        special: frozenset[int] = frozenset(),
        seed: int = 0,
    ) -> None:
        offers: dict[Ability, object] = {
            "mask": masked, "positions": placed, "placed mask": placed_mask, "packed": packed, "cache": stepped,
            "loss": loss,
            "module": model if isinstance(model, nn.Module) else None,
        }  # fmt: skip
        module = model if isinstance(model, nn.Module) else nn.Module()
        some = next(module.parameters(), torch.zeros(1))
        super().__init__(
            name or getattr(model, "__name__", type(model).__name__),
            vocab or _vocabulary(module),
            architecture,
            layers=len(_longest(module) or (0, 0)),
            dtype=some.dtype,
            device=some.device,
            special=special,
            window=window,
            limit=limit,
            table_ends=table_ends,
            shift=shift,
            can=frozenset(ability for ability, offer in offers.items() if offer is not None),
            seed=seed,
        )
        self.model, self.stepped, self.trained_on, self.tied = model, stepped, loss, tied
        self.masked, self.placed, self.placed_mask, self.packed = masked, placed, placed_mask, packed
        module.eval()

    def logits(
        self, ids: Int, mask: Bool | None = None, positions: Int | None = None, docs: Int | None = None
    ) -> Float:
        """See Target. What is asked is handed to the function that was given for it."""
        if mask is not None and positions is not None and docs is None and self.placed_mask is not None:
            return _logits(self.placed_mask(self.model, ids, mask, positions))
        for offer, asked in ((self.masked, mask), (self.placed, positions), (self.packed, docs)):
            if asked is not None:
                if offer is None or sum(x is not None for x in (mask, positions, docs)) > 1:
                    raise NotApplicable(f"{self.name} cannot be asked for this combination")
                return _logits(offer(self.model, ids, asked))
        return _logits(self.model(ids))

    def step(self, state: Any, ids: Int, mask: Bool | None = None, positions: Int | None = None) -> tuple[Float, Any]:
        """See Target."""
        self.need("cache")
        if mask is not None or positions is not None or self.stepped is None:
            raise NotApplicable(self.lacks("cached mask" if mask is not None else "cached positions"))
        logits, state = self.stepped(self.model, state, ids)
        return _logits(logits), state

    def loss(self, ids: Int) -> Float:
        """See Target."""
        if self.trained_on is None:
            raise NotApplicable(self.lacks("loss"))
        return self.trained_on(self.model, ids)

    @property
    def module(self) -> nn.Module:
        """See Target."""
        self.need("module")
        assert isinstance(self.model, nn.Module)
        return self.model

    def around(self, module: nn.Module) -> "Torch":
        """See Target."""
        other = copy(self)
        other.model = module.eval()
        return other

    def embedding(self) -> nn.Module:
        """See Target."""
        found = [m for m in self.module.modules() if isinstance(m, nn.Embedding) and m.num_embeddings == self.vocab]
        if not found:
            raise NotApplicable(f"{self.name} has no nn.Embedding with {self.vocab} rows")
        return found[0]

    def blocks(self) -> nn.ModuleList:
        """See Target."""
        found = _longest(self.module)
        if found is None:
            raise NotApplicable(f"{self.name} has no nn.ModuleList of blocks")
        return found

    def ends(self) -> tuple[nn.Parameter, nn.Parameter]:
        """See Target."""
        embedding = self.embedding()
        heads = [m for m in self.module.modules() if isinstance(m, nn.Linear) and m.out_features == self.vocab]
        if not heads:
            raise NotApplicable(f"{self.name} has no nn.Linear with {self.vocab} outputs")
        weights = embedding.weight, heads[-1].weight
        assert isinstance(weights[0], nn.Parameter)
        assert isinstance(weights[1], nn.Parameter)
        return weights[0], weights[1]

    @property
    def promises_tie(self) -> bool | None:
        """See Target."""
        return self.tied


def _logits(out: Any) -> Float:
    """The logits, from what models return: a tensor, a tuple that begins with one, or an object with `logits`."""
    first = out[0] if isinstance(out, tuple | list) else getattr(out, "logits", out)
    if not isinstance(first, torch.Tensor) or first.dim() != 3:
        shape = tuple(first.shape) if isinstance(first, torch.Tensor) else type(first).__name__
        raise BadValue(f"logits are a tensor (B, T, V), got {shape}: wrap the model in a function that returns them")
    return first


def _vocabulary(module: nn.Module) -> int:
    """Rows of the largest embedding."""
    rows = [m.num_embeddings for m in module.modules() if isinstance(m, nn.Embedding)]
    if not rows:
        raise BadValue("this model does not show how many ids it knows: give vocab=...")
    return max(rows)


def _longest(module: nn.Module) -> nn.ModuleList | None:
    """The list with the most parts of one class that hold parameters; an nn.Sequential counts as one."""
    found = max(_lists(module), key=len, default=None)
    return found if found is None or isinstance(found, nn.ModuleList) else nn.ModuleList(found)


def _lists(module: nn.Module) -> Iterator[nn.ModuleList | nn.Sequential]:
    for m in module.modules():
        alike = isinstance(m, nn.ModuleList | nn.Sequential) and len({type(part) for part in m}) == 1
        if alike and next(m[0].parameters(), None) is not None:
            yield m


__all__ = ["Torch"]
