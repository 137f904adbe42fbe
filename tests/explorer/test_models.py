"""The questions about a model's tables, its space and its audit, and the lab's results: the library's own answers."""

import json

import pytest
import torch

import gnomon as gn
from gnomon.data import Tokenizer
from gnomon.errors import BadValue
from gnomon.explorer import Shelf
from gnomon.explorer.evidence import summarise
from gnomon.explorer.questions import answered, telling


def shelf(position="learned", **more):
    torch.manual_seed(0)
    made = gn.DecoderOnly(
        vocab_size=257, d_model=16, n_layers=1, n_heads=2, position=position, max_positions=12, **more
    )
    made.tokenizer = Tokenizer.bytes()
    return Shelf([made])


def ask(models, question, **values):
    return answered(models, question, {"model": "decoder-only", **values})


def test_a_learned_table_ends_with_the_library_s_own_error():
    said = ask(shelf(), "position_table")
    assert (said["rows"], said["values"]["shape"], said["cosines"]["shape"]) == (12, [12, 16], [12, 12])
    assert "learned positions hold 12 rows" in said["past"]


@pytest.mark.parametrize("grow", ["interpolate", "tile", "zero"])
def test_a_table_grows_as_the_library_grows_it(grow):
    assert ask(shelf(), "position_table", grow=grow)["rows"] == 24


def test_a_computed_table_has_no_end_and_does_not_grow():
    assert ask(shelf("sinusoidal"), "position_table")["past"] is None
    with pytest.raises(BadValue, match="no table to grow"):
        ask(shelf("sinusoidal"), "position_table", grow="tile")


def test_a_model_without_vectors_at_its_input_says_what_it_has_instead():
    said = ask(shelf("rope"), "position_table", lang="es")
    assert said["rows"] == 0
    assert [each["name"] for each in said["encodings"]] == ["rope"]


def test_neighbours_are_the_library_s_and_a_sum_leaves_its_own_words_out():
    models = shelf()
    said = ask(models, "nearby", word="a", top=5)
    found = gn.neighbors(models.get("decoder-only"), "a", 256)
    same = [n for n in found if not "\u2400" <= n.text[0] <= "\u2426"][:5]  # no marks for control characters
    assert [(n["token"], n["id"]) for n in said["neighbors"]] == [(n.text, n.place) for n in same]
    summed = ask(models, "nearby", word="a", minus="b", plus="c", top=300 // 10)
    assert not {"a", "b", "c"} & {n["token"] for n in summed["neighbors"]}
    assert summed["heads"] == ["a", "b", "c", "="]


@pytest.mark.parametrize(("values", "message"), [({"word": " "}, "give a word"), ({"word": "a", "top": 0}, "1 to 60")])
def test_a_search_that_means_nothing_says_so(values, message):
    with pytest.raises(BadValue, match=message):
        ask(shelf(), "nearby", **values)


@pytest.mark.slow
def test_the_story_of_an_audit_has_the_findings_of_the_audit():
    models = shelf("rope")
    told = list(telling(models, "audit", {"model": "decoder-only"}))
    report = gn.audit(models.get("decoder-only"))
    assert {each["law"]: each["verdict"] for each in told} == {f.law: f.verdict for f in report.findings}
    assert told[-1]["done"] == told[-1]["laws"]


def test_an_audit_that_would_take_minutes_is_sent_to_the_terminal(monkeypatch):
    monkeypatch.setattr("gnomon.explorer.evidence.LARGEST", 10)
    with pytest.raises(BadValue, match="gnomon audit MODEL in a terminal"):
        telling(shelf(), "audit", {"model": "decoder-only"})


def test_results_of_the_lab_are_found_by_name_only(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs" / "mine").mkdir(parents=True)
    bits = [{"value": 2.0, "low": 1.9, "high": 2.1}, None]
    report = {"rows": [{"label": "learned", "bits": bits}], "lengths": [64, 128], "settings": {"train_length": 64}}
    (tmp_path / "runs" / "mine" / "report.json").write_text(json.dumps(report))
    said = answered(Shelf(), "lab", {"run": "mine"})
    assert (said["run"], said["rows"][0]["bits"]) == ("mine", bits)
    for run in ("../secret", "/etc", "other"):
        with pytest.raises(BadValue, match="unknown report"):
            answered(Shelf(), "lab", {"run": run})


def test_a_file_that_is_no_report_is_an_error():
    with pytest.raises(BadValue, match="no report of gnomon lab"):
        summarise({"rows": []})
