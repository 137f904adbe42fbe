"""A small model that a command trains, with a base that fits its length, breaks past it as large ones do."""

import random

import pytest
from click.testing import CliRunner

import gnomon as gn
from gnomon.cli.main import cli

WORDS = [
    "the",
    "dog",
    "bit",
    "man",
    "cat",
    "sat",
    "on",
    "mat",
    "and",
    "then",
    "ran",
    "home",
    "again",
    "with",
    "a",
    "big",
    "red",
    "ball",
    "under",
    "old",
    "tree",
]
SETTINGS = {"--tokenizer": "bytes", "--position": "rope(base=60)", "--length": 32, "--steps": 150}


@pytest.mark.slow
def test_scaling_mends_what_breaks_past_the_training_length_and_says_its_price(tmp_path):
    rng, text = random.Random(0), tmp_path / "text"
    text.mkdir()
    for n in range(24):
        sentence = " ".join(rng.choice(WORDS) for _ in range(30)) + ". "
        (text / f"{n}.txt").write_text((sentence * 6)[:900])
    typed = [str(part) for option in SETTINGS.items() for part in option]
    trained = CliRunner().invoke(
        cli, ["train", str(text), *typed, "--set", "model.d_model=48", "-q", "-o", str(tmp_path / "run")]
    )
    assert trained.exit_code == 0, trained.output
    table = gn.lab.extension(tmp_path / "run", factors=(2,), text=text, documents=8, trials=0)

    def loss(method, context):
        (row,) = [r for r in table if (r["measure"], r["method"], r["context"]) == ("loss", method, context)]
        return row["value"]

    broken = loss("none", 64)
    assert broken > table.crop + 0.04
    for method in ("yarn", "ntk", "dynamic", "llama3"):
        assert loss(method, 64) < broken
    price = {method: loss(method, 32) - table.crop for method in ("yarn", "ntk", "dynamic", "linear")}
    assert price["dynamic"] == pytest.approx(0, abs=1e-6)
    assert max(price, key=price.get) == "linear"  # positions that were never whole
