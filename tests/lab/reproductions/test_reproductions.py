"""Published comparisons: what a verdict is computed from."""

import pytest

from gnomon.errors import BadValue
from gnomon.glossary import LANGUAGES, words
from gnomon.lab.reproductions import report as module
from gnomon.lab.reproductions.catalogue import reproduction, reproductions
from gnomon.lab.reproductions.frame import Condition, Reproduction, outcome
from gnomon.lab.reproductions.report import ReproductionReport, reproduce
from gnomon.lab.text_cell import text_cell, windows

NAMES = ("alibi-table-2", "huang-unique-copy", "kazemnejad-copy", "randpos-reverse", "yarn-zero-shot")


def judged(published, ours, *, higher=True, ranks=False, learned=None):
    """The outcome where condition i was published as `published[i]`, and measured as `ours[i]`, a number a seed."""
    seeds = len(ours[0])
    conditions = tuple(
        Condition(f"c{i}", (number,), lambda seed, i=i: (i, seed), lambda found: (found[0],), lambda found: found[1])
        for i, number in enumerate(published)
    )
    r = Reproduction("x", "nobody", ("a",), ("b",), conditions, (0,), higher, ranks)
    fine = learned or [[True] * seeds] * len(ours)
    return outcome(r, lambda cell: (ours[cell[0]][cell[1]], fine[cell[0]][cell[1]]), seeds)


def test_the_published_order_in_every_seed_appears():
    found = judged([0.9, 0.5, 0.1], [[0.8, 0.9, 0.85], [0.6, 0.5, 0.55], [0.0, 0.1, 0.2]])
    assert found.verdict == "appears"
    assert found.tau.value == found.tau.low == 1
    assert {pair.holds for pair in found.pairs} == {"holds"}


def test_where_lower_is_better_the_same_numbers_are_the_opposite_order():
    low = judged([10.0, 20.0], [[3.0, 3.1, 3.2], [4.0, 4.2, 4.1]], higher=False)
    assert (low.verdict, low.pairs[0].better) == ("appears", "c0")
    assert judged([10.0, 20.0], [[4.0, 4.2, 4.1], [3.0, 3.1, 3.2]], higher=False).verdict == "absent"


def test_ranks_count_from_the_best():
    assert judged([1, 1, 2], [[0.9, 0.8, 0.9], [0.7, 0.9, 0.8], [0.1, 0.2, 0.1]], ranks=True).verdict == "appears"
    assert (
        len(judged([1, 1, 2], [[0.9, 0.8, 0.9], [0.7, 0.9, 0.8], [0.1, 0.2, 0.1]], ranks=True).pairs) == 2
    )  # ties are no claim
    assert judged([1, 2], [[0.1, 0.2, 0.1], [0.8, 0.9, 0.8]], ranks=True).verdict == "absent"


def test_an_order_the_other_way_round_is_absent_and_says_which_pairs():
    found = judged([0.9, 0.1], [[0.0, 0.1, 0.05], [0.8, 0.9, 0.95]])
    assert found.verdict == "absent"
    assert [(pair.better, pair.worse, pair.holds) for pair in found.pairs] == [("c0", "c1", "reversed")]
    assert found.tau.high == -1


def test_seeds_that_disagree_settle_nothing():
    found = judged([0.9, 0.1], [[0.9, 0.1, 0.6], [0.2, 0.8, 0.5]])
    assert found.verdict == "unsettled"
    assert found.pairs[0].holds == "undecided"


def test_an_order_that_agrees_but_for_a_pair_appears_in_part():
    ours = [[0.9] * 3, [0.7] * 3, [0.8] * 3, [0.1] * 3]
    found = judged([4, 3, 2, 1], ours)
    assert found.verdict == "in_part"
    assert [pair.holds for pair in found.pairs].count("reversed") == 1


def test_an_order_that_agrees_in_hardly_more_than_half_of_the_pairs_is_absent():
    ours = [[0.7] * 3, [0.9] * 3, [0.1] * 3, [0.8] * 3]
    assert judged([4, 3, 2, 1], ours).tau.value == pytest.approx(0)
    assert judged([4, 3, 2, 1], ours).verdict == "absent"


def test_one_seed_or_two_give_no_verdict():
    assert judged([2, 1], [[0.9, 0.8], [0.1, 0.2]]).verdict == "few"


def test_what_was_not_learned_is_left_out_of_the_order():
    fine, not_fine = [True] * 3, [False, False, True]
    ours = [[0.9] * 3, [0.5] * 3, [0.99] * 3]
    found = judged([3, 2, 1], ours, learned=[fine, fine, not_fine])
    assert found.verdict == "appears"
    assert [m.judged for m in found.measured] == [True, True, False]
    assert judged([2, 1], ours[:2], learned=[fine, not_fine]).verdict == "nothing"


def test_every_reproduction_is_there_with_its_numbers_and_words():
    assert tuple(sorted(reproductions())) == NAMES
    for name, r in reproductions().items():
        assert r.source
        assert all(len(c.published) == len(r.columns) == len(r.ours) for c in r.conditions)
        assert all(any(c.published[i] is not None for c in r.conditions) for i in r.ranked)
        for lang in LANGUAGES:
            assert words("reproduce", lang)(f"about_{name}") != words("reproduce", lang)(f"tried_{name}")


def test_an_unknown_one_is_an_error_that_names_the_nearest():
    with pytest.raises(BadValue, match="did you mean 'alibi-table-2'"):
        reproduction("alibi-table2")


def test_seeds_share_cells_and_their_keys_are_settings():
    r = reproduction("yarn-zero-shot")
    assert len({cell.key for cell in r.cells(3)}) == 3  # one model a seed, read under every method
    assert len({cell.key for cell in reproduction("kazemnejad-copy").cells(2)}) == 10


@pytest.mark.parametrize("name", NAMES)
def test_a_report_says_in_three_languages_what_its_numbers_say(name, monkeypatch):
    r = reproduction(name)

    def computed(cells, *rest):
        numbers = {cell.key: n for n, cell in enumerate(cells)}
        return {key: result(r, n) for key, n in numbers.items()}

    monkeypatch.setattr(module, "computed", computed)
    report = reproduce(name, seeds=2)
    assert isinstance(report, ReproductionReport)
    text = {lang: report.table(lang) for lang in LANGUAGES}
    assert "Verdict:" in text["en"]
    assert "Veredicto:" in text["es"]
    assert "Veredito:" in text["pt"]
    assert "too few for a claim" in text["en"]
    data = report.to_dict()
    assert {row["condition"] for row in report.rows} == {c.label for c in r.conditions}
    assert data["verdict"] in ("appears", "in_part", "unsettled", "absent", "nothing", "few")


def result(r, n):
    """What a cell might have measured."""
    lengths = {64 * f for f in (1, 2, 3, 4, 5, 7)}
    methods = [c.label for c in r.conditions] if r.name == "yarn-zero-shot" else ["none"]
    used = (64, 128, 256) if r.name == "yarn-zero-shot" else (64, 128, 192, 320, 448)
    assert set(used) <= lengths
    return {
        "cpu_seconds": 1.0,
        "unigram": 100.0,
        "measured": [
            {"method": method, "length": length, "perplexity": 20.0 + n + length / 64}
            for method in methods
            for length in used
        ],
        "stretches": [{"exact": 0.95 - 0.3 * i, "stopped": 0.9 - 0.3 * i, "tokens": 0.99 - 0.3 * i} for i in range(3)],
    }


def test_a_text_cell_trains_and_measures(tmp_path):
    from gnomon.lab.settings import Recipe, Size

    for n in range(20):
        (tmp_path / f"{n}.txt").write_text(f"{n} the dog bit the man and {n + 1} men bit the dog " * 4)
    small = {"model": Size(d_model=16, n_layers=1, n_heads=2), "train": Recipe(steps=3, batch_size=2)}
    settings = {"length": 8, "factors": (1, 2), "methods": ("none", "linear"), "tokens": 64, "vocab_size": 260}
    cell = text_cell("rope", text=str(tmp_path), **settings, **small)
    found = cell.run(tmp_path, lambda share, text: None)["measured"]
    assert [(row["method"], row["length"]) for row in found] == [
        ("none", 8),
        ("none", 16),
        ("linear", 8),
        ("linear", 16),
    ]
    assert found[0] == {**found[2], "method": "none"}  # nothing to extend at the training length
    assert found[1]["perplexity"] != found[3]["perplexity"]


def test_windows_lie_in_one_document_and_do_not_overlap():
    from gnomon.data import Corpus, Tokenizer, TokenStore

    corpus = Corpus.from_texts(["abcdefghijkl" * 3, "short", "0123456789" * 4])
    store = TokenStore.open(corpus, Tokenizer.bytes())
    rows = windows(store, 16, 1000)
    assert rows.shape[1] == 17
    texts = [bytes(row.tolist()).decode() for row in rows]
    assert all(any(text in document.text for document in corpus.documents) for text in texts)
    assert texts[0][-1] == texts[1][0]  # the last token is only guessed, and read by the next
