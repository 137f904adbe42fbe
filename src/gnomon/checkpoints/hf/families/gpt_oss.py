"""gpt-oss (OpenAI 2025, arXiv:2508.10925): experts with biases behind a clamped gate, a sink for each head, and
a window in every other layer."""

from typing import Any

from gnomon.blocks import Experts
from gnomon.checkpoints.hf.families.llama import (
    ATTENTION,
    ENDS,
    INV_FREQ,
    TWINS,
    is_sliding,
    one_window,
    read,
    sliding_keys,
    width,
    write,
)
from gnomon.checkpoints.hf.families.mixtral import COUNT, FFN, check_experts, experts_of
from gnomon.checkpoints.hf.family import Family, lines
from gnomon.checkpoints.hf.keys import LAYERS, Keys
from gnomon.checkpoints.hf.rope import LENGTH, ROTARY
from gnomon.checkpoints.hf.table import PerExpert, line, module
from gnomon.errors import BadInput
from gnomon.models import ModelConfig

WINDOW = 128  # the family's own
CLAMPED = {"swiglu_alpha": 1.702, "swiglu_limit": 7.0}


def read_config(keys: Keys) -> ModelConfig:
    """hidden_act says silu, and is not what is computed."""
    _check(keys)
    n_layers, bias = keys.size("num_hidden_layers", most=LAYERS), keys.get("attention_bias", bool, True)
    usual = [f"{'full' if n % 2 else 'sliding'}_attention" for n in range(n_layers)]
    sliding = [is_sliding(keys, kind) for kind in keys.per_layer("layer_types", n_layers, usual)]
    window = keys.size("sliding_window", default=None if "sliding_window" in keys.data else WINDOW)
    if window is None and any(sliding):
        raise BadInput(f"{keys.file}: layer_types names layers with a window, and sliding_window is null")
    chosen = keys.size("num_experts_per_tok", default=4)
    keys.must("experts_per_token", chosen)
    return read(
        keys,
        ROTARY["gpt_oss"],
        width(keys, 64),
        bias=True,
        qkv_bias=bias,
        out_bias=bias,
        sinks=True,
        window=one_window([window if on else None for on in sliding]),
        activation="clamped_swish",
        experts=Experts(keys.size(*COUNT, default=128), chosen, router_bias=True),
    )


def _check(keys: Keys) -> None:
    """BadInput for another gate, for other packed numbers, and where RoPE's scaling is left to the family's own."""
    for key, value in CLAMPED.items():
        keys.must(key, value)
    keys.must("hidden_act", "silu")
    quantised: dict[str, Any] = keys.get("quantization_config", dict, {})
    if quantised.get("quant_method", "mxfp4") != "mxfp4":
        raise BadInput(
            f"{keys.file}: quant_method is {quantised['quant_method']!r}; of gpt-oss only 'mxfp4' is decoded"
        )
    if not (keys.has("rope_parameters") or keys.has("rope_scaling")):
        raise BadInput(f"{keys.file} has no rope_scaling, for which this family has its own: say it")
    keys.must("initial_context_length", (keys.data.get("rope_scaling") or {}).get(LENGTH), None)


def write_config(c: ModelConfig) -> dict[str, Any]:
    """As gpt-oss."""
    experts, sliding = experts_of(c), sliding_keys(c)
    check_experts(c, normalised=True, router_bias=True)
    del sliding["use_sliding_window"]
    sliding["sliding_window"] = sliding["sliding_window"] or WINDOW  # of which that library always builds a mask
    told = write(
        c,
        "gpt_oss",
        "GptOssForCausalLM",
        ROTARY["gpt_oss"],
        attention_bias=bool(c.qkv_bias),
        **sliding,
        **CLAMPED,
        num_local_experts=experts.n_experts,
        num_experts_per_tok=experts.top_k,
        intermediate_size=experts.d_ff,
        hidden_act="silu",
    )
    return {"rope_scaling": {"rope_type": "default"}, **told}


FAMILY = Family(
    "gpt_oss",
    read_config,
    write_config,
    lines(
        ENDS,
        ATTENTION,
        line("model.layers.*.self_attn.sinks", "stack.blocks.*.attention.sinks"),
        line("model.layers.*.input_layernorm.weight", "stack.blocks.*.around_attention.norm.weight"),
        line("model.layers.*.post_attention_layernorm.weight", "stack.blocks.*.around_ffn.norm.weight"),
        module("model.layers.*.mlp.router", f"{FFN}.router"),
        *(
            line(
                f"model.layers.*.mlp.experts.{theirs}{kind}",
                *(f"{FFN}.experts.*.{o}.{leaf}" for o in ours),
                transform=PerExpert(len(ours)),
            )
            for theirs, ours in (("gate_up_proj", ("gate", "up")), ("down_proj", ("down",)))
            for kind, leaf in (("", "weight"), ("_bias", "bias"))
        ),
    ),
    prefix="model.",
    twins=TWINS,
    harmless=(INV_FREQ,),
)

__all__ = ["FAMILY"]
