"""The front page: all of the library from `import gnomon as gn`, each part imported when it is asked for."""

import subprocess
import sys

import pytest
import torch

import gnomon as gn
from gnomon.cli.main import COMMANDS

PACKAGES = ("attention", "audit", "blocks", "checkpoints", "data", "embed", "generate", "lab", "models", "plots")
PACKAGES += ("positions", "tasks", "train")

#: what each command does in Python
IN_PYTHON = {
    "demo": "lab.extrapolation", "lab": "lab.extrapolation", "train": "train.train", "eval": "evaluate",
    "generate": "generate.generate", "chat": "generate.Chat", "pull": "pull", "neighbors": "neighbors",
    "plot": "plots.heat_map", "inspect": "plots.inspect", "audit": "audit.check", "extend": "extend",
    "retrofit": "retrofit", "convert": "convert", "order": "plots.order", "positions": "positions.names",
    "settings": "ModelConfig", "advise": "lab.advise",
    "plan": "plan", "tokenizer": "Tokenizer.bpe", "predict": "tasks.find_spans", "fill": "tasks.fill",
}  # fmt: skip
SHELL_ALONE = {"doctor", "completion", "explore"}


def fresh(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


@pytest.mark.slow
def test_every_package_is_there_after_one_import_which_waits_for_none_of_them():
    """In a fresh interpreter, where a function and the module it lives in may not share a name either."""
    assert set(PACKAGES) <= set(gn.__all__)
    modules = (*PACKAGES, "layout", "device", "errors", "norm", "trace", "glossary")
    names = [name for name in gn.__all__ if callable(getattr(gn, name)) and name not in PACKAGES]
    code = f"""
import sys, gnomon as gn
assert "torch" not in sys.modules
print(*[getattr(gn, name).__name__ for name in {modules}])
print(*[getattr(gn, name).__name__ for name in {names}])
"""
    found = [line.split() for line in fresh(code).splitlines()]
    assert found == [[f"gnomon.{name}" for name in modules], [getattr(gn, name).__name__ for name in names]]


def test_there_are_few_names_and_each_is_explained():
    assert len(gn.__all__) == len(set(gn.__all__)) <= 55
    assert dir(gn) == sorted(gn.__all__)
    assert [name for name in gn.__all__ if not (getattr(gn, name).__doc__ or "").strip()] == []


def test_every_command_has_its_name_in_python():
    assert set(IN_PYTHON) | SHELL_ALONE == set(COMMANDS)
    for path in IN_PYTHON.values():
        thing = gn
        for name in path.split("."):
            thing = getattr(thing, name)
        assert callable(thing)


def test_a_name_that_is_nowhere_is_an_attribute_error():
    for name in ("model", "_models", "no_such_room"):
        with pytest.raises(AttributeError, match="has no attribute"):
            getattr(gn, name)


# ------------------------------------------------------------------ what the names do


def model(**more):
    return gn.DecoderOnly(257, 16, 1, 2, **more).eval()


@pytest.mark.parametrize(
    "scaling",
    [
        gn.positions.Linear(factor=2.0), gn.positions.NTK(factor=2.0),
        gn.positions.YaRN(factor=2.0, original_length=16), gn.positions.Llama3(factor=2.0, original_length=16),
        gn.positions.DynamicNTK(factor=2.0, original_length=16),
        gn.positions.LongRoPE(factor=2.0, original_length=16, short_factor=(1,) * 4, long_factor=(2,) * 4),
        gn.positions.Proportional(fraction=0.5),
    ],
    ids=lambda scaling: scaling.kind,
)  # fmt: skip
def test_a_context_scaling_is_an_object_or_its_data(scaling):
    as_object, as_data = (gn.positions.get("rope", scaling=s) for s in (scaling, scaling.to_dict()))
    assert as_object == as_data
    assert gn.ModelConfig(9, 16, 1, 2, position=as_object).to_dict()["position"]["scaling"]["kind"] == scaling.kind


@pytest.mark.parametrize("wrong", ["x", None, ["y"], True, gn.positions.Linear])
def test_a_scaling_of_a_wrong_type_is_named(wrong):
    for make in (
        lambda: gn.positions.Linear(factor=wrong),
        lambda: gn.positions.YaRN(factor=2.0, original_length=wrong),
        lambda: gn.positions.LongRoPE(factor=2.0, original_length=16, short_factor=wrong, long_factor=(1,)),
        lambda: gn.positions.Proportional(fraction=wrong),
    ):
        with pytest.raises(gn.BadValue, match="must be a"):
            make()


def test_a_model_is_extended_and_retrofitted():
    longer = gn.extend(model(max_positions=32), to=64, method="yarn").model
    assert longer.config.max_positions == 64
    assert gn.retrofit(model(), "alibi").model.config.position == gn.positions.get("alibi")


def test_a_plan_takes_a_preset_a_config_and_changes():
    assert gn.plan("mini-gpt").total == gn.plan(gn.presets()["mini-gpt"]).total == 867_072
    small = gn.DecoderOnly.from_preset("mini-gpt", d_model=64)
    counted = sum(p.numel() for p in small.parameters())
    assert gn.plan("mini-gpt", d_model=64).total == gn.plan(gn.presets()["mini-gpt"], d_model=64).total == counted


def test_a_model_or_its_name_is_converted_and_nothing_is_written_over(tmp_path):
    ours = model(activation="silu", gated=True, norm="rmsnorm", bias=False)
    folder = gn.convert(ours, tmp_path / "hf", "hf", dtype="bfloat16")
    again = gn.load(gn.convert(folder, tmp_path / "run", "native"))
    ids = torch.tensor([[1, 2, 3]])
    assert again(ids).dtype == torch.bfloat16
    assert ours(ids).dtype == torch.float32  # the model that was given stays as it was
    assert again.float()(ids).allclose(ours.bfloat16().float()(ids), atol=1e-5)
    with pytest.raises(gn.BadValue, match="not empty: choose another one"):
        gn.convert(ours, tmp_path / "run", "native")
    with pytest.raises(gn.BadValue, match="kind of files 'pt'"):
        gn.convert(ours, tmp_path / "x", "pt")


def test_a_run_is_measured_on_other_data(tmp_path):
    ours = model()
    ours.tokenizer = gn.Tokenizer.bytes()
    run = gn.save_model(ours, tmp_path / "run")
    (tmp_path / "text.txt").write_text("the same line again and again\n" * 40)
    measured = gn.evaluate(run, tmp_path / "text.txt")
    assert measured.measures["loss"].low <= measured.loss <= measured.measures["loss"].high
    with pytest.raises(gn.BadInput, match="does not say what it was trained on"):
        gn.evaluate(run)
