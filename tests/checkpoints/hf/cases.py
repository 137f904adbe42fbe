"""Tiny random models of the transformers library, several of each family, each made to show one thing that may differ.

Their norms and biases are drawn too: at their initial ones and zeros no mistake with them would show.
"""

from dataclasses import dataclass
from typing import Any

import torch
import transformers as hf

V, D, LAYERS = 101, 32, 2
TYPES = ("full_attention", "sliding_attention")


@dataclass(frozen=True)
class Case:
    """A family, what is particular about this model, the class with its head, and the settings of its config.

    That library imports the code of a family when its classes are first asked for: only a test that runs does so.
    """

    family: str
    what: str
    head: str
    settings: dict[str, Any]

    def __str__(self) -> str:
        return f"{self.family}: {self.what}"

    @property
    def config(self) -> Any:
        """Its config, made anew."""
        name = FAMILIES[self.family][0]
        return getattr(hf, f"{name}TextConfig" if self.family == "gemma3_text" else f"{name}Config")(**self.settings)

    @property
    def cls(self) -> Any:
        """The class of that library."""
        return getattr(hf, f"{FAMILIES[self.family][0]}{self.head}")

    def model(self) -> Any:
        """The model, drawn."""
        torch.manual_seed(5)
        return drawn(self.cls(self.config)).eval()


def drawn(model: Any) -> Any:
    """Every weight at a size that keeps logits of a few units; norms around 1 (Gemma's around 0), biases around 0."""
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if not weight.requires_grad:  # a table of sinusoids
                continue
            if weight.dim() == 1 or name.endswith("proj_bias"):
                centre = weight.mean().round()  # 1 for the weight of a norm, 0 for a bias
                weight.copy_(centre + 0.3 * torch.randn_like(weight))
            elif "relative_attention_bias" in name:
                weight.normal_()
            else:
                weight.normal_(
                    std=0.6 if "embed" in name or "wte" in name or "shared" in name else weight.shape[-1] ** -0.5
                )
        for name, buffer in model.named_buffers():
            if name == "final_logits_bias":
                buffer.normal_()
    return model


#: sizes by the names that most configs use, those of GPT-2, of MPT, of T5, and of BART and Marian
SIZES = {
    "vocab_size": V, "hidden_size": D, "intermediate_size": 48, "num_hidden_layers": LAYERS, "num_attention_heads": 4,
    "max_position_embeddings": 64, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2,
}  # fmt: skip
GPT2 = {
    "vocab_size": V,
    "n_embd": D,
    "n_layer": LAYERS,
    "n_head": 4,
    "n_positions": 64,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
BLOOM = {"vocab_size": V, "hidden_size": D, "n_layer": LAYERS, "n_head": 4, "pad_token_id": 0}
MPT = {"vocab_size": V, "d_model": D, "n_layers": LAYERS, "n_heads": 4, "max_seq_len": 64}
DEBERTA = {
    "relative_attention": True, "position_buckets": 8, "pos_att_type": ["p2c", "c2p"], "share_att_key": True,
    "norm_rel_ebd": "layer_norm", "position_biased_input": False,
}  # fmt: skip
DISTILBERT = {
    "vocab_size": V, "dim": D, "n_layers": LAYERS, "n_heads": 4, "hidden_dim": 48, "max_position_embeddings": 64,
}  # fmt: skip
T5 = {
    "vocab_size": V, "d_model": D, "d_ff": 48, "num_layers": LAYERS, "num_heads": 4, "d_kv": 8,
    "decoder_start_token_id": 0, "relative_attention_num_buckets": 8, "relative_attention_max_distance": 20,
}  # fmt: skip
BART = {
    "vocab_size": V, "d_model": D, "encoder_layers": LAYERS, "decoder_layers": 1, "encoder_attention_heads": 4,
    "decoder_attention_heads": 4, "encoder_ffn_dim": 48, "decoder_ffn_dim": 48, "max_position_embeddings": 64,
    "pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2, "decoder_start_token_id": 2, "forced_eos_token_id": None,
}  # fmt: skip
NEO = {name: size for name, size in SIZES.items() if not name.startswith("num_")}
NEO |= {"num_layers": LAYERS, "num_heads": 4, "window_size": 7, "attention_types": [[["global", "local"], 1]]}
OPT = {name: size for name, size in SIZES.items() if name != "intermediate_size"} | {"ffn_dim": 48}
FALCON = {name: size for name, size in OPT.items() if name != "ffn_dim"} | {"ffn_hidden_size": 48}
LATE = {"pad_token_id": 1, "max_position_embeddings": 66}  # whose positions begin with row 2
GQA = {"num_key_value_heads": 2}
MARKED = dict.fromkeys(("cls_token_id", "sep_token_id"), 1)
FEW = {"num_experts": 5, "num_experts_per_tok": 2}
SPARSE = FEW | {"moe_intermediate_size": 20}
#: family -> what its classes are called, the class with a head, and sizes
FAMILIES: dict[str, tuple[str, str, dict[str, Any]]] = {
    "llama": ("Llama", "ForCausalLM", SIZES),
    "gpt2": ("GPT2", "LMHeadModel", GPT2),
    "mistral": ("Mistral", "ForCausalLM", SIZES),
    "qwen2": ("Qwen2", "ForCausalLM", SIZES | GQA),
    "qwen3": ("Qwen3", "ForCausalLM", SIZES | GQA | {"head_dim": 12}),
    "smollm3": ("SmolLM3", "ForCausalLM", SIZES | GQA),
    "gpt_neox": ("GPTNeoX", "ForCausalLM", SIZES),
    "bloom": ("Bloom", "ForCausalLM", BLOOM),
    "mpt": ("Mpt", "ForCausalLM", MPT),
    "opt": ("OPT", "ForCausalLM", OPT),
    "gemma3_text": ("Gemma3", "ForCausalLM", SIZES | GQA | {"head_dim": 12, "sliding_window": 8}),
    "phi3": ("Phi3", "ForCausalLM", SIZES),
    "bert": ("Bert", "ForMaskedLM", SIZES),
    "roberta": ("Roberta", "ForMaskedLM", SIZES | LATE | {"type_vocab_size": 1}),
    "t5": ("T5", "ForConditionalGeneration", T5),
    "bart": ("Bart", "ForConditionalGeneration", BART),
    "marian": ("Marian", "MTModel", BART),
    "gpt_bigcode": ("GPTBigCode", "ForCausalLM", GPT2),
    "gpt_neo": ("GPTNeo", "ForCausalLM", NEO),
    "gemma": ("Gemma", "ForCausalLM", SIZES | GQA | {"head_dim": 12}),
    "starcoder2": ("Starcoder2", "ForCausalLM", SIZES | GQA),
    "phi": ("Phi", "ForCausalLM", SIZES),
    "gptj": ("GPTJ", "ForCausalLM", GPT2 | {"rotary_dim": 4}),
    "falcon": ("Falcon", "ForCausalLM", FALCON),
    "stablelm": ("StableLm", "ForCausalLM", SIZES | GQA),
    "cohere": ("Cohere", "ForCausalLM", SIZES | GQA),
    "gemma2": ("Gemma2", "ForCausalLM", SIZES | GQA | {"head_dim": 12, "sliding_window": 8}),
    "granite": ("Granite", "ForCausalLM", SIZES | GQA),
    "olmo2": ("Olmo2", "ForCausalLM", SIZES | GQA),
    "exaone4": ("Exaone4", "ForCausalLM", SIZES | GQA),
    "glm4": ("Glm4", "ForCausalLM", SIZES | GQA | {"head_dim": 12}),
    "ernie4_5": ("Ernie4_5", "ForCausalLM", SIZES | GQA | {"head_dim": 12}),
    "xlm-roberta": ("XLMRoberta", "ForMaskedLM", SIZES | LATE | {"type_vocab_size": 1}),
    "camembert": ("Camembert", "ForMaskedLM", SIZES | LATE | {"type_vocab_size": 1}),
    "distilbert": ("DistilBert", "ForMaskedLM", DISTILBERT),
    "mt5": ("MT5", "ForConditionalGeneration", T5),
    "umt5": ("UMT5", "ForConditionalGeneration", T5),
    "mbart": ("MBart", "ForConditionalGeneration", BART),
    "pegasus": ("Pegasus", "ForConditionalGeneration", BART),
    "cohere2": ("Cohere2", "ForCausalLM", SIZES | GQA | {"sliding_window": 7}),
    "olmo3": ("Olmo3", "ForCausalLM", SIZES | GQA | {"sliding_window": 7}),
    "m2m_100": ("M2M100", "ForConditionalGeneration", BART),
    "electra": ("Electra", "ForMaskedLM", SIZES | {"embedding_size": 20}),
    "albert": ("Albert", "ForMaskedLM", SIZES | {"embedding_size": 20}),
    "mpnet": ("MPNet", "ForMaskedLM", SIZES | LATE),
    "deberta-v2": ("DebertaV2", "ForMaskedLM", SIZES | DEBERTA),
    "modernbert": ("ModernBert", "ForMaskedLM", SIZES | {"local_attention": 12} | MARKED),
    "mixtral": ("Mixtral", "ForCausalLM", SIZES | GQA | {"num_local_experts": 5}),
    "qwen2_moe": ("Qwen2Moe", "ForCausalLM", SIZES | GQA | SPARSE | {"shared_expert_intermediate_size": 24}),
    "qwen3_moe": ("Qwen3Moe", "ForCausalLM", SIZES | GQA | SPARSE | {"head_dim": 12}),
    "gpt_oss": ("GptOss", "ForCausalLM", SIZES | GQA | FEW | {"head_dim": 12, "sliding_window": 7}),
    "olmoe": ("Olmoe", "ForCausalLM", SIZES | GQA | FEW),
}  # fmt: skip


def case(family: str, what: str, head: str | None = None, **settings: Any) -> Case:
    """A model of a family, with settings of its config."""
    _, usual, sizes = FAMILIES[family]
    return Case(family, what, head or usual, {**sizes, **settings})


def rope(kind: str = "default", **settings: Any) -> dict[str, Any]:
    """The settings of RoPE, as that library writes them since version 5."""
    return {"rope_type": kind, "rope_theta": 10000.0, **settings}


LLAMA3 = rope("llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=32)
YARN = rope("yarn", factor=4.0, original_max_position_embeddings=16)
SLOW_STILL = rope("proportional", partial_rotary_factor=0.5, factor=2.0)
CUT = YARN | {"truncate": False, "mscale": 1.0, "mscale_all_dim": 0.8}
LONG = rope("longrope", short_factor=[1.0, 1.1, 1.2, 1.4], long_factor=[1.0, 2.0, 4.0, 8.0], attention_factor=1.2)
TWO_ROPES = {TYPES[0]: rope("linear", factor=2.0), TYPES[1]: rope(rope_theta=100.0)}
STILL_FAR = {TYPES[0]: rope("proportional", partial_rotary_factor=0.4), TYPES[1]: rope()}
SWITCHED = {"use_sliding_window": True, "sliding_window": 9}
ALIKE = {"tie_word_embeddings": True}
APART = {"tie_word_embeddings": False}

DECODERS = [
    case("llama", "one key for two queries", **GQA),
    case("llama", "one key for all", num_key_value_heads=1, **ALIKE),
    case("llama", "biases, tied", attention_bias=True, mlp_bias=True, **ALIKE, **GQA),
    case("llama", "five heads, none shared", num_attention_heads=5, head_dim=6, hidden_size=30),
    case("llama", "another base", rope_parameters=rope(rope_theta=500000.0)),
    case("llama", "linear scaling", rope_parameters=rope("linear", factor=4.0)),
    case("llama", "dynamic scaling, within its length", rope_parameters=rope("dynamic", factor=2.0)),
    case("llama", "YaRN", rope_parameters=YARN, **GQA),
    case("llama", "YaRN without whole ends", rope_parameters=CUT),
    case("llama", "Llama-3 scaling", rope_parameters=LLAMA3, **GQA),
    case("llama", "half of the pairs stand still", rope_parameters=SLOW_STILL),
    case("gpt2", "tied"),
    case("gpt2", "own head, another width", n_head=2, n_inner=40, **APART),
    case("gpt2", "eight heads, relu", n_head=8, activation_function="relu"),
    case("mistral", "a window", sliding_window=7, **GQA),
    case("mistral", "no window, tied", sliding_window=None, head_dim=12, num_key_value_heads=4, **ALIKE),
    case("qwen2", "own head"),
    case("qwen2", "tied, a window above", max_window_layers=1, **SWITCHED, **ALIKE),
    case("qwen3", "own head"),
    case("qwen3", "tied, biases, YaRN", attention_bias=True, rope_parameters=YARN, **ALIKE),
    case("smollm3", "every other layer without position", no_rope_layer_interval=2),
    case("smollm3", "three layers, windows", num_hidden_layers=3, no_rope_layers=[0, 1, 0], **SWITCHED, **APART),
    case("gpt_neox", "side by side", rope_parameters=rope(partial_rotary_factor=0.25)),
    case("gpt_neox", "one after the other", use_parallel_residual=False, attention_bias=False, **ALIKE),
    case("gpt_neox", "all rotated", rope_parameters=rope(partial_rotary_factor=1.0)),
    case("bloom", "four heads"),
    case("bloom", "six heads, own head", hidden_size=36, n_head=6, **APART),
    case("mpt", "four heads"),
    case("mpt", "three heads, another scale", d_model=30, n_heads=3, attn_config={"softmax_scale": 0.3}),
    case("opt", "tied"),
    case("opt", "norms after, own head, gelu", do_layer_norm_before=False, activation_function="gelu", **APART),
    case("gemma3_text", "a window below", query_pre_attn_scalar=24, layer_types=list(TYPES)[::-1]),
    case("gemma3_text", "scaled far, biases", attention_bias=True, rope_parameters=TWO_ROPES, layer_types=list(TYPES)),
    case("gemma3_text", "far pairs stand still", rope_parameters=STILL_FAR, layer_types=list(TYPES)),
    case("phi3", "own head", **GQA),
    case("phi3", "half rotated, a window", sliding_window=9, rope_parameters=rope(partial_rotary_factor=0.5), **ALIKE),
    case("phi3", "LongRoPE", original_max_position_embeddings=16, rope_parameters=LONG, **GQA),
]
DECODERS += [
    case("gpt_bigcode", "one key for all"),
    case("gpt_bigcode", "a key for each, own head", multi_query=False, n_inner=40, **APART),
    case("gpt_bigcode", "unscaled, relu", scale_attn_weights=False, activation_function="relu"),
    case("gpt_neo", "a window above"),
    case("gpt_neo", "windows everywhere, own head", attention_types=[[["local"], 2]], window_size=5, **APART),
    case("gemma", "one key for two queries"),
    case("gemma", "biases, own head, linear", attention_bias=True, rope_parameters=rope("linear", factor=2.0), **APART),
    case("starcoder2", "tied"),
    case("starcoder2", "a window, no biases, own head", sliding_window=7, use_bias=False, **APART),
]
MULTIPLIED = {"embedding_multiplier": 3.0, "attention_multiplier": 0.3, "residual_multiplier": 0.4}
HALF = rope(partial_rotary_factor=0.5)
DECODERS += [
    case("phi", "half rotated", rope_parameters=HALF),
    case("phi", "all rotated, tied, shared keys", rope_parameters=rope(partial_rotary_factor=1.0), **ALIKE, **GQA),
    case("gptj", "half rotated"),
    case("gptj", "all rotated, tied", rotary_dim=8, n_inner=40, **ALIKE),
    case("falcon", "older, one key for all"),
    case("falcon", "older, a key for each, in turn, biases", multi_query=False, parallel_attn=False, bias=True),
    case("falcon", "newer, groups", new_decoder_architecture=True, num_kv_heads=2, **APART),
    case("falcon", "newer, one norm", new_decoder_architecture=True, num_kv_heads=2, num_ln_in_parallel_attn=1),
    case("stablelm", "a quarter rotated", rope_parameters=rope(partial_rotary_factor=0.25)),
    case("stablelm", "side by side, biases", use_parallel_residual=True, use_qkv_bias=True, rope_parameters=HALF),
    case("cohere", "scaled logits"),
    case("cohere", "biases, own head", attention_bias=True, logit_scale=0.5, **APART),
    case("gemma2", "a window below", query_pre_attn_scalar=24),
    case("gemma2", "a window above, no caps", layer_types=list(TYPES), final_logit_softcapping=None,
         attn_logit_softcapping=None, query_pre_attn_scalar=16),
    case("gemma2", "small caps", final_logit_softcapping=2.0, attn_logit_softcapping=1.5, attention_bias=True),
    case("granite", "multiplied", logits_scaling=3.0, **MULTIPLIED),
    case("granite", "multiplied, tied, biases", logits_scaling=0.7, attention_bias=True, mlp_bias=True, **MULTIPLIED,
         **ALIKE),
    case("olmo2", "shared keys"),
    case("olmo2", "biases, tied", attention_bias=True, num_key_value_heads=4, **ALIKE),
    case("exaone4", "a window below", layer_types=list(TYPES)[::-1], sliding_window=7),
    case("exaone4", "no window, tied", layer_types=[TYPES[0]] * 2, sliding_window=None, **ALIKE),
    case("glm4", "half rotated", rope_parameters=HALF),
    case("glm4", "all rotated, no biases", attention_bias=False, rope_parameters=rope(partial_rotary_factor=1.0)),
    case("ernie4_5", "tied"),
    case("ernie4_5", "biases, own head", use_bias=True, **APART),
]  # fmt: skip
ONE_DENSE = {"num_hidden_layers": 3, "mlp_only_layers": [1]}
DECODERS += [
    case("mixtral", "two of five experts"),
    case("mixtral", "three of four, a window, tied", num_local_experts=4, num_experts_per_tok=3, sliding_window=7,
         **ALIKE),
    case("qwen2_moe", "a shared expert"),
    case("qwen2_moe", "a layer without, a window below, normalised", norm_topk_prob=True, max_window_layers=2,
         **ONE_DENSE, **SWITCHED),
    case("qwen3_moe", "not normalised"),
    case("qwen3_moe", "every other layer without, normalised, a window, biases", decoder_sparse_step=2,
         norm_topk_prob=True, attention_bias=True, **SWITCHED, **ALIKE),
    case("gpt_oss", "a window below", rope_parameters=CUT | {"rope_theta": 150000.0}),
    case("gpt_oss", "no window, no biases in attention", layer_types=[TYPES[0]] * 2, attention_bias=False,
         rope_parameters=rope(), **ALIKE),
    case("cohere2", "a window below", layer_types=list(TYPES)[::-1]),
    case("cohere2", "two of three layers, biases, own head", num_hidden_layers=3, attention_bias=True,
         layer_types=[TYPES[1], TYPES[0], TYPES[1]], logit_scale=0.5, **APART),
    case("olmo3", "a window below", layer_types=list(TYPES)[::-1]),
    case("olmo3", "scaled above, biases, tied", attention_bias=True, num_key_value_heads=4, **ALIKE,
         layer_types=list(TYPES)[::-1], rope_parameters={TYPES[0]: YARN, TYPES[1]: rope(rope_theta=5e5)}),
    case("olmoe", "not normalised"),
    case("olmoe", "normalised, biases, tied", norm_topk_prob=True, attention_bias=True, num_key_value_heads=4, **ALIKE),
]  # fmt: skip
HEADS = ("ForMaskedLM", "Model", "ForTokenClassification", "ForSequenceClassification")
ENCODERS = [
    *(case(family, head, head, num_labels=3) for family in ("bert", "roberta") for head in HEADS),
    *(case(family, head, head, num_labels=3) for family in ("xlm-roberta", "camembert") for head in HEADS[::3]),
    case("distilbert", "ForMaskedLM"),
    case("distilbert", "ForTokenClassification", "ForTokenClassification", num_labels=3),
    case("distilbert", "own head", **APART),
    case("bert", "own head", **APART),
    case("bert", "eight heads, relu", "Model", num_attention_heads=8, hidden_act="relu"),
]
ENCODERS += [
    *(case(family, head, head, num_labels=3) for family in ("electra", "albert", "mpnet") for head in HEADS),
    *(case("deberta-v2", head, head, num_labels=3) for head in HEADS),
    case(
        "deberta-v2",
        "every distance, no norm, types, own head",
        position_buckets=-1,
        max_relative_positions=6,
        norm_rel_ebd="none",
        type_vocab_size=2,
        **APART,
    ),
    case("deberta-v2", "queries alone, relu", pos_att_type="c2p", hidden_act="relu", pooler_hidden_act="relu"),
    case("electra", "as wide as its layers, own head", embedding_size=D, hidden_act="relu", **APART),
    case("albert", "two groups of two layers, relu", num_hidden_layers=4, num_hidden_groups=2, hidden_act="relu"),
    case("distilbert", "ForSequenceClassification", "ForSequenceClassification", num_labels=3),
    case("bert", "another activation", hidden_act="silu"),
    case("modernbert", "a window above"),
    case(
        "modernbert",
        "biases, two windows, own head",
        num_hidden_layers=3,
        norm_bias=True,
        mlp_bias=True,
        attention_bias=True,
        classifier_bias=True,
        hidden_activation="silu",
        classifier_activation="relu",
        **APART,
    ),
    case("modernbert", "Model", "Model", layer_types=list(TYPES)[::-1]),
]
ENCODER_DECODERS = [
    case("t5", "1.0"),
    case("t5", "1.0, three wide heads", num_heads=3, d_kv=12),
    case("t5", "1.1", feed_forward_proj="gated-gelu", num_decoder_layers=1, **APART),
    case("bart", "scaled", scale_embedding=True),
    case("bart", "relu", activation_function="relu"),
    case("marian", "scaled, swish", scale_embedding=True, activation_function="swish"),
    case("marian", "one layer", encoder_layers=1),
    case("mt5", "gated"),
    case("mt5", "relu, one layer", feed_forward_proj="relu", num_decoder_layers=1),
    case("umt5", "a table for each layer", **APART),
    case("umt5", "relu, scaled, one layer", feed_forward_proj="relu", num_decoder_layers=1),
    case("mbart", "scaled", scale_embedding=True),
    case("mbart", "relu", activation_function="relu"),
    case("pegasus", "scaled, relu", scale_embedding=True, activation_function="relu"),
    case("pegasus", "one layer", encoder_layers=1),
    case("m2m_100", "scaled, relu"),
    case(
        "m2m_100",
        "another padding, gelu",
        scale_embedding=False,
        activation_function="gelu",
        pad_token_id=0,
        bos_token_id=1,
    ),
]
ALL = [*DECODERS, *ENCODERS, *ENCODER_DECODERS]
