"""What was loaded is written back bit for bit, in files that the other library reads as the same model."""

import json

import pytest
import torch
import transformers as hf
from cases import ALL, ENCODER_DECODERS, case, rope
from parity import draw_ids, loaded
from safetensors.torch import load_file

import gnomon as gn
from gnomon.checkpoints import gguf, load, save_model
from gnomon.checkpoints.hf import family_for, save_hf
from gnomon.data import Tokenizer
from gnomon.errors import BadValue
from gnomon.models import build, preset
from gnomon.positions.scaling import NTK, YaRN

#: what may be in the other library's file and is not written: a bias that an untied BERT does not add, and sinusoids
UNUSED = {"cls.predictions.bias", *(f"model.{side}.embed_positions.weight" for side in ("encoder", "decoder"))}


def answer(model, one):
    """What the other library's model says."""
    ids = draw_ids(2, 16)
    more = {"decoder_input_ids": draw_ids(2, 8)} if one in ENCODER_DECODERS else {}
    with torch.no_grad():
        out = model(input_ids=ids, **more)
    return out.logits if "logits" in out else out.last_hidden_state


@pytest.mark.parametrize("one", ALL, ids=str)
def test_a_loaded_model_is_written_back_bit_for_bit(tmp_path, one):
    theirs = one.model()
    ours = loaded(theirs, tmp_path / "theirs")
    save_hf(ours, tmp_path / "ours", one.family)
    before, after = (load_file(tmp_path / name / "model.safetensors") for name in ("theirs", "ours"))
    assert before.keys() - after.keys() <= (UNUSED if one.family in ("bert", "deberta-v2", "pegasus") else set())
    assert after.keys() <= before.keys()
    assert all(torch.equal(after[name], before[name]) for name in after)
    again = type(theirs).from_pretrained(tmp_path / "ours").eval()
    torch.testing.assert_close(answer(again, one), answer(theirs, one), rtol=0, atol=0)


@pytest.mark.parametrize("one", ALL, ids=str)
def test_through_a_run_folder_nothing_changes(tmp_path, one):
    ours = loaded(one.model(), tmp_path / "hf")
    save_model(ours, tmp_path / "run")
    again = load(tmp_path / "run")
    assert again.config == ours.config
    assert (again.ends, again.start) == (ours.ends, ours.start)
    assert all(torch.equal(a, b) for a, b in zip(again.parameters(), ours.parameters(), strict=True))


SMALL = {"d_model": 32, "n_layers": 2, "n_heads": 4}
YARN = gn.positions.get("rope", scaling=YaRN(4.0, 16))
PRESETS = {
    "gpt2-small": ("gpt2", {**SMALL, "max_positions": 32}),
    "mini-gpt": ("gpt2", {}),
    "mini-llama": ("llama", {}),
    "mini-llama, untied": ("llama", {"tied": False}),
    "mini-llama, YaRN": ("llama", {"position": YARN, "max_positions": 64}),
    "mini-llama, another base by NTK": ("llama", {"position": gn.positions.get("rope", scaling=NTK(4.0))}),
    "mini-llama, a window": ("mistral", {"window": 8}),
    "mini-llama, windows above": ("qwen2", {"window": [None, 8, None, 8], "qkv_bias": True}),
    "mini-llama, norms on heads": ("qwen3", {"qk_norm": True}),
    "mini-llama, layers without": ("smollm3", {"position": ["rope", "none", "rope", "none"]}),
    "mini-llama, neighbouring channels": ("ernie4_5", {"position": gn.positions.get("rope", pairing="interleaved")}),
    "mini-llama, scaled": ("granite", {"residual_scale": 0.3, "head_scale": 0.2, "tied": False}),
    "mini-llama, norms behind": ("olmo2", {"placement": "branch", "qk_norm": "joint"}),
    "bert-base": ("bert", {**SMALL, "max_positions": 64, "vocab_size": 100}),
}


@pytest.mark.parametrize("name", PRESETS)
def test_a_model_of_our_own_is_loaded_by_the_other_library(tmp_path, name):
    family, changes = PRESETS[name]
    torch.manual_seed(3)
    ours = build(preset(name.split(",")[0], **changes)).eval()
    save_hf(ours, tmp_path)
    assert json.loads((tmp_path / "config.json").read_text())["model_type"] == family
    auto = hf.AutoModel if family == "bert" else hf.AutoModelForCausalLM
    ids = draw_ids(2, 30) % ours.config.vocab_size
    with torch.no_grad():
        out = auto.from_pretrained(tmp_path).eval()(ids)
        want = out.pooler_output if family == "bert" else out.logits
        torch.testing.assert_close(ours(ids), want, rtol=0, atol=1e-5 * max(1.0, want.abs().max().item()))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"position": "alibi"}, "position"),
        ({"softcap": 30.0}, "softcap"),
        ({"position": [gn.positions.get("rope"), gn.positions.get("rope", base=5e5)] * 2}, "position"),
        ({"sinks": True}, "sinks"),
    ],
)
def test_what_no_family_can_say_is_refused_by_name_and_writes_nothing(tmp_path, changes, message):
    with pytest.raises(BadValue, match=message):
        save_hf(build(preset("mini-llama", **changes)), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_family_that_turns_other_channels_together_says_how_to_reorder_them():
    with pytest.raises(BadValue, match=r"channel i with i \+ d/2.*pairing_order.*ernie4_5"):
        family_for(preset("mini-llama", position=gn.positions.get("rope", pairing="interleaved")), "llama")
    with pytest.raises(BadValue, match=r"channel 2i with 2i \+ 1.*pairing_order.*llama"):
        family_for(preset("mini-llama"), "ernie4_5")


def test_a_named_family_must_hold_the_model():
    with pytest.raises(BadValue, match="this model is no gpt2, which cannot say"):
        family_for(preset("mini-llama"), "gpt2")
    with pytest.raises(BadValue, match="did you mean 'llama'"):
        family_for(preset("mini-llama"), "lama")


@pytest.mark.parametrize("family", ["gpt2", "llama", "t5", "bart", "bert"])
def test_a_tie_is_one_tensor_in_the_file_and_in_memory(tmp_path, family):
    one = next(one for one in ALL if one.family == family and one.config.tie_word_embeddings)
    ours = loaded(one.model(), tmp_path / "hf")
    tables = [name for name, weight in ours.named_parameters() if weight.shape == ours.input.tokens.weight.shape]
    assert tables == ["input.tokens.weight"]
    save_hf(ours, tmp_path / "out")
    shapes = [tuple(x.shape) for x in load_file(tmp_path / "out" / "model.safetensors").values()]
    assert shapes.count(tuple(ours.input.tokens.weight.shape)) == 1


def test_a_vector_for_a_sentence_keeps_how_it_is_made(tmp_path):
    """A folder of sentence-transformers pools the mean, whatever else its weights hold."""
    one = next(one for one in ALL if one.family == "bert" and one.what == "Model")
    one.model().save_pretrained(tmp_path / "hf")
    about = tmp_path / "hf" / "1_Pooling" / "config.json"
    about.parent.mkdir()
    about.write_text(json.dumps({"word_embedding_dimension": 32, "pooling_mode_mean_tokens": True}))
    ours = load(tmp_path / "hf")
    assert (ours.config.pooling, ours.config.pooler) == ("mean", False)
    save_hf(ours, tmp_path / "out")
    assert load(tmp_path / "out").config == ours.config
    ids = draw_ids(2, 9)
    with torch.no_grad():
        want = one.model()(ids).last_hidden_state.mean(1)
        torch.testing.assert_close(ours(ids), want, rtol=0, atol=1e-5)


def test_a_sentence_is_read_within_the_marks_that_its_tokenizer_expects(tmp_path):
    """Sentence vectors of a BERT are those of [CLS] text [SEP]."""
    import tokenizers
    from tokenizers import models, pre_tokenizers, processors

    from gnomon.models.similarity import sentence_vectors

    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "the", "dog", "bit", "man", "x"]
    core = tokenizers.Tokenizer(models.WordPiece({word: i for i, word in enumerate(words)}, unk_token="[UNK]"))
    core.pre_tokenizer = pre_tokenizers.Whitespace()
    core.add_special_tokens(words[:4])
    core.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    theirs = next(one for one in ALL if one.family == "bert" and one.what == "Model").model()
    theirs.save_pretrained(tmp_path)
    core.save(str(tmp_path / "tokenizer.json"))
    found = sentence_vectors(load(tmp_path), ["the dog bit", "man"])
    with torch.no_grad():
        want = [theirs(torch.tensor([ids])).pooler_output[0] for ids in ([2, 4, 5, 6, 3], [2, 7, 3])]
    torch.testing.assert_close(found, torch.stack(want), rtol=0, atol=1e-5)


def test_classes_keep_their_names(tmp_path):
    theirs = case("bert", "", "ForSequenceClassification", id2label={0: "bad", 1: "good"}).model()
    ours = loaded(theirs, tmp_path / "hf")
    assert ours.labels == ("bad", "good")
    save_hf(ours, tmp_path / "out")
    again = hf.AutoModelForSequenceClassification.from_pretrained(tmp_path / "out")
    assert again.config.id2label == {0: "bad", 1: "good"}


def test_ends_and_start_go_along(tmp_path):
    theirs = next(one for one in ALL if one.family == "marian").model()
    theirs.generation_config.eos_token_id = [2, 7]
    ours = loaded(theirs, tmp_path / "hf")
    assert (ours.ends, ours.start) == ((2, 7), 2)
    save_hf(ours, tmp_path / "out")
    assert (load(tmp_path / "out").ends, load(tmp_path / "out").start) == ((2, 7), 2)
    assert hf.GenerationConfig.from_pretrained(tmp_path / "out").eos_token_id == [2, 7]


@pytest.mark.parametrize("family", ["t5", "bart", "marian"])
def test_a_translator_starts_and_ends_by_its_own_marks(tmp_path, family):
    theirs, source = next(one for one in ALL if one.family == family).model(), draw_ids(2, 12)
    theirs.generation_config.eos_token_id = None
    written = theirs.generate(source, max_new_tokens=9, do_sample=False)[:, 1:].tolist()
    theirs.generation_config.eos_token_id = [written[0][3], written[1][5]]
    ours = loaded(theirs, tmp_path)
    rows = [row.ids for row in ours.generate(source=source, max_new_tokens=9)]
    assert rows == [row[: next(n for n, i in enumerate(row) if i in ours.ends) + 1] for row in written]
    assert [len(row) < 9 for row in rows] == [True, True]
    assert [row.ids for row in ours.generate(source=source, max_new_tokens=9, eos_ids=None)] == written


def test_a_vocabulary_without_its_merges_is_no_tokenizer(tmp_path):
    """Marian's folders have a vocab.json, and SentencePiece models of their own names beside it."""
    next(one for one in ALL if one.family == "marian").model().save_pretrained(tmp_path)
    (tmp_path / "vocab.json").write_text('{"</s>": 0}')
    assert load(tmp_path).tokenizer is None


def test_the_tokenizer_goes_along(tmp_path):
    ours = build(preset("mini-llama"))
    ours.tokenizer = Tokenizer.bytes()
    save_hf(ours, tmp_path)
    again = load(tmp_path)
    assert again.tokenizer.encode("niño") == ours.tokenizer.encode("niño")
    assert again.ends == (ours.tokenizer.eos_id,)
    assert hf.AutoTokenizer.from_pretrained(tmp_path)("niño")["input_ids"] == ours.tokenizer.encode("niño")


MARKS = {"unk_token": "<unk>", "bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>"}


def marked_tokenizer():
    """Bytes, then four control tokens that have their parts by name."""
    import tokenizers

    core = tokenizers.Tokenizer.from_str(Tokenizer.bytes().to_json())
    core.add_special_tokens([*MARKS.values()])
    spec = json.loads(core.to_str())
    spec["model"]["unk_token"] = MARKS["unk_token"]
    spec["model"]["vocab"][MARKS["unk_token"]] = 257
    return Tokenizer(json.dumps(spec), MARKS)


@pytest.mark.parametrize("through", ["hf", "gguf", "run folder"])
def test_the_marks_of_a_tokenizer_are_told_to_the_other_library(tmp_path, through):
    """Begin- and end-of-text, unknown and padding, whatever file the model was in before."""
    ours = build(preset("mini-llama"))
    ours.tokenizer = marked_tokenizer()
    if through == "gguf":
        ours = load(gguf.save(ours, tmp_path / "m.gguf"))
    elif through == "run folder":
        ours = load(save_model(ours, tmp_path / "run"))
    save_hf(ours, tmp_path / "out")
    config, tokenizer = (cls.from_pretrained(tmp_path / "out") for cls in (hf.AutoConfig, hf.AutoTokenizer))
    ids = {name: tokenizer.convert_tokens_to_ids(mark) for name, mark in MARKS.items()}
    assert ids == {"unk_token": 257, "bos_token": 258, "eos_token": 259, "pad_token": 260}
    assert {name: getattr(tokenizer, name) for name in MARKS} == MARKS
    assert {name: getattr(config, f"{name}_id") for name in MARKS} == ids
    config = hf.GenerationConfig.from_pretrained(tmp_path / "out")
    assert (config.bos_token_id, config.eos_token_id, config.pad_token_id) == (258, 259, 260)
    again = load(tmp_path / "out")
    assert (again.tokenizer.names, again.ends) == (ours.tokenizer.names, (259,))


# ------------------------------------------------------------------ both schemas, older names


def rewrite(folder, **changes):
    """Change keys of config.json; `...` takes one out."""
    data = json.loads((folder / "config.json").read_text()) | changes
    (folder / "config.json").write_text(json.dumps({key: value for key, value in data.items() if value is not ...}))


SCALED = {
    "linear": {"factor": 4.0},
    "dynamic": {"factor": 2.0},
    "yarn": {"factor": 4.0, "original_max_position_embeddings": 16, "attention_factor": 1.1, "beta_fast": 20.0},
    "llama3": {
        "factor": 8.0,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": 32,
    },
    "proportional": {"factor": 2.0, "partial_rotary_factor": 0.5},
}


@pytest.mark.parametrize("word", ["type", "rope_type"])
@pytest.mark.parametrize("kind", SCALED)
def test_the_older_spelling_of_a_scaling_says_the_same(tmp_path, kind, word):
    new = rope(kind, **SCALED[kind])
    ours = loaded(case("llama", "", rope_parameters=new).model(), tmp_path)
    old = {word: kind, **SCALED[kind]}
    rewrite(tmp_path, rope_parameters=..., rope_theta=10000.0, rope_scaling=old)
    assert load(tmp_path).config == ours.config


def test_the_older_spelling_of_gemmas_two_bases_says_the_same(tmp_path):
    one = next(one for one in ALL if one.family == "gemma3_text" and "scaled" in one.what)
    ours = loaded(one.model(), tmp_path)
    scaling = {"rope_type": "linear", "factor": 2.0}
    rewrite(tmp_path, rope_parameters=..., rope_theta=10000.0, rope_local_base_freq=100.0, rope_scaling=scaling)
    assert load(tmp_path).config == ours.config


def test_names_of_older_files_are_known(tmp_path):
    """A body alone without its prefix, masks and frequencies kept as tensors, gamma and beta, a second task's head."""
    from safetensors.torch import save_file

    def renamed(family, rename, **extra):
        one = next(one for one in ALL if one.family == family)
        folder = tmp_path / family
        ours = loaded(one.model(), folder)
        file = folder / "model.safetensors"
        save_file({rename(name): x for name, x in load_file(file).items()} | extra, file, {"format": "pt"})
        again = load(folder)
        return all(torch.equal(a, b) for a, b in zip(ours.parameters(), again.parameters(), strict=True))

    assert renamed("gpt2", lambda name: name.removeprefix("transformer."), **{"h.0.attn.bias": torch.ones(1)})
    assert renamed("llama", str, **{"model.layers.1.self_attn.rotary_emb.inv_freq": torch.ones(1)})
    assert renamed("gpt_neox", str, **{"gpt_neox.layers.0.attention.rotary_emb.inv_freq": torch.ones(1)})
    old = ("bert.pooler.dense.weight", "cls.seq_relationship.bias", "bert.embeddings.position_ids")
    norm = {"LayerNorm.weight": "LayerNorm.gamma", "LayerNorm.bias": "LayerNorm.beta"}

    def bert(name):
        return next((name.replace(new, was) for new, was in norm.items() if name.endswith(new)), name)

    assert renamed("bert", bert, **{name: torch.ones(1) for name in old})
