"""Tiny random models of the transformers library, several of each family, each made to show one thing that may differ.

Their norms and biases are drawn too: at their initial ones and zeros no mistake with them would show.
"""

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import transformers as hf

V, D, LAYERS = 101, 32, 2
TYPES = ("full_attention", "sliding_attention")


@dataclass(frozen=True)
class Case:
    """A family, what is particular about this model, and its config."""

    family: str
    what: str
    config: Any
    cls: Any

    def __str__(self) -> str:
        return f"{self.family}: {self.what}"

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
            if weight.dim() == 1:
                centre = weight.mean().round()  # 1 for the weight of a norm, 0 for a bias
                weight.copy_(centre + 0.3 * torch.randn_like(weight))
            elif "relative_attention_bias" in name:
                weight.normal_()
            else:
                weight.normal_(std=0.6 if "embed" in name or "wte" in name or "shared" in name else weight.shape[-1] ** -0.5)
        for name, buffer in model.named_buffers():
            if name == "final_logits_bias":
                buffer.normal_()
    return model


def config(cls: Any, **settings: Any) -> Any:
    sizes = {
        "vocab_size": V, "hidden_size": D, "intermediate_size": 48, "num_hidden_layers": LAYERS,
        "num_attention_heads": 4, "max_position_embeddings": 64, "pad_token_id": 0, "bos_token_id": 1,
        "eos_token_id": 2,
    }  # fmt: skip
    return cls(**{**sizes, **settings})


def rope(kind: str = "default", **settings: Any) -> dict[str, Any]:
    return {"rope_type": kind, "rope_theta": 10000.0, **settings}


def _llama(what: str, **settings: Any) -> Case:
    return Case("llama", what, config(hf.LlamaConfig, **settings), hf.LlamaForCausalLM)


GQA = {"num_key_value_heads": 2}
LLAMA3 = rope("llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=32)
YARN = rope("yarn", factor=4.0, original_max_position_embeddings=16)
FIVE = {"num_attention_heads": 5, "head_dim": 6, "hidden_size": 30}


def _decoders() -> list[Case]:
    gpt2 = {"vocab_size": V, "n_embd": D, "n_layer": LAYERS, "n_positions": 64, "bos_token_id": 1, "eos_token_id": 2}
    mpt = {"vocab_size": V, "d_model": D, "n_layers": LAYERS, "max_seq_len": 64}
    bloom = {"vocab_size": V, "hidden_size": D, "n_layer": LAYERS, "pad_token_id": 0}
    opt = {"ffn_dim": 48, "word_embed_proj_dim": D}
    gemma = {"head_dim": 12, "sliding_window": 8, "layer_types": [TYPES[1], TYPES[0]], **GQA}
    gemma_rope = {TYPES[0]: rope("linear", factor=2.0), TYPES[1]: rope(rope_theta=100.0)}
    long = {"short_factor": [1.0, 1.1, 1.2, 1.4], "long_factor": [1.0, 2.0, 4.0, 8.0], "attention_factor": 1.2}
    longrope = {"rope_parameters": rope("longrope", **long), "original_max_position_embeddings": 16}
    qwen3 = {"head_dim": 12, **GQA}
    return [
        _llama("one key for two queries", **GQA),
        _llama("one key for all", num_key_value_heads=1, tie_word_embeddings=True),
        _llama("biases, tied", attention_bias=True, mlp_bias=True, tie_word_embeddings=True, **GQA),
        _llama("five heads, none shared", **FIVE),
        _llama("another base", rope_parameters=rope(rope_theta=500000.0)),
        _llama("linear scaling", rope_parameters=rope("linear", factor=4.0)),
        _llama("dynamic scaling, within its length", rope_parameters=rope("dynamic", factor=2.0)),
        _llama("YaRN", rope_parameters=YARN, **GQA),
        _llama("YaRN without whole ends", rope_parameters={**YARN, "truncate": False, "mscale": 1.0, "mscale_all_dim": 0.8}),
        _llama("Llama-3 scaling", rope_parameters=LLAMA3, **GQA),
        Case("gpt2", "tied", hf.GPT2Config(**gpt2, n_head=4), hf.GPT2LMHeadModel),
        Case("gpt2", "own head, another width", hf.GPT2Config(**gpt2, n_head=2, n_inner=40, tie_word_embeddings=False), hf.GPT2LMHeadModel),
        Case("gpt2", "eight heads, relu", hf.GPT2Config(**gpt2, n_head=8, activation_function="relu"), hf.GPT2LMHeadModel),
        Case("mistral", "a window", config(hf.MistralConfig, sliding_window=7, **GQA), hf.MistralForCausalLM),
        Case("mistral", "no window, tied", config(hf.MistralConfig, sliding_window=None, head_dim=12, tie_word_embeddings=True, num_key_value_heads=4), hf.MistralForCausalLM),
        Case("qwen2", "own head", config(hf.Qwen2Config, **GQA), hf.Qwen2ForCausalLM),
        Case("qwen2", "tied, a window above", config(hf.Qwen2Config, tie_word_embeddings=True, use_sliding_window=True, sliding_window=9, max_window_layers=1, **GQA), hf.Qwen2ForCausalLM),
        Case("qwen3", "own head", config(hf.Qwen3Config, **qwen3), hf.Qwen3ForCausalLM),
        Case("qwen3", "tied, biases, YaRN", config(hf.Qwen3Config, tie_word_embeddings=True, attention_bias=True, rope_parameters=YARN, **qwen3), hf.Qwen3ForCausalLM),
        Case("smollm3", "every other layer without position", config(hf.SmolLM3Config, no_rope_layer_interval=2, **GQA), hf.SmolLM3ForCausalLM),
        Case("smollm3", "three layers, windows", config(hf.SmolLM3Config, num_hidden_layers=3, no_rope_layers=[0, 1, 0], use_sliding_window=True, sliding_window=9, tie_word_embeddings=False, **GQA), hf.SmolLM3ForCausalLM),
        Case("gpt_neox", "side by side", config(hf.GPTNeoXConfig, rope_parameters=rope(partial_rotary_factor=0.25)), hf.GPTNeoXForCausalLM),
        Case("gpt_neox", "one after the other, all rotated, tied", config(hf.GPTNeoXConfig, use_parallel_residual=False, tie_word_embeddings=True, attention_bias=False, rope_parameters=rope(partial_rotary_factor=1.0)), hf.GPTNeoXForCausalLM),
        Case("bloom", "four heads", hf.BloomConfig(**bloom, n_head=4), hf.BloomForCausalLM),
        Case("bloom", "six heads, own head", hf.BloomConfig(**{**bloom, "hidden_size": 36}, n_head=6, tie_word_embeddings=False), hf.BloomForCausalLM),
        Case("mpt", "four heads", hf.MptConfig(**mpt, n_heads=4), hf.MptForCausalLM),
        Case("mpt", "three heads, another scale", hf.MptConfig(**{**mpt, "d_model": 30}, n_heads=3, attn_config={"softmax_scale": 0.3}), hf.MptForCausalLM),
        Case("opt", "tied", config(hf.OPTConfig, **opt), hf.OPTForCausalLM),
        Case("opt", "norms after, own head, gelu", config(hf.OPTConfig, do_layer_norm_before=False, tie_word_embeddings=False, activation_function="gelu", **opt), hf.OPTForCausalLM),
        Case("gemma3_text", "a window below", config(hf.Gemma3TextConfig, query_pre_attn_scalar=24, **gemma), hf.Gemma3ForCausalLM),
        Case("gemma3_text", "scaled far, capped scores", config(hf.Gemma3TextConfig, attn_logit_softcapping=5.0, rope_parameters=gemma_rope, attention_bias=True, attn_implementation="eager", **gemma), hf.Gemma3ForCausalLM),
        Case("phi3", "own head", config(hf.Phi3Config, **GQA), hf.Phi3ForCausalLM),
        Case("phi3", "half rotated, a window", config(hf.Phi3Config, sliding_window=9, tie_word_embeddings=True, rope_parameters=rope(partial_rotary_factor=0.5)), hf.Phi3ForCausalLM),
        Case("phi3", "LongRoPE", config(hf.Phi3Config, **longrope, **GQA), hf.Phi3ForCausalLM),
    ]  # fmt: skip


def _encoders() -> list[Case]:
    roberta = {"type_vocab_size": 1, "pad_token_id": 1, "max_position_embeddings": 66}
    kinds = ("ForMaskedLM", "Model", "ForTokenClassification", "ForSequenceClassification")
    labels = {"num_labels": 3}
    plain = [
        Case(name, kind, config(cfg, **labels, **more), getattr(hf, f"{prefix}{kind}"))
        for name, prefix, cfg, more in (("bert", "Bert", hf.BertConfig, {}), ("roberta", "Roberta", hf.RobertaConfig, roberta))
        for kind in kinds
    ]
    return [
        *plain,
        Case("bert", "ForMaskedLM, own head", config(hf.BertConfig, tie_word_embeddings=False), hf.BertForMaskedLM),
        Case("bert", "Model, eight heads, relu", config(hf.BertConfig, num_attention_heads=8, hidden_act="relu"), hf.BertModel),
    ]  # fmt: skip


def _encoder_decoders() -> list[Case]:
    t5 = {"vocab_size": V, "d_model": D, "d_ff": 48, "num_layers": LAYERS, "num_heads": 4, "d_kv": 8, "decoder_start_token_id": 0}
    t5 |= {"relative_attention_num_buckets": 8, "relative_attention_max_distance": 20}
    two = {
        "vocab_size": V, "d_model": D, "encoder_layers": LAYERS, "decoder_layers": 1, "encoder_attention_heads": 4,
        "decoder_attention_heads": 4, "encoder_ffn_dim": 48, "decoder_ffn_dim": 48, "max_position_embeddings": 64,
        "pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2, "decoder_start_token_id": 2, "forced_eos_token_id": None,
    }  # fmt: skip
    t5_11 = {**t5, "feed_forward_proj": "gated-gelu", "tie_word_embeddings": False, "num_decoder_layers": 1}
    cls = hf.T5ForConditionalGeneration
    return [
        Case("t5", "1.0", hf.T5Config(**t5), cls),
        Case("t5", "1.0, three wide heads", hf.T5Config(**{**t5, "num_heads": 3, "d_kv": 12}), cls),
        Case("t5", "1.1", hf.T5Config(**t5_11), cls),
        Case("bart", "scaled", hf.BartConfig(**two, scale_embedding=True), hf.BartForConditionalGeneration),
        Case("bart", "relu", hf.BartConfig(**two, activation_function="relu"), hf.BartForConditionalGeneration),
        Case("marian", "scaled, swish", hf.MarianConfig(**two, scale_embedding=True, activation_function="swish"), hf.MarianMTModel),
        Case("marian", "one layer", hf.MarianConfig(**{**two, "encoder_layers": 1}), hf.MarianMTModel),
    ]  # fmt: skip


DECODERS, ENCODERS, ENCODER_DECODERS = _decoders(), _encoders(), _encoder_decoders()
ALL = [*DECODERS, *ENCODERS, *ENCODER_DECODERS]


def first_of_each(cases: list[Case]) -> list[Case]:
    """One case of every family."""
    return [next(group) for _, group in itertools.groupby(cases, key=lambda case: case.family)]


Make = Callable[[], Any]
