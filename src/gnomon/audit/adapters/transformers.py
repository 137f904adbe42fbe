"""Models of the transformers library: any causal, sequence-to-sequence or encoder class.

They are asked as its users ask them. `mask` is attention_mask and nothing beside it, so a model that counts padding as
positions is seen to do so; packed documents are position_ids that begin again, without a mask and without a cache,
which is how its masks find them (`transformers.masking_utils.find_packed_sequence_indices`).
"""

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy, deepcopy
from pathlib import Path
from typing import Any

import torch
from torch import nn

from gnomon.audit.adapters import transformers_config
from gnomon.audit.adapters.angles import angles_of
from gnomon.audit.adapters.documents import count_within_documents
from gnomon.audit.adapters.transformers_docs import by_design
from gnomon.audit.target import Ability, NotApplicable, Target, must_have_numbers
from gnomon.shapes import Bool, Float, Int

HEADS = ("logits", "prediction_logits", "last_hidden_state")  #: where its outputs keep what is said of each token


class Transformers(Target):
    """A PreTrainedModel. Of one without logits over the vocabulary the last hidden states are asked."""

    def __init__(self, model: Any, *, name: str = "", seed: int = 0) -> None:
        """model: on whatever device, in whatever mode; it is put into evaluation mode."""
        some = next(model.parameters())
        must_have_numbers(model)
        self.model = model.eval()
        self.takes = transformers_config.accepted_arguments(model)
        facts = transformers_config.facts(model)
        super().__init__(
            name or type(model).__name__,
            facts.vocab,
            facts.architecture,
            layers=facts.depth,
            dtype=model.dtype,
            device=some.device,
            special=facts.special,
            pad=facts.pad_says_padding,
            window=facts.window,
            limit=facts.limit,
            table_ends=facts.table_ends,
            shift=facts.shift,
            routed=facts.routed,
            by_design=by_design(model.config.model_type, facts.rotations, facts.unrotated),
            seed=seed,
        )
        self.facts = facts
        self.source: tuple[Int, Bool | None] | None = None
        if self._pairs:
            drawn = torch.randint(facts.source_vocab, (1, 5), generator=self.rng(51)).to(self.device)
            self.source = (self.ids(1, 5, 51) if facts.source_vocab == facts.vocab else drawn, None)
        self.can = frozenset(self._abilities())

    @property
    def _pairs(self) -> bool:
        return self.architecture == "encoder-decoder"

    @property
    def _cache(self) -> str | None:
        """What its forward calls a cache: another word since version 5.2x."""
        return next((word for word in ("cache", "past_key_values") if word in self.takes), None)

    def _abilities(self) -> Iterator[Ability]:
        yield from ("module", "resize", "save")
        own = {"mask": "attention_mask", "positions": "position_ids"}
        mask, positions = ((f"decoder_{word}" if self._pairs else word) for word in own.values())
        steps = self.causal and self._cache is not None and "use_cache" in self.takes
        if mask in self.takes:
            yield "mask"
        if positions in self.takes:
            yield "positions"
            if mask in self.takes:
                yield "placed mask"
            if steps:
                yield "cached positions"
            if not self._pairs and transformers_config.detects_packing(self.model):
                yield "packed"
        if steps:
            yield from ("cache", "reorder")
            if mask in self.takes:
                yield "cached mask"
            if self.model.can_generate():
                yield "beam"
        if self._pairs:
            yield "source"
        if self.causal and "labels" in self.takes and self.facts.head:
            yield "loss"
        if transformers_config.rotation(self.model) is not None:
            yield "angles"

    # ------------------------------------------------------------------ what it computes

    def logits(
        self, ids: Int, mask: Bool | None = None, positions: Int | None = None, docs: Int | None = None
    ) -> Float:
        """See Target."""
        if docs is not None:
            self.need("packed")
            if mask is not None or positions is not None:
                raise NotApplicable("transformers finds packed documents only where no mask is given beside them")
            positions = count_within_documents(docs)
        elif positions is not None and mask is None and "placed mask" in self.can:
            mask = torch.ones_like(ids, dtype=torch.bool)  # without it a jump of positions begins another document
        asked = self._asked(ids, mask, positions) | self._encoded(len(ids))
        if "use_cache" in self.takes:
            asked["use_cache"] = False
        return self._of_tokens(self.model(**asked))

    def step(self, state: Any, ids: Int, mask: Bool | None = None, positions: Int | None = None) -> tuple[Float, Any]:
        """See Target. The state is a Cache, or (Cache, what the encoder gave)."""
        self.need("cache")
        assert self._cache is not None
        cache, encoded = state if self._pairs and state is not None else (state, None)
        if self._pairs and encoded is None:
            encoded = self._encoded(len(ids), once=True)
        asked = self._asked(ids, mask, positions) | (encoded or {})
        try:
            out = self.model(**asked, **{self._cache: cache}, use_cache=True)
        except AssertionError as refused:  # ProphetNet steps by one token only, and says so
            raise NotApplicable(f"{self.name} refuses: {refused}") from refused
        cache = out[self._cache]
        return self._of_tokens(out), (cache, encoded) if self._pairs else cache

    def reorder(self, state: Any, index: Int) -> Any:
        """See Target."""
        self.need("reorder")
        if not self._pairs:
            state.reorder_cache(index)
            return state
        cache, encoded = state
        cache.reorder_cache(index)
        outputs = copy(encoded["encoder_outputs"])
        outputs["last_hidden_state"] = outputs["last_hidden_state"].index_select(0, index)
        return cache, {
            "encoder_outputs": outputs,
            **{k: v.index_select(0, index) for k, v in encoded.items() if k != "encoder_outputs"},
        }

    def beam(self, ids: Int, width: int, new: int, cached: bool) -> list[list[int]]:
        """See Target: its `generate`, with as many tokens as are asked for in every text."""
        self.need("beam")
        asked = {"num_beams": width, "min_new_tokens": new, "max_new_tokens": new, "use_cache": cached}
        if self._pairs:
            source, mask = self._sources(len(ids))
            text = {"input_ids": source, "attention_mask": mask, "decoder_input_ids": ids}
        else:
            text = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
        pad = self.model.generation_config.pad_token_id
        out = self.model.generate(**text, **asked, do_sample=False, pad_token_id=0 if pad is None else pad)
        return [[int(i) for i in row[ids.shape[1] :]] for row in out]

    def with_source(self, source: Int, mask: Bool | None = None) -> "Transformers":
        """See Target."""
        self.need("source")
        other = copy(self)
        other.source = (source, mask)
        return other

    def loss(self, ids: Int) -> Float:
        """See Target. The library shifts the labels of a causal model itself, and takes those of a pair as they are."""
        self.need("loss")
        if not self._pairs:
            return self.model(input_ids=ids, labels=ids).loss
        asked = self._asked(ids[:, :-1], None, None) | self._encoded(len(ids))
        return self.model(**asked, labels=ids[:, 1:].contiguous()).loss

    def _asked(self, ids: Int, mask: Bool | None, positions: Int | None) -> dict[str, Any]:
        """Arguments of its forward: those about the text itself."""
        before = "decoder_" if self._pairs else ""
        asked: dict[str, Any] = {f"{before}input_ids": ids}
        if mask is not None:
            if self.facts.pad_says_padding is not None:
                ids = ids.masked_fill(~mask[:, -ids.shape[1] :], self.facts.pad_says_padding)
            asked |= {f"{before}input_ids": ids, f"{before}attention_mask": mask.long()}
        if positions is not None:
            asked[f"{before}position_ids"] = positions + self.facts.first_position
        return asked

    def _encoded(self, B: int, once: bool = False) -> dict[str, Any]:
        """Arguments about the source; with `once` it is encoded here, to be handed to every step."""
        if not self._pairs:
            return {}
        source, mask = self._sources(B)
        if not once:
            return {"input_ids": source, "attention_mask": mask}
        outputs = self.model.get_encoder()(input_ids=source, attention_mask=mask, return_dict=True)
        return {"encoder_outputs": outputs, "attention_mask": mask}

    def _sources(self, B: int) -> tuple[Int, Int]:
        assert self.source is not None
        source, mask = self.source
        real = torch.ones_like(source) if mask is None else mask.long()
        if self.facts.pad_says_padding is not None:
            source = source.masked_fill(real == 0, self.facts.pad_says_padding)
        return (source, real) if len(source) == B else (source.expand(B, -1), real.expand(B, -1))

    def _of_tokens(self, out: Any) -> Float:
        """(B, T, V) of what a forward returned."""
        found = next((out[word] for word in HEADS if word in out), None)
        if not isinstance(found, torch.Tensor) or found.dim() != 3:
            raise NotApplicable(
                f"{self.name} says nothing of single tokens: audit the model inside it, model.base_model"
            )
        return found

    # ------------------------------------------------------------------ what it consists of

    @property
    def module(self) -> nn.Module:
        """See Target."""
        return self.model

    def with_module(self, module: nn.Module) -> "Transformers":
        """See Target."""
        other = copy(self)
        other.model, other.vocab = module.eval(), transformers_config.facts(module).vocab
        return other

    def embedding(self) -> nn.Module:
        """See Target. Of an encoder-decoder, that of its decoder."""
        found = (self.model.get_decoder() if self._pairs else self.model).get_input_embeddings()
        if not isinstance(found, nn.Embedding):
            raise NotApplicable(
                f"{self.name} embeds its tokens by a {type(found).__name__}, which gives more than vectors"
            )
        return found

    def blocks(self) -> nn.ModuleList:
        """See Target. Of an encoder-decoder, those of its decoder."""
        found = transformers_config.blocks(self.model.get_decoder() if self._pairs else self.model, self.facts.blocks)
        if found is None:
            raise NotApplicable(f"{self.name} has no nn.ModuleList of {self.facts.blocks} blocks")
        return found

    def embedding_and_head(self) -> tuple[nn.Parameter, nn.Parameter]:
        """See Target."""
        head = self.model.get_output_embeddings()
        if not isinstance(head, nn.Linear):
            raise NotApplicable(f"{self.name} has no head over its vocabulary")
        weights = self.embedding().weight, head.weight
        assert isinstance(weights[0], nn.Parameter)
        assert isinstance(weights[1], nn.Parameter)
        return weights[0], weights[1]

    @property
    def promises_tie(self) -> bool | None:
        """See Target: what the config says, of a class that knows which weights it could tie."""
        if not self.facts.head or not self.model._tied_weights_keys:
            return None
        return bool(transformers_config.text_config(self.model).tie_word_embeddings)

    @property
    def promises_scale(self) -> float | None:
        """See Target: `embedding_multiplier` of Granite and its kin."""
        said = getattr(transformers_config.text_config(self.model), "embedding_multiplier", None)
        return None if said is None else float(said)

    def save_and_load(self, folder: Path) -> "Transformers":
        """See Target: save_pretrained and from_pretrained."""
        attention = self.model.config._attn_implementation
        with _silence_bars():
            self.model.save_pretrained(folder)
            again = type(self.model).from_pretrained(folder, dtype=self.dtype, attn_implementation=attention)
        return self.with_module(again.to(self.device))

    def resize(self, rows: int) -> "Transformers":
        """See Target."""
        model = deepcopy(self.model)
        model.resize_token_embeddings(rows)
        return self.with_module(model)

    def angles(self, length: int) -> tuple[Float, Float]:
        """See Target: of its rotary embedding, against the published formulas that Gnomon has of its config."""
        found = transformers_config.rotation(self.model)
        if found is None:
            raise NotApplicable(self.lacks("angles"))
        cos, sin = found.turned(length, self.device)
        frequencies, factor = found.promised(length)
        if cos.shape[1] != len(frequencies):
            raise NotApplicable(
                f"{self.name} turns {cos.shape[1]} pairs, but its config speaks of {len(frequencies)}: the rule by "
                "which it chooses them is not known here"
            )
        return angles_of(cos, sin, frequencies, factor)


@contextmanager
def _silence_bars() -> Iterator[None]:
    """The library's progress bars are off while a `with` lasts."""
    logging: Any = importlib.import_module("transformers.utils.logging")
    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()


__all__ = ["Transformers"]
