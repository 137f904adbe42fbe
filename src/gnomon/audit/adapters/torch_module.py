"""Anybody's torch module or function; what is unusual about it is said by hand.

Torch(model)                                                   # model(ids (B, T)) -> logits (B, T, V)
Torch(model, forward=lambda model, ids: model(ids, causal(ids)))
Torch(model, stepped=lambda model, state, ids: model(ids, state))
Torch(model, source=lambda model, source, ids: model(source, ids))
"""

from collections.abc import Callable, Mapping
from copy import copy
from typing import Any

import torch
from torch import nn

from gnomon.audit.adapters.masks import find_mask_convention
from gnomon.audit.adapters.probe import accepts, blocks_of, logits_of, probe
from gnomon.audit.adapters.signature import (
    FUNCTIONS,
    find_source_and_target,
    has_parameter,
    must_take_the_source,
    required_arguments,
    unused_arguments,
    wants_labels,
)
from gnomon.audit.perturbation import find_self_hiding_ids, tables_given
from gnomon.audit.restore import restore_afterwards
from gnomon.audit.target import OTHERS, SOURCE_STREAM, Ability, Because, NotApplicable, Shift, Target, must_have_numbers
from gnomon.errors import BadValue
from gnomon.models.model_settings import Architecture
from gnomon.shapes import Bool, Float, Int

#: ability -> the argument that gives it, and what the model was not told to do without it
ARGUMENTS: Mapping[Ability, tuple[str, str]] = {
    "mask": ("masked", "take a mask of real tokens"),
    "positions": ("placed", "take positions"),
    "placed mask": ("placed_mask", "take positions beside a mask"),
    "packed": ("packed", "take packed documents"),
    "cache": ("stepped", "have a cache"),
    "loss": ("loss", "compute a loss"),
    "padded loss": ("padded_loss", "compute a loss of a batch with padding"),
}


class Torch(Target):
    """A module or function from ids (B, T) to logits (B, T, V), and what else it can do, each thing as a function.

    forward        (model, ids) -> logits, where model(ids) is not enough
    masked         (model, ids, mask (B, T), True where real) -> logits
    placed         (model, ids, positions (B, T)) -> logits
    placed_mask    (model, ids, mask, positions) -> logits
    packed         (model, ids, docs (B, T)) -> logits
    stepped        (model, state or None, ids (B, T)) -> (logits, state)
    source         (model, source (B, S), ids) -> logits, of an encoder-decoder
    source_masked  (model, source, mask (B, S), ids) -> logits
    loss           (model, ids) -> scalar, as training computes it
    padded_loss    (model, ids, mask) -> the same of a batch with padding
    tied           whether both ends are meant to be one tensor
    by_design      law -> Because(reason, link), for what the model breaks on purpose
    scale          what token vectors are meant to be multiplied by

    Each is given the model, so that it can be asked about a copy too, and those of an encoder-decoder its source, after
    the model or the state: masked(model, source, ids, mask), stepped(model, state, source, ids).

    Logits may also come first in a tuple, as `logits` in an object or dict, or with all rows in one. Some things are
    found out: a forward(src, tgt) has a source, however the two are spelt; an id that no other token sees is padding;
    arguments named attention_mask and position_ids are used if all ones and 0, 1, 2, .. change nothing; `targets` are
    given to a model that shows all logits only with them. The table of tokens is the nn.Embedding that is given the
    ids, the blocks are the list of like modules with most parameters, the head is the last nn.Linear shaped like the
    table; a table of positions shows where it ends.

    The model is put into evaluation mode. Raises BadValue for one that cannot be asked, and says what to give.
    """

    def __init__(
        self,
        model: Callable[..., Any],
        *,
        name: str = "",
        vocab: int | None = None,
        architecture: Architecture = "decoder-only",
        forward: Callable[[Any, Int], Any] | None = None,
        masked: Callable[..., Any] | None = None,
        placed: Callable[..., Any] | None = None,
        placed_mask: Callable[..., Any] | None = None,
        packed: Callable[..., Any] | None = None,
        stepped: Callable[..., Any] | None = None,
        source: Callable[[Any, Int, Int], Any] | None = None,
        source_masked: Callable[[Any, Int, Bool, Int], Any] | None = None,
        loss: Callable[..., Any] | None = None,
        padded_loss: Callable[..., Any] | None = None,
        tied: bool | None = None,
        scale: float | None = None,
        shift: Shift = "unknown",
        window: int | None = None,
        limit: int | None = None,
        table_ends: bool = False,
        special: frozenset[int] = frozenset(),
        by_design: Mapping[str, Because] | None = None,
        seed: int = 0,
    ) -> None:
        module = model.eval() if isinstance(model, nn.Module) else nn.Module()
        some = next(module.parameters(), torch.zeros(1))
        must_have_numbers(module)
        if source is None and forward is None:
            source = find_source_and_target(module, some.device)
            if source is None and (found := find_mask_convention(module, some.device)) is not None:
                asked, has_source = found
                source, forward = (asked, None) if has_source else (None, asked)
        super().__init__(
            name or getattr(model, "__name__", type(model).__name__),
            vocab or 2,
            architecture if source is None else "encoder-decoder",
            layers=len(blocks_of(module) or (0, 0)),
            dtype=some.dtype,
            device=some.device,
            special=special,
            window=window,
            limit=limit,
            table_ends=table_ends,
            shift=shift,
            slots=frozenset(
                {"interior"} if architecture == "decoder-only" and source is None else {"interior", "left"}
            ),
            by_design=by_design or {},
            seed=seed,
        )
        self.model, self.forward, self.tied, self.scale = model, forward, tied, scale
        self.masked, self.placed, self.placed_mask, self.packed = masked, placed, placed_mask, packed
        self.stepped, self.source, self.source_masked, self.trained_on = stepped, source, source_masked, loss
        self.trained_padded = padded_loss
        self.given_forward = forward is not None
        self.read: Int | None = None
        self.read_mask: Bool | None = None
        self._must_be_askable(module)
        given = {name: getattr(self, kept) for name, (kept, _) in FUNCTIONS.items()}
        if source is not None:
            must_take_the_source(self.name, given)
        with restore_afterwards(module):
            self.at = self._look(module, vocab)
        if self.forward is None and source is None:
            self._take_known_names(module)
        self.hides: tuple[frozenset[int], frozenset[int]] = (frozenset(), frozenset())
        self.can = frozenset({"source"} if source else ())
        self.hides = self._hides(module)
        if self.masked is None:
            self.slots |= {"left"}  # nobody says that such a model is padded there
        told = [name for name, (attribute, _) in FUNCTIONS.items() if getattr(self, attribute) is not None]
        self.unused_arguments = unused_arguments(module, told)
        offers: dict[Ability, object] = {
            "mask": self.masked or self.hides[1] or None,
            "positions": self.placed,
            "placed mask": self.placed_mask,
            "packed": packed,
            "cache": stepped,
            "loss": loss,
            "padded loss": padded_loss,
            "source": source,
            "module": model if isinstance(model, nn.Module) else None,
        }
        self.can = frozenset(ability for ability, offer in offers.items() if offer is not None)

    def _must_be_askable(self, module: nn.Module) -> None:
        wanted = required_arguments(module)
        if self.forward is not None or self.source is not None or len(wanted) < 2:
            return
        if wants_labels(wanted):
            self.forward = _call_with_labels  # a language model that wants what it is to predict
            return
        raise BadValue(
            f"forward({', '.join(wanted)}) wants more than ids: give the others, "
            f"Torch(model, forward=lambda model, ids: model(ids, ...)), or say which is the source, "
            f"Torch(model, source=lambda model, source, ids: model(source, ids))"
        )

    def _look(self, module: nn.Module, vocab: int | None) -> str | None:
        """Find out the vocabulary and the end of its positions; the path of the table of tokens."""
        try:
            seen = probe(self.logits, module, self.device)
        except BadValue:
            if self.forward is not None or not has_parameter(module, "targets"):
                raise
            self.forward = _call_with_targets  # nanoGPT gives all logits only where it is to compute a loss
            seen = probe(self.logits, module, self.device)
        self.vocab = vocab or seen.vocab
        self.lengths = seen.lengths
        if self.limit is None and seen.limit is not None:
            self.limit, self.table_ends = seen.limit, True
        if seen.embedding is not None:
            table = module.get_submodule(seen.embedding)
            assert isinstance(table, nn.Embedding)
            self.pad = table.padding_idx
            self.special |= frozenset() if self.pad is None else {self.pad}
        return seen.embedding

    def _hides(self, module: nn.Module) -> tuple[frozenset[int], frozenset[int]]:
        """Ids that hide themselves, as padding does in a model that makes its masks from it: of the source and of the
        text. Laws do not draw them as tokens."""
        text = find_self_hiding_ids(self.logits, module, self.vocab, self.device, all_see=not self.causal)
        source = frozenset[int]() if self.source is None else self._hides_of_source(module, text)
        self.special |= source | text
        if self.pad is None and text:
            self.pad = min(text)
        return source, text

    def _hides_of_source(self, module: nn.Module, text: frozenset[int]) -> frozenset[int]:
        """The same of the source. A table of the source that pads with an id which hides itself in the text, and not
        in the source, is one whose mask was meant to arrive."""
        ids = self.ids(1, 5, SOURCE_STREAM)

        def ask(source: Int) -> Float:
            return self.with_source(source).logits(ids.expand(len(source), -1))

        found = find_self_hiding_ids(ask, module, self.vocab, self.device, all_see=True)
        meant = {table.padding_idx for table in tables_given(ask, module, ids)} & text
        return found or frozenset(id for id in meant if id is not None)

    def _take_known_names(self, module: nn.Module) -> None:
        """Use attention_mask and position_ids, if they mean what they mean at Hugging Face."""
        ids = self.ids(2, 5)
        ones, counted = torch.ones_like(ids), torch.arange(5, device=self.device).expand(2, -1)
        if self.masked is None and accepts(module, ids, attention_mask=ones):
            self.masked = _hugging_mask
        if self.placed is None and accepts(module, ids, position_ids=counted):
            self.placed = _hugging_positions
        if self.placed_mask is None and accepts(module, ids, attention_mask=ones, position_ids=counted):
            self.placed_mask = _hugging_both

    def logits(
        self, ids: Int, mask: Bool | None = None, positions: Int | None = None, docs: Int | None = None
    ) -> Float:
        """See Target. What is asked is handed to the function that was given for it."""
        return logits_of(self._asked(ids.contiguous(), mask, positions, docs), ids)

    def _asked(self, ids: Int, mask: Bool | None, positions: Int | None, docs: Int | None) -> Any:
        match (mask is not None, positions is not None, docs is not None):
            case (False, False, False):
                return self._plain(ids)
            case (True, False, False) if self.masked is not None:
                return self.masked(self.model, *self._source(ids), ids, mask)
            case (True, False, False) if self.hides[1]:
                assert mask is not None
                return self._plain(ids.masked_fill(~mask, min(self.hides[1])))
            case (False, True, False) if self.placed is not None:
                return self.placed(self.model, *self._source(ids), ids, positions)
            case (True, True, False) if self.placed_mask is not None:
                return self.placed_mask(self.model, *self._source(ids), ids, mask, positions)
            case (False, False, True) if self.packed is not None:
                return self.packed(self.model, *self._source(ids), ids, docs)
        raise NotApplicable(f"{self.name} cannot be asked for this combination")

    def _plain(self, ids: Int) -> Any:
        if self.source is None:
            return self.model(ids) if self.forward is None else self.forward(self.model, ids)
        if self.read_mask is None:
            return self.source(self.model, self._read(ids), ids)
        if self.source_masked is None:
            raise NotApplicable(f"{self.name} takes no mask of its source")
        source = self._read(ids)
        return self.source_masked(self.model, source, self.read_mask, ids)

    def _read(self, ids: Int) -> Int:
        """The source (B, S) beside these ids."""
        source = self.ids(1, 5, SOURCE_STREAM) if self.read is None else self.read
        return source.expand(len(ids), -1).contiguous()

    def _source(self, ids: Int) -> tuple[Int, ...]:
        """What functions of an encoder-decoder are given before the ids: nothing for other models."""
        if self.source is None:
            return ()
        if self.read_mask is not None:
            raise NotApplicable(f"{self.name} takes no mask of its source beside anything else")
        return (self._read(ids),)

    def lacks(self, ability: Ability) -> str:
        """See Target. What a model may only have been told too little of is told by which argument."""
        if ability == "module":
            return super().lacks(ability)
        if ability not in ARGUMENTS:
            return OTHERS
        argument, does = ARGUMENTS[ability]
        return f"{self.name} was not told to {does}: Torch(model, {argument}=...)"

    def with_source(self, source: Int, mask: Bool | None = None) -> "Torch":
        """See Target."""
        self.need("source")
        other = copy(self)
        if mask is not None and self.source_masked is None and self.hides[0]:
            source, mask = source.masked_fill(~mask, min(self.hides[0])), None
        other.read, other.read_mask = source, mask
        return other

    def step(self, state: Any, ids: Int, mask: Bool | None = None, positions: Int | None = None) -> tuple[Float, Any]:
        """See Target."""
        self.need("cache")
        if mask is not None or positions is not None or self.stepped is None:
            raise NotApplicable(self.lacks("cached mask" if mask is not None else "cached positions"))
        logits, state = self.stepped(self.model, state, *self._source(ids), ids.contiguous())
        return logits_of(logits, ids), state

    def must_read_apart(self) -> None:
        """See Target. A user's own `forward` may go through the cache, as in a model that always does."""
        if self.given_forward:
            raise NotApplicable(f"{self.name} was told how to be read, which may be through its cache")

    def loss(self, ids: Int) -> Float:
        """See Target."""
        if self.trained_on is None:
            raise NotApplicable(self.lacks("loss"))
        lost: Float = self.trained_on(self.model, *self._source(ids), ids.contiguous())
        return lost

    def padded_loss(self, ids: Int, mask: Bool) -> Float:
        """See Target."""
        if self.trained_padded is None:
            raise NotApplicable(self.lacks("padded loss"))
        lost: Float = self.trained_padded(self.model, *self._source(ids), ids.contiguous(), mask)
        return lost

    @property
    def module(self) -> nn.Module:
        """See Target."""
        self.need("module")
        assert isinstance(self.model, nn.Module)
        return self.model

    def with_module(self, module: nn.Module) -> "Torch":
        """See Target."""
        other = copy(self)
        other.model = module.eval()
        return other

    def embedding(self) -> nn.Module:
        """See Target."""
        if self.at is None:
            raise NotApplicable(f"{self.name} has no nn.Embedding that is given its ids")
        return self.module.get_submodule(self.at)

    def blocks(self) -> nn.ModuleList:
        """See Target."""
        found = blocks_of(self.module)
        if found is None:
            raise NotApplicable(f"{self.name} has no nn.ModuleList of blocks")
        return found

    def embedding_and_head(self) -> tuple[nn.Parameter, nn.Parameter]:
        """See Target."""
        table = self.embedding().weight
        heads = [m.weight for m in self.module.modules() if isinstance(m, nn.Linear)]
        for head in reversed(heads):
            if isinstance(table, nn.Parameter) and isinstance(head, nn.Parameter) and head.shape == table.shape:
                return table, head
        raise NotApplicable(f"{self.name} has no nn.Linear with the shape of its table of tokens")

    @property
    def uses_all(self) -> bool:
        """Somebody's own model: what it makes, it needs."""
        return True

    @property
    def promises_tie(self) -> bool | None:
        """See Target."""
        return self.tied

    @property
    def promises_scale(self) -> float | None:
        """See Target."""
        return self.scale


def _call_with_labels(model: Any, ids: Int) -> Any:
    return model(ids, ids)


def _call_with_targets(model: Any, ids: Int) -> Any:
    return model(ids, targets=ids)


def _hugging_mask(model: Any, ids: Int, mask: Bool) -> Any:
    return model(ids, attention_mask=mask.long())


def _hugging_positions(model: Any, ids: Int, positions: Int) -> Any:
    return model(ids, position_ids=positions)


def _hugging_both(model: Any, ids: Int, mask: Bool, positions: Int) -> Any:
    return model(ids, attention_mask=mask.long(), position_ids=positions)


__all__ = ["Torch"]
