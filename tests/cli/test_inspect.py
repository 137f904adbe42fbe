"""`gnomon inspect`: a text on its way through a model, by the model's own numbers."""

import json

import pytest
import torch
from click.testing import CliRunner

import gnomon as gn
from gnomon import plots
from gnomon.checkpoints import save_model
from gnomon.cli.main import cli
from gnomon.data import Tokenizer
from gnomon.plots import prefill


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run folder as training leaves it, with its model."""
    torch.manual_seed(1)
    model = gn.DecoderOnly.from_preset("mini-gpt", n_layers=2, vocab_size=257).eval()
    model.tokenizer = Tokenizer.bytes()
    folder = tmp_path_factory.mktemp("inspect") / "run"
    save_model(model, folder, model.tokenizer)
    return folder, model


def inspect(*arguments):
    result = CliRunner().invoke(cli, ["inspect", *map(str, arguments)])
    assert result.exit_code == 0, result.output
    return result.output


def test_a_trained_models_numbers_are_shown(run):
    folder, model = run
    report = json.loads(inspect(folder, "--text", "el perro", "--json"))
    seen = plots.inspect(model, "el perro")
    assert report["tokens"] == seen.tokens
    torch.testing.assert_close(torch.tensor(report["attention"]), torch.stack(seen.attention))
    assert [guess["id"] for guess in report["next"]] == [guess.id for guess in seen.guesses]


def test_ids_go_through_table_position_attention_and_output():
    """[101, 7592, 2088, 102]; random weights, and it says so."""
    shown = inspect("--preset", "mini-gpt", "--set", "vocab_size=30522", "--ids", "101,7592,2088,102")
    assert "mini-gpt with random weights (seed 0)" in shown
    for step in ("(1, 4)", "(1, 4, 128)", "4 x (1, 4, 4, 4)", "(1, 4, 30522)", "rows of a (30522, 128) table"):
        assert step in shown
    for word in ("ids", "token vectors", "position", "input", "attention", "output", "logits"):
        assert any(line.startswith(word) for line in shown.splitlines())
    assert "learned, added to the vectors" in shown


@pytest.mark.parametrize(
    ("position", "says"),
    [("rope", "rope, turns q and k"), ("alibi", "alibi, added to the scores"), ("none", "none, acts nowhere")],
)
def test_where_position_comes_in_is_said(position, says):
    assert says in inspect("--preset", "mini-llama", "--set", "n_layers=1", "--position", position, "--text", "ab")


@pytest.mark.slow
def test_it_is_drawn_on_one_page(run, tmp_path):
    inspect(run[0], "--text", "hola", "--lang", "es", "-o", tmp_path / "todo.svg")
    svg = (tmp_path / "todo.svg").read_text(encoding="utf-8")
    assert ">De 4 ids al siguiente token</text>" in svg
    assert ">+ posición: learned</text>" in svg


def test_the_given_tokens_are_timed_at_once_and_one_by_one(run):
    (line,) = (line for line in inspect(run[0], "--ids", "1,2", "--timing").splitlines() if line.startswith("timing"))
    assert "2 tokens at once" in line
    assert "one after another" in line
    assert "times as long" in line


def test_a_timing_reads_no_more_tokens_than_its_bound_and_says_how_many(run, monkeypatch):
    monkeypatch.setattr(prefill, "WORK", 3 * sum(p.numel() for p in run[1].parameters()))
    shown = inspect(run[0], "--ids", "1,2,3,4,5", "--timing")
    assert "timed: the first 3 of 5 tokens (at most 128, fewer of a large model)" in shown
    assert "3 tokens at once" in shown


BERT = ["--preset", "bert-base", "--set", "d_model=16", "--set", "n_layers=1", "--set", "n_heads=2"]


def test_an_encoder_shows_ids_table_position_attention_and_its_vector():
    """The ids 101, 7592, 2088, 102 are of BERT's vocabulary."""
    shown = inspect(*BERT, "--ids", "101,7592,2088,102")
    for step in ("rows of a (30522, 16) table", "learned, added to the vectors", "1 x (1, 2, 4, 4)", "(1, 16)"):
        assert step in shown
    report = json.loads(inspect(*BERT, "--ids", "101,7592,2088,102", "--json"))
    assert (report["architecture"], report["answer"]) == ("encoder-only", "vector")
    assert report["shapes"]["vector"] == [1, 16]


TRANSLATOR = [
    "--preset",
    "vaswani-base",
    "--set",
    "d_model=16",
    "--set",
    "n_layers=2",
    "--set",
    "vocab_size=257",
    "--set",
    "n_heads=2",
]


def test_an_encoder_decoder_shows_its_source_and_cross_attention():
    shown = inspect(*TRANSLATOR, "--source", "perro", "--target", "dog", "--lang", "es")
    assert shown.index("codificador: el origen") < shown.index("decodificador: lo escrito")
    (line,) = (line for line in shown.splitlines() if line.startswith("atención cruzada"))
    assert "2 x (1, 2, 4, 5)" in line
    report = json.loads(inspect(*TRANSLATOR, "--ids", "1,2,3", "--target", "4,5", "--json"))
    assert (report["source"]["ids"], report["ids"]) == ([1, 2, 3], [0, 4, 5])


def test_an_encoder_decoder_is_timed_too():
    assert "4 tokens at once" in inspect(*TRANSLATOR, "--source", "perro", "--target", "dog", "--timing")


def test_the_same_seed_gives_the_same_random_model():
    arguments = ["--preset", "mini-llama", "--set", "n_layers=1", "--ids", "1,2", "--json"]
    first, again, other = (inspect(*arguments, "--seed", seed) for seed in (0, 0, 1))
    assert first == again
    assert json.loads(first)["next"] != json.loads(other)["next"]


@pytest.mark.parametrize(
    ("arguments", "message", "code"),
    [
        (["--text", "a"], "give the folder of a trained model, or --preset", 2),
        (["RUN", "--preset", "mini-gpt", "--text", "a"], "one of the two", 2),
        (["RUN", "--text", "a", "--ids", "1"], "one of the two", 2),
        (["RUN", "--ids", "1,x"], "--ids are whole numbers", 2),
        (["RUN", "--ids", "1,999"], "token id 999 (row 0, place 1) is outside the vocabulary of 257", 2),
        (["RUN", "--text", "a" * 65], "hold 64 rows", 2),
        (["RUN", "--text", ""], "nothing to inspect", 2),
        (["RUN", "--text", "a", "--position", "rope"], "go with --preset", 2),
        (["RUN", "--text", "a", "-o", "a.gif"], ".png or .svg", 2),
        (["NOWHERE", "--text", "a"], "NOWHERE", 3),
        (["RUN", "--text", "a", "--target", "b"], "a target goes with a source", 2),
        ([*BERT, "--ids", "1,2", "--timing"], "no decoding to time", 2),
        ([*BERT, "--ids", "1,30522"], "token id 30522 (row 0, place 1) is outside the vocabulary", 2),
    ],
)
def test_a_mistake_is_one_line(run, arguments, message, code):
    result = CliRunner().invoke(cli, ["inspect", *(str(run[0]) if a == "RUN" else a for a in arguments)])
    assert (result.exit_code, len(result.stderr.splitlines())) == (code, 1)
    assert message in result.stderr


# ------------------------------------------------------------------ without a text


def test_without_a_text_it_says_what_kind_of_position_there_is():
    shown = CliRunner().invoke(cli, ["inspect", "--preset", "gpt2-small", "--set", "n_layers=1"])
    assert shown.exit_code == 0, shown.output
    assert "learned, in the input" in shown.output
    assert "position 1\u202f024 has no row" in shown.output


def test_layers_with_encodings_of_their_own_are_named():
    args = ["inspect", "--preset", "mini-llama", "--set", "position=['rope','none','rope','alibi']", "--trained", "64"]
    seen = json.loads(CliRunner().invoke(cli, [*args, "--json"]).output)
    where = {found["encoding"]: found["layers"] for found in seen["encodings"]}
    assert where == {"rope": "layers 1, 3", "none": "layer 2", "alibi": "layer 4"}
    assert "rope, in layers 1, 3" in CliRunner().invoke(cli, args).output


def test_both_stacks_of_an_encoder_decoder_are_named():
    args = ["inspect", "--preset", "vaswani-base", "--set", "n_layers=1", "--set", "position=t5", "--json"]
    seen = json.loads(CliRunner().invoke(cli, args).output)
    assert [found["layers"] for found in seen["encodings"]] == [
        "all layers of the encoder",
        "all layers of the decoder",
    ]


def test_tokens_and_positions_of_sizes_far_apart_are_said():
    args = ["inspect", "--preset", "mini-gpt", "--position", "sinusoidal"]
    assert "root mean square" not in CliRunner().invoke(cli, args).output
    unequal = CliRunner().invoke(cli, [*args, "--set", "embed_scale=1.0"]).output
    assert "Tokens enter with size 0.02 and positions with 0.7" in unequal
    assert "one is 35 times the other" in unequal
    spanish = CliRunner().invoke(cli, [*args, "--set", "embed_scale=1.0", "--lang", "es"]).output
    assert "Los tokens entran con tamaño 0.02" in spanish


def test_a_recipe_for_position_ids_is_said(tmp_path):
    position = gn.positions.get("rope", positions="randomized(128)")
    save_model(gn.DecoderOnly(257, 16, 1, 2, position=position), tmp_path / "model", gn.Tokenizer.bytes())
    shown = CliRunner().invoke(cli, ["inspect", str(tmp_path / "model")]).stdout
    assert "Positions in training: n sorted draws from 0..max-1 (randomized(max=128))" in shown
    seen = json.loads(CliRunner().invoke(cli, ["inspect", str(tmp_path / "model"), "--json"]).stdout)
    assert seen["recipe"] == "randomized(max=128)"
