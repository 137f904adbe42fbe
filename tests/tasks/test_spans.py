"""Spans of Python source: every token of a held-out file is judged once, and only exact spans count."""

import numpy as np
import pytest
import torch
from torch import nn

import gnomon as gn
from gnomon.data import Corpus, Tokenizer
from gnomon.data.python_source import KINDS, python_spans
from gnomon.data.spans import SpanCounts, label_names
from gnomon.tasks.spans import Spans, SpansKind, f1_measures, find_spans, log_probabilities
from gnomon.train import TrainConfig
from gnomon.train.loss import IGNORE

TEXTS = [f'def f{i}(x):\n    """Say\n    {i}."""\n    return x + {i}  # {i}\n' * 3 for i in range(12)]
CONFIG = TrainConfig(batch_size=4, length=32, eval_windows=50)


@pytest.fixture(scope="module")
def tokenizer():
    return Tokenizer.characters(TEXTS)


@pytest.fixture(scope="module")
def task(tokenizer):
    return Spans(*Corpus.from_texts(TEXTS).split(0.3), tokenizer, CONFIG)


@pytest.fixture
def model(tokenizer):
    config = gn.ModelConfig.from_dict(
        {**SpansKind.default_model, "vocab_size": tokenizer.vocab_size, "d_model": 16, "n_layers": 1, "n_heads": 2}
    )
    model = SpansKind().new_model(config)
    model.tokenizer = tokenizer
    return model


class Oracle(nn.Module):
    """Knows the labels of each character of one text by its place, told through the ids."""

    def __init__(self, labels):
        super().__init__()
        self.labels = torch.as_tensor(labels)
        self.seen = nn.Parameter(torch.zeros(len(labels)), requires_grad=False)

    def forward(self, ids, at=None):
        self.seen += torch.bincount(ids.flatten(), minlength=len(self.labels))
        return torch.nn.functional.one_hot(self.labels[ids], len(label_names(KINDS))) * 50.0


@pytest.mark.parametrize("n", [1, 7, 31, 32, 33, 48, 49, 200])
@pytest.mark.parametrize("length", [4, 32, 33])
def test_every_token_is_judged_once_from_a_window_it_is_in_the_middle_of(n, length):
    labels = np.random.default_rng(n).integers(13, size=n)
    found = log_probabilities(Oracle(labels), np.arange(n), length)
    assert found.shape == (n, 13)
    assert found.argmax(1).tolist() == labels.tolist()


@pytest.mark.parametrize("n", [33, 64, 200])
def test_what_counts_is_read_with_a_quarter_of_a_window_on_either_side(n):
    """A reader that knows only how far the window reaches to either side of a token."""

    class Reach(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.zeros(1))

        def forward(self, ids, at=None):
            least = torch.minimum(ids - ids[:, :1], ids[:, -1:] - ids).float()
            return torch.stack([least, torch.zeros_like(least)], -1)

    scores = log_probabilities(Reach(), np.arange(n), 32)
    reach = np.round(scores[:, 0] - scores[:, 1])
    to_the_ends = np.minimum(np.arange(n), np.arange(n)[::-1])
    assert (reach >= np.minimum(to_the_ends, 32 // 4 - 1)).all()


def test_who_knows_all_labels_finds_all_spans(task):
    """A perfect model gets 1 in every kind that is there; number, string and so on are all in these files."""
    for source in task.held_out:
        ids = np.arange(len(source.ids))
        task_of_one = Spans.__new__(Spans)
        task_of_one.config, task_of_one.held_out = CONFIG, [source._replace(ids=ids)]
        measures = task_of_one.evaluate(Oracle(source.labels)).measures
        assert measures["span F1"].value == 1.0
        assert measures["loss"].value == pytest.approx(0, abs=1e-6)


def test_one_wrong_character_costs_the_span_it_is_in(task):
    source = task.held_out[0]
    start, end, _ = next(span for span in source.spans if span.kind == "string")
    labels = source.labels.copy()
    labels[(start + end) // 2] = 0
    task_of_one = Spans.__new__(Spans)
    task_of_one.config, task_of_one.held_out = CONFIG, [source._replace(ids=np.arange(len(labels)))]
    measures = task_of_one.evaluate(Oracle(labels)).measures
    n = sum(span.kind == "string" for span in source.spans)
    assert measures["F1 string"].value == pytest.approx(2 * (n - 1) / (2 * n + 1))  # it is said to be two
    assert measures["span F1"].value == pytest.approx((5 + 2 * (n - 1) / (2 * n + 1)) / 6)


def test_macro_f1_adds_files_up_before_it_takes_the_mean():
    one = SpanCounts(*np.array([[1, 0, 0, 0, 0, 0], [2, 0, 0, 0, 0, 0], [1, 0, 0, 0, 0, 0]]))
    other = SpanCounts(*np.array([[0, 3, 0, 0, 0, 0], [0, 3, 0, 0, 0, 0], [1, 3, 0, 0, 0, 0]]))
    measures = f1_measures([one, other])
    assert measures["F1 keyword"].value == pytest.approx(2 * 1 / (2 + 2))
    assert measures["F1 name"].value == 1.0
    assert measures["span F1"].value == pytest.approx((0.5 + 1) / 6)
    assert 0 <= measures["span F1"].low <= measures["span F1"].value <= measures["span F1"].high <= 1


def test_a_batch_depends_on_its_number_alone_and_labels_are_those_of_its_tokens(task, tokenizer):
    first, again, other = task.batch(3), task.batch(3), task.batch(4)
    assert torch.equal(first.ids, again.ids)
    assert torch.equal(first.labels, again.labels)
    assert not torch.equal(first.ids, other.ids)
    whole = {tuple(s.ids.tolist()): s for s in task.training}
    for ids, labels in zip(first.ids.tolist(), first.labels.tolist(), strict=True):
        places = [
            (source, at)
            for key, source in whole.items()
            for at in range(len(key) - 31)
            if list(key[at : at + 32]) == ids
        ]
        assert any(source.labels[at : at + 32].tolist() == labels for source, at in places)


def test_a_file_shorter_than_a_window_is_padded_and_its_padding_is_no_target(tokenizer):
    short = Spans(Corpus.from_texts(["x = 1\n"]), Corpus.from_texts(["y = 2\n"]), tokenizer, CONFIG)
    long = Spans(Corpus.from_texts(["x = 1\n", "a" * 100]), Corpus.from_texts(["y = 2\n"]), tokenizer, CONFIG)
    assert short.batch(0).ids.shape == (4, 6)
    batches = [long.batch(n) for n in range(20)]
    mixed = next(b for b in batches if b.at is not None)
    assert (mixed.labels == IGNORE).tolist() == (~mixed.at.real).tolist()
    assert mixed.targets == int(mixed.at.real.sum())


def test_pieces_of_a_batch_add_up_to_its_loss(task, model):
    model.eval()
    batch = task.batch(0)
    parts = [piece.loss(model) for piece in batch.pieces(3)]
    torch.testing.assert_close(sum(p.total for p in parts), batch.loss(model).total)
    assert sum(int(p.count) for p in parts) == batch.targets


def test_a_few_steps_learn_something(task, model):
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    before = task.evaluate(model)
    for number in range(60):
        loss = task.batch(number).loss(model).mean
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    after = task.evaluate(model)
    assert after.loss < before.loss / 2
    assert after.measures["span F1"].value > before.measures["span F1"].value + 0.2
    found = find_spans(model, TEXTS[0], 32)
    assert len(set(found) & set(python_spans(TEXTS[0]))) > len(found) / 3


def test_nothing_is_found_in_an_empty_text(model):
    assert find_spans(model, "") == []


def test_files_that_are_not_python_are_left_out(tokenizer):
    mixed = Corpus.from_texts(["x = 1\n", 'x = """', "f("])
    assert len(Spans(mixed, Corpus.from_texts(["y = 2\n"]), tokenizer, CONFIG).training) == 1
    with pytest.raises(gn.BadInput, match="not enough Python source"):
        Spans(Corpus.from_texts(["f("]), Corpus.from_texts(["y = 2\n"]), tokenizer, CONFIG)


def test_a_model_that_cannot_learn_it_is_named(task, model, tokenizer):
    task.check(model, CONFIG)
    sizes = {"vocab_size": tokenizer.vocab_size, "d_model": 16, "n_layers": 1, "n_heads": 2}
    for other, message in (
        (gn.DecoderOnly(**sizes), "this task is for an encoder"),
        (gn.EncoderOnly(**sizes, causal=False), "head of labels; this one has tokens"),
        (gn.EncoderOnly(**sizes, causal=False, head="labels", n_classes=5), "13 labels, the model has 5"),
        (gn.EncoderOnly(**{**sizes, "vocab_size": 5}, causal=False, head="labels", n_classes=13), "different tokens"),
    ):
        with pytest.raises(gn.BadValue, match=message):
            task.check(other, CONFIG)
        with pytest.raises(gn.BadValue):
            find_spans(other, "x")


def test_only_as_many_held_out_files_are_read_as_the_settings_ask_for(tokenizer):
    training, held_out = Corpus.from_texts(TEXTS).split(0.5)
    few = Spans(training, held_out, tokenizer, TrainConfig(length=32, eval_windows=10))  # 10 middles of 16 tokens
    assert 160 <= sum(len(s.ids) for s in few.held_out) < 160 + max(len(text) for text in TEXTS)
    assert {s.text for s in few.held_out} < {document.text for document in held_out.documents}
