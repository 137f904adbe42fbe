"""The table while it grows: the numbers of the report, as soon as each model has been measured."""

import json
from dataclasses import replace

import pytest

from gnomon.glossary import words
from gnomon.lab.live_table import LiveTable
from gnomon.lab.prepare import prepare
from gnomon.lab.summary import percent
from gnomon.lab.trial import TrialResult


def kept(folder):
    return TrialResult.from_result(json.loads((folder / "measured.json").read_text())["result"])


@pytest.fixture
def lab(report, settings, corpus, folder):
    return prepare(settings, corpus, folder, quiet=True)


@pytest.mark.parametrize("lang", ["en", "es"])
def test_its_numbers_are_those_of_the_report(lab, report, settings, folder, lang):
    w = words("lab", lang)
    table = LiveTable(lab, w)
    assert table.heading[-1].split()[-3:] == [w.number(report.trigram.value, ".3f")] * 3
    for trial in settings.trials():
        row, line = report.row(trial.label), table.line(kept(folder / trial.folder))
        bits = [w("n/a") if b is None else w.number(b.value, ".3f") for b in row.bits]
        last = row.increase[-1]
        change = [] if last is None else percent(last.value, w).split()
        assert line.split() == [trial.label, *bits, *change, *w(row.kind).split()]


def test_seeds_are_told_apart(lab, settings, folder):
    table = LiveTable(replace(lab, settings=replace(settings, seeds=2)), words("lab"))
    measured = kept(folder / "rope")
    assert table.line(replace(measured, trial=replace(measured.trial, seed=1))).startswith("rope 1 ")


def test_lines_come_as_models_end_and_what_was_finished_comes_first(settings, corpus, report, folder, capsys):
    from gnomon.lab.experiments import experiment

    experiment(settings, corpus, folder, workers=1, resume=True, quiet=False)
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].startswith(f"Taken from {folder}: “none” (no position), sinusoidal")
    assert [line.split()[0] for line in lines[-6:]] == list(settings.positions)
