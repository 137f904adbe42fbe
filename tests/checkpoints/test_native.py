"""What is saved comes back bit for bit, or says what is wrong with it; and nothing that is opened can run code."""

import copy
import errno
import json
import os
import pickle
import resource
import shutil
import signal
import struct
from pathlib import Path

import pytest
import torch
from click.testing import CliRunner
from torch import nn

import gnomon as gn
from gnomon.checkpoints import load, save_model
from gnomon.checkpoints.native import fill, plain_name, read_tensors, write_tensors
from gnomon.data import Tokenizer
from gnomon.errors import BadInput, BadValue
from gnomon.models import DecoderOnly
from gnomon.positions import PositionEncoding, names
from gnomon.positions import base as positions_base

IDS = torch.tensor([[3, 1, 4, 1, 5], [9, 2, 6, 5, 3]])


def model_of(position="rope", **changes) -> DecoderOnly:
    torch.manual_seed(2)
    sizes = {"vocab_size": 300, "d_model": 16, "n_layers": 2, "n_heads": 2, "max_positions": 8}
    return DecoderOnly(**(sizes | changes), position=position).eval()


@pytest.fixture
def saved(tmp_path) -> Path:
    """A run folder."""
    return save_model(model_of(), tmp_path / "run", Tokenizer.bytes())


def rewrite(folder: Path, **changes) -> None:
    """Change keys of config.json; `...` takes one out."""
    data = json.loads((folder / "config.json").read_text()) | changes
    (folder / "config.json").write_text(json.dumps({key: value for key, value in data.items() if value is not ...}))


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


# ------------------------------------------------------------------ there and back


@pytest.mark.parametrize("position", [*names(), ["rope", "alibi"]])
@pytest.mark.parametrize("tied", [True, False])
def test_a_loaded_model_gives_the_same_bits(tmp_path, position, tied):
    model = model_of(position, tied=tied, dropout=0.5)
    save_model(model, tmp_path)
    again = gn.load(tmp_path)
    assert again(IDS).equal(model(IDS))
    assert again.config == model.config


@pytest.mark.parametrize("changes", [
    {"n_kv_heads": 1, "norm": "rmsnorm", "gated": True, "bias": False}, {"placement": "post", "d_head": 6},
    {"d_embed": 4, "padding_id": 0}, {"window": 3, "embed_scale": "sqrt"}, {"causal": False},
])  # fmt: skip
def test_every_shape_of_model_comes_back(tmp_path, changes):
    model = model_of("sinusoidal", **changes)
    assert load(save_model(model, tmp_path))(IDS).equal(model(IDS))


def test_options_of_an_encoding_come_back(tmp_path):
    model = model_of(gn.positions.get("rope", base=500.0))
    assert load(save_model(model, tmp_path)).config.position == gn.positions.get("rope", base=500.0)


def test_a_loaded_model_is_ready_to_use_its_dropout_asleep(tmp_path):
    again = load(save_model(model_of(dropout=0.9).train(), tmp_path))
    assert again(IDS).equal(again(IDS))
    assert not any(part.training for part in again.modules())


def test_the_tokenizer_comes_back(saved):
    again = load(saved)
    assert again.tokenizer.sha256 == Tokenizer.bytes().sha256
    assert again.generate("a", max_new_tokens=2)[0].prompt_ids == [97]


def test_the_names_of_classes_come_back_and_most_models_have_none(tmp_path):
    model = DecoderOnly(50, 8, 1, 2)
    assert load(save_model(model, tmp_path / "plain")).labels is None
    assert "labels" not in json.loads((tmp_path / "plain" / "config.json").read_text())
    model.labels = ("año", "name", "other")
    assert load(save_model(model, tmp_path / "named")).labels == model.labels
    file = tmp_path / "named" / "config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"labels": "name"}))
    with pytest.raises(BadInput, match=r"config\.json: labels must be a list of texts"):
        load(tmp_path / "named")


def test_a_models_own_tokenizer_is_saved_and_one_of_bare_ids_has_none(tmp_path):
    model = model_of()
    assert load(save_model(model, tmp_path / "bare")).tokenizer is None
    model.tokenizer = Tokenizer.bytes()
    assert load(save_model(model, tmp_path / "text")).tokenizer is not None


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16, torch.float16])
def test_the_dtype_comes_back_and_another_can_be_asked_for(tmp_path, dtype):
    model = model_of().to(dtype)
    save_model(model, tmp_path)
    assert {p.dtype for p in load(tmp_path).parameters()} == {dtype}
    for asked in (torch.float32, "float32", "auto"):
        assert {p.dtype for p in load(tmp_path, dtype=asked).parameters()} <= {torch.float32, torch.bfloat16}
    assert load(tmp_path, dtype="float32").stack.norm.weight.equal(model.stack.norm.weight.float())


def test_a_model_of_two_dtypes_is_refused_before_anything_is_written(tmp_path):
    model = model_of()
    model.stack.norm.double()
    with pytest.raises(BadValue, match="float32 and float64"):
        save_model(model, tmp_path / "run")
    assert not contents(tmp_path)


def test_the_device_is_chosen_by_name_or_object(saved):
    for device in ("cpu", "auto", torch.device("cpu")):
        assert isinstance(load(saved, device=device), DecoderOnly)
    with pytest.raises(BadValue, match="device"):
        load(saved, device="gpu")


def test_loading_leaves_the_random_state_alone(saved):
    torch.manual_seed(7)
    expected = torch.rand(3)
    torch.manual_seed(7)
    load(saved)
    assert torch.rand(3).equal(expected)


def test_no_computed_table_is_saved_so_max_positions_may_change(tmp_path):
    for position in ("sinusoidal", "rope", "alibi"):
        folder = save_model(model_of(position, max_positions=16), tmp_path / position)
        expected = load(folder)
        expected(torch.ones(1, 20, dtype=torch.long))  # longer than it was built for
        assert not any("position" in name for name in read_tensors(folder / "model.safetensors")[0])
        for rows in (8, 32):
            config = json.loads((folder / "config.json").read_text())
            rewrite(folder, model={**config["model"], "max_positions": rows})
            assert load(folder)(IDS).equal(expected(IDS))


def test_the_padding_row_stays_zero(tmp_path):
    again = load(save_model(model_of(padding_id=4), tmp_path))
    assert again.input.tokens.weight[4].eq(0).all()
    assert again.input.tokens.weight[5].ne(0).any()


# ------------------------------------------------------------------ ties


def is_tied(model: DecoderOnly) -> bool:
    """By identity, and by what a change of the table does to the logits."""
    before = model(IDS)
    with torch.no_grad():
        model.input.tokens.weight[200:] += 1.0  # rows that IDS does not look up
    after = model(IDS)
    moved = not after[..., 200:].equal(before[..., 200:]) and after[..., :200].equal(before[..., :200])
    return model.head.weight is model.input.tokens.weight and moved


def assigned(model: DecoderOnly, folder: Path) -> DecoderOnly:
    new = model_of()
    new.load_state_dict(read_tensors(folder / "model.safetensors")[0], assign=True)
    return new


def materialized(model: DecoderOnly, folder: Path) -> DecoderOnly:
    with torch.device("meta"):
        new = model_of()
    new.to_empty(device="cpu")
    fill(new, read_tensors(folder / "model.safetensors")[0], folder)
    return new


def saved_twice(model: DecoderOnly, folder: Path) -> DecoderOnly:
    return load(save_model(load(folder), folder.with_name("again")))


@pytest.mark.parametrize(
    "path",
    [
        lambda model, folder: load(folder), assigned, materialized, saved_twice,
        lambda model, folder: load(folder, dtype="float64"), lambda model, folder: copy.deepcopy(load(folder)),
        lambda model, folder: load(folder).half().float(),
    ],
    ids=["load", "assign", "meta", "twice", "cast", "deepcopy", "there and back"],
)  # fmt: skip
def test_a_tie_survives_every_way_of_loading(saved, path):
    again = path(model_of(), saved)
    assert is_tied(again)
    assert sum(p.numel() for p in again.parameters()) == sum(p.numel() for p in model_of().parameters())


def test_a_tied_table_is_stored_once_and_an_untied_head_beside_it(tmp_path):
    tied, untied = model_of(), model_of(tied=False)
    sizes = []
    for name, model in (("tied", tied), ("untied", untied)):
        tensors, _ = read_tensors(save_model(model, tmp_path / name) / "model.safetensors")
        assert ("head.weight" in tensors) is (name == "untied")
        sizes.append(sum(tensor.nbytes for tensor in tensors.values()))
        assert sizes[-1] == 4 * sum(p.numel() for p in model.parameters())
    assert sizes[1] - sizes[0] == 4 * 300 * 16


# ------------------------------------------------------------------ wrappers


class Wrapper(nn.Module):
    """What DistributedDataParallel looks like from outside."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module


def test_a_compiled_and_wrapped_model_saves_like_a_plain_one(tmp_path):
    model = model_of()
    model.tokenizer = Tokenizer.bytes()
    save_model(model, tmp_path / "plain")
    compiled = torch.compile(model, backend="eager")
    model.stack.blocks[1] = torch.compile(model.stack.blocks[1], backend="eager")
    assert any("_orig_mod" in name for name in compiled.state_dict())
    save_model(Wrapper(compiled), tmp_path / "wrapped")
    assert contents(tmp_path / "wrapped") == contents(tmp_path / "plain")


def test_names_that_others_saved_with_a_wrappers_prefix_are_understood(saved):
    tensors, _ = read_tensors(saved / "model.safetensors")
    expected = load(saved)(IDS)
    write_tensors(saved / "model.safetensors", {f"module._orig_mod.{name}": t for name, t in tensors.items()})
    assert load(saved)(IDS).equal(expected)


def test_a_plain_file_fills_a_wrapped_model(saved):
    model = model_of()
    nn.init.zeros_(model.stack.norm.weight)
    fill(Wrapper(torch.compile(model, backend="eager")), read_tensors(saved / "model.safetensors")[0], saved)
    assert model(IDS).equal(load(saved)(IDS))


@pytest.mark.parametrize(
    ("name", "plain"),
    [("module._orig_mod.norm.weight", "norm.weight"), ("blocks.0._orig_mod.ffn.up.bias", "blocks.0.ffn.up.bias"),
     ("norm.weight", "norm.weight"), ("submodule.weight", "submodule.weight")],
)  # fmt: skip
def test_prefixes_of_wrappers_are_taken_off_and_nothing_else(name, plain):
    assert plain_name(name) == plain


def test_a_weight_under_two_names_is_refused(saved):
    tensors, _ = read_tensors(saved / "model.safetensors")
    write_tensors(saved / "model.safetensors", {**tensors, "module.stack.norm.weight": torch.ones(16)})
    with pytest.raises(BadInput, match="a weight twice"):
        load(saved)


def test_only_models_of_ours_are_saved(tmp_path):
    with pytest.raises(BadValue, match="got Linear"):
        save_model(nn.Linear(2, 2), tmp_path / "run")


# ------------------------------------------------------------------ what does not fit


def test_weights_that_are_missing_unused_or_different_are_all_listed(saved):
    tensors, _ = read_tensors(saved / "model.safetensors")
    del tensors["stack.norm.bias"]
    tensors["extra.weight"] = torch.ones(1)
    tensors["stack.norm.weight"] = torch.ones(17)
    tensors["stack.blocks.0.ffn.up.bias"] = tensors["stack.blocks.0.ffn.up.bias"].double()
    write_tensors(saved / "model.safetensors", tensors)
    with pytest.raises(BadInput) as error:
        load(saved)
    for part in (
        "missing: stack.norm.bias", "unused: extra.weight",
        "stack.norm.weight is (17,) float32, expected (16,) float32",
        "stack.blocks.0.ffn.up.bias is (64,) float64, expected (64,) float32",
    ):  # fmt: skip
        assert part in str(error.value)


def test_a_file_of_another_model_names_the_first_weights_and_counts_the_rest(saved):
    write_tensors(saved / "model.safetensors", {"other": torch.ones(1)})
    with pytest.raises(BadInput, match=r"missing: .*stack\.blocks\.0\..* and \d+ more; unused: other"):
        load(saved)


def test_what_does_not_fit_changes_nothing(saved):
    model, tensors = model_of(d_model=16), read_tensors(saved / "model.safetensors")[0]
    before = copy.deepcopy(model.state_dict())
    del tensors["stack.norm.bias"]
    with pytest.raises(BadInput):
        fill(model, {name: tensor + 1 for name, tensor in tensors.items()}, saved)
    assert all(tensor.equal(before[name]) for name, tensor in model.state_dict().items())


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "tokenizer.json"])
@pytest.mark.parametrize("harm", ["missing", "empty", "cut off", "noise"])
def test_a_file_that_is_missing_or_damaged_is_named(saved, name, harm):
    data = (saved / name).read_bytes()
    (saved / name).unlink()
    if harm != "missing":
        new = {"empty": b"", "cut off": data[: len(data) // 2], "noise": os.urandom(200)}[harm]
        (saved / name).write_bytes(new)
    with pytest.raises(BadInput, match=name.replace(".", r"\.")):
        load(saved)


def test_every_length_of_a_cut_off_weights_file_is_refused(saved):
    data = (saved / "model.safetensors").read_bytes()
    for length in (1, 7, 8, 9, 100, len(data) // 3, len(data) - 1):
        (saved / "model.safetensors").write_bytes(data[:length])
        with pytest.raises(BadInput, match="cut off"):
            load(saved)


def test_a_header_of_absurd_length_is_refused_without_its_memory(saved):
    (saved / "model.safetensors").write_bytes(struct.pack("<Q", 2**62) + b"{}")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(BadInput):
        load(saved)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - peak < 100_000  # kilobytes


BAD_CONFIGS = {
    "no model": ({"model": ...}, "it has no 'model'"),
    "a newer format": ({"format": 2}, "reads format 1"),
    "an unknown dtype": ({"dtype": "float8"}, "dtype must be one of"),
    "a model that is a list": ({"model": []}, "model an object"),
    "an unknown key": ({"model": {"vocab_size": 9, "d_modle": 8}}, "did you mean 'd_model'"),
    "a missing key": ({"model": {"vocab_size": 9}}, "needs d_model"),
    "a value of the wrong type": ({"model": {"vocab_size": 9, "d_model": "x", "n_layers": 1, "n_heads": 1}}, "d_model"),
    "heads that do not divide": ({"model": {"vocab_size": 9, "d_model": 9, "n_layers": 1, "n_heads": 2}}, "n_heads=2"),
    "a foreign config": ({"model": ..., "sizes": [2, 4]}, "not written by Gnomon"),
}


@pytest.mark.parametrize("case", BAD_CONFIGS)
def test_a_config_that_makes_no_sense_is_named_with_its_file(saved, case):
    changes, message = BAD_CONFIGS[case]
    rewrite(saved, **changes)
    with pytest.raises(BadInput, match=message) as error:
        load(saved)
    assert "config.json" in str(error.value)


def test_a_config_that_is_no_object_is_named(saved):
    (saved / "config.json").write_text("[1]")
    with pytest.raises(BadInput, match="JSON list"):
        load(saved)


def test_a_tokenizer_of_a_larger_vocabulary_is_refused(saved):
    Tokenizer.bpe(["abab" * 50 + "xyzw" * 50, "".join(map(chr, range(300, 700)))], 400).save(saved)
    with pytest.raises(BadInput, match="the model of config.json knows 300"):
        load(saved)


def test_an_encoding_that_is_not_known_says_how_to_make_it_known(tmp_path, monkeypatch):
    monkeypatch.setattr(positions_base, "_REGISTRY", dict(positions_base._REGISTRY))
    mine = type("Mine", (PositionEncoding,), {"name": "mine", "__doc__": "Mine."})
    model = model_of("mine")
    for folder, position in (("one", "mine"), ("list", ["rope", "mine"])):
        save_model(model_of(position), tmp_path / folder)
    assert load(tmp_path / "one")(IDS).equal(model(IDS))
    del positions_base._REGISTRY["mine"]
    for folder in ("one", "list"):
        with pytest.raises(BadInput, match=r"unknown position encoding 'mine'.*--import MODULE"):
            load(tmp_path / folder)
    assert mine.name == "mine"


@pytest.mark.parametrize(
    ("path", "message"),
    [("nowhere", "there is no run folder"), ("run/config.json", "is a file: give the run folder")],
)
def test_what_is_no_folder_is_named(saved, path, message):
    with pytest.raises(BadInput, match=message):
        load(saved.parent / path)


# ------------------------------------------------------------------ nothing is unpickled


class Bomb:
    """Writes a file when it is unpickled."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self):
        return Path.touch, (self.marker,)


@pytest.fixture
def bomb(tmp_path) -> tuple[bytes, bytes, Path]:
    """The bytes of a pickle, those of a torch file, and the marker that either leaves when it is opened."""
    marker = tmp_path / "went off"
    torch.save({"weight": Bomb(marker)}, tmp_path / "bomb.pt")
    data = (tmp_path / "bomb.pt").read_bytes()
    pickle.loads(pickle.dumps(Bomb(marker)))
    assert marker.exists()  # so that the test could see it go off
    marker.unlink()
    return pickle.dumps(Bomb(marker)), data, marker


@pytest.mark.parametrize("name", ["model.pt", "pytorch_model.bin", "model.ckpt", "model.pth", "model.pkl"])
def test_a_pickle_file_is_refused_with_the_way_out_and_never_opened(tmp_path, bomb, name):
    for n, data in enumerate(bomb[:2]):
        folder = tmp_path / f"folder{n}"
        folder.mkdir()
        (folder / name).write_bytes(data)
        for path in (folder, folder / name):
            with pytest.raises(BadInput, match="weights_only=True"):
                load(path)
    assert not bomb[2].exists()


def test_a_pickle_under_any_name_that_we_read_is_never_opened(saved, bomb):
    from gnomon.cli.main import cli
    from gnomon.train import read_state

    for data in bomb[:2]:
        for name in ("config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"):
            folder = shutil.copytree(saved, saved.with_name("copy"), dirs_exist_ok=True)
            (folder / name).write_bytes(data)
            with pytest.raises(BadInput):
                load(folder)
            with pytest.raises(BadInput):
                read_state(folder)
            assert CliRunner().invoke(cli, ["generate", str(folder), "--prompt", "a"]).exit_code == 3
            assert CliRunner().invoke(cli, ["train", "--resume", str(folder), "--quiet"]).exit_code == 3
    assert not bomb[2].exists()


# ------------------------------------------------------------------ crashes


def test_a_full_disk_leaves_what_was_there(saved, monkeypatch):
    def full(path: Path, *args) -> None:
        path.write_bytes(b"half")
        raise OSError(errno.ENOSPC, "No space left on device")

    before, expected = contents(saved), load(saved)(IDS)
    monkeypatch.setattr("gnomon.checkpoints.native.write_tensors", full)
    with pytest.raises(BadInput, match="No space left on device; what it held is as it was"):
        save_model(model_of(d_model=8), saved)
    assert contents(saved) == before
    assert load(saved)(IDS).equal(expected)


@pytest.mark.parametrize("limit", [100, 5_000, 50_000])
def test_a_limit_on_the_size_of_files_leaves_what_was_there(saved, limit):
    """The kernel itself refuses to write on: in a process of its own, whose files may not grow past the limit."""
    before, model = contents(saved), model_of(d_ff=2000)
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
        try:
            save_model(model, saved, Tokenizer.bytes())
        except BadInput:
            os._exit(3)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3
    assert contents(saved) == before


def test_a_kill_while_the_weights_are_written_leaves_the_old_model(saved, monkeypatch):
    def killed(path: Path, *args) -> None:
        path.write_bytes(b"half")
        os.kill(os.getpid(), signal.SIGKILL)

    expected, model = load(saved)(IDS), model_of(d_model=8)
    monkeypatch.setattr("gnomon.checkpoints.native.write_tensors", killed)
    child = os.fork()
    if child == 0:
        save_model(model, saved)
    assert os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGKILL
    assert load(saved)(IDS).equal(expected)


def test_another_model_replaces_the_first_as_a_whole(saved):
    save_model(model_of("alibi", d_model=8), saved)
    assert load(saved).config.d_model == 8
    assert sorted(contents(saved)) == ["config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"]


def test_a_folder_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(BadInput, match="cannot write .*file"):
        save_model(model_of(), tmp_path / "file" / "run")


@pytest.mark.parametrize("shift", range(0, 64, 8))
def test_a_loaded_model_computes_the_same_bits_wherever_its_weights_lie_in_the_file(tmp_path, shift):
    """The order of additions hangs on the address: gates of shared experts, and single tokens, are such products."""
    experts = {"n_experts": 2, "top_k": 1, "d_ff": 8, "shared": 8, "shared_gate": True}
    model = DecoderOnly(50, 48, 2, 2, experts=experts, max_positions=16).eval()
    save_model(model, tmp_path / "a")
    file = tmp_path / "a" / "model.safetensors"
    size = int.from_bytes(file.read_bytes()[:8], "little")
    content = file.read_bytes()
    moved = content[8 : 8 + size].rstrip() + b" " * (shift + size - len(content[8 : 8 + size].rstrip()))
    file.write_bytes(len(moved).to_bytes(8, "little") + moved + content[8 + size :])
    ids = torch.randint(0, 50, (2, 7))
    again = load(tmp_path / "a")
    assert torch.equal(again(ids), model(ids))
    assert torch.equal(again(ids[:, :1]), model(ids[:, :1]))
