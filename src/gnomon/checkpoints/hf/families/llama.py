"""Llama (Touvron et al. 2023, arXiv:2302.13971): pre-norm RMSNorm, gated feed-forward, grouped-query attention, RoPE.

Biases in attention or the feed-forward where the config says so. Its relatives share what is here.
"""

from typing import Any

from gnomon.checkpoints.hf.family import ACTIVATIONS, Family, activation_name, lines
from gnomon.checkpoints.hf.keys import LAYERS, Keys
from gnomon.checkpoints.hf.rope import ROTARY, Rotary, read_rope, write_rope
from gnomon.checkpoints.hf.table import line, module
from gnomon.errors import BadInput
from gnomon.models import ModelConfig
from gnomon.models.model_settings import Window
from gnomon.positions import NoPE, Spec

ATTENTION = [
    *module("model.layers.*.self_attn.q_proj", "stack.blocks.*.attention.q"),
    *module("model.layers.*.self_attn.k_proj", "stack.blocks.*.attention.k"),
    *module("model.layers.*.self_attn.v_proj", "stack.blocks.*.attention.v"),
    *module("model.layers.*.self_attn.o_proj", "stack.blocks.*.attention.out"),
    *module("model.layers.*.self_attn.q_norm", "stack.blocks.*.attention.q_norm"),
    *module("model.layers.*.self_attn.k_norm", "stack.blocks.*.attention.k_norm"),
]
FEED_FORWARD = [
    *module("model.layers.*.mlp.gate_proj", "stack.blocks.*.ffn.gate"),
    *module("model.layers.*.mlp.up_proj", "stack.blocks.*.ffn.up"),
    *module("model.layers.*.mlp.down_proj", "stack.blocks.*.ffn.down"),
]
ENDS = [
    line("model.embed_tokens.weight", "input.tokens.weight"),
    line("model.norm.weight", "stack.norm.weight"),
    line("lm_head.weight", "head.weight"),
]
TABLE = lines(
    ENDS,
    ATTENTION,
    FEED_FORWARD,
    line("model.layers.*.input_layernorm.weight", "stack.blocks.*.around_attention.norm.weight"),
    line("model.layers.*.post_attention_layernorm.weight", "stack.blocks.*.around_ffn.norm.weight"),
)
TWINS = {"lm_head.weight": "model.embed_tokens.weight"}
INV_FREQ = r"model\.(layers\.\d+\.self_attn\.)?rotary_emb\.inv_freq"  # a table that older files carry along


def sizes(keys: Keys, eps: str = "rms_norm_eps") -> dict[str, Any]:
    """What the relatives' configs share, as settings of ours; not position, windows and biases. eps: its key."""
    n_heads, d_model = keys.size("num_attention_heads"), keys.size("hidden_size")
    return {
        "vocab_size": keys.size("vocab_size"),
        "d_model": d_model,
        "n_layers": keys.size("num_hidden_layers", most=LAYERS),
        "n_heads": n_heads,
        "n_kv_heads": keys.size("num_key_value_heads", default=None) or n_heads,
        "d_ff": keys.size("intermediate_size"),
        "max_positions": keys.size("max_position_embeddings"),
        "norm": "rmsnorm",
        "gated": True,
        "norm_eps": keys.get(eps, float),
        "init_std": keys.get("initializer_range", float, 0.02),
        "dropout": keys.get("attention_dropout", float, 0.0),
        "bias": False,
    }


def width(keys: Keys, default: int | None = None) -> int:
    """The width of a head."""
    if default is not None:
        return keys.size("head_dim", default=default)
    return keys.size("head_dim", default=None) or keys.size("hidden_size") // keys.size("num_attention_heads")


def read(keys: Keys, rotary: Rotary, d_head: int, eps: str = "rms_norm_eps", **more: Any) -> ModelConfig:
    """A config of the plain kind, with `more` settings of a relative."""
    settings = {
        **sizes(keys, eps),
        "d_head": d_head,
        **({} if "position" in more else {"position": read_rope(keys, d_head, rotary)}),
        "activation": keys.word("hidden_act", ACTIVATIONS, "silu"),
        "tied": keys.get("tie_word_embeddings", bool, False),
    }
    return ModelConfig(**(settings | more))


def read_llama(keys: Keys) -> ModelConfig:
    """attention_bias is of all four projections."""
    bias = keys.get("attention_bias", bool, False)
    keys.must("rope_interleaved", False)
    return read(
        keys, ROTARY["llama"], width(keys), bias=keys.get("mlp_bias", bool, False), qkv_bias=bias, out_bias=bias
    )


def windows_above(keys: Keys) -> Window:
    """A window in the layers from max_window_layers on."""
    first = keys.get("max_window_layers", int, 28)
    return windows(keys, [n >= first for n in range(keys.size("num_hidden_layers", most=LAYERS))])


def windows(keys: Keys, sliding: list[bool]) -> Window:
    """The window of each layer: as layer_types says, else as `sliding` does, and none unless it is switched on."""
    keys.get("sliding_window", int, None)  # of a window that is off, even 0
    window = keys.size("sliding_window", default=None) if keys.get("use_sliding_window", bool, False) else None
    kinds: list[Any] = [f"{'sliding' if on else 'full'}_attention" for on in sliding]
    sliding = [is_sliding(keys, kind) for kind in keys.per_layer("layer_types", len(sliding), kinds)]
    if window is None:
        if keys.has("layer_types") and any(sliding):  # there, some kernels hide far tokens and others do not
            raise BadInput(
                f"{keys.file}: layer_types names layers with a window, but sliding_window is null or "
                "use_sliding_window false: give both, or call every layer full_attention"
            )
        return None
    return one_window([window if on else None for on in sliding])


def is_sliding(keys: Keys, kind: object) -> bool:
    """Whether a layer of this type has a window."""
    if kind not in ("sliding_attention", "full_attention"):
        raise BadInput(f"{keys.file}: layer_types knows 'full_attention' and 'sliding_attention', got {kind!r}")
    return kind == "sliding_attention"


def one_window(per_layer: list[int | None]) -> Window:
    """One window where all layers have the same."""
    return per_layer[0] if len(set(per_layer)) == 1 else tuple(per_layer)


def one_or_list(specs: list[Spec]) -> Any:
    """One encoding where all layers have the same."""
    return specs[0] if all(spec == specs[0] for spec in specs) else tuple(specs)


def write(c: ModelConfig, name: str, architecture: str, rotary: Rotary, **more: Any) -> dict[str, Any]:
    """The config of a relative, with `more` keys of its own."""
    d_head = c.d_model // c.n_heads if c.d_head is None else c.d_head
    specs = c.per_layer(c.n_layers)
    rotated = next((spec for spec in specs if spec.name == "rope"), specs[0] if specs else Spec(NoPE))
    return {
        "architectures": [architecture],
        "model_type": name,
        "vocab_size": c.vocab_size,
        "hidden_size": c.d_model,
        "intermediate_size": c.d_ff,
        "num_hidden_layers": c.n_layers,
        "num_attention_heads": c.n_heads,
        "num_key_value_heads": c.n_kv_heads,
        "head_dim": d_head,
        "hidden_act": activation_name(c.activation),
        "rms_norm_eps": c.norm_eps,
        "initializer_range": c.init_std,
        "attention_dropout": c.dropout,
        "tie_word_embeddings": c.tied,
        **write_rope(rotated, d_head, c.max_positions, rotary),
        **more,
    }


def write_llama(c: ModelConfig) -> dict[str, Any]:
    """As Llama."""
    return write(c, "llama", "LlamaForCausalLM", ROTARY["llama"], attention_bias=bool(c.qkv_bias), mlp_bias=c.bias)


def sliding_keys(c: ModelConfig) -> dict[str, Any]:
    """The windows of each layer; all that there are must be alike."""
    per_layer = c.windows(c.n_layers)
    types = ["full_attention" if window is None else "sliding_attention" for window in per_layer]
    window = next((window for window in per_layer if window is not None), None)
    return {"sliding_window": window, "use_sliding_window": window is not None, "layer_types": types}


def relative(name: str, read: Any, write: Any, rank: int = 1) -> Family:
    """A family with Llama's names of weights."""
    return Family(name, read, write, TABLE, prefix="model.", twins=TWINS, harmless=(INV_FREQ,), rank=rank)


FAMILY = relative("llama", read_llama, write_llama, rank=0)

__all__ = ["FAMILY"]
