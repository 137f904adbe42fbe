"""Models of transformers as targets: asked as its users ask them, and what their configs say of them."""

import pytest
import torch
import transformers as hf
from faults.transformers import GPT2, GROUPED, HEADS, LAYERS, PAIR, SIZES, T5, VOCAB, D, tiny

import gnomon as gn
from gnomon.audit import NotApplicable, target
from gnomon.audit.adapters import transformers_docs
from gnomon.errors import BadValue

LATE = {**SIZES, "pad_token_id": 1, "max_position_embeddings": 66, "bos_token_id": 0, "type_vocab_size": 1}
BLOOM = {"vocab_size": VOCAB, "hidden_size": D, "n_layer": LAYERS, "n_head": HEADS, "pad_token_id": 0}
MPT = {"vocab_size": VOCAB, "d_model": D, "n_heads": HEADS, "n_layers": LAYERS, "max_seq_len": 32}
#: its table begins after row 1 whatever id its config calls padding
MPNET = {**LATE, "pad_token_id": 0, "bos_token_id": 2}
EXPERTS = {**SIZES, "num_local_experts": 4, "num_experts_per_tok": 2}
BERT = "BertForMaskedLM"


def rope(kind, **settings):
    return {"rope_parameters": {"rope_type": kind, "rope_theta": 10000.0, **settings}}


@pytest.fixture(autouse=True)
def no_gradients():
    hf.logging.set_verbosity_error()
    hf.logging.disable_progress_bar()
    with torch.no_grad():
        yield


@pytest.mark.slow
@pytest.mark.parametrize(
    ("cls", "settings"),
    [
        ("LlamaForCausalLM", GROUPED),
        ("BloomForCausalLM", BLOOM),
        ("OPTForCausalLM", {**SIZES, "ffn_dim": 48}),
        ("Gemma3ForCausalLM", {**GROUPED, "head_dim": 8, "sliding_window": 5}),
        (BERT, SIZES),
        ("RobertaForMaskedLM", LATE),
        ("T5ForConditionalGeneration", T5),
        ("BartForConditionalGeneration", PAIR),
        ("GPT2LMHeadModel", GPT2),
    ],
)
def test_no_law_accuses_these_models(cls, settings):
    more = {"word_embed_proj_dim": D} if cls.startswith("OPT") else {}
    assert gn.audit(tiny(cls, **settings, **more)).failed == ()


@pytest.mark.parametrize(
    ("cls", "settings", "architecture", "limit", "ends", "shift", "window"),
    [
        ("LlamaForCausalLM", GROUPED, "decoder-only", 64, False, "kept", None),
        ("LlamaModel", GROUPED, "decoder-only", 64, False, "kept", None),
        ("LlamaForCausalLM", GROUPED | rope("dynamic", factor=2.0), "decoder-only", 64, False, "unknown", None),
        (
            "LlamaForCausalLM",
            GROUPED | rope("yarn", factor=4.0, original_max_position_embeddings=16),
            "decoder-only",
            16,
            False,
            "kept",
            None,
        ),
        ("MistralForCausalLM", {**GROUPED, "sliding_window": 5}, "decoder-only", 64, False, "kept", 5),
        ("MistralForCausalLM", {**GROUPED, "sliding_window": None}, "decoder-only", 64, False, "kept", None),
        ("Gemma2ForCausalLM", {**GROUPED, "sliding_window": 5}, "decoder-only", 64, False, "kept", None),
        ("Qwen2ForCausalLM", {**GROUPED, "sliding_window": 5}, "decoder-only", 64, False, "kept", None),
        ("GPT2LMHeadModel", GPT2, "decoder-only", 32, True, "changed", None),
        ("GPTJForCausalLM", {**GPT2, "rotary_dim": 4}, "decoder-only", 32, True, "kept", None),
        ("BloomForCausalLM", BLOOM, "decoder-only", None, False, "unknown", None),
        (BERT, SIZES, "encoder-only", 64, True, "changed", None),
        ("RobertaForMaskedLM", LATE, "encoder-only", 64, True, "changed", None),
        ("MPNetForMaskedLM", MPNET, "encoder-only", 64, True, "changed", None),
        ("IBertForMaskedLM", LATE, "encoder-only", 64, True, "changed", None),
        ("YosoForMaskedLM", SIZES, "encoder-only", 64, True, "changed", None),
        ("MptForCausalLM", MPT, "decoder-only", 32, True, "unknown", None),
        ("BertLMHeadModel", {**SIZES, "is_decoder": True}, "decoder-only", 64, True, "changed", None),
        ("T5ForConditionalGeneration", T5, "encoder-decoder", None, False, "unknown", None),
        ("BartForConditionalGeneration", PAIR, "encoder-decoder", 64, True, "changed", None),
    ],
)
def test_what_a_config_says_is_known(cls, settings, architecture, limit, ends, shift, window):
    t = tiny(cls, **settings)
    assert (t.architecture, t.limit, t.table_ends, t.shift, t.window) == (architecture, limit, ends, shift, window)


def test_a_target_is_chosen_by_the_library_of_a_base_class():
    class Mine(hf.LlamaForCausalLM):
        pass

    assert type(target(Mine(hf.LlamaConfig(**GROUPED)))).__name__ == "Transformers"


@pytest.mark.parametrize(
    ("cls", "settings"),
    [
        ("LlamaForCausalLM", GROUPED),
        ("RobertaForMaskedLM", LATE),
        ("MPNetForMaskedLM", MPNET),
        ("IBertForMaskedLM", LATE),
        ("YosoForMaskedLM", SIZES),
    ],
)
def test_positions_count_from_0(cls, settings):
    t = tiny(cls, **settings)
    ids = t.ids(2, 5)
    assert torch.allclose(t.logits(ids, positions=torch.arange(5).expand(2, 5)), t.logits(ids), atol=1e-5)


def test_padding_is_the_id_that_positions_are_read_from():
    t = tiny("RobertaForMaskedLM", **LATE)
    mask = torch.tensor([[False, True, True, True]])
    ids = t.ids(1, 4)
    assert t.pad == 1
    assert torch.allclose(t.logits(ids, mask=mask)[:, 1:], t.logits(ids[:, 1:]), atol=1e-4)


def test_packed_documents_are_positions_that_begin_again():
    t = tiny("MistralForCausalLM", **GROUPED, sliding_window=4)
    ids, docs = t.ids(2, 7), torch.tensor([[0, 0, 0, 1, 1, 1, 1], [0, 1, 1, 1, 1, 2, 2]])
    apart = torch.cat([t.logits(ids[1:, part]) for part in (slice(0, 1), slice(1, 5), slice(5, 7))], 1)
    assert torch.allclose(t.logits(ids, docs=docs)[1:], apart, atol=1e-4)


@pytest.mark.parametrize(("cls", "settings"), [("OPTForCausalLM", {**SIZES, "word_embed_proj_dim": D}), (BERT, SIZES)])
def test_who_does_not_find_documents_is_not_asked(cls, settings):
    assert "packed" not in tiny(cls, **settings).can


def test_what_a_forward_hands_on_to_the_model_inside_is_taken_too():
    """GraniteMoe's head names no use_cache: without it every forward would keep one, and find no documents."""
    t = tiny("GraniteMoeForCausalLM", **EXPERTS)
    assert t.can >= {"cache", "cached mask", "cached positions", "reorder", "packed"}
    ids, docs = t.ids(1, 6), torch.tensor([[0, 0, 0, 1, 1, 1]])
    assert torch.allclose(t.logits(ids, docs=docs)[:, 3:], t.logits(ids[:, 3:]), atol=1e-4)


def test_what_a_forward_keeps_to_itself_is_not():
    assert "use_cache" not in tiny("LongformerForMaskedLM", **LATE, attention_window=[4] * LAYERS).takes


def test_an_embedding_that_gives_more_than_vectors_is_not_looked_into():
    with pytest.raises(NotApplicable, match="QuantEmbedding"):
        tiny("IBertForMaskedLM", **LATE).embedding()


@pytest.mark.parametrize(
    ("cls", "settings"),
    [
        ("MPNetForMaskedLM", MPNET),
        ("IBertForMaskedLM", LATE),
        ("MptForCausalLM", MPT),
        ("BigBirdForMaskedLM", {**SIZES, "attention_type": "original_full"}),
        ("SqueezeBertForMaskedLM", {**SIZES, "embedding_size": D, "q_groups": 2, "k_groups": 2, "v_groups": 2}),
    ],
)
def test_positions_padding_and_ends_of_these_are_not_accused(cls, settings):
    assert (
        gn.audit(
            tiny(cls, **settings), only=["left padding", "right padding", "past the table", "no two places"]
        ).failed
        == ()
    )


def test_a_model_without_positions_on_purpose_is_not_accused():
    law = "a position reaches attention"
    for layers, verdict in (([0] * LAYERS, "by design"), ([1] + [0] * (LAYERS - 1), "pass")):
        report = gn.audit(tiny("SmolLM3ForCausalLM", **GROUPED, no_rope_layers=layers), only=[law])
        assert report[law].verdict == verdict


def test_a_row_of_a_classifier_is_not_its_tokens():
    model = hf.BertForSequenceClassification(hf.BertConfig(**SIZES))
    t = target(model)
    with pytest.raises(NotApplicable, match=r"model\.base_model"):
        t.logits(t.ids(1, 3))
    inner = target(model.base_model)
    assert inner.logits(inner.ids(1, 3)).shape == (1, 3, D)


def test_a_model_without_weights_is_refused():
    with torch.device("meta"):
        model = hf.LlamaForCausalLM(hf.LlamaConfig(**GROUPED))
    with pytest.raises(BadValue, match="meta"):
        target(model)


def test_special_ids_are_never_drawn():
    t = tiny("LlamaForCausalLM", **{**GROUPED, "eos_token_id": [2, 7]})
    assert not {0, 1, 2, 7} & set(t.ids(8, 80).flatten().tolist())


def test_another_source_is_told():
    t = tiny("BartForConditionalGeneration", **PAIR)
    ids, source = t.ids(2, 4), t.ids(2, 6, stream=3)
    out = t.model(input_ids=source, decoder_input_ids=ids).logits
    assert torch.allclose(t.with_source(source).logits(ids), out, atol=1e-5)
    mask = torch.tensor([[True] * 6, [True] * 4 + [False] * 2])
    assert torch.allclose(
        t.with_source(source, mask).logits(ids)[1], t.with_source(source[1:, :4]).logits(ids[1:])[0], atol=1e-4
    )


@pytest.mark.parametrize(("cls", "settings"), [("LlamaForCausalLM", GROUPED), ("BartForConditionalGeneration", PAIR)])
def test_the_loss_is_of_each_token_given_those_before(cls, settings):
    t = tiny(cls, **settings)
    ids = t.ids(2, 6)
    want = torch.nn.functional.cross_entropy(t.logits(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())
    assert torch.allclose(t.loss(ids), want, atol=1e-5)


@pytest.mark.parametrize("length", [8, 40])
@pytest.mark.parametrize(
    "settings",
    [
        {},
        rope("linear", factor=4.0),
        rope("yarn", factor=4.0, original_max_position_embeddings=16),
        rope("llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=32),
        {**rope("dynamic", factor=2.0), "max_position_embeddings": 16},
        rope(
            "longrope",
            short_factor=[1.0, 1.1, 1.2, 1.4],
            long_factor=[1.0, 2.0, 4.0, 8.0],
            attention_factor=1.2,
            original_max_position_embeddings=16,
        ),
    ],
)
def test_the_table_is_the_promised_one(settings, length):
    got, want = tiny("LlamaForCausalLM", **GROUPED | settings).angles(length)
    assert torch.allclose(got, want, atol=1e-4)
    assert got.shape == (length, 4 + 1)


@pytest.mark.parametrize(
    ("cls", "settings", "pairs"),
    [
        ("CohereForCausalLM", GROUPED, 4),  # pairs side by side
        ("GPTNeoXForCausalLM", SIZES, 1),  # a quarter of a head
        ("Gemma3ForCausalLM", {**GROUPED, "head_dim": 8, "sliding_window": 5}, 4),  # one for each type of layer
    ],
)
def test_tables_of_all_shapes_are_read(cls, settings, pairs):
    got, want = tiny(cls, **settings).angles(6)
    assert got.shape == (6, pairs + 1)
    assert torch.allclose(got, want, atol=1e-5)


def test_ties_are_promised_by_the_config():
    assert tiny("Qwen2ForCausalLM", **GROUPED, tie_word_embeddings=True).promises_tie is True
    assert tiny("Qwen2ForCausalLM", **GROUPED, tie_word_embeddings=False).promises_tie is False
    assert tiny("Qwen2Model", **GROUPED).promises_tie is None


def test_a_saved_and_a_resized_model_are_targets_too(tmp_path):
    t = tiny("LlamaForCausalLM", **GROUPED)
    again, larger = t.save_and_load(tmp_path), t.resize(70)
    assert torch.equal(again.logits(t.ids(1, 4)), t.logits(t.ids(1, 4)))
    assert (t.vocab, larger.vocab) == (VOCAB, 70)
    assert larger.logits(t.ids(1, 4)).shape[-1] == 70


def test_what_is_meant_so_is_said_with_the_page_that_says_it():
    finding = gn.audit(tiny("GPT2LMHeadModel", **GPT2), only=["left padding changes nothing"]).findings[0]
    assert finding.verdict == "by design"
    assert "absolute position embeddings" in finding.note
    assert finding.link == "https://huggingface.co/docs/transformers/model_doc/gpt2"


def test_only_laws_that_there_are_are_broken_on_purpose():
    assert set(transformers_docs.ALL) | set(transformers_docs.LEFT) <= set(gn.audit.LAWS)


@pytest.mark.parametrize("kind", ["dynamic", "longrope"])
def test_a_table_that_changes_under_its_cache_is_found(kind):
    """As confirmed by hand for transformers 5.24: keys stay turned by the table that was in force before."""
    factors = {"short_factor": [1.0] * 4, "long_factor": [2.0, 3.0, 4.0, 8.0], "original_max_position_embeddings": 16}
    settings = rope(kind, **({"factor": 2.0} if kind == "dynamic" else factors))
    t = tiny("LlamaForCausalLM", **{**GROUPED, "max_position_embeddings": 16 if kind == "dynamic" else 64} | settings)
    assert gn.audit(t, only=["crossing the limit in decoding"]).failed
