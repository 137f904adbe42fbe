"""A run folder with damaged, foreign or older files: read, or refused by name, and nothing is lost."""

import json
import shutil
from dataclasses import fields
from pathlib import Path

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

from gnomon.checkpoints.native import read_tensors, write_tensors
from gnomon.errors import BadInput, BadValue
from gnomon.models import DecoderOnly
from gnomon.train import TrainConfig, read_metrics, read_state, resume, train
from gnomon.train.state import OF_FORMAT_2

pytestmark = pytest.mark.usefixtures("no_pictures")


def test_every_file_of_a_run_that_is_missing_or_cut_off_is_named(text, build, config, tmp_path):
    train(build(), text.task(config()), config(steps=1), tmp_path / "whole", quiet=True)
    whole = tmp_path / "whole"
    files = ["config.json", "model.safetensors", "tokenizer.json", "training/step-1/state.json"]
    for name in [*files, "training/step-1/optimizer.safetensors"]:
        for harm in ("missing", "cut off"):
            folder = shutil.copytree(whole, tmp_path / f"{harm} {name.replace('/', ' ')}")
            data = (folder / name).read_bytes()
            (folder / name).unlink()
            if harm == "cut off":
                (folder / name).write_bytes(data[: len(data) // 2])
            with pytest.raises(BadInput, match=Path(name).name):
                resume(folder, text.task(config()), changes={"steps": 2}, quiet=True)


def test_an_optimizer_of_another_model_is_refused(text, build, config, tmp_path):
    for name, changes in (("narrow", {}), ("wide", {"d_ff": 24}), ("deep", {"n_layers": 2})):
        train(build(**changes), text.task(config()), config(steps=1), tmp_path / name, quiet=True)
    file = "training/step-1/optimizer.safetensors"
    whole, _ = read_tensors(tmp_path / "narrow" / file)
    whole = {name: tensor.clone() for name, tensor in whole.items()}  # the file is written over below
    less = {name: tensor for name, tensor in whole.items() if not name.startswith("stack.norm.weight")}
    others = [read_tensors(tmp_path / name / file)[0] for name in ("wide", "deep")]
    messages = ["has shape", "belongs to none of its weights", "lacks stack.norm.weight"]
    for tensors, message in zip([*others, less], messages, strict=True):
        write_tensors(tmp_path / "narrow" / file, tensors)
        with pytest.raises(BadInput, match=f"does not fit the model: .*{message}"):
            resume(tmp_path / "narrow", text.task(config()), changes={"steps": 2}, quiet=True)


DAMAGE = [
    {"step": None},
    {"step": "1"},
    {"step": True},
    {"step": 1.0},
    {"data": 3},
    {"origin": []},
    {"more": 1},
    {"config": []},
    {"config": {"stepz": 1}},
    {"config": {"steps": 0}},
    {"config": {"seed": 0.5}},
    {"config": {"steps": "6"}},
    {"config": {"lr": None}},
    {"config": {"lr": 10**400}},
    {"config": {"steps": 2**50}},
    {"config": {"seed": 2**64}},
    {"config": {"dtype": []}},
    {"config": {"clip": "none"}},
]


@pytest.fixture(scope="module")
def trained(text, tmp_path_factory) -> Path:
    """A run of one step; copy it."""
    torch.manual_seed(5)
    model = DecoderOnly(text.tokenizer.vocab_size, d_model=16, n_layers=1, n_heads=2, max_positions=8)
    model.tokenizer, folder = text.tokenizer, tmp_path_factory.mktemp("trained") / "run"
    ran = TrainConfig(steps=1, batch_size=2, length=8, eval_windows=4)
    train(model, text.task(ran), ran, folder, quiet=True)
    return folder


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_state_that_makes_no_sense_is_named(trained, tmp_path, damage):
    file = shutil.copytree(trained, tmp_path / "run") / "training" / "step-1" / "state.json"
    data = json.loads(file.read_text()) | damage
    file.write_text(json.dumps({key: value for key, value in data.items() if value is not None}))
    with pytest.raises(BadInput, match=r"state\.json is damaged"):
        read_state(tmp_path / "run")


def test_a_state_of_another_step_than_the_weights_is_refused(text, trained, tmp_path):
    into = shutil.copytree(trained, tmp_path / "run") / "training" / "step-1"
    whole = (into / "state.json").read_text()
    (into / "state.json").write_text(whole.replace('"step": 1,', '"step": 3,'))
    with pytest.raises(BadInput, match="of step 3, but the weights beside it are of step 1"):
        read_state(tmp_path / "run")
    (into / "state.json").write_text(whole)
    task = text.task(read_state(tmp_path / "run").config)
    tensors = {name: tensor.clone() for name, tensor in read_tensors(into / "optimizer.safetensors")[0].items()}
    moved = {name: tensor + 2 if name.endswith(".step") else tensor for name, tensor in tensors.items()}
    for wrong, message in ((moved, "of step 3, but the weights beside it are of step 1"), ({}, "lacks")):
        write_tensors(into / "optimizer.safetensors", wrong)
        with pytest.raises(BadInput, match=message):
            resume(tmp_path / "run", task, quiet=True)


@pytest.mark.parametrize("step", ["../../elsewhere", "", "one", "-1", "1.0", "9" * 30])
def test_weights_that_name_no_step_are_refused(trained, tmp_path, step):
    file = shutil.copytree(trained, tmp_path / "run") / "model.safetensors"
    write_tensors(file, {name: tensor.clone() for name, tensor in read_tensors(file)[0].items()}, {"step": step})
    with pytest.raises(BadInput, match="damaged: it says that it is of step"):
        read_state(tmp_path / "run")


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
KEYS = ["step", "data", "origin", "config", *(f"config.{field.name}" for field in fields(TrainConfig))]


@given(key=st.sampled_from(KEYS), value=ANYTHING)
@settings(max_examples=80, deadline=None)
def test_whatever_stands_in_a_state_it_is_read_or_refused(trained, key, value):
    file = trained / "training" / "step-1" / "state.json"
    whole = file.read_text()
    data = json.loads(whole)
    table = data["config"] if "." in key else data
    table[key.removeprefix("config.")] = value
    try:
        file.write_text(json.dumps(data))
        read_state(trained)
    except (BadInput, BadValue):
        pass
    finally:
        file.write_text(whole)


def test_a_setting_that_a_state_does_not_have_is_no_default(trained):
    file = trained / "training" / "step-1" / "state.json"
    data = json.loads(whole := file.read_text())
    del data["config"]["batch_size"]
    try:
        file.write_text(json.dumps(data))
        with pytest.raises(BadInput, match="its config lacks batch_size"):
            read_state(trained)
    finally:
        file.write_text(whole)


LOGGED = ANYTHING.map(json.dumps) | st.builds(
    lambda key, value: json.dumps({"step": 1, key: value}),
    st.sampled_from(["step", "loss", "valid_loss", "lr", "samples", "more"]),
    ANYTHING,
)


@pytest.mark.slow
@given(lines=st.lists(st.binary(max_size=8) | LOGGED.map(str.encode), max_size=6))
@example(lines=[b"5", b'{"step": null}', b"\xff", b'{"step": 1, "loss": "rope"}', b"[" * 100_000])
@settings(max_examples=25, deadline=None)
def test_whatever_stands_in_a_log_a_good_run_goes_on(text, trained, lines):
    file = trained / "metrics.jsonl"
    whole = file.read_bytes()
    try:
        file.write_bytes(b"\n".join([*lines, whole]))
        resume(trained, text.task(read_state(trained).config), quiet=True)
        assert read_metrics(file)[-len(whole.splitlines()) :] == [json.loads(line) for line in whole.splitlines()]
    finally:
        file.write_bytes(whole)


def test_a_state_of_the_first_format_is_read_with_the_settings_of_its_time(trained, tmp_path):
    file = shutil.copytree(trained, tmp_path / "run") / "training" / "step-1" / "state.json"
    data, whole = json.loads(file.read_text()), read_state(tmp_path / "run")
    for key in ("format", "health", "best"):
        del data[key]
    data["config"] = {key: value for key, value in data["config"].items() if key not in OF_FORMAT_2}
    file.write_text(json.dumps(data))
    assert read_state(tmp_path / "run") == whole
