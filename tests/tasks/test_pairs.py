"""Translation from a file of pairs: no source on both sides of the split, and a bad line is named."""

from collections import Counter

import pytest
from sacrebleu import corpus_bleu, corpus_chrf

from gnomon.data import Tokenizer
from gnomon.errors import BadInput, BadValue
from gnomon.models import EncoderDecoder
from gnomon.tasks.pairs import PairsKind, read_pairs
from gnomon.train import TrainConfig

CONFIG = TrainConfig(batch_size=7, length=40)


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "pairs.tsv"
    lines = [f"source {i // 2}\ttarget {i}" for i in range(60)]  # each source twice
    path.write_text("\n".join(lines) + "\n\n")
    return path


def test_a_source_is_on_one_side_of_the_split_and_no_pair_is_lost(file):
    training, held_out = PairsKind((str(file),), held_out=0.2).parts
    assert not {source for source, _ in training} & {source for source, _ in held_out}
    assert len(held_out) == 12
    assert Counter(training + held_out) == Counter(read_pairs(file))


def test_the_split_depends_on_the_file_and_the_vocabulary_on_training_pairs(file):
    kind, again = PairsKind((str(file),), 0.2), PairsKind((str(file),), 0.2)
    assert kind.parts == again.parts
    assert list(kind.texts()) == [text for pair in kind.parts[0] for text in pair]


def test_each_pair_is_trained_on_once_in_every_pass(file):
    kind = PairsKind((str(file),), 0.2)
    task = kind.task(Tokenizer.bytes(), CONFIG)
    n = len(kind.parts[0])
    drawn = [pair for step in range(2 * n) for pair in task.draw(step)][: 2 * n]
    assert Counter(drawn[:n]) == Counter(drawn[n:]) == Counter(kind.parts[0])
    assert drawn[:n] != drawn[n:]
    later = kind.task(Tokenizer.bytes(), CONFIG)
    assert later.draw(9) == task.draw(9)


@pytest.mark.parametrize("line", ["no tab here", "two\ttabs\there", "\tno source", "no target\t ", "a\t\tb"])
def test_a_line_that_is_no_pair_is_named_with_its_number(tmp_path, line):
    (tmp_path / "pairs.tsv").write_text(f"good\tgut\n\n{line}\n")
    with pytest.raises(BadInput, match=r"pairs\.tsv, line 3: expected a source, one tab and its target"):
        list(read_pairs(tmp_path / "pairs.tsv"))


def test_files_that_cannot_be_read_are_named(tmp_path):
    with pytest.raises(BadInput, match="cannot read .*nowhere.tsv"):
        list(read_pairs(tmp_path / "nowhere.tsv"))
    (tmp_path / "latin.tsv").write_bytes("año\tyear".encode("latin-1"))
    with pytest.raises(BadInput, match=r"latin\.tsv is not UTF-8"):
        list(read_pairs(tmp_path / "latin.tsv"))


def test_a_file_is_read_as_spreadsheets_and_the_web_write_them(tmp_path):
    """A mark of byte order in front, lines that end in two characters, and a separator of lines inside a text."""
    (tmp_path / "pairs.tsv").write_bytes("a\tb\r\nc d\u2028e\tf\x85g\r\n".encode("utf-8-sig"))
    assert list(read_pairs(tmp_path / "pairs.tsv")) == [("a", "b"), ("c d\u2028e", "f\x85g")]


def test_other_data_without_pairs_are_refused(tmp_path):
    (tmp_path / "blank.tsv").write_text("\n\n")
    with pytest.raises(BadInput, match="there are no pairs in .*blank.tsv: give a source, a tab and its target"):
        PairsKind().task_on((str(tmp_path / "blank.tsv"),), Tokenizer.bytes(), CONFIG, quiet=True)


def test_what_cannot_be_split_is_refused(tmp_path, file):
    (tmp_path / "one.tsv").write_text("a\tb\na\tc\n")
    with pytest.raises(BadInput, match="1 different sources cannot be split"):
        _ = PairsKind((str(tmp_path / "one.tsv"),)).parts
    with pytest.raises(BadValue, match="give a file of pairs"):
        _ = PairsKind().parts
    with pytest.raises(BadValue, match="held_out is 1"):
        PairsKind((str(file),), held_out=1.0)


def test_the_fingerprint_is_that_of_the_training_pairs(file):
    before = PairsKind((str(file),), 0.2).task(Tokenizer.bytes(), CONFIG).fingerprint
    assert PairsKind((str(file),), 0.2).task(Tokenizer.bytes(), TrainConfig()).fingerprint == before
    file.write_text(file.read_text().replace("target", "goal"))
    assert PairsKind((str(file),), 0.2).task(Tokenizer.bytes(), CONFIG).fingerprint != before


def test_scores_are_those_of_sacrebleu_with_an_interval_around_them(file):
    task = PairsKind((str(file),), 0.2).task(Tokenizer.bytes(), CONFIG)
    answers = ["the cat sat on the mat", "a dog ran over the hill", "we go home at night now"]
    references = ["the cat sat on a mat", "a dog ran up the hill", "we went home at night now"]
    found = task.score("pairs", answers, references)
    assert found["BLEU"].value == pytest.approx(corpus_bleu(answers, [references]).score)
    assert found["chrF"].value == pytest.approx(corpus_chrf(answers, [references]).score)
    for measure in found.values():
        assert measure.low < measure.value < measure.high
        assert measure.count == 3
    perfect = task.score("pairs", references, references)
    assert (perfect["BLEU"].value, perfect["chrF"].value) == pytest.approx((100, 100))


@pytest.mark.parametrize(
    ("answers", "references", "side"),
    [
        (["the red cat", "a dog"], ["the red cat", "a dog"], "translation"),  # all right, and BLEU is 0
        (["a b c d e", "a"], ["a b c", "a b"], "reference"),
        (["a b c d", "a"], ["a b c d", "b"], None),
    ],
)
def test_where_bleu_has_no_run_of_four_words_to_count_it_says_so(file, answers, references, side):
    task = PairsKind((str(file),), 0.2).task(Tokenizer.bytes(), CONFIG)
    found = task.score("pairs", answers, references)
    assert (f"no {side} has four" in found["BLEU"].note) if side else not found["BLEU"].note
    assert not found["chrF"].note
    if answers == references:
        assert (found["BLEU"].value, found["chrF"].value) == (0, pytest.approx(100))


def test_a_model_that_gets_nothing_right_in_some_draws_is_measured_all_the_same(file):
    """A few sentences, one of them right: many draws of the bootstrap leave it out, and score 0."""
    task = PairsKind((str(file),), 0.2).task(Tokenizer.bytes(), CONFIG)
    found = task.score("pairs", ["the cat sat on the mat", "", ""], ["the cat sat on the mat", "xyz", "uvw"])
    for measure in found.values():
        assert measure.low == 0 < measure.value < measure.high
    nothing = task.score("pairs", ["", "q"], ["the cat sat on the mat", "xyz"])
    assert {(m.low, m.value, m.high) for m in nothing.values()} == {(0, 0, 0)}


def test_a_training_pair_longer_than_the_length_is_refused_with_the_length_it_needs(tmp_path, file):
    lines = file.read_text().strip() + "\n" + "x" * 50 + "\ty\n"
    file.write_text(lines)
    kind = next(k for k in (PairsKind((str(file),), h) for h in (0.1, 0.2, 0.3)) if ("x" * 50, "y") in k.parts[0])
    with pytest.raises(BadValue, match="a training pair has 51: --length 51"):
        kind.task(Tokenizer.bytes(), CONFIG).check(EncoderDecoder(257, 8, 1, 2), CONFIG)


def test_without_sacrebleu_the_way_to_get_it_is_told(file, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "sacrebleu.metrics.bleu", None)
    task = PairsKind((str(file),), 0.2).task(Tokenizer.bytes(), CONFIG)
    with pytest.raises(BadInput, match="pip install sacrebleu"):
        task.score("pairs", ["a"], ["b"])
