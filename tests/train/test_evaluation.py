"""Held-out loss is a mean over tokens, measured without dropout, and bits per byte follow from it."""

import math

import numpy as np
import pytest
import torch
from torch import nn

from gnomon.data import windows_for_eval
from gnomon.train import evaluate
from gnomon.train.evaluation import Evaluation, from_losses
from gnomon.train.measure import share


class Uniform(nn.Module):
    """Every token alike."""

    def __init__(self, vocab_size: int) -> None:
        super().__init__()
        self.logit = nn.Parameter(torch.zeros(vocab_size))

    def forward(self, ids, at=None):
        return self.logit.expand(*ids.shape, -1)


def test_a_model_that_knows_nothing_pays_log_v_a_token(text):
    V = text.tokenizer.vocab_size
    found = evaluate(Uniform(V), windows_for_eval(text.valid, 8))
    assert found.loss == pytest.approx(math.log(V), rel=1e-6)
    assert found.measures["perplexity"].value == pytest.approx(V, rel=1e-5)


def test_bits_per_byte_share_the_nats_over_the_bytes_of_the_targets(text):
    V, windows = text.tokenizer.vocab_size, windows_for_eval(text.valid, 8)
    found = evaluate(Uniform(V), windows)
    expected = windows.ids[:, 1:].size * math.log2(V) / windows.n_bytes.sum()
    assert found.measures["bits per byte"].value == pytest.approx(expected, rel=1e-6)


def test_bytes_are_those_of_the_targets(text):
    windows = windows_for_eval(text.valid, 8, limit=5)
    targets = windows.ids[:, 1:]
    expected = int((targets != text.valid.eos_id).sum())  # the byte tokenizer: one byte a token, none for end-of-text
    assert windows.n_bytes.sum() == expected < targets.size


@pytest.mark.parametrize("batch_size", [1, 3, 100])
def test_batches_of_any_size_give_the_same_loss(text, build, batch_size):
    model, windows = build().double(), windows_for_eval(text.valid, 8, limit=7)
    assert evaluate(model, windows, batch_size).loss == pytest.approx(evaluate(model, windows, 7).loss, rel=1e-12)


def test_dropout_sleeps_and_the_model_comes_back_in_its_mode(text, build):
    windows = windows_for_eval(text.valid, 8, limit=4)
    model, plain = build(dropout=0.9), build(dropout=0.0)
    model.train()
    assert evaluate(model, windows) == evaluate(model, windows) == evaluate(plain, windows)
    assert model.training
    model.eval()
    evaluate(model, windows)
    assert not model.training
    model.train()
    ids = torch.from_numpy(windows.ids.astype("int64"))[:, :-1]
    assert not model(ids).equal(model(ids))  # so that there was something to put to sleep


def test_an_absurd_loss_has_an_infinite_perplexity_and_no_error():
    found = from_losses(np.array([1000.0]), np.array([1.0]))
    assert found.measures["perplexity"].value == math.inf
    assert "perplexity inf" in str(found)


def test_measures_are_written_for_people_and_named_for_programs():
    found = Evaluation({"loss": share(1, 3), "exact match log-uniform": share(995, 1000), "BLEU": share(1, 2)}, 7)
    assert str(found) == "loss 0.3333, exact match log-uniform 99.5 %, BLEU 0.5"
    assert list(found.as_metrics()) == ["valid_loss", "valid_exact_match_log_uniform", "valid_bleu"]
    assert found.loss == 1 / 3


def test_the_interval_of_a_loss_holds_it_and_that_of_perplexity_is_its_exponential(text, build):
    found = evaluate(build(), windows_for_eval(text.valid, 8)).measures
    loss, perplexity = found["loss"], found["perplexity"]
    assert loss.low < loss.value < loss.high
    for end in ("low", "value", "high"):
        assert getattr(perplexity, end) == pytest.approx(math.exp(getattr(loss, end)))
    assert loss.count == len(windows_for_eval(text.valid, 8).ids)


def test_right_answers_are_named_in_the_readers_language():
    found = Evaluation({"exact match log-uniform": share(995, 1000)}, 7)
    assert found.in_words("es") == "aciertos, log-uniforme 99,5 %"
    assert found.in_words("pt") == "acertos, log-uniforme 99,5 %"
