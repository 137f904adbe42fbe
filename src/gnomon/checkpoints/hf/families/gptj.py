"""GPT-J (Wang and Komatsuzaki 2021): both sublayers behind one norm, neighbouring channels turned together."""

from typing import Any

from gnomon.checkpoints.hf.family import ACTIVATIONS, Family, activation_name, lines
from gnomon.checkpoints.hf.keys import LAYERS, Keys
from gnomon.checkpoints.hf.rope import ROTARY, rope, write_rope
from gnomon.checkpoints.hf.table import line, module
from gnomon.errors import BadInput, BadValue
from gnomon.models import ModelConfig


def read(keys: Keys) -> ModelConfig:
    """Biases in the feed-forward and the head only; the base of its positions is always 10 000."""
    keys.must("rotary", True)
    keys.must("scale_attn_weights", True)
    d_model, n_heads = keys.size("n_embd"), keys.size("n_head")
    turned, d_head = keys.size("rotary_dim", default=64), d_model // n_heads
    if turned > d_head:
        raise BadInput(f"{keys.file}: rotary_dim is {turned}, wider than a head, which has {d_head} channels")
    return ModelConfig(
        vocab_size=keys.size("vocab_size"),
        d_model=d_model,
        n_layers=keys.size("n_layer", most=LAYERS),
        n_heads=n_heads,
        d_ff=keys.size("n_inner", default=None) or 4 * d_model,
        residual="one norm",
        qkv_bias=False,
        out_bias=False,
        position=rope(10000.0, turned, d_head, pairing="interleaved"),
        max_positions=keys.size("n_positions", default=2048),
        head_bias=True,
        activation=keys.word("activation_function", ACTIVATIONS, "gelu_new"),
        norm_eps=keys.get("layer_norm_epsilon", float, 1e-5),
        dropout=keys.get("resid_pdrop", float, 0.0),
        init_std=keys.get("initializer_range", float, 0.02),
        tied=keys.get("tie_word_embeddings", bool, False),
    )


def write(c: ModelConfig) -> dict[str, Any]:
    """As GPT-J, which knows no other base and no scaling."""
    spec, d_head = c.per_layer(1)[0], c.d_model // c.n_heads
    config = write_rope(spec, d_head, c.max_positions, ROTARY["gptj"])
    if config["rope_theta"] != 10000.0:
        raise BadValue(f"position = {spec!r}: the family's code knows base 10000 only")
    module: Any = spec.build(d_head=d_head)
    return {
        "architectures": ["GPTJForCausalLM"],
        "model_type": "gptj",
        "vocab_size": c.vocab_size,
        "n_embd": c.d_model,
        "n_layer": c.n_layers,
        "n_head": c.n_heads,
        "n_inner": c.d_ff,
        "n_positions": config["max_position_embeddings"],
        "rotary_dim": module.rotary_dim,
        "activation_function": activation_name(c.activation, "gelu_new"),
        "layer_norm_epsilon": c.norm_eps,
        "resid_pdrop": c.dropout,
        "embd_pdrop": c.dropout,
        "attn_pdrop": c.dropout,
        "initializer_range": c.init_std,
        "tie_word_embeddings": c.tied,
    }


_ATTENTION = (("q_proj", "q"), ("k_proj", "k"), ("v_proj", "v"), ("out_proj", "out"))

FAMILY = Family(
    "gptj",
    read,
    write,
    lines(
        line("transformer.wte.weight", "input.tokens.weight"),
        module("transformer.h.*.ln_1", "stack.blocks.*.around_attention.norm"),
        *(line(f"transformer.h.*.attn.{a}.weight", f"stack.blocks.*.attention.{b}.weight") for a, b in _ATTENTION),
        module("transformer.h.*.mlp.fc_in", "stack.blocks.*.ffn.up"),
        module("transformer.h.*.mlp.fc_out", "stack.blocks.*.ffn.down"),
        module("transformer.ln_f", "stack.norm"),
        module("lm_head", "head"),
    ),
    prefix="transformer.",
    twins={"lm_head.weight": "transformer.wte.weight"},
    harmless=(r"transformer\.h\.\d+\.attn\.(bias|masked_bias|embed_positions)",),  # masks and angles, as tensors
)

__all__ = ["FAMILY"]
