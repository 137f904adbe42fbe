"""Faults patched into tiny random models of the transformers library, each one that this or another library really had.

The library is imported when a model is built, so that nobody needs it who does not ask.
"""

import importlib
from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import torch
from torch import nn

from faults.fault import Fault, Planting, story_of
from gnomon.audit import Law
from gnomon.audit.adapters.transformers import Transformers
from gnomon.audit.laws import (
    caches,
    embedding,
    history,
    limits,
    loss,
    order,
    padding,
    sources,
    tables,
    weights,
    windows,
)
from gnomon.shapes import Bool, Float, Int

VOCAB, D, LAYERS, HEADS = 64, 32, 2, 4
SIZES = {
    "vocab_size": VOCAB,
    "hidden_size": D,
    "intermediate_size": 48,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": HEADS,
    "max_position_embeddings": 64,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
GROUPED = SIZES | {"num_key_value_heads": 2}
GPT2 = {
    "vocab_size": VOCAB,
    "n_embd": D,
    "n_layer": LAYERS,
    "n_head": HEADS,
    "n_positions": 32,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
PAIR = {
    "vocab_size": VOCAB,
    "d_model": D,
    "encoder_layers": LAYERS,
    "decoder_layers": LAYERS,
    "encoder_attention_heads": HEADS,
    "decoder_attention_heads": HEADS,
    "encoder_ffn_dim": 48,
    "decoder_ffn_dim": 48,
    "max_position_embeddings": 64,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "decoder_start_token_id": 2,
    "forced_eos_token_id": None,
}
T5 = {
    "vocab_size": VOCAB,
    "d_model": D,
    "d_ff": 48,
    "num_layers": LAYERS,
    "num_heads": HEADS,
    "d_kv": 8,
    "relative_attention_num_buckets": 8,
    "relative_attention_max_distance": 20,
    "decoder_start_token_id": 0,
}
YARN = {"rope_type": "yarn", "rope_theta": 10000.0, "factor": 4.0, "original_max_position_embeddings": 16}


def tiny(cls: str, **settings: Any) -> Transformers:
    """A random model of a class, large weights, noisy norms and biases: small ones would hide faults."""
    library: Any = importlib.import_module("transformers")
    made = getattr(library, cls)
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(0)
        model = made(made.config_class(**settings))
        for weight in model.parameters():
            if weight.dim() == 1:
                weight.add_(0.3 * torch.randn_like(weight))
            else:
                weight.normal_(std=0.3)
        for part in model.modules():
            if isinstance(part, nn.Embedding) and part.padding_idx is not None:
                part.weight[part.padding_idx] = 0
    return Transformers(model)


def _of(module: str) -> Any:
    """A module of the library."""
    return importlib.import_module(f"transformers.{module}")


def _model(family: str) -> Any:
    return _of(f"models.{family}.modeling_{family}")


def fault(kind: str, law: Law, cls: str, **settings: Any) -> Callable[[Callable[[], Planting]], Fault]:
    """Turn a function that builds a patch into a Fault, named like it; the docstring's first line is the story."""

    def make(plant: Callable[[], Planting]) -> Fault:
        name = plant.__name__.replace("_", " ")
        return Fault(name, kind, story_of(plant), (law,), lambda broken: tiny(cls, **settings), plant)

    return make


# -------------------------------------------------------------------- positions


@fault("position", caches.cached_is_full, "LlamaForCausalLM", **GROUPED)
def steps_start_one_place_late() -> Planting:
    """A decoded token sits at the length of the cache + 1."""
    caches = _of("cache_utils")
    healthy = caches.Cache.get_seq_length

    def get_seq_length(self: Any, layer_idx: int = 0) -> int:
        n: int = healthy(self, layer_idx)
        return n + 1 if n else 0

    return patch.object(caches.Cache, "get_seq_length", get_seq_length)


@fault("position", padding.left_padding, "OPTForCausalLM", **SIZES, ffn_dim=48, word_embed_proj_dim=D)
def positions_count_padding() -> Planting:
    """Positions are slots: the mask of real tokens reaches attention and not the table of positions."""
    table = _model("opt").OPTLearnedPositionalEmbedding

    def forward(self: Any, attention_mask: Int, cache_length: int = 0, position_ids: Int | None = None) -> Float:
        slots = torch.arange(attention_mask.shape[1], device=attention_mask.device).expand(attention_mask.shape)
        return nn.functional.embedding(slots[:, cache_length:] + self.offset, self.weight)

    return patch.object(table, "forward", forward)


@fault("table", limits.past_the_table_is_an_error, "GPT2LMHeadModel", **GPT2)
def positions_wrap_around() -> Planting:
    """Past the table, positions start again at its first row, without a word."""
    gpt2 = _model("gpt2").GPT2Model
    healthy = gpt2.forward

    def forward(self: Any, *given: Any, **named: Any) -> Any:
        rows = self.wpe.num_embeddings
        wrapped = patch.object(self.wpe, "forward", lambda p: nn.functional.embedding(p % rows, self.wpe.weight))
        with wrapped:
            return healthy(self, *given, **named)

    return patch.object(gpt2, "forward", forward)


# -------------------------------------------------------------------- masks


@fault("mask", order.causality, "GPTNeoXForCausalLM", **SIZES, attn_implementation="eager")
def a_query_sees_one_key_ahead() -> Planting:
    """`key <= query + 1` in the function that masks are made of."""
    masks = _of("masking_utils")

    def ahead(batch: int, head: int, q: Int, k: Int) -> Bool:
        return k <= q + 1

    return patch.object(masks, "causal_mask_function", ahead)


@fault("mask", padding.left_padding, "Qwen2ForCausalLM", **GROUPED)
def the_mask_is_dropped() -> Planting:
    """attention_mask is an argument of the forward, and goes nowhere."""
    qwen2 = _model("qwen2")
    healthy = qwen2.create_causal_mask

    def create(**named: Any) -> Any:
        return healthy(**{**named, "attention_mask": None})

    return patch.object(qwen2, "create_causal_mask", create)


@fault("mask", padding.right_padding, "BertForMaskedLM", **SIZES)
def an_encoder_sees_its_padding() -> Planting:
    """What causality hides in a decoder, padding behind the text, is seen in an encoder whose mask is lost."""
    bert = _model("bert")
    healthy = bert.create_bidirectional_mask

    def create(**named: Any) -> Any:
        return healthy(**{**named, "attention_mask": None})

    return patch.object(bert, "create_bidirectional_mask", create)


@fault("window", windows.a_window_is_as_wide_as_it_says, "MistralForCausalLM", **GROUPED, sliding_window=4)
def the_window_is_one_too_wide() -> Planting:
    """`key >= query - width`: the token itself is not counted."""
    masks = _of("masking_utils")
    healthy = masks.sliding_window_overlay
    return patch.object(masks, "sliding_window_overlay", lambda width: healthy(width + 1))


@fault("packing", padding.packed_is_separate, "SmolLM3ForCausalLM", **GROUPED)
def documents_of_a_row_see_each_other() -> Planting:
    """Positions begin again, and the mask does not."""
    return patch.object(_of("masking_utils"), "find_packed_sequence_indices", lambda position_ids: None)


# -------------------------------------------------------------------- caches


@fault("cache", caches.cached_is_full, "T5ForConditionalGeneration", **T5)
def steps_have_no_bias() -> Planting:
    """T5's bias by distance is computed for the first read and left out of every step."""
    attention = _model("t5").T5Attention
    healthy = attention.compute_bias

    def compute_bias(self: Any, queries: int, keys: int, device: Any = None, past_seen_tokens: int = 0) -> Float:
        bias: Float = healthy(self, queries, keys, device, past_seen_tokens)
        return bias * 0 if past_seen_tokens else bias

    return patch.object(attention, "compute_bias", compute_bias)


@fault("heads", caches.cached_is_full, "LlamaForCausalLM", **GROUPED, attn_implementation="eager")
def shared_heads_are_tiled_in_steps() -> Planting:
    """The path for one query repeats key heads a, b, a, b where the other one has a, a, b, b."""
    llama = _model("llama")
    healthy = llama.eager_attention_forward

    def forward(module: Any, q: Float, k: Float, v: Float, *rest: Any, **named: Any) -> Any:
        if q.shape[2] > 1:
            return healthy(module, q, k, v, *rest, **named)
        n = module.num_key_value_groups
        with patch.object(llama, "repeat_kv", lambda x, _: x.repeat(1, n, 1, 1)):
            return healthy(module, q, k, v, *rest, **named)

    return patch.object(llama, "eager_attention_forward", forward)


@fault("cache", caches.chunks_are_whole, "GemmaForCausalLM", **GROUPED, head_dim=8)
def a_chunk_has_the_mask_of_a_first_read() -> Planting:
    """A chunk read after another one gets the triangle that begins at its first key."""
    masks = _of("masking_utils")
    healthy = masks.sdpa_mask

    def sdpa_mask(batch_size: int, q_length: int, kv_length: int, q_offset: int = 0, **named: Any) -> Any:
        return healthy(batch_size, q_length, kv_length, 0 if q_length > 1 else q_offset, **named)

    return patch.dict(masks.ALL_MASK_ATTENTION_FUNCTIONS._global_mapping, sdpa=sdpa_mask)


@fault("cache", caches.reorder_is_rerun, "GPTJForCausalLM", **GPT2, rotary_dim=4)
def beams_keep_their_old_cache() -> Planting:
    """Beams change places, and what they have read does not."""
    return patch.object(_of("cache_utils").Cache, "reorder_cache", lambda self, index: None)


@fault("state", history.call_history, "LlamaForCausalLM", **GROUPED)
def a_long_call_slows_the_rotation() -> Planting:
    """Frequencies that were lowered for a long text stay low for the short one after it."""
    rotary = _model("llama").LlamaRotaryEmbedding
    healthy = rotary.forward

    def forward(self: Any, x: Float, position_ids: Int) -> Any:
        if int(position_ids.max()) >= 16:
            self.inv_freq.mul_(0.5)
        return healthy(self, x, position_ids)

    return patch.object(rotary, "forward", forward)


# -------------------------------------------------------------------- rotations


@fault("precision", tables.scaling_as_published, "Qwen3ForCausalLM", **GROUPED, head_dim=16)
def frequencies_in_bfloat16() -> Planting:
    """Frequencies are computed in float32 and kept in bfloat16."""
    rotary = _model("qwen3").Qwen3RotaryEmbedding
    healthy = rotary.compute_default_rope_parameters

    def rounded(*given: Any, **named: Any) -> Any:
        frequencies, factor = healthy(*given, **named)
        return frequencies.bfloat16().float(), factor

    return patch.object(rotary, "compute_default_rope_parameters", staticmethod(rounded))


@fault("scaling", tables.scaling_as_published, "Qwen3ForCausalLM", **GROUPED, head_dim=8, rope_parameters=YARN)
def the_scaling_is_ignored() -> Planting:
    """The config asks for YaRN, and the rotation is the plain one."""
    rope = _of("modeling_rope_utils")
    plain = _model("qwen3").Qwen3RotaryEmbedding.compute_default_rope_parameters
    return patch.dict(rope.ROPE_INIT_FUNCTIONS, yarn=plain)


# -------------------------------------------------------------------- weights and the ends


@fault("tie", weights.a_tie_stays, "Qwen2ForCausalLM", **GROUPED, tie_word_embeddings=True)
def resizing_cuts_the_tie() -> Planting:
    """A larger table comes with a larger head of its own."""
    base = _of("modeling_utils").PreTrainedModel
    healthy = base.resize_token_embeddings

    def resize(self: Any, *given: Any, **named: Any) -> Any:
        found = healthy(self, *given, **named)
        head = self.get_output_embeddings()
        head.weight = nn.Parameter(head.weight.detach().clone())
        return found

    return patch.object(base, "resize_token_embeddings", resize)


@fault("scale", embedding.scale_counts_once, "GemmaForCausalLM", **GROUPED, head_dim=8)
def vectors_are_scaled_twice() -> Planting:
    """The table multiplies by sqrt(D) when it is read, and the model does so again."""
    gemma = _model("gemma")
    healthy = gemma.GemmaTextScaledWordEmbedding.forward

    def forward(self: Any, ids: Int) -> Float:
        return healthy(self, ids) * D**0.5

    return patch.object(gemma.GemmaTextScaledWordEmbedding, "forward", forward)


@fault("loss", loss.labels_are_shifted_once, "GPTNeoXForCausalLM", **SIZES)
def the_loss_shifts_shifted_labels() -> Planting:
    """Whoever prepares the labels shifts them, and the loss does so again."""
    losses = _of("loss.loss_utils")
    healthy = losses.ForCausalLMLoss

    def loss(logits: Float, labels: Int, *rest: Any, **named: Any) -> Float:
        shifted = nn.functional.pad(labels[:, 1:], (0, 1), value=-100)
        return healthy(logits, shifted, *rest, **named)

    return patch.dict(losses.LOSS_MAPPING, ForCausalLM=loss)


@fault("file", weights.saved_is_the_same, "LlamaForCausalLM", **GROUPED, rope_parameters=YARN)
def the_file_forgets_the_scaling() -> Planting:
    """config.json is written without the settings of the rotation, and read as if there were none."""
    config = _of("models.llama.configuration_llama").LlamaConfig
    healthy = config.to_dict

    def to_dict(self: Any) -> dict[str, Any]:
        return {k: v for k, v in healthy(self).items() if k != "rope_parameters"}

    return patch.object(config, "to_dict", to_dict)


@fault("dropout", embedding.dropout_acts_once, "OPTForCausalLM", **SIZES, ffn_dim=48, word_embed_proj_dim=D)
def dropout_goes_on() -> Planting:
    """A functional dropout is told that it is being trained, always."""
    layer = _model("opt").OPTDecoderLayer
    healthy = layer.forward

    def forward(self: Any, x: Float, *rest: Any, **named: Any) -> Any:
        return healthy(self, nn.functional.dropout(x, 0.1, training=True), *rest, **named)

    return patch.object(layer, "forward", forward)


# -------------------------------------------------------------------- pairs


@fault("source", sources.source_padding_on_the_right, "BartForConditionalGeneration", **PAIR)
def cross_attention_sees_padding() -> Planting:
    """The encoder hides the padding of the source, and cross-attention is not told where it is."""
    decoder = _model("bart").BartDecoder
    healthy = decoder.forward

    def forward(self: Any, *given: Any, **named: Any) -> Any:
        return healthy(self, *given, **{**named, "encoder_attention_mask": None})

    return patch.object(decoder, "forward", forward)
