"""Other values: of every setting of a model of ours, and of every key of a config of theirs."""

import copy
from collections.abc import Iterator
from typing import Any

from parity import LENGTH

import gnomon as gn
from gnomon.errors import BadValue
from gnomon.positions.scaling import NTK, DynamicNTK, Linear, Llama3, LongRoPE, Proportional, YaRN

get = gn.positions.get

#: values of the settings of a ModelConfig besides position; sizes as those of the cases allow
OTHERS: dict[str, list[Any]] = {
    "vocab_size": [90], "d_model": [24], "n_layers": [1, 3], "n_heads": [2], "max_positions": [48, None],
    "n_kv_heads": [1, 2], "d_head": [6, 12], "d_ff": [40, 96], "gated": [True, False],
    "activation": ["relu", "gelu", "gelu_tanh", "silu"],
    "norm": ["layernorm", "layernorm_no_bias", "rmsnorm", "rmsnorm_plus_one"], "norm_eps": [1e-3],
    "placement": ["pre", "post", "sandwich", "branch"], "bias": [True, False], "qkv_bias": [True, False],
    "out_bias": [True, False], "residual": ["parallel", "sequential", "one norm"], "causal": [False],
    "residual_scale": [0.5], "head_softcap": [3.0, None],
    "window": [None, 5, [5, None], [None, 5]], "attention_scale": [0.2], "softcap": [5.0], "sinks": [True],
    "qk_norm": [True, False, "joint"], "tied": [True, False], "head_bias": [True, False], "head_scale": [0.5],
    "embed_scale": ["sqrt", "rounded sqrt", 2.0, None], "d_embed": [16], "padding_id": [3],
    "n_decoder_layers": [1, 3], "source_vocab_size": [90], "source_positions": [True, False], "n_types": [0, 1, 3],
    "input_norm": ["layernorm", None, "rmsnorm"], "head": ["tokens", "masked", "pooled"],
    "pooling": ["first", "mean"], "pooler": [True, False],
}  # fmt: skip
TOGETHER = [{"sink_tokens": 2, "window": 5}, {"combine": "concat", "position_dim": 8}]
EXPERTS = {"n_experts": 3, "top_k": 2, "d_ff": 20, "shared": 16, "shared_gate": True}
OTHERS |= {
    "distinct_layers": [1, 2], "first_norm": [False], "input_position": ["learned", "sinusoidal", None],
    "d_input": [20, None], "head_activation": ["relu", "tanh", None],
}  # fmt: skip
OTHERS["experts"] = [
    None, EXPERTS, EXPERTS | {"top_k": 1}, EXPERTS | {"normalised": False}, EXPERTS | {"router_bias": True},
    EXPERTS | {"shared": 0, "shared_gate": False}, EXPERTS | {"shared_gate": False}, EXPERTS | {"dense_layers": [0]},
]  # fmt: skip
TOGETHER += [{"head": head, "n_classes": 3} for head in ("labels", "classes")]


def scalings(d: int) -> list[Any]:
    """Every scaling of RoPE, with every option of it, over d channels."""
    pairs = [1 + n / 10 for n in range(d // 2)]
    long = {"short_factor": tuple(pairs), "long_factor": tuple(2 * x for x in pairs)}
    yarn = [{}, {"beta_fast": 20.0, "beta_slow": 2.0}, {"attention_factor": 1.1}, {"truncate": False}]
    yarn.append({"mscale": 1.0, "mscale_all_dim": 0.8})
    return [
        None, Linear(2.0), NTK(2.0), DynamicNTK(2.0, LENGTH), *(YaRN(4.0, 16, **options) for options in yarn),
        Llama3(8.0, 32), LongRoPE(4.0, 16, **long), LongRoPE(4.0, 128, **long, attention_factor=1.2),
        Proportional(2.0, 0.5),
    ]  # fmt: skip


def positions(c: gn.ModelConfig) -> Iterator[Any]:
    """Every encoding with every option."""
    width = c.d_head or c.d_model // c.n_heads
    half, rope = width // 4 * 2, get("rope")
    for turned in ({}, {"rotary_dim": half}, {"base": 5e5}):
        for scaling in scalings(turned.get("rotary_dim", width)):
            yield get("rope", **turned, **({} if scaling is None else {"scaling": scaling}))
    yield from (get("rope", fraction=0.5), get("rope", pairing="interleaved"), "none", "alibi", "t5", "sinusoidal")
    yield from (get("learned", offset=offset) for offset in range(4))
    yield from (get("t5", n_buckets=8, max_distance=20), get("sinusoidal", table="concatenated"))
    yield from (get("sinusoidal", base=100.0), get("sinusoidal", table="tensor2tensor", offset=2))
    if c.architecture != "encoder-decoder":
        for other in ("none", get("rope", base=100.0), get("rope", scaling=Linear(2.0))):
            yield [rope, *[other] * (c.n_layers - 1)]
            yield [other, *[rope] * (c.n_layers - 1)]


def changed(c: gn.ModelConfig) -> Iterator[tuple[dict[str, Any], gn.ModelConfig]]:
    """What was changed of a config, and the config; those that no model can have are left out."""
    changes = [{"position": position} for position in positions(c)]
    changes += [{name: value} for name, values in OTHERS.items() for value in values] + TOGETHER
    for change in changes:
        data = {**c.to_dict(), "n_classes": None, **change}
        if "n_layers" in change and isinstance(c.position, tuple):
            data["position"] = [data["position"][0]] * change["n_layers"]
        try:
            yield change, gn.ModelConfig.from_dict(data)
        except BadValue:
            continue


def other_values(value: Any) -> list[Any]:
    """What may stand under a key instead of this."""
    if value is None:
        return [True, 2, 0.5, "relu", [1], {"a": 1}]
    if isinstance(value, bool):
        return [not value, None]
    if isinstance(value, int):
        return [value + 1, value * 2, 0, None]
    if isinstance(value, float):
        return [value * 2, value / 2 + 0.1, 1.0, None]
    if isinstance(value, str):
        return ["relu", "gelu", "gelu_new", "xyz", None]
    if isinstance(value, list):
        return [value[::-1], value[:1] * len(value), value[-1:] * len(value), None]
    return [None]


def places(data: dict[str, Any], within: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The keys of a config and of the objects in it, as paths; not what names its class."""
    for key, value in data.items():
        if within or key not in ("model_type", "architectures"):
            yield (*within, key)
        if isinstance(value, dict):
            yield from places(value, (*within, key))


def value_at(data: dict[str, Any], path: tuple[str, ...]) -> Any:
    """What stands at a path."""
    for key in path:
        data = data[key]
    return data


def with_value(data: dict[str, Any], path: tuple[str, ...], value: Any) -> dict[str, Any]:
    """A copy of a config with another value at a path."""
    data = copy.deepcopy(data)
    value_at(data, path[:-1])[path[-1]] = value
    return data


LINEAR = {"type": "linear", "factor": 2.0}
#: what older files say, and what may be left out (`...`): each is asked with rope_parameters and without
OLDER: list[dict[str, Any]] = [
    {"rope_theta": 5e5}, {"partial_rotary_factor": 0.5}, {"rope_scaling": LINEAR},
    {"rope_scaling": LINEAR | {"rope_theta": 5e5}}, {"rope_scaling": {"rope_type": "linear", "factor": 2.0}},
    {"rope_theta": 5e5, "rope_scaling": {"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 16}},
    {"rope_scaling": {"rope_type": "yarn", "factor": 4.0}, "original_max_position_embeddings": 16},
    {"rotary_pct": 0.5}, {"rotary_emb_base": 5e5}, {"rotary_pct": 0.5, "rope_theta": 5e5},
    {"rotary_pct": 0.5, "partial_rotary_factor": 0.5, "rope_theta": 5e5, "rotary_emb_base": 5e5},
    {"rope_local_base_freq": 100.0}, {"rope_local_base_freq": 100.0, "rope_theta": 5e5, "rope_scaling": LINEAR},
    *({name: n, "layer_types": ...} for name in ("sliding_window_pattern", "_sliding_window_pattern") for n in (1, 2)),
    {"use_sliding_window": True, "sliding_window": 5, "layer_types": ...},
    {"use_sliding_window": True, "sliding_window": 5, "layer_types": ..., "max_window_layers": 1},
    {"use_sliding_window": True, "sliding_window": 5, "layer_types": ["sliding_attention"] * 2},
    {"layer_types": ["sliding_attention"] * 2}, {"no_rope_layers": ...},
    {"no_rope_layers": ..., "no_rope_layer_interval": ...}, {"n_inner": 48}, {"pad_token_id": 2}, {"head_dim": 6},
    *({"feed_forward_proj": word, "is_gated_act": ..., "dense_act_fn": ...} for word in ("gated-relu", "gated-gelu")),
    {"tie_word_embeddings": False, "scale_decoder_outputs": ...}, {"attn_config": {"alibi": True, "clip_qkv": 0.5}},
    {"attn_config": {"alibi": True, "softmax_scale": 0.2}},
    *({name: ...} for name in (
        "head_dim", "num_key_value_heads", "sliding_window", "hidden_act", "activation_function", "hidden_activation",
        "rms_norm_eps", "layer_norm_eps", "layer_norm_epsilon", "tie_word_embeddings", "attention_bias", "mlp_bias",
        "use_parallel_residual", "query_pre_attn_scalar", "type_vocab_size", "n_inner", "num_decoder_layers",
        "feed_forward_proj", "relative_attention_max_distance", "scale_embedding", "scale_decoder_outputs",
        "attn_config", "expansion_ratio", "do_layer_norm_before", "enable_bias", "word_embed_proj_dim",
        "max_position_embeddings", "pad_token_id", "intermediate_size",
    )),
]  # fmt: skip


def as_older_files(data: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """A config as older versions may have written it."""
    for base in ({}, {"rope_parameters": ...})[: 1 + ("rope_parameters" in data)]:
        for change in OLDER:
            yield {key: value for key, value in {**data, **base, **change}.items() if value is not ...}
