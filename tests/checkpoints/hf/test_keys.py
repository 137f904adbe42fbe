"""Every key of a config.json is read, refused by name, or in the one list of those that change nothing."""

import copy
import json
from contextlib import suppress
from pathlib import Path

import pytest
import torch
from cases import ALL, ENCODER_DECODERS, drawn
from parity import draw_ids
from settings import as_older_files, other_values, places, value_at, with_value

from gnomon.checkpoints import load
from gnomon.checkpoints.hf import FAMILIES
from gnomon.checkpoints.hf.harmless import HARMLESS
from gnomon.checkpoints.hf.keys import Keys
from gnomon.checkpoints.hf.registry import family_of
from gnomon.errors import BadInput, BadValue
from gnomon.positions import get

HERE = Path("config.json")
#: keys of the run, not of the model, whose other values only change what kind of object comes out there
OUTPUTS = ("return_dict", "output_attentions", "dtype")


def first_case(family):
    return next(one for one in ALL if one.family == family)


def whole_config(one):
    """All that its class writes, defaults too."""
    return json.loads(one.config.to_json_string(use_diff=False)) | {"architectures": [one.cls.__name__]}


def read(data):
    keys = Keys(data, HERE)
    return family_of(keys).config(keys)


@pytest.mark.parametrize("one", ALL, ids=str)
def test_every_key_that_a_class_writes_is_accounted_for(one):
    read(whole_config(one))
    read(json.loads(one.config.to_json_string(use_diff=True)) | {"architectures": [one.cls.__name__]})


@pytest.mark.parametrize("family", FAMILIES)
def test_every_key_at_another_value_is_read_refused_or_listed(family):
    data = whole_config(first_case(family))
    before, silent = read(data), []
    for path in places(data):
        for value in other_values(value_at(data, path)):
            keys = Keys(with_value(data, path, value), HERE)
            with suppress(BadInput, BadValue):
                after = family_of(keys).config(keys)
                listed = {*path, ".".join((family, *path))} & HARMLESS.keys()
                if after == before and not listed and path[0] not in keys._read:
                    silent.append((path, value))
    assert silent == []


INVENTED = [
    "use_alibi", "rope_interleave", "logit_scale", "attention_multiplier", "embedding_multiplier", "hidden_clip",
    "depth_scaled", "post_ffn_layernorm", "twist", "value_residual", "num_experts", "clip_qkv",
]  # fmt: skip


@pytest.mark.parametrize("value", [True, False, 0.5, "x", {"a": 1}])
@pytest.mark.parametrize("family", FAMILIES)
def test_a_key_that_nobody_knows_is_an_error_that_names_it(family, value):
    data = whole_config(first_case(family))
    for key in INVENTED:
        if key not in data:
            with pytest.raises(BadInput, match=f"{key}"):
                read(data | {key: value})


def test_only_what_is_listed_is_left_out_and_each_has_a_reason():
    assert len(HARMLESS) < 200
    assert all(len(reason) > 10 for reason in HARMLESS.values())
    assert {name.split(".")[0] for name in HARMLESS if "." in name} - {"transformers"} <= set(FAMILIES)


def logits(model, family, vocab_size, theirs):
    ids = draw_ids(2, 40) % vocab_size
    with torch.no_grad():
        if family in {one.family for one in ENCODER_DECODERS}:
            source, target = ids, ids[:, :9]
            return model(input_ids=source, decoder_input_ids=target).logits if theirs else model(source, target)
        out = model(ids)
    return out if not theirs else out.logits if "logits" in out else out.pooler_output


def their_answer(one, data):
    """A model of that library with this config, and its logits; None where it makes none of it."""
    try:
        config = type(one.config).from_dict(copy.deepcopy(data))
        torch.manual_seed(5)
        model = drawn(one.cls(config)).eval()
        return model, logits(model, one.family, config.vocab_size, theirs=True)
    except Exception:  # whatever its code says of a value that it cannot use
        return None


def our_answer(one, data, model, folder):
    """Our logits with that library's model and this config, through files."""
    model.save_pretrained(folder)
    (folder / "config.json").write_text(json.dumps(data))
    (folder / "generation_config.json").unlink(missing_ok=True)
    return logits(load(folder), one.family, data["vocab_size"], theirs=False)


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_another_value_under_any_key_means_here_what_it_means_there(tmp_path, family):
    """The judge is the library that wrote the class: with every key changed, its logits or a refusal."""
    one = first_case(family)
    data = whole_config(one)
    paths = [where for where in places(data) if where[-1] not in OUTPUTS]
    others = [(where, value) for where in paths for value in other_values(value_at(data, where))]
    read_alike(one, {str(other): with_value(data, *other) for other in others}, tmp_path)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:`rope_scaling` is deprecated")
@pytest.mark.parametrize("family", FAMILIES)
def test_what_older_files_say_means_here_what_it_means_there(tmp_path, family):
    one = first_case(family)
    read_alike(one, dict(enumerate(as_older_files(whole_config(one)))), tmp_path)


def read_or_error(data):
    """The config as text. BadInput is the refusal; where only the config refuses (BadValue), load must still refuse."""
    try:
        return repr(read(data))
    except BadValue as error:
        return str(error)


def read_alike(one, configs, tmp_path):
    """Every config that makes a model there makes one with its logits here, or is refused. Many keys change nothing
    here: what is read as the same config and has the same weights has the same answer."""
    far, known = {}, {}
    for n, (what, data) in enumerate(configs.items()):
        with suppress(BadInput):
            config = read_or_error(data)
            if (theirs := their_answer(one, data)) is None:
                continue
            model, want = theirs
            same = config, *((name, weight.sum().item()) for name, weight in model.state_dict().items())
            if same not in known:
                known[same] = our_answer(one, data, model, tmp_path / str(n))
            far[what] = (known[same] - want).abs().max().item() / (2e-5 * max(1.0, want.abs().max().item()))
    assert len(far) > 20
    assert [what if isinstance(what, str) else configs[what] for what, x in far.items() if not x <= 1] == []


# ------------------------------------------------------------------ what is said twice, and null


ROPE = {"rope_type": "linear", "factor": 2.0, "rope_theta": 5e5}


def test_rotary_settings_said_twice_are_read_where_they_agree():
    data = whole_config(first_case("llama")) | {"rope_parameters": ROPE}
    once = read(data)
    assert once.position.options["base"] == 5e5
    assert read(data | {"rope_scaling": ROPE}) == once
    assert read(data | {"rope_scaling": ROPE, "rope_theta": 5e5}) == once
    assert read(data | {"rope_parameters": None, "rope_scaling": ROPE}) == once


@pytest.mark.parametrize(
    "second",
    [{"rope_scaling": ROPE | {"rope_theta": 1e4}}, {"rope_scaling": ROPE | {"factor": 3.0}}, {"rope_theta": 1e4}],
)
def test_rotary_settings_said_twice_and_differently_are_refused(second):
    data = whole_config(first_case("llama")) | {"rope_parameters": ROPE}
    with pytest.raises(BadInput, match="say different things"):
        read(data | second)


@pytest.mark.parametrize(("family", "key", "other"), [("bloom", "n_embed", 64), ("bart", "num_hidden_layers", 3)])
def test_a_size_under_two_names_is_refused_where_they_disagree(family, key, other):
    with pytest.raises(BadInput, match="say different things"):
        read(whole_config(first_case(family)) | {key: other})


@pytest.mark.parametrize("family", ["llama", "mistral", "qwen2", "qwen3", "smollm3"])
@pytest.mark.parametrize("where", ["beside", "within"])
def test_a_part_of_a_head_is_refused_where_that_library_turns_all_of_it(family, where):
    data = whole_config(first_case(family))
    part = {"partial_rotary_factor": 0.5}
    config = part if where == "beside" else {"rope_parameters": {"rope_type": "default", "rope_theta": 1e4, **part}}
    with pytest.raises(BadInput, match=r"partial_rotary_factor is 0\.5, which .* ignores .*gpt_neox or phi3"):
        read(data | config)


@pytest.mark.parametrize("family", ["qwen2", "qwen3", "smollm3"])
def test_windows_that_layer_types_names_and_the_switch_denies_are_refused(family):
    """Some kernels of that library hide far tokens then, and others do not."""
    data = whole_config(first_case(family))
    data |= {"layer_types": ["sliding_attention", *["full_attention"] * (data["num_hidden_layers"] - 1)]}
    for denied in ({"use_sliding_window": False, "sliding_window": 4}, {"sliding_window": None}):
        with pytest.raises(BadInput, match="layer_types names layers with a window"):
            read(data | denied)
    assert read(data | {"use_sliding_window": True, "sliding_window": 4}).window[0] == 4


def test_capped_scores_are_refused_where_that_librarys_code_never_caps_them():
    with pytest.raises(BadInput, match=r"attn_logit_softcapping is 50\.0; .*only without it"):
        read(whole_config(first_case("gemma3_text")) | {"attn_logit_softcapping": 50.0})


def test_names_that_a_familys_code_leaves_out_may_only_repeat_what_it_reads():
    """GPT-NeoX's code takes rotary_emb_base and rotary_pct, Gemma 3's no scaling under "type"."""
    neox = whole_config(first_case("gpt_neox"))
    del neox["rope_parameters"]
    twice = {"rotary_emb_base": 5e5, "rope_theta": 5e5, "rotary_pct": 0.5, "partial_rotary_factor": 0.5}
    assert read(neox | twice).position == get("rope", base=5e5, rotary_dim=4)
    for key in ("rope_theta", "partial_rotary_factor"):
        with pytest.raises(BadInput, match=key):
            read(neox | {key: twice[key]})
    gemma = whole_config(first_case("gemma3_text"))
    gemma["rope_parameters"] = None
    assert read(gemma | {"rope_scaling": {"rope_type": "linear", "factor": 2.0}}) != read(gemma)
    with pytest.raises(BadInput, match="name it under rope_type"):
        read(gemma | {"rope_scaling": {"type": "linear", "factor": 2.0}})


def test_gemmas_rotary_settings_stand_in_one_object_for_each_type_of_layer():
    """That library looks for those two and leaves out what stands beside them."""
    data = whole_config(first_case("gemma3_text"))
    with pytest.raises(BadInput, match="rope_theta"):
        read(data | {"rope_parameters": data["rope_parameters"] | {"rope_theta": 5.0}})


NULLS = [("llama", "hidden_act"), ("opt", "activation_function"), ("gpt2", "activation_function")]
NULLS += [("llama", "rms_norm_eps"), ("gpt2", "tie_word_embeddings"), ("gpt_neox", "attention_bias")]
NULLS += [("t5", "feed_forward_proj"), ("bert", "hidden_act"), ("qwen3", "head_dim")]


@pytest.mark.parametrize(("family", "key"), NULLS)
def test_null_is_not_a_default(family, key):
    with pytest.raises(BadInput, match=key):
        read(whole_config(first_case(family)) | {key: None})


def test_null_is_no_base():
    data = whole_config(first_case("llama"))
    with pytest.raises(BadInput, match="rope_theta is null"):
        read(data | {"rope_parameters": {"rope_type": "default", "rope_theta": None}})


def test_yarn_needs_its_factor_or_the_length_to_compute_it_from():
    data = whole_config(first_case("llama"))
    with pytest.raises(BadInput, match="yarn needs its factor"):
        read(data | {"rope_parameters": {"rope_type": "yarn"}})
    trained = {"rope_type": "yarn", "original_max_position_embeddings": 16}
    assert read(data | {"rope_parameters": trained}).position.options["scaling"]["factor"] == 4.0


@pytest.mark.parametrize("key", ["clip_qkv", "qk_ln", "prefix_lm", "attn_uses_sequence_id"])
def test_what_else_mpts_attention_may_do_is_refused_by_name(key):
    data = whole_config(first_case("mpt"))
    with pytest.raises(BadInput, match=key):
        read(with_value(data, ("attn_config", key), 0.5 if key == "clip_qkv" else True))
