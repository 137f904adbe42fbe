"""A translation's labels are shifted once, end where the target ends, and weigh the same however a batch is cut."""

import pytest
import torch

from gnomon.data import Tokenizer
from gnomon.errors import BadValue
from gnomon.models import DecoderOnly, EncoderDecoder
from gnomon.tasks.numbers import NumbersKind
from gnomon.train import TrainConfig, adamw, training_step
from gnomon.train.loss import IGNORE

END = 256
PAIRS = [("ab", "xyz"), ("c", "y"), ("defg", "zz")]


@pytest.fixture
def task():
    return NumbersKind(limit=100, count=2).task(Tokenizer.bytes(), TrainConfig(batch_size=4, length=40))


def model_of(**changes) -> EncoderDecoder:
    torch.manual_seed(3)
    model = EncoderDecoder(257, 16, 1, 2, **changes)
    model.tokenizer = Tokenizer.bytes()
    return model


def test_the_decoder_reads_start_and_tokens_and_guesses_tokens_and_end(task):
    """The end has the id of the padding and is a target all the same: what is padding is told by length."""
    batch = task.made(PAIRS)
    x, y, z = b"xyz"
    assert batch.target.ids[:, :-1].tolist() == [[END, x, y, z], [END, y, END, END], [END, z, z, END]]
    assert batch.labels().tolist() == [[x, y, z, END], [y, END, IGNORE, IGNORE], [z, z, END, IGNORE]]
    assert batch.targets == 9
    assert batch.source.ids[1].tolist() == [ord("c"), END, END, END]
    assert batch.source.at.real[1].tolist() == [True, False, False, False]


def test_what_stands_in_the_padding_changes_nothing(task):
    model, batch = model_of().double(), task.made(PAIRS)
    before = batch.loss(model)
    batch.source.ids[~batch.source.at.real] = 7
    batch.target.ids[~batch.target.at.real] = 9
    torch.testing.assert_close(batch.loss(model).total, before.total)


def test_a_batch_is_the_sum_of_its_rows(task):
    model = model_of().double()
    whole = task.made(PAIRS).loss(model)
    alone = [task.made([pair]).loss(model) for pair in PAIRS]
    torch.testing.assert_close(whole.total, sum(loss.total for loss in alone))
    assert whole.count == sum(int(loss.count) for loss in alone) == 9


@pytest.mark.parametrize("parts", [2, 3])
def test_pieces_give_the_same_step(task, parts):
    ended = []
    for n in (1, parts):
        model = model_of().double()
        for _ in range(2):
            training_step(model, adamw(model, 1e-2), task.made(PAIRS), 1e-2, 1.0, n)
        ended.append(torch.cat([p.detach().flatten() for p in model.parameters()]))
    torch.testing.assert_close(ended[0], ended[1], rtol=0, atol=1e-9)


def test_losses_of_held_out_pairs_are_theirs_whatever_batch_they_are_in(task, monkeypatch):
    model = model_of().double()
    whole = task.losses(model, PAIRS, torch.float64)
    monkeypatch.setattr("gnomon.tasks.translation.AT_ONCE", 1)
    single = task.losses(model, PAIRS, torch.float64)
    torch.testing.assert_close(whole.total, single.total)
    assert whole.count.tolist() == single.count.tolist() == [4, 2, 3]


def test_a_model_that_knows_the_way_by_heart_writes_it_and_stops(task):
    model, pairs = model_of(d_ff=64), [("ab", "xy"), ("c", "z")]
    optimizer = adamw(model, 1e-2)
    for _ in range(60):
        training_step(model, optimizer, task.made(pairs), 1e-2, 1.0)
    assert task.translate(model, [source for source, _ in pairs]) == [target for _, target in pairs]


def test_an_evaluation_has_the_loss_and_the_scores_of_every_set(task):
    model = model_of()
    model.train()
    found = task.evaluate(model)
    assert list(found.measures) == ["loss", "perplexity", "exact match uniform", "exact match log-uniform"]
    assert found.targets == sum(len(target.encode()) + 1 for pairs in task.held_out().values() for _, target in pairs)
    assert model.training
    assert found == task.evaluate(model)


def test_samples_show_a_source_and_what_becomes_of_it(task):
    samples = task.samples(model_of())
    sources = [source for pairs in task.held_out().values() for source, _ in pairs]
    assert [sample.split(" -> ")[0] for sample in samples] == sources


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (lambda: DecoderOnly(257, 16, 1, 2), "this model is decoder-only"),
        (lambda: EncoderDecoder(100, 16, 1, 2), "vocabulary of 257 tokens; the model knows 100"),
        (lambda: EncoderDecoder(257, 16, 1, 2, source_vocab_size=257), "has another for the source"),
        (lambda: EncoderDecoder(257, 16, 1, 2, position="learned", max_positions=9), "hold 9 rows"),
    ],
)
def test_a_model_that_cannot_translate_is_refused(task, model, message):
    with pytest.raises(BadValue, match=message):
        task.check(model(), task.config)


def test_rows_longer_than_the_length_are_refused_with_the_length_they_need():
    config = TrainConfig(length=8)
    task = NumbersKind(limit=100, count=2).task(Tokenizer.bytes(), config)
    with pytest.raises(BadValue, match=r"at most length=8 tokens, but one that is held out has (\d+): --length \1"):
        task.check(model_of(), config)
