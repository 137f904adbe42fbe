"""`gnomon extend` and `gnomon retrofit`: what is written, what is said, and what is refused."""

import json

import pytest
import torch
from click.testing import CliRunner

import gnomon as gn
from gnomon.cli.main import cli


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Runs, and a text of long documents."""
    root = tmp_path_factory.mktemp("changed")
    for position in ("rope", "learned"):
        torch.manual_seed(0)
        model = gn.DecoderOnly(257, 16, 1, 2, position=position, max_positions=64)
        model.tokenizer = gn.Tokenizer.bytes()
        gn.save_model(model, root / position)
    for n in range(3):
        (root / f"text{n}.txt").write_text(f"document {n}. " * 40)
    return root


def run(*arguments):
    return CliRunner().invoke(cli, [str(a) for a in arguments])


def texts(folder):
    return [part for n in range(3) for part in ("--text", folder / f"text{n}.txt")]


def test_a_scaled_model_is_saved_and_measured_before_and_after(folder, tmp_path):
    method = ["--to", 128, "--method", "yarn", "--set", "beta_fast=8.0", "--format", "native"]
    written = ["-o", tmp_path / "out", "--picture", tmp_path / "loss.png"]
    shown = run("extend", folder / "rope", *method, *written, *texts(folder))
    assert shown.exit_code == 0, shown.output
    assert "yarn, 64 to 128 tokens" in shown.output
    assert "64 to 128" in shown.output.split("nats per token")[1]
    saved = gn.load(tmp_path / "out")
    assert saved.config.position.options["scaling"] == {
        "kind": "yarn", "factor": 2.0, "original_length": 64, "beta_fast": 8.0,
    }  # fmt: skip
    assert (tmp_path / "loss.png").stat().st_size > 10_000


def test_a_table_that_ended_has_numbers_afterwards(folder, tmp_path):
    shown = run("extend", folder / "learned", "--to", 128, "--method", "tile", "--format", "native", "-o",
                tmp_path / "out", "--json", *texts(folder))  # fmt: skip
    result = json.loads(shown.stdout)["loss_by_position"]
    assert [s["nats"] is None for s in result["before"]] == [False, False, False, True]
    assert [s["nats"] is None for s in result["after"]] == [False] * 4


@pytest.mark.parametrize(
    ("run_name", "to", "method", "message"),
    [
        ("rope", 99999999999, "yarn", "is not in the range"),
        ("rope", 2147483647, "yarn", "reading 2147483647 tokens at once needs about"),
        ("learned", 2147483647, "tile", "reading 2147483647 tokens at once needs about"),
    ],
)
def test_a_length_that_no_machine_reads_is_refused(folder, tmp_path, run_name, to, method, message):
    shown = run("extend", folder / run_name, "--to", to, "--method", method, "-o", tmp_path / "out", *texts(folder))
    assert shown.exit_code == 2
    assert message in shown.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_table_that_no_machine_holds_is_refused(folder, tmp_path, monkeypatch):
    monkeypatch.setattr("gnomon.available_memory.memory", lambda: 2**20)
    shown = run(
        "extend", folder / "learned", "--to", 200_000, "--method", "tile", "-o", tmp_path / "out", "--documents", 0
    )
    assert (shown.exit_code, "a table of 200000 positions needs about 25.6 MB" in shown.stderr) == (2, True)


def test_settings_do_not_give_what_the_arguments_give(folder, tmp_path):
    for key in ("method", "to", "kind", "model"):
        shown = run(
            "extend", folder / "rope", "--to", 128, "--method", "yarn", "-o", tmp_path / "x", "--set", f"{key}=1"
        )
        assert (shown.exit_code, f"{key} is no setting here" in shown.stderr) == (2, True)
    shown = run("retrofit", folder / "rope", "--position", "t5", "-o", tmp_path / "x", "--set", "name=rope")
    assert (shown.exit_code, "name is no setting here" in shown.stderr) == (2, True)


def test_another_encoding_says_what_went_and_what_came(folder, tmp_path):
    shown = run("retrofit", folder / "learned", "--position", "t5", "--set", "n_buckets=8", "-o", tmp_path / "out",
                "--length", 60, *texts(folder))  # fmt: skip
    assert shown.exit_code == 0, shown.output
    assert "gone: input.position.weight (64, 16)" in shown.output
    assert "new:  stack.positions.0.weight (8, 2)" in shown.output
    assert "gnomon train --from" in shown.output
    assert gn.load(tmp_path / "out").config.position.name == "t5"


@pytest.mark.parametrize(
    ("arguments", "message", "code"),
    [
        (["extend", "rope", "--to", "128", "--method", "yarm"], "did you mean 'yarn'", 2),
        (["extend", "rope", "--to", "32", "--method", "yarn"], "changes nothing", 2),
        (["extend", "nowhere", "--to", "128", "--method", "yarn"], "nowhere", 3),
        (["extend", "rope", "--to", "128", "--method", "ntk", "--set", "beta=1"], "unknown setting of ntk scaling", 2),
        (["retrofit", "rope", "--position", "rop"], "did you mean 'rope'", 2),
        (["retrofit", "rope", "--position", "alibi", "--picture", "a.gif"], ".png or .svg", 2),
    ],
)
def test_a_mistake_leaves_nothing_behind(folder, tmp_path, arguments, message, code):
    arguments[1] = folder / arguments[1]
    shown = run(*arguments, "-o", tmp_path / "out", *texts(folder))
    assert shown.exit_code == code, shown.output
    assert message in shown.stderr
    assert not (tmp_path / "out").exists()


def test_a_folder_that_holds_something_is_never_written_into(folder):
    shown = run("retrofit", folder / "rope", "--position", "alibi", "-o", folder / "learned", "--documents", 0)
    assert shown.exit_code == 2
    assert "is not empty: choose another one" in shown.stderr


def test_transformers_loads_an_extended_model_with_equal_logits(tmp_path):
    from transformers import AutoModelForCausalLM

    torch.manual_seed(0)
    model = gn.DecoderOnly.from_preset("mini-llama", d_model=32, n_layers=2, init_std=0.2, max_positions=32)
    gn.save_model(model, tmp_path / "short")
    done = run("extend", tmp_path / "short", "--to", 64, "--method", "yarn", "-o", tmp_path / "long", "--documents", 0)
    assert done.exit_code == 0, done.output
    theirs = AutoModelForCausalLM.from_pretrained(tmp_path / "long", dtype=torch.float32).eval()
    ours, ids = gn.load(tmp_path / "long"), torch.randint(512, (2, 64))
    assert theirs.config.max_position_embeddings == 64
    with torch.no_grad():
        want = theirs(ids).logits
        assert (ours(ids) - want).abs().max() <= 1e-5 * max(1.0, float(want.abs().max()))
        assert not torch.allclose(ours(ids), model.eval()(ids), atol=1e-3)


@pytest.mark.slow
def test_a_retrofitted_model_is_trained_back(folder, tmp_path):
    """From the weights that it was left with, under its new encoding, with its own tokenizer."""
    (tmp_path / "text.txt").write_text("the cat sat on the mat. " * 300)
    change = run("retrofit", folder / "learned", "--position", "alibi", "-o", tmp_path / "changed", "--documents", 0)
    assert change.exit_code == 0, change.output
    losses = {}
    for name, options in {"still": ["--steps", 1, "--lr", 1e-9], "back": ["--steps", 30]}.items():
        further = ["train", tmp_path / "text.txt", "--from", tmp_path / "changed", "-o", tmp_path / name]
        done = run(*further, "--length", 16, *options, "-q", "--json")
        assert done.exit_code == 0, done.output
        losses[name] = json.loads(done.stdout)["loss"]
    old, still, back = (gn.load(tmp_path / name) for name in ("changed", "still", "back"))
    assert old.config.position == still.config.position == back.config.position == gn.positions.get("alibi")
    for name, weight in old.state_dict().items():
        torch.testing.assert_close(still.state_dict()[name], weight, atol=1e-6, rtol=0)
    assert losses["back"] < losses["still"] - 0.1
    assert back.tokenizer.sha256 == old.tokenizer.sha256
