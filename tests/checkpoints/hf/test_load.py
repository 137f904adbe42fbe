"""What is in a folder is read in full or refused by name; nothing that is opened can run code or fill the memory."""

import json
import pickle
import struct
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
import torch
from cases import ALL, case, rope
from parity import draw_ids, loaded
from safetensors.torch import load_file, save_file
from test_round_trip import rewrite
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

import gnomon as gn
from gnomon.checkpoints import load, save_model
from gnomon.checkpoints.hf import save_hf
from gnomon.checkpoints.hf.keys import Keys
from gnomon.checkpoints.hf.registry import family_of
from gnomon.checkpoints.weights import check_layer_count
from gnomon.errors import BadInput, BadValue
from gnomon.models import DecoderOnly, EncoderOnly
from gnomon.models.meta import build_on_meta

WEIGHTS, INDEX = "model.safetensors", "model.safetensors.index.json"
TABLE, HEAD = "model.embed_tokens.weight", "lm_head.weight"


@pytest.fixture
def folder(tmp_path) -> Path:
    """A tiny Llama, as the other library writes it."""
    case("llama", "").model().save_pretrained(tmp_path / "hf")
    return tmp_path / "hf"


def tensors(folder, change):
    """Rewrite the weights of a folder: `change` gets and returns a dict of them."""
    save_file(change(load_file(folder / WEIGHTS)), folder / WEIGHTS, {"format": "pt"})


def shard(folder, names=("a.safetensors", "b.safetensors")):
    """Turn one file into two and an index of them; returns the index."""
    weights = list(load_file(folder / WEIGHTS).items())
    placed = {}
    for file, part in zip(names, (weights[::2], weights[1::2]), strict=True):
        save_file(dict(part), folder / Path(file).name, {"format": "pt"})
        placed |= {name: file for name, _ in part}
    (folder / WEIGHTS).unlink()
    (folder / INDEX).write_text(json.dumps({"metadata": {}, "weight_map": placed}))
    return placed


# ------------------------------------------------------------------ settings


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model_type": "lama"}, "unknown model_type 'lama': did you mean 'llama'"),
        ({"model_type": 7}, "model_type must be a text"),
        ({"rope_scaling": {"rope_type": "yarm", "factor": 2.0}, "rope_parameters": ...}, "did you mean 'yarn'"),
        ({"rope_parameters": rope("linear", factor=2.0, twist=3)}, "twist = 3"),
        ({"rope_parameters": rope("linear")}, "no 'factor'"),
        ({"rope_parameters": rope("linear", factor=0.5)}, "at least 1"),
        ({"rope_scaling": {"type": "linear", "factor": 2.0}}, "say different things"),
        ({"alibi_heads": 4}, "alibi_heads = 4"),
        ({"attn_logit_softcapping": 50.0, "sink_tokens": 2}, "attn_logit_softcapping = 50.0, sink_tokens = 2"),
        ({"quantization_config": {"bits": 4}}, "quantization_config"),
        ({"hidden_act": "silu2"}, "unknown hidden_act 'silu2': did you mean 'silu'"),
        ({"hidden_size": "32"}, "hidden_size must be a whole number, got '32'"),
        ({"hidden_size": ...}, "has no 'hidden_size'"),
        ({"hidden_size": -32}, "-32"),
        ({"num_key_value_heads": 3}, "n_kv_heads=3"),
        ({"head_dim": 7}, "even"),
        ({"tie_word_embeddings": "no"}, "tie_word_embeddings must be true or false"),
    ],
)
def test_a_setting_that_is_not_understood_is_named(folder, changes, message):
    rewrite(folder, **changes)
    with pytest.raises(BadInput, match=message) as error:
        load(folder)
    assert "config.json" in str(error.value)


def test_settings_that_change_nothing_are_left_alone(folder):
    before = load(folder).config
    harmless = {"use_cache": False, "transformers_version": "9", "sliding_window": None}
    rewrite(folder, **harmless, pretraining_tp=2, task_specific_params={}, output_attentions=True)
    assert load(folder).config == before


@pytest.mark.parametrize("text", ["", "[]", "{", "[" * 10**5])
def test_a_config_that_is_no_object_is_refused(folder, text):
    (folder / "config.json").write_text(text)
    with pytest.raises(BadInput, match=r"config\.json"):
        load(folder)


# ------------------------------------------------------------------ weights


def test_missing_and_unused_weights_are_listed_together(folder):
    gone, new = "model.layers.1.mlp.up_proj.weight", "model.layers.1.mlp.extra.weight"
    tensors(folder, lambda weights: {(new if name == gone else name): x for name, x in weights.items()})
    with pytest.raises(BadInput, match=f"missing: {gone}; unused: {new}"):
        load(folder)


@pytest.mark.parametrize("key", ["vocab_size", "intermediate_size", "num_hidden_layers"])
def test_a_size_that_the_file_does_not_have_is_refused_with_both_numbers(folder, key):
    has = json.loads((folder / "config.json").read_text())[key]
    rewrite(folder, **{key: has + 1})
    with pytest.raises(BadInput, match="missing" if key == "num_hidden_layers" else rf"{has}.*expected.*{has + 1}"):
        load(folder)


class Frugal(TorchDispatchMode):
    """Few tensors are made inside the `with`, and none of many numbers."""

    calls = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        self.calls += 1
        assert self.calls < 5_000, "building it has begun"
        assert all(x.is_meta or x.numel() < 2**24 for x in tree_leaves(out) if isinstance(x, torch.Tensor))
        return out


@pytest.mark.parametrize("key", ["vocab_size", "intermediate_size", "num_hidden_layers", "head_dim"])
def test_a_size_that_no_memory_holds_is_refused_at_once(folder, key):
    rewrite(folder, **{key: 10_000 if key == "num_hidden_layers" else 2**20})
    with Frugal(), pytest.raises(BadInput):
        load(folder)


def test_a_run_folders_size_that_no_memory_holds_is_refused_at_once(tmp_path):
    save_model(DecoderOnly(vocab_size=9, d_model=8, n_layers=1, n_heads=2), tmp_path)
    about = json.loads((tmp_path / "config.json").read_text())
    for key, value in {"vocab_size": 2**31, "d_model": 2**20, "n_layers": 10_000}.items():
        wrong = about | {"model": about["model"] | {key: value}}
        (tmp_path / "config.json").write_text(json.dumps(wrong))
        with Frugal(), pytest.raises(BadInput, match="too few|expected"):
            load(tmp_path)


def test_a_tie_is_read_from_either_name_and_never_guessed(folder):
    """One table, the head alone, both and alike; both and different is an error unless the config says untied."""
    rewrite(folder, tie_word_embeddings=True)
    both = load_file(folder / WEIGHTS)

    def write(**weights):
        kept = {name: x for name, x in both.items() if name not in (TABLE, HEAD)}
        save_file({**kept, **weights}, folder / WEIGHTS, {"format": "pt"})

    one, other = both[TABLE], both[HEAD]
    for weights in ({TABLE: one}, {HEAD: one}, {TABLE: one, HEAD: one.clone()}):
        write(**weights)
        model = load(folder)
        assert torch.equal(model.input.tokens.weight, one)
        assert model.head.weight is model.input.tokens.weight
    write(**{TABLE: one, HEAD: other})
    with pytest.raises(BadInput, match="hold different numbers"):
        load(folder)
    rewrite(folder, tie_word_embeddings=False)
    model = load(folder)
    assert torch.equal(model.input.tokens.weight, one)
    assert torch.equal(model.head.weight, other)
    write(**{TABLE: one})
    with pytest.raises(BadInput, match=f"missing: {HEAD}"):
        load(folder)


def test_a_dtype_that_is_no_floating_type_is_refused(folder):
    tensors(folder, lambda weights: {name: x.to(torch.int8) for name, x in weights.items()})
    with pytest.raises(BadInput, match="is I8, which Gnomon does not compute in"):
        load(folder)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_weights_keep_their_dtype_or_take_the_one_asked_for(tmp_path, dtype):
    case("llama", "").model().to(dtype).save_pretrained(tmp_path)
    stored = load_file(tmp_path / WEIGHTS)
    assert load(tmp_path).input.tokens.weight.dtype == dtype
    wide = load(tmp_path, dtype="float32")
    assert all(weight.dtype == torch.float32 for weight in wide.parameters())
    assert torch.equal(wide.input.tokens.weight, stored[TABLE].float())


def test_mixed_dtypes_become_that_of_the_table(folder):
    tensors(folder, lambda weights: {name: x.half() if x.dim() == 2 else x for name, x in weights.items()})
    assert {weight.dtype for weight in load(folder).parameters()} == {torch.float16}


# ------------------------------------------------------------------ files


def test_shards_are_one_model(folder):
    whole = load(folder)
    shard(folder)
    assert all(torch.equal(a, b) for a, b in zip(whole.parameters(), load(folder).parameters(), strict=True))


def test_weights_in_one_file_and_in_shards_are_two_models(folder):
    """Neither wins: the error lists both. An index alone, or one that names the single file, is no second model."""
    single = (folder / WEIGHTS).read_bytes()
    placed = shard(folder)
    (folder / WEIGHTS).write_bytes(single)
    with pytest.raises(BadInput, match=r"model\.safetensors and in a\.safetensors, b\.safetensors"):
        load(folder)
    (folder / "a.safetensors").unlink()
    with pytest.raises(BadInput, match=r"model\.safetensors and in b\.safetensors"):
        load(folder)
    (folder / "b.safetensors").unlink()
    load(folder)
    (folder / INDEX).write_text(json.dumps({"weight_map": dict.fromkeys(placed, WEIGHTS)}))
    load(folder)


def test_a_model_saved_over_another_leaves_nothing_of_it(folder):
    """Shards, and files that say how vectors are made or texts begin, would be read as parts of the new one."""
    shard(folder)
    about = folder / "1_Pooling" / "config.json"
    about.parent.mkdir()
    about.write_text('{"pooling_mode_cls_token": true}')
    (folder / "special_tokens_map.json").write_text("{}")
    (folder / "README.md").write_text("mine")
    theirs = load(folder)
    theirs.tokenizer = gn.Tokenizer.characters(["ab"])
    with torch.no_grad():
        theirs.stack.norm.weight.add_(1)
    save_hf(theirs, folder)
    assert torch.equal(load(folder).stack.norm.weight, theirs.stack.norm.weight)
    left = {path.name for path in folder.rglob("*") if path.is_file()}
    new = {"config.json", "generation_config.json", WEIGHTS, "tokenizer.json", "tokenizer_config.json"}
    assert left == new | {"README.md"}


def test_a_folder_with_an_adapter_is_refused(folder):
    (folder / "adapter_config.json").write_text("{}")
    with pytest.raises(BadInput, match="merge"):
        load(folder)


def test_a_shard_that_is_missing_or_lacks_a_weight_is_named(folder):
    placed = shard(folder)
    name = next(iter(placed))
    index = {"weight_map": placed | {name: "b.safetensors"}}
    (folder / INDEX).write_text(json.dumps(index))
    with pytest.raises(BadInput, match=f"do not hold: {name}"):
        load(folder)
    (folder / "a.safetensors").unlink()
    with pytest.raises(BadInput, match=r"a\.safetensors is missing|do not hold"):
        load(folder)


@pytest.mark.parametrize(
    "bad", ["../a.safetensors", "/tmp/a.safetensors", "sub/a.safetensors", "..", "sub\\a.safetensors"]
)
def test_a_shard_outside_the_folder_is_refused_before_it_is_opened(folder, bad):
    placed = shard(folder)
    (folder / INDEX).write_text(json.dumps({"weight_map": dict.fromkeys(placed, bad)}))
    with pytest.raises(BadInput, match="in the same folder"):
        load(folder)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"weight_map": 3}', '{"weight_map": {"a": null}}'])
def test_a_broken_index_is_refused(folder, text):
    shard(folder)
    (folder / INDEX).write_text(text)
    with pytest.raises(BadInput, match="index|missing"):
        load(folder)


@pytest.mark.parametrize("keep", [0, 4, 8, 300, -1])
def test_a_download_that_was_cut_off_is_no_model(folder, keep):
    file = folder / WEIGHTS
    file.write_bytes(file.read_bytes()[:keep])
    with pytest.raises(BadInput, match="cut off"):
        load(folder)


@pytest.mark.parametrize("length", [2**63, 2**40, 90_000_000])
def test_a_header_of_absurd_length_is_refused_without_taking_memory(folder, length):
    (folder / WEIGHTS).write_bytes(struct.pack("<Q", length) + b"{}" * 20)
    with pytest.raises(BadInput, match="cut off"):
        load(folder)


@pytest.mark.parametrize("shape", [[2**40, 2**40], [2**62]])
def test_a_tensor_of_absurd_size_is_refused_without_taking_memory(folder, shape):
    header = json.dumps({TABLE: {"dtype": "F32", "shape": shape, "data_offsets": [0, 16]}}).encode()
    (folder / WEIGHTS).write_bytes(struct.pack("<Q", len(header)) + header + b"\0" * 16)
    with pytest.raises(BadInput, match="cut off"):
        load(folder)


class Bomb:
    """Leaves a marker if it is ever unpickled."""

    def __init__(self, marker):
        self.marker = marker

    def __reduce__(self):
        return Path.touch, (self.marker,)


@pytest.mark.parametrize("name", ["pytorch_model.bin", "model.pt", "pytorch_model-00001-of-00002.bin", "model.ckpt"])
def test_a_pickle_is_refused_with_a_way_out_and_never_run(folder, name):
    marker = folder / "ran"
    (folder / WEIGHTS).unlink()
    (folder / name).write_bytes(pickle.dumps(Bomb(marker)))
    for given in (folder, folder / name):
        with pytest.raises(BadInput, match=r"safetensors\.torch\.save_file"):
            load(given)
    assert not marker.exists()


def test_a_pickle_beside_safetensors_is_left_alone(folder):
    marker = folder / "ran"
    (folder / "training_args.bin").write_bytes(pickle.dumps(Bomb(marker)))
    load(folder)
    shard(folder)
    load(folder)
    assert not marker.exists()


# ------------------------------------------------------------------ the one entrance


def test_every_kind_of_folder_comes_in_by_one_function(folder, tmp_path):
    theirs = load(folder)
    save_model(theirs, tmp_path / "run")
    ids = draw_ids(1, 8)
    with torch.no_grad():
        assert torch.equal(gn.load(str(tmp_path / "run"))(ids), theirs(ids))


def test_another_architecture_than_needed_is_refused(folder):
    assert isinstance(load(folder, kind=DecoderOnly), DecoderOnly)
    with pytest.raises(BadInput, match=r"is decoder-only; this needs one that is encoder-only"):
        load(folder, kind=EncoderOnly)


def test_a_hub_name_comes_out_of_the_cache_without_a_network(folder, tmp_path, monkeypatch):
    """The hub library's own cache layout: refs/main names a commit, snapshots/COMMIT holds its files."""
    commit = "c" * 40
    home = tmp_path / "hub" / "models--someone--tiny-llama"
    (home / "refs").mkdir(parents=True)
    (home / "refs" / "main").write_text(commit)
    (home / "snapshots").mkdir()
    folder.rename(home / "snapshots" / commit)
    with offline(tmp_path, monkeypatch):
        assert load("someone/tiny-llama").config.n_layers == 2


def test_a_hub_name_that_is_not_there_says_what_to_do(tmp_path, monkeypatch):
    with (
        offline(tmp_path, monkeypatch),
        pytest.raises(BadInput, match="no folder someone/nothing.*HF_HOME"),
    ):
        load("someone/nothing")


def test_a_missing_folder_beside_existing_ones_is_not_looked_for_on_the_hub(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs").mkdir()
    with pytest.raises(BadInput, match="there is no run folder runs/mine"):
        load("runs/mine")


def offline(cache, monkeypatch):
    """The hub library reads its switches once, when it is imported."""
    from unittest.mock import patch

    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(cache / "hub"))
    return patch.object(constants, "HF_HUB_OFFLINE", True)


# ------------------------------------------------------------------ memory


PEAK = Path(__file__).parents[1] / "peak.py"


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/smaps_rollup").exists(), reason="Linux tells how much memory is private")
@pytest.mark.parametrize(("dtype", "most"), [("float32", 0.15), ("bfloat16", 1.15)])
def test_loading_takes_no_second_copy_of_the_model(tmp_path, folder, dtype, most):
    """Weights in the dtype of the file are mapped from it; others are converted one by one."""
    sizes = {"vocab_size": 8000, "d_model": 256, "n_layers": 6, "n_heads": 4, "d_ff": 1024, "gated": True}
    save_hf(gn.DecoderOnly(**sizes, bias=False, activation="silu", norm="rmsnorm"), tmp_path / "big")
    script = [sys.executable, str(PEAK), str(folder), str(tmp_path / "big"), dtype]
    taken, size = map(int, subprocess.run(script, capture_output=True, text=True, check=True).stdout.split())
    assert size > 2 * 8e6
    assert taken <= most * size


def test_a_model_mapped_from_a_file_can_be_trained_and_saved_over_it(folder):
    theirs = loaded(case("llama", "").model(), folder)
    before = {name: weight.clone() for name, weight in theirs.named_parameters()}
    torch.optim.SGD(theirs.parameters(), lr=1.0).zero_grad()
    theirs(draw_ids(1, 8)).logsumexp(-1).sum().backward()
    torch.optim.SGD(theirs.parameters(), lr=0.1).step()
    assert all(torch.equal(before[name], weight) for name, weight in load(folder).named_parameters())
    save_hf(theirs, folder)
    after = dict(load(folder).named_parameters())
    assert all(torch.equal(after[name], weight) for name, weight in theirs.named_parameters())
    assert not torch.equal(after["input.tokens.weight"], before["input.tokens.weight"])


# ------------------------------------------------------------------ anything at all


STRANGE = [0, -1, 10**30, 1e308, float("inf"), "x", [0], {"a": 1}, True, None]


@pytest.mark.parametrize("family", sorted({one.family for one in ALL}))
def test_whatever_stands_under_a_key_the_answer_is_a_model_or_a_named_fault(family, tmp_path):
    """Every key of a config, those of its parts too, under every kind of value."""
    one = next(one for one in reversed(ALL) if one.family == family)
    data = json.loads(one.config.to_json_string(use_diff=False))
    parts = [data, *(value for value in data.values() if isinstance(value, dict))]
    seen = set()
    places = [(part, key) for part in parts for key in part if key != "model_type"]
    for part, key in places:
        was = part[key]
        for value in STRANGE:
            part[key] = value
            with suppress(BadInput, BadValue):
                keys = Keys(data, tmp_path / "config.json", ["final_logits_bias"])
                config = family_of(keys).config(keys)
                if repr(config) not in seen:
                    seen.add(repr(config))
                    check_layer_count(config, 100, tmp_path)
                    build_on_meta(config)
        part[key] = was
    assert len(seen) > 1
