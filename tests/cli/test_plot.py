"""`gnomon plot`: every encoding's pictures by one command."""

import json

import pytest
import torch
from click.testing import CliRunner

import gnomon as gn
from gnomon.checkpoints import save_model
from gnomon.cli.main import cli
from gnomon.data import Tokenizer


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def plot(*arguments):
    result = CliRunner().invoke(cli, ["plot", *arguments])
    assert result.exit_code == 0, result.output
    return result.output


def facts(*arguments):
    return json.loads(plot(*arguments, "--json"))


HUGE = [
    "sinusoidal --d-model 100000 --length 100000",
    "sinusoidal --view similarity --length 2000000",
    "sinusoidal --view wavelengths --d-model 2147483647",
    "learned --length 2147483647 --d-model 1000",
    "learned --view similarity --length 2000000",
    "rope --d-head 2147483647",
    "rope --view scores --d-head 1000000",
    "alibi --n-heads 2147483647",
    "alibi --length 2147483647 --n-heads 100",
    "t5 --length 2000000",
    "t5 --n-heads 2147483647",
    "t5 --view bias --n-heads 2147483647",
    "scaling --keys 2147483647",
    "mask --length 2147483647",
    "norm --layers 2147483647",
    "norm --view batch --d-model 2147483647",
    "sinusoidal --view curves --length 2147483647",
    "rope --view clock --d-head 2147483647",
]


@pytest.mark.parametrize("arguments", HUGE)
def test_what_does_not_fit_into_memory_is_refused_before_it_is_made(tmp_path, arguments):
    result = CliRunner().invoke(cli, ["plot", *arguments.split()])
    assert result.exit_code == 2
    assert "of memory, more than there is here: choose smaller sizes" in result.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("what", "view"),
    [
        ("sinusoidal", "table"),
        ("learned", "table"),
        ("rope", "wavelengths"),
        ("alibi", "bias"),
        ("t5", "buckets"),
        ("scaling", "scaling"),
        ("mask", "mask"),
        ("norm", "gradient"),
    ],
)
def test_each_has_a_picture_of_its_own(tmp_path, what, view):
    report = facts(what)
    assert report["view"] == view
    assert (tmp_path / report["file"]).read_bytes().startswith(b"\x89PNG")
    assert [file.name for file in tmp_path.iterdir()] == [report["file"]]


@pytest.mark.parametrize(
    ("what", "view"),
    [
        ("sinusoidal", "similarity"),
        ("sinusoidal", "wavelengths"),
        ("learned", "similarity"),
        ("rope", "scores"),
        ("t5", "bias"),
    ],
)
def test_and_others_by_view(tmp_path, what, view):
    plot(what, "--view", view, "-o", "out.svg")
    assert (tmp_path / "out.svg").read_text().startswith("<?xml")


def test_the_course_picture_is_one_command(tmp_path):
    shown = plot("sinusoidal", "--lang", "es", "-o", "mapa.svg")
    svg = (tmp_path / "mapa.svg").read_text(encoding="utf-8")
    for label in ("Codificación Posicional Sinusoidal", "Posición", "Dimensión", "Valor"):
        assert f">{label}</text>" in svg
    assert "Codificación Posicional Sinusoidal" in shown


@pytest.mark.slow
def test_scaling_reports_its_numbers():
    medians = facts("scaling")["median_jacobian_norm"]
    assert medians["unscaled"] < 1e-3
    assert medians["scaled"] == pytest.approx(0.30, abs=0.01)


def test_sizes_and_options_of_the_encoding_reach_the_picture():
    report = facts("rope", "--set", "base=500000", "--d-head", "64", "--trained", "100")
    assert (report["pairs"], report["trained"]) == (32, 100)
    assert report["longest"] == pytest.approx(2 * torch.pi * 500_000 ** (62 / 64))


@pytest.mark.slow
def test_a_trained_models_table_is_taken_from_its_run():
    model = gn.DecoderOnly.from_preset("mini-gpt", n_layers=1)
    save_model(model, "run")
    report = facts("learned", "--run", "run")
    assert (report["length"], report["d_model"]) == (64, 128)
    assert "random start" not in report["alt"]
    result = CliRunner().invoke(cli, ["plot", "rope", "--run", "run"])
    assert result.exit_code == 2
    assert "has no 'rope': its position encoding is 'learned'\n" in result.stderr


def test_a_bidirectional_run_is_drawn_to_both_sides():
    save_model(gn.DecoderOnly.from_preset("mini-llama", n_layers=1, position="t5", causal=False), "run")
    assert facts("t5", "--view", "bias", "--run", "run")["gap"][0] == -128


def test_an_encoding_of_ones_own_is_drawn(tmp_path, monkeypatch):
    from gnomon.positions.base import _REGISTRY

    known = dict(_REGISTRY)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "my_steps.py").write_text(
        "from gnomon.positions import PositionEncoding\n"
        "class Steps(PositionEncoding):\n"
        "    name, acts = 'steps', 'score'\n"
        "    def __init__(self, n_heads):\n        super().__init__(); self.n_heads = n_heads\n"
        "    def heads(self):\n        return self.n_heads\n"
        "    def bias(self, h, q, k):\n        return -(q - k).div(4, rounding_mode='floor') * (h + 1)\n"
    )
    try:
        assert facts("steps", "--import", "my_steps", "--n-heads", "2", "--length", "8")["head_2"][4] == -2
    finally:
        _REGISTRY.clear()
        _REGISTRY.update(known)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["rop"], "unknown thing to plot 'rop': did you mean 'rope'"),
        (["none"], "nothing to draw"),
        (["rope", "--view", "table"], "rope has no view 'table'; it has wavelengths, scores"),
        (["rope", "-o", "x.pdf"], ".png or .svg"),
        (["rope", "--set", "bass=3"], "did you mean 'base'"),
        (["rope", "--n-heads", "3"], "--n-heads means nothing to the view 'wavelengths' of rope"),
        (["scaling", "--set", "base=3"], "scaling draws no encoding"),
        (["sinusoidal", "--lang", "fr"], "'fr' is not one of 'en', 'es', 'pt'"),
        (["rope", "--run", "x", "--set", "base=3"], "not both"),
        (["alignment", "--source", "abc"], "give --run RUN and --source TEXT"),
        (["alignment", "--run", "x"], "give --run RUN and --source TEXT"),
        (["rope", "--source", "abc"], "--source means nothing to the view 'wavelengths' of rope"),
    ],
)
def test_a_mistake_is_one_line_exit_2_and_no_file(tmp_path, arguments, message):
    if "--run" in arguments:
        save_model(gn.DecoderOnly.from_preset("mini-llama", n_layers=1), "x")
    before = set(tmp_path.iterdir())
    result = CliRunner().invoke(cli, ["plot", *arguments])
    assert (result.exit_code, len(result.stderr.splitlines())) == (2, 1)
    assert message in result.stderr
    assert set(tmp_path.iterdir()) == before


# ------------------------------------------------------------------ alignment


@pytest.fixture
def translator(tmp_path):
    """A run folder with an encoder-decoder in it."""
    torch.manual_seed(0)
    model = gn.EncoderDecoder(257, 16, 1, 2)
    model.tokenizer = Tokenizer.bytes()
    return save_model(model, tmp_path / "translator")


def test_an_alignment_is_that_of_a_trained_translator(translator):
    asked = ["alignment", "--run", str(translator), "--source", "abc", "--target", "xy"]
    found = facts(*asked)
    assert (found["source"], found["target"]) == (["a", "b", "c"], ["x", "y", "(end)"])
    assert len(found["weights"]) == 3
