"""A grid: panels that share cells, rates from a sweep, baselines, a budget, and what a report says of it."""

import json
from dataclasses import replace
from math import log

import numpy as np
import pytest

import gnomon as gn
from gnomon.data import LMBatches
from gnomon.errors import BadInput, BadValue
from gnomon.glossary import LANGUAGES, glossary, words
from gnomon.lab import budget
from gnomon.lab.analysis import Swept
from gnomon.lab.comparison import compare
from gnomon.lab.evidence import claims, tables
from gnomon.lab.experiments import experiment, run_grid
from gnomon.lab.grid_report import GridReport
from gnomon.lab.page import pages
from gnomon.lab.records import records, to_csv, to_latex
from gnomon.lab.settings import PRESETS, LabSettings, Size, Trial, size_of
from gnomon.lab.store import Store
from gnomon.lab.trial import build, bytes_of_step


@pytest.fixture(scope="module")
def small(settings):
    """Two encodings, two seeds, a sweep of two rates, all protocols, and models trained at twice the length."""
    return replace(
        settings,
        positions=("alibi", "learned"),
        seeds=2,
        protocols=("fixed", "sliding", "windows"),
        trained_at=(2,),
        rates=(1e-3, 1e-2),
    )


@pytest.fixture(scope="module")
def at(tmp_path_factory):
    return tmp_path_factory.mktemp("grid")


@pytest.fixture(scope="module")
def found(small, corpus, at):
    report = experiment(small, corpus, at, workers=1)
    report.save(at)
    return report


# ------------------------------------------------------------------ the grid


def test_a_panel_is_a_size_and_a_training_length(settings):
    grid = replace(settings, sizes=("1x16", "2x32x4"), train_lengths=(16, 8))
    panels = [(s.model.n_layers, s.model.d_model, s.model.n_heads, s.train_length) for s in grid.panels()]
    assert panels == [(1, 16, 1, 8), (1, 16, 1, 16), (2, 32, 4, 8), (2, 32, 4, 16)]
    assert replace(settings, tasks=("copy-unique",)).panels() == []


@pytest.mark.parametrize("text", ["2", "2x", "0x8", "2x30x4", "wide"])
def test_a_size_that_is_none_is_refused(text):
    with pytest.raises(BadValue, match="size"):
        size_of(text, Size())


@pytest.mark.slow
def test_several_panels_and_tasks_share_a_folder(settings, corpus, tmp_path):
    """Each panel is the experiment that it would be alone, to the last bit."""
    grid = replace(settings, positions=("none",), train_lengths=(16,), factors=(1, 2), sizes=("1x16",))
    grid = replace(grid, tasks=("text", "sort"), task_lengths=(4,), task_steps=1)
    both = run_grid(grid, corpus, tmp_path, workers=1)
    assert isinstance(both, GridReport)
    alone = experiment(replace(grid.panels()[1], tasks=("text",)), corpus, workers=1)
    assert both.panels[1].rows[0].bits == alone.rows[0].bits
    assert {row["task"] for row in both.tasks} == {"sort"}
    both.save(tmp_path)
    assert (tmp_path / "panels" / "1x16-16" / "report.html").exists()
    assert len(list(both)) == sum(len(records(panel)) for panel in both.panels)
    for text in (both.table(lang="es"), (tmp_path / "report.html").read_text()):
        assert "sort" in text
    with pytest.raises(BadInput, match="compare one of"):
        compare(tmp_path, tmp_path)


def test_one_panel_is_what_experiment_takes(settings, corpus):
    with pytest.raises(BadValue, match="run_grid"):
        experiment(replace(settings, positions=("none",), train_lengths=(16,), factors=(1, 2)), corpus, workers=1)


def test_a_cell_knows_nothing_of_the_grid_around_it(settings, corpus, tmp_path):
    """More encodings, seeds, rates to try or baselines leave the trials that were there as they were."""
    from gnomon.lab.prepare import prepare

    wide = replace(settings, seeds=3, rates=(1e-3,), trained_at=(2,), positions=("rope", "none"))
    narrow = replace(settings, positions=("rope",))
    few, many = (prepare(s, corpus, tmp_path / str(s.seeds), True).cells() for s in (narrow, wide))
    assert few[0].key in {cell.key for cell in many}


# ------------------------------------------------------------------ fair


def test_each_encoding_takes_the_rate_that_was_best_in_its_sweep(found):
    for label in ("alibi", "learned"):
        mine = [swept for swept in found.sweep if swept.position == label]
        [chosen] = [swept for swept in mine if swept.chosen]
        assert chosen.bits == min(swept.bits for swept in mine)
        assert found.settings.train.rate_of(label) == chosen.rate


def test_the_sweep_has_a_seed_of_its_own_and_keeps_no_model(small, at, found):
    trials = list(small.sweep().values())
    assert {trial.seed for trial in trials}.isdisjoint(range(small.seed, small.seed + small.seeds))
    assert not list(at.glob("sweep-*/model.safetensors"))
    assert len(list(at.glob("sweep-*/measured.json"))) == 4


@pytest.mark.slow
def test_a_rate_at_which_training_overflows_is_none_to_choose(small, corpus):
    wild = replace(small, positions=("alibi",), seeds=1, trained_at=(), rates=(1e-3, 1e30))
    wild = replace(wild, train=replace(wild.train, steps=60, warmup=0, clip=None), sweep_steps=20)
    report = experiment(wild, corpus, workers=1)
    assert [(swept.bits is None, swept.chosen) for swept in report.sweep] == [(False, True), (True, False)]


def test_baselines_see_as_many_tokens_and_answer_for_the_same_targets(small, corpus, tmp_path):
    from gnomon.lab.prepare import prepare
    from gnomon.lab.protocols import choose_targets

    lab = prepare(small, corpus, tmp_path, True)
    for (trial, factor), cell in lab.baselines().items():
        s, t = cell.settings, cell.settings.train
        assert s.train_length == factor * small.train_length
        assert t.steps * t.batch_size * s.train_length == pytest.approx(
            small.train.steps * small.train.batch_size * small.train_length, rel=0.01
        )
        store = lab.held_out.open(lab.tokenizer)
        theirs = choose_targets(store, s.train_length, s.factors, s.blocks)
        assert np.array_equal(theirs.windows[:, -theirs.n :], lab.targets.windows[:, -lab.targets.n :])
        assert cell.trial.seed == trial.seed


def test_a_baseline_stands_where_a_table_ends(found):
    """A learned table of 8 rows has no meaning at 16 tokens; one trained at 16 has."""
    row = found.row("learned")
    assert row.bits[1] is None
    assert row.trained_at[1] is not None
    assert row.trained_at[0] is row.trained_at[2] is None


def test_memory_is_counted(settings, tokenizer, store):
    """The same each time, and what is kept for the backward grows with the rows; parameters do not."""
    model, ids = build(settings, Trial("rope", "add", 0), tokenizer), LMBatches(store, 4, 8, 0).batch(0)
    one, two, four = (bytes_of_step(model, ids[:n]) for n in (1, 2, 4))
    fixed = 16 * sum(p.numel() for p in model.parameters())
    assert bytes_of_step(model, ids) == four
    assert one > fixed
    assert four - fixed == pytest.approx(2 * (two - fixed), rel=0.02)


# ------------------------------------------------------------------ protocols


def test_protocols_score_the_tokens_they_say(report, settings, corpus, tmp_path):
    """By a model that pays one nat for every token, each pays what it scores; windows never look beyond their edge."""
    from gnomon.lab import protocols
    from gnomon.lab.prepare import prepare

    targets = prepare(settings, corpus, tmp_path, True).targets
    seen = []

    def one_nat(model, rows, last, shift=0):
        seen.append(rows.shape[1] - 1)
        return np.ones((len(rows), last))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(protocols, "nats_per_token", one_nat)
        for n in settings.lengths:
            seen.clear()
            blocks = len(targets.windows)
            assert protocols.in_windows(None, targets, n).sum() == blocks * targets.longest
            assert protocols.sliding(None, targets, n).sum() == blocks * targets.longest / 2
            assert set(seen) == {n}


def test_other_protocols_are_pooled_over_seeds_as_the_first_is(found):
    for row in found.rows:
        for name, intervals in row.others.items():
            for at, interval in enumerate(intervals):
                bits = [seed[at] for seed in row.others_by_seed[name]]
                assert (interval is None) == (bits[0] is None)
                assert interval is None or interval.value == pytest.approx(np.mean(bits), rel=1e-9)


def test_protocols_are_never_in_one_table(found):
    for lang in LANGUAGES:
        titles = [title for title, _, _ in tables(found, words("grid", lang))]
        assert len(titles) == len(set(titles)) == 5  # seeds, a baseline, two protocols, the sweep
    assert "fixed" not in found.rows[0].others


# ------------------------------------------------------------------ how sure


def test_every_seed_is_shown_with_the_median_and_the_pass_rate(found):
    text = found.table()
    for row in found.rows:
        assert row.median[0].value == pytest.approx(np.median([bits[0] for bits in row.by_seed]))
        assert f"{row.passed}/2" in text
        for bits in row.by_seed:
            assert bits[-1] is None or f"{bits[-1]:.3f}" in text


def test_fewer_than_five_seeds_claim_nothing_of_encodings(found):
    w = words("grid")
    assert any("5 seeds or more" in line for line in claims(found, w))
    assert "5 seeds or more" in " ".join(found.table().split())
    five = replace(found, settings=replace(found.settings, seeds=5))
    assert claims(five, w) == []


def test_an_order_that_seeds_do_not_settle_is_not_sure(report):
    from gnomon.lab.report import _sure_over_seeds

    better, worse = report.row("rope"), report.row("none")

    def with_seeds(row, values):
        return replace(row, by_seed=[[value] for value in values])

    apart = with_seeds(better, [1.0] * 5), with_seeds(worse, [1.1] * 5)
    mixed = with_seeds(better, [1.0, 1.2, 1.0, 1.2, 1.0]), with_seeds(worse, [1.1] * 5)
    assert _sure_over_seeds(*apart, 0)
    assert not _sure_over_seeds(*mixed, 0)
    assert _sure_over_seeds(with_seeds(better, [1.2]), with_seeds(worse, [1.1]), 0)  # too few seeds to ask


def test_a_rate_at_the_edge_of_the_sweep_is_named(found):
    edge = replace(found, sweep=(Swept("alibi", 1e-3, 2.0, True), Swept("alibi", 1e-2, 2.1, False)))
    [notes] = [notes for title, _, notes in tables(edge, words("grid")) if title.startswith("Learning rates")]
    assert any("edge" in note and "alibi" in note for note in notes)


# ------------------------------------------------------------------ budget


@pytest.fixture
def second_a_step(monkeypatch):
    monkeypatch.setattr(budget, "seconds_per_step", lambda settings, vocab_size: 1.0)
    monkeypatch.setattr(budget, "cores", lambda: 1)


def test_a_budget_that_is_enough_leaves_nothing_out(second_a_step):
    asked = LabSettings(positions=("rope", "alibi"), seeds=5, rates=(1e-3, 3e-3))
    assert budget.fit(asked, 1e9, None) == (asked, ())


def test_a_budget_keeps_what_tells_most_and_says_what_it_left_out(second_a_step):
    asked = PRESETS["standard"](sizes=("2x128", "4x256"), tasks=("text", "sort")).plain()
    needed = budget._rough(asked, {panel.model: 1.0 for panel in asked.panels()}, None)
    before = 0
    for share in (0.9, 0.4, 0.2, 0.1, 0.03, 0.01, 0.001):
        fitted, left_out = budget.fit(asked, needed * share, None)
        steps = {panel.model: 1.0 for panel in fitted.panels()}
        fits = budget._rough(fitted, steps, None) <= needed * share * 1.01
        assert fits or fitted.train.steps == budget.FEWEST_STEPS
        assert len(left_out) >= before
        before = len(left_out)
        for key, fields in left_out:
            assert all(words("grid", lang)(key, **fields) for lang in LANGUAGES)
    assert fitted.positions == asked.positions[:2]
    assert fitted.seeds == 1


def test_no_budget_is_refused(second_a_step):
    with pytest.raises(BadValue, match="above 0"):
        budget.fit(LabSettings(), 0, None)


# ------------------------------------------------------------------ as plain data


def test_rows_are_plain_and_alike(found):
    """`pandas.DataFrame` takes an iterable of such rows; it is no dependency."""
    rows = list(found)
    assert all(list(row) == list(rows[0]) for row in rows)
    assert all(value is None or isinstance(value, str | int | float | bool) for row in rows for value in row.values())
    assert {row["protocol"] for row in rows} == {"fixed", "sliding", "windows", "trained there"}
    mine = [row for row in rows if (row["position"], row["protocol"], row["seed"]) == ("alibi", "fixed", 1)]
    assert [row["bits"] for row in mine] == found.row("alibi").by_seed[1]


def test_ten_lines_make_a_figure(corpus, settings, tmp_path):
    code = f"""
import gnomon as gn
import matplotlib.pyplot as plt
report = gn.lab.extrapolation(["none", "alibi"], corpus=corpus, train_length=8, factors=(1, 2), steps=1, workers=1)
for name in ("none", "alibi"):
    rows = [row for row in report if row["position"] == name and row["protocol"] == "fixed"]
    plt.plot([row["length"] for row in rows], [row["bits"] for row in rows], label=name)
plt.legend()
plt.savefig({str(tmp_path / "figure.png")!r})
""".strip()
    assert len(code.splitlines()) <= 10
    import matplotlib

    matplotlib.use("Agg")
    exec(code, {"corpus": corpus})
    assert (tmp_path / "figure.png").read_bytes().startswith(b"\x89PNG")


def test_the_csv_has_every_row(found):
    lines = to_csv(records(found)).decode().splitlines()
    assert len(lines) == 1 + len(list(found))
    assert lines[0].startswith("position,seed,")


def test_the_latex_table_escapes_names_and_marks_the_best(found):
    odd = replace(found.rows[0], label="a_b&c")
    text = to_latex(replace(found, rows=(odd, *found.rows[1:])))
    assert r"a\_b\&c" in text
    best = found.row(found.ranking[0][0].label).median[0].value
    assert rf"\textbf{{{best:.3f}}}" in to_latex(found)
    assert text.count(r"\begin") == text.count(r"\end")


def test_the_page_of_a_panel_speaks_three_languages(found):
    for lang in LANGUAGES:
        html = pages([found], None, [], lang)
        for title, _, _ in tables(found, words("grid", lang)):
            assert title.split(":")[0].split("(")[0].strip() in html.replace("&nbsp;", " ")


# ------------------------------------------------------------------ two results


def test_a_result_compared_with_itself_differs_in_nothing(found, at):
    same = compare(at, at)
    assert same.settings == {}
    assert same.obstacles == []
    assert all(row["change"] == 0 for row in same.rows)
    assert "All settings are the same." in same.table()


def test_a_comparison_names_what_differs_and_what_does_not_compare(found, at, tmp_path):
    data = json.loads((at / "report.json").read_text())
    data["settings"]["train"]["steps"] = 5
    data["about"]["corpus"]["sha256"] = "another"
    for row in data["rows"]:
        if row["label"] == "alibi":
            row["bits"][0]["value"] *= 2
    data["rows"] = data["rows"][:1]
    (tmp_path / "report.json").write_text(json.dumps(data))
    found = compare(at, tmp_path)
    assert found.settings == {"train.steps": (4, 5)}
    assert found.obstacles == ["other_text"]
    assert found.only == (["learned"], [])
    assert found.rows[0]["change"] == pytest.approx(1)
    for lang in LANGUAGES:
        assert words("grid", lang)("other_text") in found.table(lang)
    (tmp_path / "other.json").write_text('{"rows": []}')
    with pytest.raises(BadInput, match="no result of the lab"):
        compare(at, tmp_path / "other.json")


def test_every_text_of_the_grid_is_used():
    from pathlib import Path

    source = "".join(path.read_text() for path in Path(gn.__file__).parent.glob("**/*.py"))
    unused = [key for key in glossary()["grid"] if f'"{key}"' not in source.replace("'", '"')]
    assert unused == []


def test_bits_of_targets_are_nats_over_bytes(report, settings, corpus, tmp_path):
    from gnomon.lab.prepare import prepare
    from gnomon.lab.report import bits_of_targets

    targets = prepare(settings, corpus, tmp_path, True).targets
    total = float(targets.bytes_of_documents.sum())
    assert bits_of_targets(targets, [log(2) * total]) == pytest.approx(1)
    assert bits_of_targets(targets, None) is None


@pytest.mark.slow
def test_a_changed_grid_computes_what_changed(settings, corpus, tmp_path):
    two = replace(settings, positions=("rope", "none"))
    experiment(two, corpus, tmp_path, workers=1)
    longer = replace(two, positions=("rope", "alibi"))
    experiment(longer, corpus, tmp_path, workers=1, resume=True)
    with pytest.raises(BadValue, match="or resume it"):
        experiment(replace(longer, train=replace(longer.train, lr=1e-3)), corpus, tmp_path, workers=1)
    other = replace(longer, train=replace(longer.train, lr=1e-3))
    report = experiment(other, corpus, tmp_path, workers=1, resume=True)
    assert report.about["reused"] == []
    assert len(list(tmp_path.glob("rope*/measured.json"))) == 2
    assert len(Store(tmp_path)._folders) == 5
