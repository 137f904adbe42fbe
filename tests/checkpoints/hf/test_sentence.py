"""Vectors of texts are those of sentence-transformers: the transformers library's body, and its modules in numpy."""

import json

import numpy as np
import pytest
import torch
import transformers as hf
from cases import case, drawn
from safetensors.torch import load_file, save_file

import gnomon as gn
from gnomon.checkpoints import load, save_hf, save_model
from gnomon.errors import BadInput, BadValue
from gnomon.models.similarity import sentence_vectors

WORDS = ["<s>", "<pad>", "</s>", "[UNK]", "query", ":", "a", "b", "ab", "##b", "##a", "ñ", "passage", "<mask>"]
TEXTS = ["a b", "ab ab b ñ a b", "b", "aab: b"]
WIDTH, DENSE = 32, 12
BODIES = [case(family, "Model", "Model", vocab_size=60) for family in ("mpnet", "xlm-roberta", "bert")]
BODIES.append(case("modernbert", "Model", "Model", vocab_size=60, pad_token_id=1))


def module(n, name, path):
    return {"idx": n, "name": str(n), "path": path, "type": f"sentence_transformers.models.{name}"}


def folder_of(one, folder, mode, dense, unit, prompts=None):
    """A folder of sentence-transformers, and its body."""
    body = drawn(one.cls(one.config)).eval()
    body.save_pretrained(folder)
    (folder / "vocab.txt").write_text("\n".join(WORDS) + "\n")
    (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "MPNetTokenizer"}))
    modules = [module(0, "Transformer", ""), module(1, "Pooling", "1_Pooling")]
    (folder / "1_Pooling").mkdir()
    modes = {f"pooling_mode_{name}": name == mode for name in ("mean_tokens", "cls_token", "max_tokens")}
    (folder / "1_Pooling" / "config.json").write_text(json.dumps({"word_embedding_dimension": WIDTH, **modes}))
    if dense:
        modules.append(module(2, "Dense", "2_Dense"))
        about = {"in_features": WIDTH, "out_features": DENSE, "bias": True}
        about["activation_function"] = "torch.nn.modules.activation.Tanh"
        (folder / "2_Dense").mkdir()
        (folder / "2_Dense" / "config.json").write_text(json.dumps(about))
        weights = {"linear.weight": 0.2 * torch.randn(DENSE, WIDTH), "linear.bias": torch.randn(DENSE)}
        save_file(weights, folder / "2_Dense" / "model.safetensors")
    if unit:
        modules.append(module(len(modules), "Normalize", f"{len(modules)}_Normalize"))
    (folder / "modules.json").write_text(json.dumps(modules))
    if prompts is not None:
        (folder / "config_sentence_transformers.json").write_text(json.dumps(prompts))
    return body


def by_hand(body, folder, texts, mode, dense, unit):
    """The modules, one after the other."""
    tokenizer = hf.MPNetTokenizer.from_pretrained(folder)
    found = []
    for text in texts:
        with torch.no_grad():
            states = body(torch.tensor([tokenizer(text)["input_ids"]])).last_hidden_state[0].numpy()
        v = states.mean(0) if mode == "mean_tokens" else states[0]
        if dense:
            weights = {name: x.numpy() for name, x in load_file(folder / "2_Dense" / "model.safetensors").items()}
            v = np.tanh(weights["linear.weight"] @ v + weights["linear.bias"])
        found.append(v / np.linalg.norm(v) if unit else v)
    return torch.from_numpy(np.stack(found))


@pytest.mark.parametrize(
    ("mode", "dense", "unit"),
    [
        ("mean_tokens", False, True),
        ("cls_token", True, True),
        ("mean_tokens", True, False),
        ("cls_token", False, False),
    ],
)
@pytest.mark.parametrize("one", BODIES, ids=str)
def test_a_text_has_the_vector_that_the_modules_give(tmp_path, one, mode, dense, unit):
    torch.manual_seed(2)
    body = folder_of(one, tmp_path / "theirs", mode, dense, unit)
    want = by_hand(body, tmp_path / "theirs", TEXTS, mode, dense, unit)
    ours = load(tmp_path / "theirs")
    torch.testing.assert_close(sentence_vectors(ours, TEXTS), want, atol=2e-5, rtol=1e-5)
    for again in (load(save_hf(ours, tmp_path / "hf")), load(save_model(ours, tmp_path / "run"))):
        torch.testing.assert_close(sentence_vectors(again, TEXTS), want, atol=2e-5, rtol=1e-5)
        assert again.config == ours.config


def test_a_prompt_is_put_before_each_text(tmp_path):
    """The usual one without a name; each by its name; and they are kept."""
    prompts = {"prompts": {"query": "query: ", "passage": "passage: "}, "default_prompt_name": "passage"}
    body = folder_of(BODIES[0], tmp_path / "theirs", "mean_tokens", False, True, prompts)
    ours = load(tmp_path / "theirs")
    for model in (ours, load(save_hf(ours, tmp_path / "hf")), load(save_model(ours, tmp_path / "run"))):
        for name, before in (("query", "query: "), (None, "passage: ")):
            texts = [before + text for text in TEXTS]
            want = by_hand(body, tmp_path / "theirs", texts, "mean_tokens", False, True)
            torch.testing.assert_close(sentence_vectors(model, TEXTS, prompt=name), want, atol=2e-5, rtol=1e-5)
    with pytest.raises(BadValue, match="unknown prompt of this model 'qery': did you mean 'query'"):
        sentence_vectors(ours, TEXTS, prompt="qery")


@pytest.mark.parametrize(
    ("file", "data", "said"),
    [
        (
            "modules.json",
            [module(0, "Transformer", ""), module(1, "Pooling", "1_Pooling"), module(2, "WordWeights", "2")],
            "WordWeights",
        ),
        ("modules.json", [module(0, "Transformer", ""), module(1, "Pooling", "../1_Pooling")], "outside of it"),
        ("modules.json", {"a": 1}, "no list of modules"),
        ("1_Pooling/config.json", {"pooling_mode_max_tokens": True}, "ways of pooling"),
        (
            "1_Pooling/config.json",
            {"pooling_mode_mean_tokens": True, "include_prompt": False},
            "include_prompt is false",
        ),
        ("sentence_bert_config.json", {"do_lower_case": True}, "do_lower_case"),
        ("config_sentence_transformers.json", {"prompts": {}, "default_prompt_name": "query"}, "default_prompt_name"),
        ("2_Dense/config.json", {"out_features": 3, "activation_function": "x.Sigmoid"}, "Tanh"),
    ],
)
def test_what_would_make_other_vectors_is_refused(tmp_path, file, data, said):
    folder_of(BODIES[2], tmp_path, "mean_tokens", True, False)
    (tmp_path / file).write_text(json.dumps(data))
    with pytest.raises(BadInput, match=said):
        load(tmp_path)


def test_a_body_in_a_folder_of_vectors_is_a_body_whatever_class_it_was(tmp_path):
    """all-mpnet-base-v2 says MPNetForMaskedLM, and holds no such head."""
    folder_of(BODIES[0], tmp_path, "mean_tokens", False, True)
    about = json.loads((tmp_path / "config.json").read_text()) | {"architectures": ["MPNetForMaskedLM"]}
    (tmp_path / "config.json").write_text(json.dumps(about))
    assert load(tmp_path).config.head == "pooled"


def test_a_vector_of_another_width_needs_a_layer():
    with pytest.raises(BadValue, match="d_pooled of its pooler"):
        gn.EncoderOnly(20, 8, 1, 2, head="pooled", d_pooled=4)
