"""The keys of a config.json that change nothing of what is computed, each with its reason.

A name counts in every family; after "FAMILY." only there, and after "FAMILY.OBJECT." only within that object of its
config. All other keys are read, or refused by name (see keys.py).
"""

from collections.abc import Mapping

_REASONS: Mapping[str, str] = {
    "which program wrote the file, and from what": """
        _name_or_path name_or_path _commit_hash model_type transformers_version transformers.js_config auto_map
        custom_pipelines architectures tokenizer_name tokenizer_class processor_class torch_dtype dtype
        finetuning_task task_specific_params is_llama_config unsloth_fixed unsloth_version""",
    "how to run it or what to report: the logits are the same": """
        use_cache cache_implementation attn_implementation _attn_implementation _attn_implementation_autoset
        output_attentions output_hidden_states output_past output_scores return_dict use_return_dict torchscript
        return_dict_in_generate chunk_size_feed_forward gradient_checkpointing use_bfloat16 tf_legacy_loss
        pretraining_tp is_decoder_only""",
    "acts in training only": """
        attention_dropout activation_dropout embedding_dropout embed_dropout residual_dropout attn_pdrop embd_pdrop
        emb_pdrop layerdrop encoder_layerdrop decoder_layerdrop attention_probs_dropout_prob classifier_dropout
        classif_dropout qa_dropout seq_classif_dropout summary_first_dropout problem_type initializer_factor
        router_aux_loss_coef output_router_logits router_jitter_noise classifier_dropout_prob modernbert.mlp_dropout
        deberta-v2.pooler_dropout deberta-v2.cls_dropout
        modernbert.initializer_cutoff_factor modernbert.sparse_prediction modernbert.sparse_pred_ignore_index
        bart.save_step bart.replacing_rate bart.student_encoder_layers bart.student_decoder_layers""",
    "how to write a text with the model; ids that end one are read with the tokenizer": """
        bos_token_id eos_token_id pad_token_id sep_token_id cls_token_id unk_token_id mask_token_id bad_words_ids
        decoder_start_token_id forced_bos_token_id forced_eos_token_id suppress_tokens begin_suppress_tokens
        max_length min_length max_new_tokens do_sample early_stopping num_beams num_beam_groups num_return_sequences
        temperature top_k top_p typical_p length_penalty repetition_penalty diversity_penalty no_repeat_ngram_size
        encoder_no_repeat_ngram_size bos_token_ids eos_token_ids force_bos_token_to_be_generated remove_invalid_values
        exponential_decay_length_penalty prefix""",
    "names of classes, which are read where there is a head for them": "id2label label2id num_labels _num_labels",
    "of a head that is not read: its weights would be an error": """
        summary_type summary_use_proj summary_activation summary_proj_to_labels bert.pooler_type bert.pooler_fc_size
        bert.pooler_num_attention_heads bert.pooler_num_fc_layers summary_last_dropout modernbert.classifier_pooling
        bert.pooler_size_per_head bert.directionality""",
    "how exactly or how fast it is computed": """
        modernbert.reference_compile modernbert.repad_logits_with_grad modernbert.deterministic_flash_attn
        cohere2.use_parallel_embedding gpt2.reorder_and_upcast_attn bloom.slow_but_exact bloom.masked_softmax_fusion
        bloom.bias_dropout_fusion bloom.skip_bias_add bloom.skip_bias_add_qkv mpt.init_device mpt.init_config
        mpt.verbose mpt.embedding_fraction mpt.attn_config.attn_impl attention_softmax_in_fp32
        scale_attention_softmax_in_fp32 gpt_bigcode.inference_runner gpt_bigcode.max_batch_size
        gpt_bigcode.max_sequence_length gpt_bigcode.pad_key_length gpt_bigcode.pre_allocate_kv_cache
        gpt_bigcode.validate_runner_input""",
    "a length or a table that this family's code does not look at": """
        albert.down_scale_factor albert.gap_size albert.net_structure_type albert.num_memory_blocks
        albert.layers_to_keep modernbert.layer_norm_eps modernbert.position_embedding_type gpt2.n_ctx bloom.seq_length
        bloom.offset_alibi mpt.learned_pos_emb t5.n_positions distilbert.sinusoidal_pos_embds
        marian.extra_pos_embeddings pegasus.extra_pos_embeddings cohere.model_max_length
        gemma2.sliding_window_size starcoder2.layer_norm_epsilon
        exaone4.sliding_window_pattern smollm3.max_window_layers qwen3_moe.max_window_layers""",
    "an object of settings is no model": "mpt.attn_config.is_encoder_decoder",
    "hidden_activation is what counts": "gemma3_text.hidden_act gemma2.hidden_act",
    "hidden_act is what counts": "starcoder2.activation_function",
    "its code scales scores and ties its matrices whatever is said": """
        starcoder2.scale_attn_weights distilbert.tie_weights_""",
}

#: name -> why it changes nothing
HARMLESS: Mapping[str, str] = {name: reason for reason, names in _REASONS.items() for name in names.split()}

__all__ = ["HARMLESS"]
