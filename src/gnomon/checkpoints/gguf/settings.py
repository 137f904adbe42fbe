"""A GGUF file's keys and shapes as a ModelConfig, and a ModelConfig as keys.

What is a part of the model because its tensor is there (biases, a head of its own) is read off the tensors; the keys
say the rest. Writing checks itself: what reading the keys back would not give again is an error that lists it.
"""

from collections.abc import Mapping
from dataclasses import fields, replace
from math import isclose
from pathlib import Path
from typing import Any

from gnomon.blocks import default_width
from gnomon.blocks.experts import widths
from gnomon.checkpoints.gguf.family import Family, Shapes, parts, rotary_width, tensor_shapes
from gnomon.checkpoints.gguf.keys import Keys
from gnomon.checkpoints.gguf.registry import FAMILIES
from gnomon.checkpoints.gguf.rope import LONG, Factors, describe_rope, read_rope, with_truncation
from gnomon.checkpoints.unsupported import Lost, check_recipe, no_family
from gnomon.errors import BadInput, BadValue
from gnomon.models import ModelConfig
from gnomon.models.meta import build_on_meta
from gnomon.positions import Spec, get
from gnomon.positions.scaling import LongRoPE, YaRN, scaling

UNSEEN = ("dropout", "init_std", "padding_id", "max_positions")  # settings that do not change what is computed


def read_settings(family: Family, keys: Keys, shapes: Shapes, factors: Factors) -> ModelConfig:
    """The config of a file with these keys, shapes of tensors, and factors of RoPE's pairs."""
    d_model, n_heads = keys.get("embedding_length", int), keys.get("attention.head_count", int)
    if n_heads < 1 or d_model < 1:
        raise BadInput(f"{keys.path}: a model of {n_heads} heads and width {d_model} cannot be")
    d_head = keys.get("attention.key_length", int, d_model // n_heads)
    keys.must("attention.value_length", d_head)
    keys.must("attention.causal", family.architecture != "encoder-only")
    keys.must("tensor_data_layout", "Meta AI original pth", "jploski")  # llama's and falcon's order of rows
    keys.tensors = shapes
    keys.must("vocab_size", shapes.get("token_embd.weight", (0,))[0])
    length = keys.get("context_length", int)
    found: dict[str, Any] = {
        "vocab_size": shapes.get("token_embd.weight", (0,))[0],
        "d_model": d_model,
        "n_heads": n_heads,
        "n_layers": keys.get("block_count", int),
        "n_kv_heads": keys.get("attention.head_count_kv", int, n_heads),
        "d_ff": keys.get("feed_forward_length", int),
        "norm_eps": keys.get(family.eps_key, float),
        "d_head": d_head,
        "max_positions": length,
        **_parts_there(shapes),
        **family.fixed,
    }
    if family.fixed["norm"] == "layernorm" and not any(name.endswith("norm.bias") for name in shapes):
        found["norm"] = "layernorm_no_bias"
    if not family.partial:
        keys.must("rope.dimension_count", d_head)
    found |= _READ_POSITION[family.position](keys, factors, d_head, length)
    found |= family.read(keys, found)
    try:
        return ModelConfig.from_dict(found)
    except BadValue as error:
        raise BadInput(f"{keys.path}: {error}") from error


def _parts_there(shapes: Shapes) -> dict[str, Any]:
    def there(*names: str) -> bool:
        return any(f"blk.0.{name}.bias" in shapes for name in names)

    return {
        "tied": "output.weight" not in shapes,
        "head_bias": "output.bias" in shapes,
        "bias": there("ffn_up", "ffn_up_exps"),
        "qkv_bias": there("attn_q", "attn_qkv"),
        "out_bias": there("attn_output"),
    }


def _rope(keys: Keys, factors: Factors, d_head: int, length: int) -> dict[str, Any]:
    return {"position": read_rope(keys, factors, d_head, length)}


def _learned(keys: Keys, factors: Factors, d_head: int, length: int) -> dict[str, Any]:
    return {"position": get("learned")}


def _alibi(keys: Keys, factors: Factors, d_head: int, length: int) -> dict[str, Any]:
    keys.must("attention.max_alibi_bias", 8.0)  # the published slopes
    keys.must("attention.clamp_kqv", 0.0)
    return {"position": get("alibi")}


def _t5(keys: Keys, factors: Factors, d_head: int, length: int) -> dict[str, Any]:
    return {}  # its families read it


_READ_POSITION = {"rope": _rope, "learned": _learned, "alibi": _alibi, "t5": _t5}


# ------------------------------------------------------------------ writing


def describe(config: ModelConfig) -> tuple[Family, dict[str, Any], dict[str, list[float]]]:
    """The family of a config, the keys that say it (without the family's name), and the factors of RoPE's pairs.

    BadValue where no family has it all: it names what the nearest would lose, and the way out.
    """
    if config.n_layers < 1:
        raise BadValue("a GGUF file is written of a model with at least one layer; this one has 0 layers")
    check_recipe(config)
    own, losses = weight_shapes(config), []
    for family in _of_kind(config):
        keys, factors, lost = _try_family(family, config, own)
        if not lost:
            return family, keys, factors
        losses.append(lost)
    raise no_family("GGUF files", config, losses, _fits)


def _fits(config: ModelConfig) -> bool:
    own = weight_shapes(config)
    return any(not _try_family(family, config, own)[2] for family in _of_kind(config))


def _of_kind(config: ModelConfig) -> list[Family]:
    return [family for family in FAMILIES.values() if family.architecture == config.architecture]


def weight_shapes(config: ModelConfig) -> dict[str, tuple[int, ...]]:
    """The names and shapes of the weights of a model of this config."""
    return {name: tuple(weight.shape) for name, weight in build_on_meta(config).state_dict().items()}


def tensor_shapes_of(family: Family, own: Shapes) -> dict[str, tuple[int, ...]]:
    """The tensors that these weights are in this family's files, and their shapes."""
    return tensor_shapes(parts(family, own), own)


def _try_family(
    family: Family, config: ModelConfig, own: Shapes
) -> tuple[dict[str, Any], dict[str, list[float]], Lost]:
    """Keys and factors of a config in this family, and what they would not bring back."""
    whole = replace(fill_defaults(config), max_positions=config.max_positions or _longest(config))
    unsaid = _unstated(family, whole)
    try:
        keys, factors = _keys(family, replace(whole, **unsaid))
        metadata = {f"{family.arch}.{key}": value for key, value in keys.items()}
        reader = Keys(metadata, family.arch, Path("what is to be written"))
        back = replace(fill_defaults(read_settings(family, reader, tensor_shapes_of(family, own), factors)), **unsaid)
    except (BadInput, BadValue, KeyError) as error:
        others = {name: (getattr(whole, name), value) for name, value in family.fixed.items()}
        return {}, {}, Lost(family.arch, {k: v for k, v in others.items() if v[0] != v[1]}, (str(error),))
    given, got = whole.to_dict(), back.to_dict()
    lost = [f.name for f in fields(ModelConfig) if f.name not in UNSEEN and not _same(given[f.name], got[f.name])]
    settings = {n: (getattr(whole if getattr(config, n) is None else config, n), getattr(back, n)) for n in lost}
    return keys, factors, Lost(family.arch, settings)


def _unstated(family: Family, c: ModelConfig) -> dict[str, Any]:
    """Settings that the family has no words for and this config has at another value: theirs."""
    specs, width = c.per_layer(c.n_layers), c.d_head or 0
    turns = all(spec.name == "rope" for spec in specs if not family.still or spec.name != "none")
    whole = turns and all(rotary_width(spec.options, width) == width for spec in specs if spec.name == "rope")
    found = {
        "window": (None, any(c.windows(c.n_layers)) and not family.windows),
        "head_bias": (False, c.head_bias and not family.fixed.get("head_bias", False)),
        "tied": (family.tied, c.tied != family.tied and not (family.tied and family.own_head)),
        "position": (get("rope"), family.position == "rope" and not (turns if family.partial else whole)),
    }
    return {name: value for name, (value, other) in found.items() if other}


def _same(a: Any, b: Any) -> bool:
    """Equal, numbers as float32 sees them; which pairs of channels turn is a matter of how rows stand."""
    if isinstance(a, float | int) and isinstance(b, float | int) and not isinstance(a, bool):
        return isclose(a, b, rel_tol=1e-6)
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        names = (a.keys() | b.keys()) - {"pairing"}
        return all(_same(a.get(name), b.get(name)) for name in names)
    if isinstance(a, list | tuple) and isinstance(b, list | tuple):
        return len(a) == len(b) and all(map(_same, a, b))
    return bool(a == b)


def _keys(family: Family, c: ModelConfig) -> tuple[dict[str, Any], dict[str, list[float]]]:
    assert c.d_head is not None
    windows, specs = c.windows(c.n_layers), c.per_layer(c.n_layers)
    keys: dict[str, Any] = {
        "context_length": c.max_positions,
        "embedding_length": c.d_model,
        "block_count": c.n_layers,
        "feed_forward_length": c.d_ff,
        "attention.head_count": c.n_heads,
        "attention.head_count_kv": c.n_kv_heads,
        family.eps_key: c.norm_eps,
        "vocab_size": c.vocab_size,
    }
    if c.d_head * c.n_heads != c.d_model or family.widths:
        keys |= {"attention.key_length": c.d_head, "attention.value_length": c.d_head}
    factors: dict[str, list[float]] = {}
    if family.position == "rope":
        turning = [n for n, spec in enumerate(specs) if spec.name == "rope"] or [0]
        whole = next((n for n in turning if windows[n] is None), turning[0])
        spec = specs[whole if family.windows else turning[0]]
        rope_keys, factors = describe_rope(spec if family.truncates else with_truncation(spec, True), c.d_head)
        if LONG in factors and not family.longrope:
            raise BadValue(f"longrope is not computed in {family.arch}: phi3 has it")
        keys |= {f"rope.{key}": value for key, value in rope_keys.items()}
    keys |= family.write(c)
    return keys, factors


def _longest(c: ModelConfig) -> int:
    """The longest text of a model that does not say it: what its scaling stretches to, or a usual number."""
    spec = c.per_layer(c.n_layers)[0]
    scaled = None if spec.options.get("scaling") is None else scaling(spec.options["scaling"])
    return round(scaled.factor * scaled.original_length) if isinstance(scaled, LongRoPE | YaRN) else 2048


def fill_defaults(c: ModelConfig) -> ModelConfig:
    """The same config with the defaults that depend on other settings written out."""
    d_head = c.d_model // c.n_heads if c.d_head is None else c.d_head
    position = c.position
    if not isinstance(position, Spec) or position.name in ("rope", "t5"):
        position = tuple(_plain(spec, d_head) for spec in c.per_layer(max(c.n_layers, c.depth)))
    experts, d_ff = widths(c.mixture, c.n_layers, default_width(c.d_model, c.gated) if c.d_ff is None else c.d_ff)
    return replace(
        c,
        d_head=d_head,
        n_kv_heads=c.n_kv_heads or c.n_heads,
        position=position,
        window=tuple(c.windows(c.n_layers)),
        n_decoder_layers=c.depth if c.architecture == "encoder-decoder" else c.n_decoder_layers,
        experts=experts,
        d_ff=d_ff,
        distinct_layers=None if c.distinct_layers == c.n_layers else c.distinct_layers,
        qkv_bias=c.bias if c.qkv_bias is None else c.qkv_bias,
        out_bias=c.bias if c.out_bias is None else c.out_bias,
        attention_scale=d_head**-0.5 if c.attention_scale is None else c.attention_scale,
        # one number in float32; and a scale of 1 is none
        embed_scale={"sqrt": "rounded sqrt", 1.0: None}.get(c.embed_scale or 1.0, c.embed_scale),
    )


def _plain(spec: Spec, d_head: int) -> Spec:
    """RoPE with its base, width and magnitude written out; T5's biases with their buckets."""
    if spec.name == "t5":
        return get("t5", **{"n_buckets": 32, "max_distance": 128, "table": 0, **spec.options, "std": 0.02})
    if spec.name != "rope":
        return spec
    options = {k: v for k, v in spec.options.items() if k == "pairing"}
    if spec.options.get("scaling") is not None:
        scaled = scaling(spec.options["scaling"])
        if isinstance(scaled, YaRN):
            scaled = replace(scaled, attention_factor=scaled.magnitude, mscale=None, mscale_all_dim=None)
        elif isinstance(scaled, LongRoPE):
            scaled = replace(scaled, attention_factor=scaled.magnitude, factor=1.0)  # which is in the magnitude
        options["scaling"] = scaled
    return get("rope", base=spec.options.get("base", 10000.0), rotary_dim=rotary_width(spec.options, d_head), **options)


__all__ = ["describe", "fill_defaults", "read_settings", "tensor_shapes_of", "weight_shapes"]
