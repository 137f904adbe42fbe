"""GPT-Neo (Black et al. 2021): GPT-2 with a window in every other layer and scores that are not divided by a root."""

from typing import Any

from gnomon.checkpoints.hf.families.llama import one_window
from gnomon.checkpoints.hf.family import ACTIVATIONS, Family, activation_name, lines
from gnomon.checkpoints.hf.keys import LAYERS, SEQUENCE, Keys
from gnomon.checkpoints.hf.table import line, module
from gnomon.errors import BadInput
from gnomon.models import ModelConfig
from gnomon.positions import get


def read(keys: Keys) -> ModelConfig:
    """attention_types is a list of [kinds, how often]; attention_layers has them written out."""
    d_model, n_layers = keys.size("hidden_size"), keys.size("num_layers", most=LAYERS)
    local, window = _local(keys, n_layers), keys.size("window_size", default=256)
    return ModelConfig(
        vocab_size=keys.size("vocab_size"),
        d_model=d_model,
        n_layers=n_layers,
        n_heads=keys.size("num_heads"),
        max_positions=keys.size("max_position_embeddings"),
        position=get("learned"),
        d_ff=keys.size("intermediate_size", default=None) or 4 * d_model,
        qkv_bias=False,
        out_bias=True,
        window=one_window([window if on else None for on in local]),
        attention_scale=1.0,
        activation=keys.word("activation_function", ACTIVATIONS, "gelu_new"),
        norm_eps=keys.get("layer_norm_epsilon", float, 1e-5),
        dropout=keys.get("resid_dropout", float, 0.0),
        init_std=keys.get("initializer_range", float, 0.02),
        tied=keys.get("tie_word_embeddings", bool, True),
    )


def _local(keys: Keys, n_layers: int) -> list[bool]:
    """Whether each layer has a window. BadInput for other kinds of layers, or not as many as there are layers."""
    types: Any = keys.get("attention_types", SEQUENCE, None) or [[["global", "local"], 12]]
    kinds: list[Any] = []
    for item in types:
        if not (isinstance(item, list) and len(item) == 2 and isinstance(item[0], list) and type(item[1]) is int):
            raise BadInput(f"{keys.file}: attention_types is a list of [kinds, how often]; it has {item!r}")
        kinds += item[0] * min(max(item[1], 0), LAYERS)
    if len(kinds) != n_layers or any(kind not in ("global", "local") for kind in kinds):
        raise BadInput(
            f"{keys.file}: attention_types says 'global' or 'local' for each of the {n_layers} layers; it has "
            f"{len(kinds)}, {kinds[:4]} and so on"
        )
    keys.must("attention_layers", kinds)
    return [kind == "local" for kind in kinds]


def write(c: ModelConfig) -> dict[str, Any]:
    """As GPT-Neo; the windows of all layers that have one must be alike."""
    windows = c.windows(c.n_layers)
    return {
        "architectures": ["GPTNeoForCausalLM"],
        "model_type": "gpt_neo",
        "vocab_size": c.vocab_size,
        "hidden_size": c.d_model,
        "num_layers": c.n_layers,
        "num_heads": c.n_heads,
        "intermediate_size": c.d_ff,
        "max_position_embeddings": c.max_positions,
        "window_size": next(filter(None, windows), 256),
        "attention_types": [[["global" if window is None else "local" for window in windows], 1]],
        "activation_function": activation_name(c.activation, "gelu_new"),
        "layer_norm_epsilon": c.norm_eps,
        "resid_dropout": c.dropout,
        "embed_dropout": c.dropout,
        "attention_dropout": c.dropout,
        "initializer_range": c.init_std,
        "tie_word_embeddings": c.tied,
    }


_ATTENTION = (("q_proj", "q"), ("k_proj", "k"), ("v_proj", "v"), ("out_proj", "out"))

FAMILY = Family(
    "gpt_neo",
    read,
    write,
    lines(
        line("transformer.wte.weight", "input.tokens.weight"),
        line("transformer.wpe.weight", "input.position.weight"),
        module("transformer.h.*.ln_1", "stack.blocks.*.around_attention.norm"),
        *(module(f"transformer.h.*.attn.attention.{a}", f"stack.blocks.*.attention.{b}") for a, b in _ATTENTION),
        module("transformer.h.*.ln_2", "stack.blocks.*.around_ffn.norm"),
        module("transformer.h.*.mlp.c_fc", "stack.blocks.*.ffn.up"),
        module("transformer.h.*.mlp.c_proj", "stack.blocks.*.ffn.down"),
        module("transformer.ln_f", "stack.norm"),
        line("lm_head.weight", "head.weight"),
    ),
    prefix="transformer.",
    twins={"lm_head.weight": "transformer.wte.weight"},
    harmless=(r"transformer\.h\.\d+\.attn\.attention\.(bias|masked_bias)",),  # the masks, as tensors
)

__all__ = ["FAMILY"]
