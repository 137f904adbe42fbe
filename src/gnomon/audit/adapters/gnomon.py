"""Gnomon's own models. A Layout says where tokens sit, so masks, positions and documents are one question."""

from collections.abc import Iterator
from copy import copy, deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import nn

from gnomon.attention import Memory
from gnomon.audit.adapters.angles import angles_of, expected_frequencies
from gnomon.audit.adapters.beams import Texts, best
from gnomon.audit.small import SmallModel
from gnomon.audit.target import Ability, Because, NotApplicable, Shift, Target, must_have_numbers
from gnomon.checkpoints import load, save_model
from gnomon.embed import Tied, Untied
from gnomon.errors import BadValue
from gnomon.generate import Beam
from gnomon.generate.decoding_batch import CacheKind
from gnomon.layout import Layout
from gnomon.models import EncoderDecoder, EncoderOnly, Model, Writer
from gnomon.models.heads import TokenHead
from gnomon.models.stack import Stack
from gnomon.positions import Learned, PositionEncoding, RoPE
from gnomon.shapes import Bool, Float, Int
from gnomon.train.loss import cross_entropy, window_labels

CAPACITY = 512  #: tokens that a preallocated cache holds: as many as laws about caches read
FAR = 100_003


class Gnomon(Target):
    """A DecoderOnly, EncoderOnly or EncoderDecoder; a decoder reads a source, which `with_source` replaces.

    Of an encoder whose head says nothing about each token over the vocabulary, the vectors are asked.
    """

    what = "model of Gnomon"

    def __init__(self, model: Model, *, name: str = "", seed: int = 0) -> None:
        """model: in whatever mode; it is put into evaluation mode. Raises BadValue for one built without weights."""
        some = next(model.parameters())
        must_have_numbers(model)
        config = model.config
        super().__init__(
            name or f"{type(model).__name__} ({_names(model)})",
            config.vocab_size,
            config.architecture if config.causal else "encoder-only",
            layers=config.depth,
            dtype=some.dtype,
            device=some.device,
            special=_special(model),
            window=_window(model),
            limit=_limit(model),
            routed=config.mixture is not None,
            table_ends=any(isinstance(p, Learned) for p in model.encodings()),
            shift=_shift(model),
            can=frozenset(_abilities(model)),
            by_design=_by_design(model),
            seed=seed,
        )
        self.model = model.eval()
        self.small = SmallModel.like(config, seed)
        self.kind_of_cache: CacheKind = "growing"
        self.source: tuple[Int, Bool | None] | None = None
        if isinstance(model, EncoderDecoder):
            self.source = (self._drawn_source(), None)

    def _drawn_source(self) -> Int:
        size = self.model.config.source_vocab_size or self.vocab
        drawn = torch.randint(size, (1, 5), generator=self.rng(51)).to(self.device)
        return drawn if size != self.vocab else self.ids(1, 5, 51)

    def logits(
        self, ids: Int, mask: Bool | None = None, positions: Int | None = None, docs: Int | None = None
    ) -> Float:
        """See Target."""
        at = _layout(mask, positions, docs)
        if isinstance(self.model, EncoderOnly):
            memory = self.model.encode(ids, at)
            head = self.model.head
            return head(memory) if isinstance(head, TokenHead) else memory.states
        return self.model.head(self._writer.hidden(ids, at, None, None, self._memory(len(ids))))

    def step(self, state: Any, ids: Int, mask: Bool | None = None, positions: Int | None = None) -> tuple[Float, Any]:
        """See Target. The state is a cache; a row whose new tokens are all real goes on where it stands."""
        self.need("cache")
        if state is None:
            state = self._writer.cache(self.kind_of_cache, capacity=CAPACITY)
            state.memory = self._memory(len(ids))
        T = ids.shape[1]
        at = None
        if mask is not None and not (state.at is not None and bool(mask[:, -T:].all())):
            at = Layout.padded(mask).tokens(slice(-T, None))
        if positions is not None:
            natural = Layout.dense(len(ids), T, ids.device) if state.at is None else state.then(T)
            length = positions.amax(1, keepdim=True).expand(-1, T) + 1
            at = replace(natural if at is None else at, pos=positions, length=length, kind="custom")
        return self.model.head(self._writer.hidden(ids, at, state)), state

    def by_cache(self) -> Iterator["Gnomon"]:
        """See Target."""
        kinds: list[CacheKind] = ["growing", "preallocated"]
        if None not in self.model.config.windows(self.model.config.depth):
            kinds.append("rolling")
        for kind in kinds:
            other = copy(self)
            other.kind_of_cache = kind
            yield other

    def reorder(self, state: Any, index: Int) -> Any:
        """See Target."""
        state.reorder(index)
        return state

    def beam(self, ids: Int, width: int, new: int, cached: bool) -> list[list[int]]:
        """See Target. `generate` always has a cache; without one the beam is that of `adapters.beams`."""
        self.need("beam")
        if not cached:
            padding = self.model.config.padding_id
            return best(self._following(), ids, width, new, never=() if padding is None else (padding,))
        source = None if self.source is None else self._sources(len(ids))
        found = self._writer.generate(
            ids, source=source, strategy=Beam(width), max_new_tokens=new, eos_ids=None, seed=self.seed
        )
        return [list(text.ids) for text in found]

    def _following(self) -> Texts:
        """Logits (N, V) of what follows texts (N, T), each text with the source of its row."""
        return lambda texts, rows: self._of_rows(rows).logits(texts)[:, -1]

    def _sources(self, B: int) -> list[list[int]]:
        assert self.source is not None
        ids, mask = self.source
        real = torch.ones_like(ids, dtype=torch.bool) if mask is None else mask
        rows = [ids[b, real[b]].tolist() for b in range(len(ids))]
        return rows if len(rows) == B else rows * B

    def _of_rows(self, rows: Int) -> "Gnomon":
        """The target whose batch is made of these rows of this one's."""
        if self.source is None or len(self.source[0]) == 1:
            return self
        other = copy(self)
        other.source = (self.source[0][rows], None if self.source[1] is None else self.source[1][rows])
        return other

    def with_source(self, source: Int, mask: Bool | None = None) -> "Gnomon":
        """See Target."""
        self.need("source")
        other = copy(self)
        other.source = (source, mask)
        return other

    def _memory(self, B: int) -> Memory | None:
        """The encoded source of B rows; of one row for all where there is one."""
        if self.source is None or not isinstance(self.model, EncoderDecoder):
            return None
        ids, mask = self.source
        memory = self.model.encode(ids, None if mask is None else Layout.padded(mask))
        if len(ids) == B:
            return memory
        return memory.rows(torch.zeros(B, dtype=torch.long, device=self.device))

    @property
    def _writer(self) -> Writer:
        if not isinstance(self.model, Writer):
            raise NotApplicable(f"{self.name} continues no text")
        return self.model

    def loss(self, ids: Int) -> Float:
        """See Target: the mean over all tokens but each row's first."""
        self.need("loss")
        return cross_entropy(self.logits(ids[:, :-1]), window_labels(ids)).mean

    # ------------------------------------------------------------------ what it consists of

    @property
    def module(self) -> nn.Module:
        """See Target."""
        return self.model

    def with_module(self, module: nn.Module) -> "Gnomon":
        """See Target."""
        if not isinstance(module, Model):
            raise BadValue(f"expected a model of Gnomon, got {type(module).__name__}")
        other = copy(self)
        other.model, other.vocab = module.eval(), module.config.vocab_size
        return other

    def fresh(self) -> "Gnomon":
        """See Target."""
        return self.with_module(deepcopy(self.model))

    def moves(self, room: int) -> tuple[int, ...]:
        """See Target: where distances alone are seen, also farther than float32 counts angles."""
        return (room, FAR) if self.shift == "kept" else (room,)

    def embedding(self) -> nn.Module:
        """See Target."""
        return self.model.input.tokens

    def blocks(self) -> nn.ModuleList:
        """See Target. Of an encoder-decoder, those of its decoder."""
        stack = self.model.decoder if isinstance(self.model, EncoderDecoder) else self.model.stack
        assert isinstance(stack, Stack)
        return stack.blocks

    def embedding_and_head(self) -> tuple[nn.Parameter, nn.Parameter]:
        """See Target."""
        head = self.model.head.out if isinstance(self.model.head, TokenHead) else self.model.head
        if not isinstance(head, Tied | Untied):
            raise NotApplicable(f"{self.name} has no head over its vocabulary")
        return self.model.input.tokens.weight, head.weight

    @property
    def promises_tie(self) -> bool | None:
        """See Target."""
        return self.model.config.tied

    @property
    def promises_scale(self) -> float | None:
        """See Target."""
        return self.model.input.tokens.scale

    def save_and_load(self, folder: Path) -> "Gnomon":
        """See Target: as a run folder."""
        save_model(self.model, folder)
        return self.with_module(load(folder, device=self.device))

    def resize(self, rows: int) -> "Gnomon":
        """See Target."""
        model = deepcopy(self.model)
        model.resize(rows)
        return self.with_module(model)

    def angles(self, length: int) -> tuple[Float, Float]:
        """See Target: of the first rotation in the model."""
        position = next((p for p in self.model.encodings() if isinstance(p, RoPE)), None)
        if position is None:
            raise NotApplicable(f"{self.name} turns no pairs")
        at = Layout.dense(1, length, self.device)
        tables = position.prepare(at, torch.float64)
        assert tables is not None
        return angles_of(tables[0][0, 0], tables[1][0, 0], *expected_frequencies(position, length))


def _abilities(model: Model) -> Iterator[Ability]:
    yield from ("mask", "positions", "placed mask", "module", "save", "resize")
    if not isinstance(model, EncoderDecoder):
        yield "packed"  # a source would have to be packed alike
    if isinstance(model, EncoderDecoder):
        yield "source"
    if isinstance(model, Writer) and model.config.causal:
        yield from ("cache", "cached mask", "cached positions", "reorder", "beam", "loss")
    if any(isinstance(position, RoPE) for position in model.encodings()):
        yield "angles"


def _layout(mask: Bool | None, positions: Int | None, docs: Int | None) -> Layout | None:
    if docs is not None:
        if mask is not None or positions is not None:
            raise NotApplicable("packed documents say themselves where their tokens sit")
        return Layout.packed([_runs(row) for row in docs]).to(docs.device)
    if positions is None:
        return None if mask is None else Layout.padded(mask)
    return Layout.from_hf(mask, positions)


def _runs(row: Int) -> list[int]:
    """Lengths of the stretches of equal numbers in a row."""
    return [int(n) for n in torch.unique_consecutive(row, return_counts=True)[1]]


def _names(model: Model) -> str:
    return " and ".join(dict.fromkeys(p.name or "none" for p in model.encodings())) or "none"


def _special(model: Model) -> frozenset[int]:
    own = {model.config.padding_id, model.start, *model.ends}
    if model.tokenizer is not None:
        own.add(model.tokenizer.eos_id)
    return frozenset(i for i in own if i is not None)


def _window(model: Model) -> int | None:
    """The one window of all layers, if each has it."""
    windows = set(model.config.windows(model.config.depth))
    return windows.pop() if len(windows) == 1 and not model.config.sink_tokens else None


def _limit(model: Model) -> int | None:
    """Rows of the shortest table, else the length it was scaled from, else that it was trained to."""
    rows = [p.max_positions for p in model.encodings() if isinstance(p, Learned)]
    scaled = [p.scaling for p in model.encodings() if isinstance(p, RoPE) and p.scaling is not None]
    lengths = [s.to_dict()["original_length"] for s in scaled if "original_length" in s.to_dict()]
    return min(rows or lengths, default=model.config.max_positions)


def _follows_length(model: Model) -> bool:
    """Whether some encoding has another table for longer texts."""
    at = Layout.dense(1, 1)
    return any(p.regime(at) is not None for p in model.encodings())


def _by_design(model: Model) -> dict[str, Because]:
    if not any(p.places_keys() for p in model.encodings()):
        says = "no encoding it was built with cares where a key sits: a causal mask alone tells order"
        none = Because(says, "src/gnomon/positions/base.py")
        return dict.fromkeys(("order is seen", "a position reaches attention"), none)
    if not _follows_length(model):
        return {}
    says = 'its angles follow the length of the text: "Dynamic and longrope depend on how long the text is."'
    return {"prefix = beginning past the limit": Because(says, "src/gnomon/positions/scaling.py")}


def _shift(model: Model) -> Shift:
    """Kept where every encoding reads differences of positions alone, or none at all."""
    encodings: list[PositionEncoding] = list(model.encodings())
    if _follows_length(model) or model.config.sink_tokens:  # which are told by their position
        return "unknown"
    if all(p.relative or p.acts == "nowhere" for p in encodings):
        return "kept"
    return "changed" if any(p.acts == "input" for p in encodings) else "unknown"


__all__ = ["Gnomon"]
