"""The families, and which of them can hold a model."""

import inspect
from collections.abc import Collection, Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from gnomon.blocks import default_width
from gnomon.checkpoints.hf.bart import BART, MARIAN
from gnomon.checkpoints.hf.bert import BERT, ROBERTA
from gnomon.checkpoints.hf.bloom import BLOOM, MPT
from gnomon.checkpoints.hf.family import Family
from gnomon.checkpoints.hf.gemma import GEMMA3
from gnomon.checkpoints.hf.gpt2 import GPT2
from gnomon.checkpoints.hf.gpt_neox import GPT_NEOX
from gnomon.checkpoints.hf.keys import Keys
from gnomon.checkpoints.hf.llama import LLAMA, MISTRAL, QWEN2, QWEN3, SMOLLM3
from gnomon.checkpoints.hf.opt import OPT
from gnomon.checkpoints.hf.phi3 import PHI3
from gnomon.checkpoints.hf.t5 import T5 as T5_FAMILY
from gnomon.checkpoints.weights import on_meta
from gnomon.errors import BadInput, BadValue, GnomonError, unknown
from gnomon.models import ModelConfig
from gnomon.positions import Spec

#: by model_type; a model that fits several is written as the first of them
FAMILIES: Mapping[str, Family] = {
    family.name: family
    for family in (
        GPT2, GPT_NEOX, LLAMA, MISTRAL, QWEN2, QWEN3, SMOLLM3, GEMMA3, PHI3, BLOOM, MPT, OPT,
        BERT, ROBERTA, T5_FAMILY, MARIAN, BART,
    )
}  # fmt: skip


def family_of(keys: Keys) -> Family:
    """The family that a config.json names."""
    name = keys.get("model_type", str)
    if name not in FAMILIES:
        raise BadInput(f"{keys.file}: {unknown('model_type', name, FAMILIES)}")
    return FAMILIES[name]


def family_for(config: ModelConfig, name: str | None = None) -> Family:
    """The family (or the one of this name) whose files can say all that a config says.

    A family can, if what it writes is read back as the same computation. Otherwise BadValue tells what gets lost.
    """
    if name is not None and name not in FAMILIES:
        raise unknown("family", name, FAMILIES)
    weights = on_meta(config).state_dict()
    lost: dict[str, list[str]] = {}
    for family in FAMILIES.values() if name is None else [FAMILIES[name]]:
        lost[family.name] = _lost(config, family, weights)
        if not lost[family.name]:
            return family
    nearest = min(lost, key=lambda known: len(lost[known]))
    raise BadValue(
        f"no family of Hugging Face files holds this model. The nearest, {nearest}, cannot say "
        f"{'; '.join(lost[nearest])}"
    )


def _lost(config: ModelConfig, family: Family, weights: Collection[str]) -> list[str]:
    """What of a config, and of the weights it comes with, does not survive being written and read by a family."""
    pooling = config.pooling if config.head == "pooled" and not config.pooler else None
    try:
        names = [entry.theirs for entry in family.lines(config, weights)]
        again = plain(family.read(Keys(family.write(config), Path(family.name), names, pooling)))
    except GnomonError as error:
        return [str(error)]
    want = plain(config)
    differ = [f.name for f in fields(want) if getattr(want, f.name) != getattr(again, f.name)]
    return [f"{name} = {getattr(want, name)!r}" for name in differ]


def plain(config: ModelConfig) -> ModelConfig:
    """A config with every default filled in and what only matters in training left out: equal for equal models."""
    c = config
    d_head = c.d_model // c.n_heads if c.d_head is None else c.d_head
    per_layer = c.per_layer(c.n_layers)
    alike = all(spec == per_layer[0] for spec in per_layer)
    position: Any = c.at_input if c.at_input.acts == "input" else per_layer[0] if alike else tuple(per_layer)
    many = tuple(_options(spec) for spec in position) if isinstance(position, tuple) else _options(position)
    reads_rows = isinstance(position, Spec) and position.name == "learned"
    window: Any = tuple(c.windows(c.n_layers))
    return replace(
        c, position=many, d_head=d_head, n_kv_heads=c.n_kv_heads or c.n_heads,
        d_ff=c.d_ff or default_width(c.d_model, c.gated), qkv_bias=c.bias if c.qkv_bias is None else c.qkv_bias,
        out_bias=c.bias if c.out_bias is None else c.out_bias, window=window if any(window) else None,
        attention_scale=d_head**-0.5 if c.attention_scale is None else c.attention_scale,
        max_positions=c.max_positions if reads_rows else None, padding_id=None,
        embed_scale=c.d_model**0.5 if c.embed_scale == "sqrt" else 1.0 if c.embed_scale is None else c.embed_scale,
        n_decoder_layers=c.depth if c.architecture == "encoder-decoder" else None, dropout=0.0, init_std=0.02,
    )  # fmt: skip


def _options(spec: Spec) -> Spec:
    """A Spec with its defaults written out."""
    given = dict(spec.options)
    known = list(inspect.signature(spec.cls.__init__).parameters.values())[1:]
    usual = {p.name: p.default for p in known if p.default is not inspect.Parameter.empty}
    return spec.with_options(**{k: v for k, v in usual.items() if k not in given})


__all__ = ["FAMILIES", "family_for", "family_of", "plain"]
