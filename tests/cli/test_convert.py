"""One model, in the files of three programs."""

import json

import pytest
import torch
from click.testing import CliRunner

import gnomon as gn
from gnomon.checkpoints import load, save_model
from gnomon.cli.main import cli
from gnomon.data import Tokenizer
from gnomon.models import build, preset


@pytest.fixture
def run(tmp_path):
    """A run folder of a small Llama."""
    torch.manual_seed(4)
    model = build(preset("mini-llama", d_model=32, n_heads=2, n_kv_heads=1, n_layers=2))
    return save_model(model, tmp_path / "run", Tokenizer.bytes())


def convert(*args):
    return CliRunner().invoke(cli, ["convert", *map(str, args)])


def test_there_and_back_is_the_same_model(run, tmp_path):
    """native -> hf -> gguf -> native, every step by the command."""
    steps = [("hf", tmp_path / "hf"), ("gguf", tmp_path / "m.gguf"), ("native", tmp_path / "again")]
    before, source = load(run), run
    for to, output in steps:
        result = convert(source, "--to", to, "-o", output)
        assert result.exit_code == 0, result.output
        source = output
    after = load(source)
    ids = torch.arange(3, 40)[None]
    with torch.no_grad():
        assert torch.equal(after(ids), before(ids))
    assert all(torch.equal(a, b) for a, b in zip(after.parameters(), before.parameters(), strict=True))
    assert after.tokenizer.encode("niño") == before.tokenizer.encode("niño")


def test_a_program_is_told_what_was_written(run, tmp_path):
    result = convert(run, "--to", "hf", "-o", tmp_path / "hf", "--dtype", "float16", "--json")
    result = json.loads(result.output)
    assert result["output"] == str(tmp_path / "hf")
    assert result["parameters"] == sum(weight.numel() for weight in load(run).parameters())
    assert gn.load(tmp_path / "hf").input.tokens.weight.dtype == torch.float16


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--to", "native", "--family", "llama"], "a family is a kind of Hugging Face folder"),
        (["--to", "hf", "--dtype", "q8_0"], "q8_0 is a precision of GGUF files"),
        (["--to", "hf", "--family", "gpt2"], "this model is no gpt2"),
    ],
)
def test_what_does_not_go_together_is_refused_and_nothing_is_written(run, tmp_path, options, message):
    result = CliRunner().invoke(cli, ["convert", str(run), *options, "-o", str(tmp_path / "out")])
    assert result.exit_code != 0
    assert message in str(result.exception) + result.output
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("to", ["hf", "native", "gguf"])
def test_nothing_is_written_over(run, tmp_path, to):
    """Not a file, not a folder with something in it, not the model itself; an empty folder is as good as none."""
    (tmp_path / "mine").write_text("mine")
    (tmp_path / "empty").mkdir()
    whole = {path: path.read_bytes() for path in run.iterdir()}
    for output in (tmp_path / "mine", run):
        result = convert(run, "--to", to, "-o", output)
        assert result.exit_code == 2
        assert "choose another" in result.stderr
    assert (tmp_path / "mine").read_text() == "mine"
    assert {path: path.read_bytes() for path in run.iterdir()} == whole
    assert to == "gguf" or convert(run, "--to", to, "-o", tmp_path / "empty").exit_code == 0
