"""Configs as they were published, key by key: all of each is understood, and the model has the published size."""

import pytest

from gnomon.checkpoints.hf.keys import Keys
from gnomon.checkpoints.hf.registry import family_of
from gnomon.models.meta import build_on_meta

COMMON = {"use_cache": True, "torch_dtype": "bfloat16", "transformers_version": "4.40.0", "bos_token_id": 1}
LLAMA_LIKE = {
    "attention_dropout": 0.0, "hidden_act": "silu", "initializer_range": 0.02, "rms_norm_eps": 1e-05, "eos_token_id": 2
} | COMMON  # fmt: skip
QWEN = {"max_window_layers": 28, "use_sliding_window": False, "rope_theta": 1000000.0, "tie_word_embeddings": True}
MARIAN_LIKE = {
    "activation_dropout": 0.0, "add_bias_logits": False, "add_final_layer_norm": False, "attention_dropout": 0.0,
    "classif_dropout": 0.1, "classifier_dropout": 0.0, "decoder_layerdrop": 0.0, "dropout": 0.1, "init_std": 0.02,
    "encoder_layerdrop": 0.0, "is_encoder_decoder": True, "normalize_before": False, "num_beams": 4,
    "num_hidden_layers": 6,
} | COMMON  # fmt: skip
T5_LIKE = {
    "architectures": ["T5ForConditionalGeneration"], "d_kv": 64, "d_model": 512, "decoder_start_token_id": 0,
    "dropout_rate": 0.1, "eos_token_id": 1, "initializer_factor": 1.0, "is_encoder_decoder": True, "n_positions": 512,
    "layer_norm_epsilon": 1e-06, "output_past": True, "pad_token_id": 0, "relative_attention_num_buckets": 32,
    "task_specific_params": {"summarization": {"early_stopping": True, "length_penalty": 2.0, "prefix": "summarize: "}},
    "vocab_size": 32128, "model_type": "t5",
} | COMMON  # fmt: skip
BERT_LIKE = {
    "attention_probs_dropout_prob": 0.1, "hidden_act": "gelu", "hidden_dropout_prob": 0.1, "hidden_size": 768,
    "initializer_range": 0.02, "intermediate_size": 3072, "num_attention_heads": 12, "num_hidden_layers": 12,
    "position_embedding_type": "absolute", "gradient_checkpointing": False,
} | COMMON  # fmt: skip

PUBLISHED = {
    "gpt2": (124_439_808, [], {
        "activation_function": "gelu_new", "architectures": ["GPT2LMHeadModel"], "attn_pdrop": 0.1, "embd_pdrop": 0.1,
        "initializer_range": 0.02, "layer_norm_epsilon": 1e-05, "model_type": "gpt2", "n_ctx": 1024, "n_embd": 768,
        "n_head": 12, "n_layer": 12, "n_positions": 1024, "resid_pdrop": 0.1, "summary_activation": None,
        "summary_first_dropout": 0.1, "summary_proj_to_labels": True, "summary_type": "cls_index",
        "summary_use_proj": True, "task_specific_params": {"text-generation": {"max_length": 50}}, "vocab_size": 50257,
    }),
    "Llama-3.2-1B": (1_235_814_400, [], {
        "architectures": ["LlamaForCausalLM"], "attention_bias": False, "head_dim": 64, "hidden_size": 2048,
        "intermediate_size": 8192, "max_position_embeddings": 131072, "mlp_bias": False, "model_type": "llama",
        "num_attention_heads": 32, "num_hidden_layers": 16, "num_key_value_heads": 8, "pretraining_tp": 1,
        "rope_scaling": {
            "factor": 32.0, "high_freq_factor": 4.0, "low_freq_factor": 1.0, "rope_type": "llama3",
            "original_max_position_embeddings": 8192,
        },
        "rope_theta": 500000.0, "tie_word_embeddings": True, "vocab_size": 128256, **LLAMA_LIKE,
    }),
    "SmolLM2-135M": (134_515_008, [], {
        "architectures": ["LlamaForCausalLM"], "attention_bias": False, "hidden_size": 576, "intermediate_size": 1536,
        "is_llama_config": True, "max_position_embeddings": 8192, "mlp_bias": False, "model_type": "llama",
        "num_attention_heads": 9, "num_hidden_layers": 30, "num_key_value_heads": 3, "rope_interleaved": False,
        "rope_scaling": None, "rope_theta": 100000, "tie_word_embeddings": True, "vocab_size": 49152, **LLAMA_LIKE,
    }),
    "Mistral-7B-v0.1": (7_241_732_096, [], {
        "architectures": ["MistralForCausalLM"], "hidden_size": 4096, "intermediate_size": 14336,
        "max_position_embeddings": 32768, "model_type": "mistral", "num_attention_heads": 32, "num_hidden_layers": 32,
        "num_key_value_heads": 8, "rope_theta": 10000.0, "sliding_window": 4096, "tie_word_embeddings": False,
        "vocab_size": 32000, **LLAMA_LIKE,
    }),
    "Qwen2.5-0.5B": (494_032_768, [], {
        "architectures": ["Qwen2ForCausalLM"], "hidden_size": 896, "intermediate_size": 4864, "use_mrope": False,
        "max_position_embeddings": 32768, "model_type": "qwen2", "num_attention_heads": 14, "num_hidden_layers": 24,
        "num_key_value_heads": 2, "sliding_window": 32768, "vocab_size": 151936, **LLAMA_LIKE, **QWEN,
    }),
    "Qwen3-0.6B": (596_049_920, [], {
        "architectures": ["Qwen3ForCausalLM"], "attention_bias": False, "head_dim": 128, "hidden_size": 1024,
        "intermediate_size": 3072, "max_position_embeddings": 40960, "model_type": "qwen3", "num_attention_heads": 16,
        "num_hidden_layers": 28, "num_key_value_heads": 8, "rope_scaling": None, "sliding_window": None,
        "vocab_size": 151936, **LLAMA_LIKE, **QWEN,
    }),
    "SmolLM3-3B": (3_075_098_624, [], {
        "architectures": ["SmolLM3ForCausalLM"], "attention_bias": False, "hidden_size": 2048,
        "intermediate_size": 11008, "max_position_embeddings": 65536, "max_window_layers": 28, "mlp_bias": False,
        "layer_types": ["full_attention"] * 36, "model_type": "smollm3", "no_rope_layer_interval": 4,
        "no_rope_layers": [1, 1, 1, 0] * 9, "num_attention_heads": 16, "num_hidden_layers": 36,
        "num_key_value_heads": 4, "pad_token_id": 128004, "pretraining_tp": 2, "rope_scaling": None,
        "rope_theta": 5000000.0, "sliding_window": None, "use_sliding_window": False, "vocab_size": 128256,
        **LLAMA_LIKE,
    }),
    "gemma-3-1b": (999_885_952, [], {
        "architectures": ["Gemma3ForCausalLM"], "attention_bias": False, "attention_dropout": 0.0,
        "attn_logit_softcapping": None, "cache_implementation": "hybrid", "eos_token_id": [1, 106],
        "final_logit_softcapping": None, "head_dim": 256, "hidden_activation": "gelu_pytorch_tanh",
        "hidden_size": 1152, "initializer_range": 0.02, "intermediate_size": 6912, "max_position_embeddings": 32768,
        "model_type": "gemma3_text", "num_attention_heads": 4, "num_hidden_layers": 26, "num_key_value_heads": 1,
        "query_pre_attn_scalar": 256, "rms_norm_eps": 1e-06, "rope_local_base_freq": 10000, "rope_scaling": None,
        "rope_theta": 1000000, "sliding_window": 512, "sliding_window_pattern": 6, "vocab_size": 262144,
    }),
    "Phi-3-mini-4k": (3_821_079_552, [], {
        "architectures": ["Phi3ForCausalLM"], "attention_bias": False, "embd_pdrop": 0.0, "hidden_size": 3072,
        "auto_map": {"AutoConfig": "configuration_phi3.Phi3Config"}, "intermediate_size": 8192,
        "max_position_embeddings": 4096, "model_type": "phi3", "num_attention_heads": 32, "num_hidden_layers": 32,
        "num_key_value_heads": 32, "original_max_position_embeddings": 4096, "pad_token_id": 32000, "resid_pdrop": 0.0,
        "rope_scaling": None, "rope_theta": 10000.0, "sliding_window": 2047, "tie_word_embeddings": False,
        "vocab_size": 32064, **LLAMA_LIKE,
    }),
    "Phi-4-mini": (3_836_021_760, [], {
        "architectures": ["Phi3ForCausalLM"], "attention_bias": False, "embd_pdrop": 0.0, "full_attn_mod": 1,
        "hidden_size": 3072, "intermediate_size": 8192, "interpolate_factor": 1, "lm_head_bias": False,
        "max_position_embeddings": 131072, "mlp_bias": False, "model_type": "phi3", "num_attention_heads": 24,
        "num_hidden_layers": 32, "num_key_value_heads": 8, "original_max_position_embeddings": 4096,
        "partial_rotary_factor": 0.75, "resid_pdrop": 0.0, "rope_theta": 10000.0, "sliding_window": 262144,
        "rope_scaling": {"long_factor": [1.0] * 47 + [32.0], "short_factor": [1.0] * 48, "type": "longrope"},
        "tie_word_embeddings": True, "vocab_size": 200064, **LLAMA_LIKE,
    }),
    "pythia-70m": (70_426_624, [], {
        "architectures": ["GPTNeoXForCausalLM"], "hidden_act": "gelu", "hidden_size": 512, "initializer_range": 0.02,
        "intermediate_size": 2048, "layer_norm_eps": 1e-05, "max_position_embeddings": 2048, "model_type": "gpt_neox",
        "num_attention_heads": 8, "num_hidden_layers": 6, "rotary_emb_base": 10000, "rotary_pct": 0.25,
        "tie_word_embeddings": False, "use_parallel_residual": True, "vocab_size": 50304, **COMMON,
    }),
    "bloom-560m": (559_214_592, [], {
        "apply_residual_connection_post_layernorm": False, "architectures": ["BloomForCausalLM"],
        "attention_dropout": 0.0, "attention_softmax_in_fp32": True, "bias_dropout_fusion": True,
        "hidden_dropout": 0.0, "initializer_range": 0.02, "layer_norm_epsilon": 1e-05, "masked_softmax_fusion": True,
        "model_type": "bloom", "n_embed": 1024, "n_inner": None, "n_layer": 24, "num_attention_heads": 16,
        "offset_alibi": 100, "pad_token_id": 3, "pretraining_tp": 1, "seq_length": 2048, "skip_bias_add": True,
        "skip_bias_add_qkv": False, "slow_but_exact": False, "unk_token_id": 0, "vocab_size": 250880, **COMMON,
    }),
    "mpt-7b": (6_649_286_656, [], {
        "architectures": ["MPTForCausalLM"],
        "attn_config": {
            "alibi": True, "alibi_bias_max": 8, "attn_impl": "torch", "attn_pdrop": 0, "prefix_lm": False,
            "attn_type": "multihead_attention", "attn_uses_sequence_id": False, "clip_qkv": None, "qk_ln": False,
            "softmax_scale": None,
        },
        "auto_map": {"AutoConfig": "configuration_mpt.MPTConfig"}, "d_model": 4096, "emb_pdrop": 0,
        "embedding_fraction": 1.0, "expansion_ratio": 4, "init_config": {"init_std": 0.02, "name": "kaiming_normal_"},
        "init_device": "cpu", "learned_pos_emb": True, "logit_scale": None, "max_seq_len": 2048, "model_type": "mpt",
        "n_heads": 32, "n_layers": 32, "no_bias": True, "norm_type": "low_precision_layernorm", "resid_pdrop": 0,
        "tokenizer_name": "EleutherAI/gpt-neox-20b", "verbose": 0, "vocab_size": 50432, **COMMON,
    }),
    "opt-125m": (125_239_296, [], {
        "_remove_final_layer_norm": False, "activation_dropout": 0.0, "activation_function": "relu",
        "architectures": ["OPTForCausalLM"], "attention_dropout": 0.0, "do_layer_norm_before": True, "dropout": 0.1,
        "ffn_dim": 3072, "hidden_size": 768, "init_std": 0.02, "layerdrop": 0.0, "max_position_embeddings": 2048,
        "model_type": "opt", "num_attention_heads": 12, "num_hidden_layers": 12, "pad_token_id": 1, "prefix": "</s>",
        "vocab_size": 50272, "word_embed_proj_dim": 768, **COMMON,
    }),
    "bert-base-uncased": (109_514_298, [], {
        "architectures": ["BertForMaskedLM"], "layer_norm_eps": 1e-12, "max_position_embeddings": 512,
        "model_type": "bert", "pad_token_id": 0, "type_vocab_size": 2, "vocab_size": 30522, **BERT_LIKE,
    }),
    "roberta-base": (124_697_433, [], {
        "architectures": ["RobertaForMaskedLM"], "eos_token_id": 2, "layer_norm_eps": 1e-05, "type_vocab_size": 1,
        "max_position_embeddings": 514, "model_type": "roberta", "pad_token_id": 1, "vocab_size": 50265, **BERT_LIKE,
    }),
    "t5-small": (60_506_624, [], {**T5_LIKE, "d_ff": 2048, "num_heads": 8, "num_layers": 6}),
    "flan-t5-small": (76_961_152, ["lm_head.weight"], {
        **T5_LIKE, "d_ff": 1024, "feed_forward_proj": "gated-gelu", "is_gated_act": True, "dense_act_fn": "gelu_new",
        "num_heads": 6, "num_layers": 8, "num_decoder_layers": 8, "relative_attention_max_distance": 128,
        "tie_word_embeddings": False,
    }),
    "bart-base": (139_420_416, [], {
        "activation_function": "gelu", "architectures": ["BartModel"], "d_model": 768, "decoder_attention_heads": 12,
        "decoder_ffn_dim": 3072, "decoder_layers": 6, "decoder_start_token_id": 2, "encoder_attention_heads": 12,
        "encoder_ffn_dim": 3072, "encoder_layers": 6, "forced_bos_token_id": 0, "forced_eos_token_id": 2,
        "max_position_embeddings": 1024, "model_type": "bart", "no_repeat_ngram_size": 3, "normalize_embedding": True,
        "scale_embedding": False, "vocab_size": 50265, **MARIAN_LIKE,
    }),
    "opus-mt-en-de": (73_944_309, ["final_logits_bias"], {
        "_num_labels": 3, "activation_function": "swish", "architectures": ["MarianMTModel"],
        "bad_words_ids": [[58100]], "d_model": 512, "decoder_attention_heads": 8, "decoder_ffn_dim": 2048,
        "decoder_layers": 6, "decoder_start_token_id": 58100, "decoder_vocab_size": 58101, "encoder_attention_heads": 8,
        "encoder_ffn_dim": 2048, "encoder_layers": 6, "eos_token_id": 0, "extra_pos_embeddings": 58101,
        "forced_eos_token_id": 0, "max_length": 512, "max_position_embeddings": 512, "model_type": "marian",
        "normalize_embedding": False, "pad_token_id": 58100, "scale_embedding": True,
        "share_encoder_decoder_embeddings": True, "static_position_embeddings": True, "vocab_size": 58101,
        **MARIAN_LIKE,
    }),
    "Mixtral-8x7B": (46_702_792_704, [], {
        "architectures": ["MixtralForCausalLM"], "hidden_size": 4096, "intermediate_size": 14336,
        "max_position_embeddings": 32768, "model_type": "mixtral", "num_attention_heads": 32, "num_experts_per_tok": 2,
        "num_hidden_layers": 32, "num_key_value_heads": 8, "num_local_experts": 8, "output_router_logits": False,
        "rope_theta": 1000000.0, "router_aux_loss_coef": 0.02, "sliding_window": None, "tie_word_embeddings": False,
        "vocab_size": 32000, **LLAMA_LIKE,
    }),
    "Qwen1.5-MoE-A2.7B": (14_315_784_192, [], {
        "architectures": ["Qwen2MoeForCausalLM"], "decoder_sparse_step": 1, "hidden_size": 2048,
        "intermediate_size": 5632, "max_position_embeddings": 8192, "max_window_layers": 21, "model_type": "qwen2_moe",
        "moe_intermediate_size": 1408, "norm_topk_prob": False, "num_attention_heads": 16, "num_experts": 60,
        "num_experts_per_tok": 4, "num_hidden_layers": 24, "num_key_value_heads": 16, "output_router_logits": False,
        "rope_theta": 1000000.0, "router_aux_loss_coef": 0.001, "shared_expert_intermediate_size": 5632,
        "sliding_window": 32768, "tie_word_embeddings": False, "use_sliding_window": False, "vocab_size": 151936,
        **LLAMA_LIKE,
    }),
    "OLMoE-1B-7B": (6_919_161_856, [], {
        "architectures": ["OlmoeForCausalLM"], "attention_bias": False, "clip_qkv": None, "hidden_size": 2048,
        "intermediate_size": 1024, "max_position_embeddings": 4096, "model_type": "olmoe", "norm_topk_prob": False,
        "num_attention_heads": 16, "num_experts": 64, "num_experts_per_tok": 8, "num_hidden_layers": 16,
        "num_key_value_heads": 16, "output_router_logits": False, "pad_token_id": 1, "rope_scaling": None,
        "rope_theta": 10000.0, "router_aux_loss_coef": 0.01, "tie_word_embeddings": False, "vocab_size": 50304,
        **LLAMA_LIKE,
    }),
    "gpt-oss-20b, in bfloat16": (20_914_757_184, [], {
        "architectures": ["GptOssForCausalLM"], "attention_bias": True, "experts_per_token": 4, "head_dim": 64,
        "hidden_size": 2880, "initial_context_length": 4096, "intermediate_size": 2880,
        "layer_types": ["sliding_attention", "full_attention"] * 12, "max_position_embeddings": 131072,
        "model_type": "gpt_oss", "num_attention_heads": 64, "num_experts_per_tok": 4, "num_hidden_layers": 24,
        "num_key_value_heads": 8, "num_local_experts": 32, "output_router_logits": False, "pad_token_id": 199999,
        "rope_scaling": {
            "beta_fast": 32.0, "beta_slow": 1.0, "factor": 32.0, "original_max_position_embeddings": 4096,
            "rope_type": "yarn", "truncate": False,
        },
        "rope_theta": 150000, "router_aux_loss_coef": 0.9, "sliding_window": 128, "swiglu_limit": 7.0,
        "tie_word_embeddings": False, "vocab_size": 201088, **LLAMA_LIKE,
    }),
    "Olmo-3-7B": (7_298_011_136, [], {
        "architectures": ["Olmo3ForCausalLM"], "attention_bias": False, "hidden_size": 4096,
        "intermediate_size": 11008, "layer_types": ([*["sliding_attention"] * 3, "full_attention"]) * 8,
        "max_position_embeddings": 65536, "model_type": "olmo3", "num_attention_heads": 32, "num_hidden_layers": 32,
        "num_key_value_heads": 32, "pad_token_id": 100277,
        "rope_scaling": {
            "attention_factor": 1.2079441541679836, "beta_fast": 32, "beta_slow": 1, "factor": 8.0,
            "original_max_position_embeddings": 8192, "rope_type": "yarn",
        },
        "rope_theta": 500000, "sliding_window": 4096, "tie_word_embeddings": False, "vocab_size": 100278, **LLAMA_LIKE,
    }),
    "command-r7b": (8_028_033_024, [], {
        "architectures": ["Cohere2ForCausalLM"], "attention_bias": False, "cache_implementation": "hybrid",
        "head_dim": 128, "hidden_size": 4096, "intermediate_size": 14336, "layer_norm_eps": 1e-05, "layer_switch": 4,
        "logit_scale": 0.25, "max_position_embeddings": 8192, "model_type": "cohere2", "num_attention_heads": 32,
        "num_hidden_layers": 32, "num_key_value_heads": 8, "order_of_interleaved_layers": "local_attn_first",
        "pad_token_id": 0, "position_embedding_type": "rope_gptj", "rope_scaling": None, "rope_theta": 50000,
        "rotary_pct": 1.0, "sliding_window": 4096, "sliding_window_pattern": 4, "use_embedding_sharing": True,
        "use_gated_activation": True, "use_parallel_block": True, "use_parallel_embedding": True, "vocab_size": 256000,
        "attention_dropout": 0.0, "hidden_act": "silu", "initializer_range": 0.02, **COMMON,
    }),
    "all-mpnet-base-v2": (109_486_464, ["mpnet.pooler.dense.weight"], {
        "architectures": ["MPNetModel"], "eos_token_id": 2, "layer_norm_eps": 1e-05, "max_position_embeddings": 514,
        "model_type": "mpnet", "pad_token_id": 1, "relative_attention_num_buckets": 32, "vocab_size": 30527,
        **{k: v for k, v in BERT_LIKE.items() if k != "position_embedding_type"},
    }),
    "albert-base-v2": (11_221_680, [], {
        "architectures": ["AlbertForMaskedLM"], "attention_probs_dropout_prob": 0, "bos_token_id": 2,
        "classifier_dropout_prob": 0.1, "down_scale_factor": 1, "embedding_size": 128, "eos_token_id": 3, "gap_size": 0,
        "hidden_act": "gelu_new", "hidden_dropout_prob": 0, "hidden_size": 768, "initializer_range": 0.02,
        "inner_group_num": 1, "intermediate_size": 3072, "layer_norm_eps": 1e-12, "max_position_embeddings": 512,
        "model_type": "albert", "net_structure_type": 0, "num_attention_heads": 12, "num_hidden_groups": 1,
        "num_hidden_layers": 12, "num_memory_blocks": 0, "pad_token_id": 0, "type_vocab_size": 2, "vocab_size": 30000,
    }),
    "electra-small-generator": (13_546_682, [], {
        "architectures": ["ElectraForMaskedLM"], "attention_probs_dropout_prob": 0.1, "embedding_size": 128,
        "hidden_act": "gelu", "hidden_dropout_prob": 0.1, "hidden_size": 256, "initializer_range": 0.02,
        "intermediate_size": 1024, "layer_norm_eps": 1e-12, "max_position_embeddings": 512, "model_type": "electra",
        "num_attention_heads": 4, "num_hidden_layers": 12, "pad_token_id": 0, "type_vocab_size": 2, "vocab_size": 30522,
    }),
    "ModernBERT-base": (149_655_232, [], {
        "architectures": ["ModernBertForMaskedLM"], "attention_bias": False, "attention_dropout": 0.0,
        "bos_token_id": 50281, "classifier_activation": "gelu", "classifier_bias": False, "classifier_dropout": 0.0,
        "classifier_pooling": "mean", "cls_token_id": 50281, "decoder_bias": True, "deterministic_flash_attn": False,
        "embedding_dropout": 0.0, "eos_token_id": 50282, "global_attn_every_n_layers": 3, "global_rope_theta": 160000.0,
        "gradient_checkpointing": False, "hidden_activation": "gelu", "hidden_size": 768,
        "initializer_cutoff_factor": 2.0, "initializer_range": 0.02, "intermediate_size": 1152, "layer_norm_eps": 1e-05,
        "local_attention": 128, "local_rope_theta": 10000.0, "max_position_embeddings": 8192, "mlp_bias": False,
        "mlp_dropout": 0.0, "model_type": "modernbert", "norm_bias": False, "norm_eps": 1e-05,
        "num_attention_heads": 12, "num_hidden_layers": 22, "pad_token_id": 50283,
        "position_embedding_type": "absolute",
        "sep_token_id": 50282, "tie_word_embeddings": True, "vocab_size": 50368, "torch_dtype": "float32",
    }),
    "gemma-2-9b": (9_241_705_984, [], {
        "architectures": ["Gemma2ForCausalLM"], "attention_bias": False, "attention_dropout": 0.0,
        "attn_logit_softcapping": 50.0, "cache_implementation": "hybrid", "eos_token_id": 1,
        "final_logit_softcapping": 30.0, "head_dim": 256, "hidden_act": "gelu_pytorch_tanh",
        "hidden_activation": "gelu_pytorch_tanh", "hidden_size": 3584, "initializer_range": 0.02,
        "intermediate_size": 14336, "max_position_embeddings": 8192, "model_type": "gemma2",
        "num_attention_heads": 16, "num_hidden_layers": 42, "num_key_value_heads": 8, "pad_token_id": 0,
        "query_pre_attn_scalar": 256, "rms_norm_eps": 1e-06, "rope_theta": 10000.0, "sliding_window": 4096,
        "sliding_window_size": 4096, "vocab_size": 256000, **COMMON,
    }),
    "starcoder2-3b": (3_030_371_328, [], {
        "activation_function": "gelu", "architectures": ["Starcoder2ForCausalLM"], "attention_dropout": 0.1,
        "attention_softmax_in_fp32": True, "embedding_dropout": 0.1, "eos_token_id": 0,
        "hidden_act": "gelu_pytorch_tanh", "hidden_size": 3072, "initializer_range": 0.018042,
        "intermediate_size": 12288, "layer_norm_epsilon": 1e-05, "max_position_embeddings": 16384,
        "mlp_type": "default", "model_type": "starcoder2", "norm_epsilon": 1e-05, "norm_type": "layer_norm",
        "num_attention_heads": 24, "num_hidden_layers": 30, "num_key_value_heads": 2, "residual_dropout": 0.1,
        "rope_theta": 999999.4420358813, "scale_attention_softmax_in_fp32": True, "scale_attn_weights": True,
        "sliding_window": 4096, "use_bias": True, "vocab_size": 49152, **COMMON,
    }),
    "distilbert-base-uncased": (66_985_530, [], {
        "activation": "gelu", "architectures": ["DistilBertForMaskedLM"], "attention_dropout": 0.1, "dim": 768,
        "dropout": 0.1, "hidden_dim": 3072, "initializer_range": 0.02, "max_position_embeddings": 512,
        "model_type": "distilbert", "n_heads": 12, "n_layers": 6, "pad_token_id": 0, "qa_dropout": 0.1,
        "seq_classif_dropout": 0.2, "sinusoidal_pos_embds": False, "tie_weights_": True,
        "transformers_version": "4.10.0.dev0", "vocab_size": 30522,
    }),
    "nllb-200-distilled-600M": (615_073_792, [], {
        "activation_dropout": 0.0, "activation_function": "relu", "architectures": ["M2M100ForConditionalGeneration"],
        "attention_dropout": 0.1, "bos_token_id": 0, "d_model": 1024, "decoder_attention_heads": 16,
        "decoder_ffn_dim": 4096, "decoder_layerdrop": 0, "decoder_layers": 12, "decoder_start_token_id": 2,
        "dropout": 0.1, "encoder_attention_heads": 16, "encoder_ffn_dim": 4096, "encoder_layerdrop": 0,
        "encoder_layers": 12, "eos_token_id": 2, "init_std": 0.02, "is_encoder_decoder": True, "max_length": 200,
        "max_position_embeddings": 1024, "model_type": "m2m_100", "num_hidden_layers": 12, "pad_token_id": 1,
        "scale_embedding": True, "torch_dtype": "float32", "transformers_version": "4.21.0.dev0", "use_cache": True,
        "vocab_size": 256206, "tokenizer_class": "NllbTokenizer",
    }),
}  # fmt: skip


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_published_config_is_understood_and_has_the_published_size(name, tmp_path):
    """Sizes: of the model card or the weight files; Marian's and BERT's counted from the published shapes."""
    parameters, names, data = PUBLISHED[name]
    keys = Keys(data, tmp_path / "config.json", names)
    config = family_of(keys).config(keys)
    assert sum(weight.numel() for weight in build_on_meta(config).parameters()) == parameters
