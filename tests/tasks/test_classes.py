"""Classes of texts: measured beside a bag of words and the most frequent class, by numbers that can be worked out."""

from collections import Counter

import numpy as np
import pytest
import torch

import gnomon as gn
from gnomon.data import Corpus, Document, Tokenizer
from gnomon.data.table import Example
from gnomon.tasks.classes import Classes, ClassesKind, class_measures, classify, stdlib_functions
from gnomon.train import TrainConfig

TRAINING = [
    Example(f"{word} {i} {i * 7}", label) for word, label in (("sun", "warm"), ("ice", "cold")) for i in range(20)
]
TRAINING += [Example(f"sun sun {i}", "warm") for i in range(5)]
HELD_OUT = [
    Example(f"{word} {i} {i}", label) for word, label in (("sun", "warm"), ("ice", "cold")) for i in range(30, 36)
]
CONFIG = TrainConfig(batch_size=8, length=12)


@pytest.fixture(scope="module")
def task():
    return Classes(TRAINING, HELD_OUT, Tokenizer.bytes(), CONFIG)


@pytest.fixture
def model():
    model = gn.EncoderOnly(257, 16, 1, 2, causal=False, head="classes", n_classes=2)
    model.labels, model.tokenizer = ("cold", "warm"), Tokenizer.bytes()
    return model


def test_accuracy_and_macro_f1_are_those_of_a_case_worked_by_hand():
    """said 0 0 1 1 2, there 0 1 1 1 0: F1 of 0 is 2/4, of 1 is 4/5; nothing is 2, so it has no part in the mean."""
    measures = class_measures("", np.array([0, 0, 1, 1, 2]), np.array([0, 1, 1, 1, 0]), 3)
    assert measures["accuracy"].value == pytest.approx(3 / 5)
    assert measures["macro F1"].value == pytest.approx((2 / 4 + 4 / 5) / 2)
    assert measures["accuracy"].low < 3 / 5 < measures["accuracy"].high
    all_right = class_measures("", np.array([0, 1]), np.array([0, 1]), 2)["accuracy"]
    assert all_right.low < 1 == all_right.value  # two hits of two are no certainty


def test_an_epoch_takes_every_text_once(task):
    rows = [tuple(i for i in row if i) for number in range(45) for row in task.batch(number).ids.tolist()]
    seen = Counter(rows)
    assert sum(seen.values()) == 45 * 8 == 8 * len(TRAINING)
    assert set(seen.values()) == {8}


def test_a_batch_depends_on_its_number_alone(task):
    first, again = task.batch(2), task.batch(2)
    assert torch.equal(first.ids, again.ids)
    assert torch.equal(first.labels, again.labels)
    assert (
        not torch.equal(first.labels.flatten(), task.batch(3).labels.flatten())
        or first.ids.shape != task.batch(3).ids.shape
    )


def test_labels_are_those_of_the_texts(task):
    batch = task.batch(0)
    for ids, [label] in zip(batch.ids.tolist(), batch.labels.tolist(), strict=True):
        text = Tokenizer.bytes().decode(i for i in ids if i)
        assert ("cold", "warm")[label] == ("warm" if text.startswith("sun") else "cold")


def test_it_is_learned_and_measured_beside_what_is_simpler(task, model):
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    for number in range(30):
        loss = task.batch(number).loss(model).mean
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    measures = task.evaluate(model).measures
    assert measures["accuracy"].value == measures["macro F1"].value == 1.0
    assert measures["accuracy bag of words"].value == 1.0
    assert measures["accuracy majority"].value == 0.5  # warm is more frequent where it was trained, not here
    assert measures["macro F1 majority"].value == pytest.approx((2 * 6 / (12 + 6)) / 2)
    labels, probabilities = zip(*classify(model, "ice and more", 12), strict=True)
    assert labels == ("cold", "warm")
    assert sum(probabilities) == pytest.approx(1)
    assert task.samples(model)[0].startswith("warm: sun 30 30 -> warm (")


def test_the_probabilities_of_a_text_do_not_depend_on_what_is_read_beside_it(task, model):
    from gnomon.tasks.classes import class_log_probabilities

    alone = class_log_probabilities(model, Tokenizer.bytes(), ["ice"], 12)
    beside = class_log_probabilities(model, Tokenizer.bytes(), ["ice", "much longer than ice"], 12)
    np.testing.assert_allclose(alone[0], beside[0], atol=1e-5)


def test_a_long_text_is_read_from_its_beginning(model):
    assert classify(model, "twelve bytes and more", 12) == classify(model, "twelve bytes", 12)


def test_a_table_becomes_a_task(tmp_path):
    path = tmp_path / "t.tsv"
    path.write_text("text\tlabel\n" + "".join(f"{text}\t{label}\n" for text, label in TRAINING))
    kind = ClassesKind(sources=(str(path),))
    assert kind.labels == ("cold", "warm")
    training, held_out = kind.parts
    assert (len(training), len(held_out)) == (36, 9)
    assert not {text for text, _ in training} & {text for text, _ in held_out}
    model = kind.new_model(gn.ModelConfig.from_dict({**kind.default_model, "vocab_size": 257, "d_model": 16}))
    kind.task(Tokenizer.bytes(), CONFIG).check(model, CONFIG)
    assert model.labels == ("cold", "warm")


def test_what_cannot_be_learned_is_named(tmp_path, task, model):
    path = tmp_path / "t.tsv"
    path.write_text("text\tlabel\nx\ta\ny\ta\n")
    with pytest.raises(gn.BadInput, match="all texts have the label 'a', .* give two classes or more"):
        ClassesKind(sources=(str(path),)).texts()
    path.write_text("text\tlabel\nx\ta\nx\tb\n")
    with pytest.raises(gn.BadInput, match="no text has one label alone"):
        ClassesKind(sources=(str(path),)).texts()
    with pytest.raises(gn.BadInput, match="nothing was trained on of the classes strange"):
        Classes(TRAINING, [Example("x", "strange")], Tokenizer.bytes(), CONFIG)
    model.labels = ("a", "b")
    with pytest.raises(gn.BadValue, match="the classes are cold, warm; the model has"):
        task.check(model, CONFIG)
    with pytest.raises(gn.BadValue, match="no text to classify in .*: give one"):
        classify(model, " \n")
    with pytest.raises(gn.BadValue, match="tells no classes, it is decoder-only"):
        classify(gn.DecoderOnly(257, 16, 1, 2), "x")


def test_the_example_is_the_twenty_packages_with_the_most_functions(monkeypatch):
    """Package p00 has 2 functions, p01 has 3 and so on: p00 and p01 are left out, and so is what is in no package, what
    is shorter than three lines, and what two packages share."""
    shared = "def shared():\n    x = 1\n    return x\n"
    documents = [Document("stdlib/alone.py", "def alone(a):\n    b = a\n    return b\n")]
    for p in range(22):
        functions = [f'def f{i}(p{p}):\n    """Say {p}."""\n    x = {i}\n    return x\n' for i in range(p + 2)]
        documents.append(Document(f"stdlib/p{p:02}/inner/file.py", "".join(functions) + shared + "def g(): pass\n"))
    monkeypatch.setattr(Corpus, "open", lambda source: Corpus.from_documents(documents, source))
    found = stdlib_functions()
    assert Counter(label for _, label in found) == {f"p{p:02}": p + 2 for p in range(2, 22)}
    assert found[0] == Example("def f0(p2):\n    x = 0\n    return x", "p02")
