"""Architectures of transformers as small random models."""

from collections.abc import Mapping
from typing import Any

import transformers

from cases.drawn import Case, drawn

transformers.utils.logging.disable_progress_bar()

VOCAB, LENGTH = 64, 64
SIZES: Mapping[str, Any] = {
    "vocab_size": VOCAB, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64,
    "max_position_embeddings": LENGTH, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2,
}  # fmt: skip
GROUPED: Mapping[str, Any] = {"num_key_value_heads": 2}
WIDE: Mapping[str, Any] = {"head_dim": 8, **GROUPED}


def _rope(kind: str, **more: Any) -> Mapping[str, Any]:
    return {**GROUPED, "rope_parameters": {"rope_type": kind, "rope_theta": 10000.0, **more}}


MIXED: Mapping[str, Any] = {"sliding_window": 4, "layer_types": ["sliding_attention", "full_attention"]}
SHORT, LONG = [1.0 + 0.1 * i for i in range(4)], [1.5 + 0.5 * i for i in range(4)]
DECODERS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "llama": ("Llama", GROUPED),
    "llama, linear": ("Llama", _rope("linear", factor=4.0)),
    "llama, dynamic": ("Llama", {**_rope("dynamic", factor=4.0), "max_position_embeddings": 16}),
    "llama, yarn": ("Llama", _rope("yarn", factor=4.0, original_max_position_embeddings=16)),
    "llama, longrope": (
        "Llama",
        _rope("longrope", factor=4.0, short_factor=SHORT, long_factor=LONG, original_max_position_embeddings=16),
    ),
    "llama, llama3": (
        "Llama",
        _rope("llama3", factor=4.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=16),
    ),
    "mistral, window 4": ("Mistral", {**GROUPED, "sliding_window": 4}),
    "mixtral": ("Mixtral", {**GROUPED, "num_local_experts": 4}),
    "qwen2": ("Qwen2", GROUPED),
    "qwen3": ("Qwen3", WIDE),
    "gemma": ("Gemma", WIDE),
    "gemma2, window 4": ("Gemma2", {**WIDE, "sliding_window": 4, "query_pre_attn_scalar": 8}),
    "gemma3, window 4": ("Gemma3Text", {**WIDE, "sliding_window": 4, "query_pre_attn_scalar": 8,
                                        "layer_types": ["sliding_attention", "full_attention"]}),
    "phi": ("Phi", {"partial_rotary_factor": 0.5}),
    "phi3": ("Phi3", GROUPED),
    "phi3, longrope": (
        "Phi3",
        {**_rope("longrope", short_factor=SHORT, long_factor=LONG), "original_max_position_embeddings": 16},
    ),
    "stablelm": ("StableLm", GROUPED),
    "starcoder2": ("Starcoder2", GROUPED),
    "olmo2": ("Olmo2", GROUPED),
    "cohere": ("Cohere", GROUPED),
    "smollm3": ("SmolLM3", GROUPED),
    "granite": ("Granite", GROUPED),
    "glm": ("Glm", WIDE),
    "gpt_neox": ("GPTNeoX", {}),
    "gpt2": ("GPT2", {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": LENGTH}),
    "gpt_neo, window 4": (
        "GPTNeo", {"num_layers": 2, "num_heads": 4, "attention_types": [[["global", "local"], 1]], "window_size": 4},
    ),
    "gptj": ("GPTJ", {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": LENGTH, "rotary_dim": 4}),
    "codegen": ("CodeGen", {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": LENGTH, "rotary_dim": 4}),
    "gpt_bigcode": ("GPTBigCode", {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": LENGTH}),
    "opt": ("OPT", {"ffn_dim": 64, "word_embed_proj_dim": 32}),
    "bloom": ("Bloom", {"n_layer": 2, "n_head": 4}),
    "falcon, alibi": ("Falcon", {"alibi": True, "new_decoder_architecture": False}),
    "falcon, rope": ("Falcon", {"alibi": False}),
    "mpt": ("Mpt", {"d_model": 32, "n_heads": 4, "n_layers": 2, "max_seq_len": LENGTH}),
    "xglm": ("XGLM", {"d_model": 32, "attention_heads": 4, "num_layers": 2, "ffn_dim": 64}),
    "biogpt": ("BioGpt", {}),
    "nemotron": ("Nemotron", GROUPED),
    "persimmon": ("Persimmon", {}),
    "gpt_neox_japanese": ("GPTNeoXJapanese", {"intermediate_multiple_size": 2}),
    "olmo": ("Olmo", GROUPED),
    "olmoe": ("Olmoe", {"num_experts": 4, "num_experts_per_tok": 2}),
    "gpt_oss, window 4": (
        "GptOss",
        {**WIDE, **MIXED, "num_local_experts": 4, "num_experts_per_tok": 2, **_rope("default")},
    ),
    "cohere2, window 4": ("Cohere2", {**GROUPED, **MIXED}),
    "exaone4, window 4": ("Exaone4", {**WIDE, **MIXED}),
    "ministral, window 4": ("Ministral", {**WIDE, "sliding_window": 4}),
    "helium": ("Helium", WIDE),
    "glm4": ("Glm4", WIDE),
    "bitnet": ("BitNet", GROUPED),
    "arcee": ("Arcee", GROUPED),
    "qwen3_moe": (
        "Qwen3Moe", {**WIDE, "num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 32},
    ),
    "doge": ("Doge", GROUPED),
    "seed_oss": ("SeedOss", WIDE),
    "apertus": ("Apertus", GROUPED),
    "ernie4_5": ("Ernie4_5", WIDE),
    "smollm3, rotary in one layer": ("SmolLM3", {**GROUPED, "no_rope_layers": [1, 0]}),
    "openai-gpt": ("OpenAIGPT", {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": LENGTH}),
    "ctrl": ("CTRL", {"n_embd": 32, "dff": 64, "n_layer": 2, "n_head": 4, "n_positions": LENGTH}),
}  # fmt: skip
#: encoders: architecture, settings
ENCODERS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "bert": ("Bert", {}),
    "roberta": ("Roberta", {"max_position_embeddings": LENGTH + 2, "pad_token_id": 1, "bos_token_id": 0}),
    "xlm-roberta": ("XLMRoberta", {"max_position_embeddings": LENGTH + 2, "pad_token_id": 1, "bos_token_id": 0}),
    "electra": ("Electra", {"embedding_size": 32}),
    "distilbert": ("DistilBert", {"dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 64}),
    "albert": ("Albert", {"embedding_size": 16}),
    "deberta-v2": (
        "DebertaV2",
        {"relative_attention": True, "pos_att_type": ["p2c", "c2p"], "position_buckets": 8,
         "max_relative_positions": -1, "position_biased_input": False, "norm_rel_ebd": "layer_norm"},
    ),
    "mpnet": ("MPNet", {"max_position_embeddings": LENGTH + 2, "pad_token_id": 1, "bos_token_id": 0}),
    "esm, rope": ("Esm", {"position_embedding_type": "rotary", "mask_token_id": 3, "pad_token_id": 1,
                          "emb_layer_norm_before": False, "token_dropout": False}),
    "camembert": ("Camembert", {"max_position_embeddings": LENGTH + 2, "pad_token_id": 1, "bos_token_id": 0}),
    "data2vec-text": ("Data2VecText", {"max_position_embeddings": LENGTH + 2, "pad_token_id": 1, "bos_token_id": 0}),
    "xmod": ("Xmod", {"max_position_embeddings": LENGTH + 2, "pad_token_id": 1, "bos_token_id": 0,
                      "languages": ["en"], "default_language": "en"}),
    "longformer, window 4": ("Longformer", {"attention_window": [4, 4], "max_position_embeddings": LENGTH + 2,
                                            "pad_token_id": 1, "bos_token_id": 0}),
    "roformer": ("RoFormer", {"embedding_size": 32}),
    "deberta": ("Deberta", {"relative_attention": True, "pos_att_type": ["p2c", "c2p"], "max_relative_positions": -1,
                            "position_biased_input": False}),
    "eurobert": ("EuroBert", GROUPED),
    "convbert": ("ConvBert", {"embedding_size": 32, "head_ratio": 2, "conv_kernel_size": 3}),
    "yoso": ("Yoso", {"max_position_embeddings": LENGTH + 2, "pad_token_id": 1}),
    "luke": ("Luke", {"entity_vocab_size": 8, "entity_emb_size": 8, "max_position_embeddings": LENGTH + 2,
                      "pad_token_id": 1}),
    "modernbert": ("ModernBert", {"cls_token_id": 1, "sep_token_id": 2, "local_attention": 8,
                                  "global_attn_every_n_layers": 2}),
}  # fmt: skip
SHARED: Mapping[str, Any] = {
    "d_model": 32, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4,
    "decoder_attention_heads": 4, "encoder_ffn_dim": 64, "decoder_ffn_dim": 64, "decoder_start_token_id": 2,
    "forced_eos_token_id": None,
}  # fmt: skip
PAIRS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "t5": ("T5ForConditionalGeneration", {"d_model": 32, "d_kv": 8, "d_ff": 64, "num_layers": 2, "num_heads": 4,
                                          "decoder_start_token_id": 0}),
    "mt5": ("MT5ForConditionalGeneration", {"d_model": 32, "d_kv": 8, "d_ff": 64, "num_layers": 2, "num_heads": 4,
                                            "decoder_start_token_id": 0}),
    "bart": ("BartForConditionalGeneration", SHARED),
    "mbart": ("MBartForConditionalGeneration", SHARED),
    "pegasus": ("PegasusForConditionalGeneration", SHARED),
    "marian": ("MarianMTModel", {**SHARED, "decoder_vocab_size": VOCAB}),
    "m2m100": ("M2M100ForConditionalGeneration", SHARED),
    "blenderbot": ("BlenderbotForConditionalGeneration", SHARED),
    "led": ("LEDForConditionalGeneration", {**SHARED, "attention_window": [4, 4], "max_encoder_position_embeddings": 64,
                                            "max_decoder_position_embeddings": 64}),
    "umt5": ("UMT5ForConditionalGeneration", {"d_model": 32, "d_kv": 8, "d_ff": 64, "num_layers": 2, "num_heads": 4,
                                              "decoder_start_token_id": 0}),
    "longt5": ("LongT5ForConditionalGeneration", {"d_model": 32, "d_kv": 8, "d_ff": 64, "num_layers": 2,
                                                  "num_heads": 4, "decoder_start_token_id": 0, "local_radius": 4}),
    "blenderbot-small": ("BlenderbotSmallForConditionalGeneration", SHARED),
    "nllb-moe": ("NllbMoeForConditionalGeneration", {**SHARED, "num_experts": 2}),
    "prophetnet": ("ProphetNetForConditionalGeneration", {
        "num_encoder_layers": 2, "num_decoder_layers": 2, "num_encoder_attention_heads": 4,
        "num_decoder_attention_heads": 4, "encoder_ffn_dim": 64, "decoder_ffn_dim": 64, "ngram": 2,
        "num_buckets": 8, "relative_max_distance": 16, "decoder_start_token_id": 0}),
}  # fmt: skip
#: model classes whose configuration is not named like them
CONFIGS = {
    "MarianMTModel": "MarianConfig", "Gemma3TextForCausalLM": "Gemma3TextConfig",
}  # fmt: skip
MODELS = {"Gemma3Text": "Gemma3ForCausalLM", "GPT2": "GPT2LMHeadModel", "CTRL": "CTRLLMHeadModel",
          "OpenAIGPT": "OpenAIGPTLMHeadModel"}  # fmt: skip


def _case(model: str, config: str, settings: Mapping[str, Any], attention: str) -> Case:
    def make() -> Any:
        sizes = {k: v for k, v in SIZES.items() if k != "num_hidden_layers" or "num_encoder_layers" not in settings}
        wanted = {**sizes, **settings}
        made = getattr(transformers, config)(**wanted, attn_implementation=attention)
        return drawn(lambda: getattr(transformers, model)(made))

    return make


def _causal(name: str, attention: str = "eager") -> Case:
    family, settings = DECODERS[name]
    return _case(MODELS.get(family, f"{family}ForCausalLM"), f"{family}Config", settings, attention)


def _masked(name: str) -> Case:
    family, settings = ENCODERS[name]
    return _case(f"{family}ForMaskedLM", f"{family}Config", settings, "eager")


def _pair(name: str) -> Case:
    model, settings = PAIRS[name]
    return _case(
        model, CONFIGS.get(model, f"{model.removesuffix('ForConditionalGeneration')}Config"), settings, "eager"
    )


CASES: Mapping[str, Case] = {
    **{name: _causal(name) for name in DECODERS},
    **{f"{name}, sdpa": _causal(name, "sdpa") for name in ("llama", "mistral, window 4", "gpt2", "gemma3, window 4")},
    **{name: _masked(name) for name in ENCODERS},
    **{name: _pair(name) for name in PAIRS},
}
