"""The families, and which of them can hold a model."""

import inspect
from collections.abc import Collection, Mapping
from dataclasses import fields, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from gnomon.blocks import default_width
from gnomon.blocks.experts import widths
from gnomon.checkpoints.discovery import discover_families
from gnomon.checkpoints.hf import families
from gnomon.checkpoints.hf.family import Family
from gnomon.checkpoints.hf.keys import Keys
from gnomon.checkpoints.unsupported import Lost, check_recipe, no_family
from gnomon.errors import BadInput, BadValue, GnomonError, unknown
from gnomon.models import ModelConfig
from gnomon.models.meta import build_on_meta
from gnomon.positions import Spec


def find_families() -> dict[str, Family]:
    """Every family by its model_type, in the order in which they are asked to hold a model."""
    return {family.name: family for family in discover_families(families).values()}


FAMILIES: Mapping[str, Family] = find_families()


def family_of(keys: Keys) -> Family:
    """The family that a config.json names."""
    name = keys.get("model_type", str)
    if name not in FAMILIES:
        raise BadInput(f"{keys.file}: {unknown('model_type', name, FAMILIES)}")
    return FAMILIES[name]


def family_for(config: ModelConfig, name: str | None = None) -> Family:
    """The family (or the one of this name) whose files can say all that a config says.

    A family can, if what it writes is read back as the same computation. Otherwise BadValue tells what gets lost, and
    what can be done about it.
    """
    if name is not None and name not in FAMILIES:
        raise unknown("family", name, FAMILIES)
    check_recipe(config)
    weights = build_on_meta(config).state_dict()
    if name is not None:
        if not (what := find_losses(config, FAMILIES[name], weights)):
            return FAMILIES[name]
        able = [
            known for known, family in FAMILIES.items() if known != name and not find_losses(config, family, weights)
        ]
        can = f"{' and '.join(able)} can" if able else "no other family can"
        raise BadValue(f"this model is no {name}, which cannot say: {what}; {can}")
    losses = []
    for family in FAMILIES.values():
        if not (what := find_losses(config, family, weights)):
            return family
        losses.append(what)
    raise no_family("Hugging Face files", config, losses, _fits)


def _fits(config: ModelConfig) -> bool:
    weights = build_on_meta(config).state_dict()
    return any(not find_losses(config, family, weights) for family in FAMILIES.values())


def find_losses(config: ModelConfig, family: Family, weights: Collection[str]) -> Lost:
    """What a family's files would lose of a model with this config and weights of these names."""
    pooling = config.pooling if config.head == "pooled" and not config.pooler else None
    try:
        names = [entry.theirs for entry in family.lines(config, weights)]
    except BadValue as error:
        names, homeless = [], str(error)
    else:
        homeless = ""
    want = canonical(config)
    try:
        again = canonical(family.config(Keys(family.write(fill_defaults(config)), Path(family.name), names, pooling)))
    except GnomonError as error:
        return Lost(family.name, reasons=tuple(filter(None, (str(error), homeless))))
    differ = [f.name for f in fields(want) if getattr(want, f.name) != getattr(again, f.name)]
    both = {n: (getattr(want if getattr(config, n) is None else config, n), getattr(again, n)) for n in differ}
    settings = {name: values for name, values in both.items() if values[0] != values[1]}
    return Lost(family.name, settings, (homeless,) if homeless and not differ else ())


def fill_defaults(config: ModelConfig) -> ModelConfig:
    """A config with the defaults that depend on other settings filled in."""
    c = config
    d_head = c.d_model // c.n_heads if c.d_head is None else c.d_head
    experts, d_ff = widths(c.mixture, c.n_layers, c.d_ff or default_width(c.d_model, c.gated))
    return replace(
        c,
        experts=experts,
        d_head=d_head,
        n_kv_heads=c.n_kv_heads or c.n_heads,
        d_ff=d_ff,
        qkv_bias=c.bias if c.qkv_bias is None else c.qkv_bias,
        out_bias=c.bias if c.out_bias is None else c.out_bias,
        attention_scale=d_head**-0.5 if c.attention_scale is None else c.attention_scale,
        n_decoder_layers=c.depth if c.architecture == "encoder-decoder" else None,
    )


def canonical(config: ModelConfig) -> ModelConfig:
    """The same, one spelling for everything that computes alike, and without what only matters in training."""
    c = fill_defaults(config)
    per_layer, d_head = c.per_layer(max(c.n_layers, c.depth)), c.d_head or 0
    at_input = c.at_input.acts == "input"
    inner = tuple(_options(spec, d_head) for spec in per_layer)
    position: Any = _options(c.at_input) if at_input and c.input_position is None else inner
    learned = c.at_input.name == "learned"
    layered = c.head == "masked" or (c.head in ("pooled", "classes") and c.pooler)
    usual = c.head_activation or ("gelu" if c.head == "masked" else "tanh")
    scale = c.d_model**0.5 if isinstance(c.embed_scale, str) else 1.0 if c.embed_scale is None else c.embed_scale
    return replace(
        c,
        position=position,
        window=tuple(c.windows(c.n_layers)),
        embed_scale=scale,
        padding_id=None,
        input_position=None if c.input_position is None else _options(c.at_input),
        head_activation=usual if layered else None,
        distinct_layers=None if c.distinct_layers == c.n_layers else c.distinct_layers,
        max_positions=c.max_positions if learned else None,
        dropout=0.0,
        init_std=0.02,
    )


@lru_cache(256)
def _options(spec: Spec, d_head: int = 0) -> Spec:
    """A Spec with its defaults written out. RoPE has several words for one rotation: NTK scaling is another base."""
    known = list(inspect.signature(spec.cls.__init__).parameters.values())[1:]
    usual = {p.name: p.default for p in known if p.default is not inspect.Parameter.empty and p.name != "std"}
    given = {k: v for k, v in spec.options.items() if k != "std"}
    if spec.name == "rope":
        built: Any = spec.build(d_head=d_head)
        base, scaling = built.base, None if built.scaling is None else built.scaling.to_dict()
        if scaling is not None and scaling["kind"] == "ntk":
            base, scaling = built.scaling.base(base, built.rotary_dim), None
        given |= {"base": base, "scaling": scaling, "rotary_dim": built.rotary_dim, "fraction": None}
    return Spec(spec.cls, {**usual, **given})


__all__ = ["FAMILIES", "canonical", "family_for", "family_of", "fill_defaults", "find_families", "find_losses"]
