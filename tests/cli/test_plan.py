"""`gnomon plan`: what a model costs, before it is built."""

import json
import re

import pytest
from click.testing import CliRunner

from gnomon.cli.main import cli
from gnomon.cli.sizes import size


def run(*arguments):
    result = CliRunner().invoke(cli, ["plan", *arguments])
    assert result.exit_code == 0, result.output
    return result.output


def planned(*arguments):
    return json.loads(run(*arguments, "--json"))


def test_gpt2_small_tied_and_untied():
    shown = run("gpt2-small").replace("\u202f", " ")
    for number in ("38 597 376", "124 439 808", "163 037 184", "+31.0 %", "75.5 MB"):
        assert number in shown


def test_mini_gpt_for_programs():
    report = planned("mini-gpt")
    assert report["parameters"]["input_layer"] == 73_728
    assert (report["tied"], report["untied"], report["parameters"]["total"]) == (867_072, 932_608, 867_072)
    assert report["cache_bytes"] == [{"context": 64, "float32": 262_144, "bfloat16": 131_072}]


def test_settings_and_position_change_what_is_planned():
    report = planned("mini-gpt", "--set", "d_model=256", "--set", "tied=false", "--position", "rope")
    assert report["config"]["d_model"] == 256
    assert report["config"]["position"] == {"name": "rope"}
    assert report["parameters"]["positions"] == 0
    assert report["parameters"]["head"] == 512 * 256
    assert report["parameters"]["total"] == report["untied"]


def test_untied_says_whose_table_is_counted():
    """The head's alone: source and target of an encoder-decoder go on sharing theirs."""
    for preset, note in (
        ("gpt2-small", "the head has a table of its own\n"),
        ("vaswani-base", "the head has a table of its own; source and target still share one\n"),
    ):
        assert re.search(rf"^untied .*%, {note}", run(preset), re.MULTILINE), preset
    report = planned("vaswani-base")
    assert report["untied"] - report["tied"] == 37000 * 512
    apart = run("vaswani-base", "--set", "source_vocab_size=1000")
    assert "still share" not in apart


def test_segments_are_counted_apart_from_tokens():
    parameters = planned("bert-base")["parameters"]
    assert (parameters["tokens"], parameters["segments"]) == (30522 * 768, 2 * 768)
    assert parameters["input_layer"] == (30522 + 2 + 512) * 768
    assert sum(n for part, n in parameters.items() if part not in ("total", "input_layer")) == parameters["total"]
    assert "segments" not in run("gpt2-small")


def test_every_number_is_grouped_by_the_same_space():
    for preset in ("mini-gpt", "gpt2-small", "vaswani-base", "bert-base"):
        assert not re.search(r"(?<![\d.])\d{4,}(?!\w)|\d,\d{3}|\d \d{3}", run(preset)), preset


def test_settings_may_stand_in_a_file(tmp_path):
    file = tmp_path / "model.toml"
    file.write_text('n_layers = 1\n[position]\nname = "rope"\nbase = 5e5\n')
    report = planned("mini-gpt", "--config", str(file), "--set", "n_heads=8")
    assert (report["config"]["n_layers"], report["config"]["n_heads"]) == (1, 8)
    assert report["config"]["position"] == {"name": "rope", "base": 5e5}


def test_options_of_position_go_to_the_encoding_that_is_chosen_or_the_presets():
    base = ["--set", "position.base=5000"]
    assert planned("mini-llama", *base)["config"]["position"] == {"name": "rope", "base": 5000}
    assert planned("mini-gpt", "--position", "rope", *base)["config"]["position"] == {"name": "rope", "base": 5000}


def test_contexts_and_rows_are_those_asked_for():
    one = planned("mini-llama", "--context", "100", "--context", "7")
    four = planned("mini-llama", "--context", "100", "--context", "7", "--batch", "4")
    assert [row["context"] for row in four["cache_bytes"]] == [100, 7]
    assert four["cache_bytes"][0]["float32"] == 4 * one["cache_bytes"][0]["float32"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["mini-gtp"], "did you mean 'mini-gpt'"),
        (["mini-gpt", "--set", "d_modle=3"], "did you mean 'd_model'"),
        (["mini-gpt", "--set", "d_model=wide"], "d_model must be a whole number"),
        (["mini-gpt", "--set", "d_model=130"], "does not divide into n_heads=4"),
        (["mini-gpt", "--position", "rop"], "did you mean 'rope'"),
        (["mini-llama", "--position", "learned"], "learned needs max_positions"),
        (["mini-gpt", "--set", "name=x"], "unknown key of a model config 'name'"),
        (["mini-gpt", "--set", "position.base=3"], "unknown option of learned 'base'"),
        (["mini-gpt", "--set", "position={name={a={b=1}}}"], "the name of a position encoding must be a text"),
        (["mini-gpt", "--set", "position={name=[1]}"], "the name of a position encoding must be a text"),
        (["mini-gpt", "--set", "d_model=3", "--set", "d_model.x=3"], "d_model is 3, not a group of settings"),
    ],
)
def test_a_mistake_is_one_line_and_exit_2(arguments, message):
    result = CliRunner().invoke(cli, ["plan", *arguments])
    assert (result.exit_code, len(result.stderr.splitlines())) == (2, 1)
    assert message in result.stderr


@pytest.mark.parametrize(
    ("n_bytes", "shown"),
    [
        (999, "999 bytes"),
        (1000, "1.0 kB"),
        (75_497_472, "75.5 MB"),
        (2_500_000_000, "2.5 GB"),
        (10**16, "10\u202f000.0 TB"),
    ],
)
def test_sizes_are_for_people(n_bytes, shown):
    assert size(n_bytes) == shown


STEP = ("mini-llama", "--length", "32", "--batch", "2", "--set", "n_layers=1")


def test_a_training_step_is_planned_with_its_hardware():
    asked = (*STEP, "--device", "1GB,1TFLOPS,link=1GB/s", "--devices", "4", "--tokens", "1e9")
    report = planned(*asked)
    step, found = report["training"], report["hardware"]
    assert step["peak"] == sum(step[part] for part in ("weights", "gradients", "optimizer", "activations"))
    assert (found["needed"], found["devices"]) == (1, 4)
    assert found["days"] * 86400 == pytest.approx(1e9 / (4 * 64) * found["step_seconds"])
    assert found["exchanged_bytes"] == 3 * step["weights"] * 3 // 4
    assert "FLOPs" in run(*asked, "--lang", "es")


def test_another_encoding_is_set_beside():
    first, other = planned("mini-llama", "--against", "t5")["against"]
    assert (first["position"], other["position"]) == ("rope", "t5")
    assert other["parameters"] > first["parameters"]
    assert "t5 " in run("mini-llama", "--against", "t5", "--lang", "pt")


def test_a_saved_model_is_planned_by_its_folder(tmp_path):
    import gnomon as gn

    model = gn.DecoderOnly(20, 16, 1, 2)
    report = planned(str(gn.save_model(model, tmp_path / "m")), "--set", "position.base=500")
    assert report["parameters"]["total"] == sum(p.numel() for p in model.parameters())
    assert report["config"]["position"]["base"] == 500


@pytest.mark.parametrize("arguments", [["--device", "1GB,1TFLOPS"], ["--tokens", "5"], ["--devices", "5"]])
def test_hardware_without_what_it_runs_is_refused(arguments):
    result = CliRunner().invoke(cli, ["plan", "mini-llama", *arguments])
    assert (result.exit_code, len(result.stderr.splitlines())) == (2, 1)
