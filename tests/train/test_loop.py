"""A run: it learns, it tells what it does, and it refuses what cannot end well."""

import math
import re

import matplotlib.image
import pytest
import torch

from gnomon.checkpoints import load
from gnomon.data import Corpus, LMBatches, Tokenizer, TokenStore, windows_for_eval
from gnomon.errors import BadInput, BadValue
from gnomon.models import DecoderOnly
from gnomon.train import NotFinite, Text, TrainConfig, evaluate, plot_loss, read_metrics, read_state, train

pytestmark = pytest.mark.usefixtures("no_pictures")


def weights(model: torch.nn.Module) -> torch.Tensor:
    return torch.cat([p.detach().flatten() for p in model.parameters()])


@pytest.mark.slow
def test_mini_gpt_trains_and_writes_text(text, tmp_path):
    """The preset, over a BPE vocabulary, learns a small text by heart and writes it."""
    line = "".join(f"    return x + {i}\n" for i in range(10))
    parts = Corpus.from_texts([line, line + "\n"])
    tokenizer = Tokenizer.bpe(parts.texts, 300)
    store = TokenStore.open(parts, tokenizer, tmp_path)
    torch.manual_seed(0)
    model = DecoderOnly.from_preset("mini-gpt", vocab_size=512, d_model=32)
    model.tokenizer = tokenizer
    config = TrainConfig(steps=80, batch_size=8, length=16, lr=1e-2, warmup=10, eval_every=None, save_every=None)
    report = train(model, Text(store, store, config), config, tmp_path / "run", quiet=True)
    assert report.evaluation.loss < 1 < math.log(tokenizer.vocab_size)
    assert "return x + " in report.samples[0]
    again = load(tmp_path / "run")
    assert "return x + " in again.generate("    return x", max_new_tokens=16)[0].text


def test_the_folder_tells_what_happened(text, build, config, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("gnomon.train.loop.plot_loss", plot_loss)
    ran = config(steps=4, log_every=2, eval_every=2, sample_every=4, save_every=1)
    report = train(build(), text.task(ran), ran, tmp_path / "run", origin={"by": "a test"})
    lines = read_metrics(tmp_path / "run" / "metrics.jsonl")
    assert [(line["step"], *list(line)[1:]) for line in lines] == [
        (2, "loss", "lr", "tokens_per_second"),
        (2, "valid_loss", "valid_perplexity", "valid_bits_per_byte"),
        (4, "loss", "lr", "tokens_per_second"),
        (4, "valid_loss", "valid_perplexity", "valid_bits_per_byte"),
        (4, "samples"),
    ]
    assert lines[3]["valid_loss"] == report.evaluation.loss
    assert lines[4]["samples"] == report.samples
    assert matplotlib.image.imread(tmp_path / "run" / "loss.png").ndim == 3
    state = read_state(tmp_path / "run")
    assert (state.step, dict(state.origin)) == (4, {"by": "a test"})
    assert state.config.dtype == "float32"  # which "auto" came to
    assert [path.name for path in (tmp_path / "run" / "training").iterdir()] == ["step-4"]
    shown = capsys.readouterr()
    assert "step 2, held out: loss" in shown.err
    assert "\r" not in shown.err  # a bar is for terminals
    assert report.samples[0] not in shown.err  # whoever called shows the last samples, once
    assert shown.out == ""


def test_progress_is_told_in_the_language_asked_for(build, config, text, tmp_path, capsys):
    train(build(), text.task(config(steps=1)), config(steps=1), tmp_path / "run", lang="es")
    assert re.search(r"^paso 1, reservado: pérdida \d,\d+; perplejidad", capsys.readouterr().err, re.MULTILINE)


def test_quiet_is_quiet(text, build, config, tmp_path, capsys):
    train(build(), text.task(config()), config(steps=2, sample_every=1), tmp_path / "run", quiet=True)
    assert capsys.readouterr() == ("", "")


def test_the_folder_holds_the_model_that_was_trained(text, build, config, tmp_path):
    model = build(dropout=0.1)
    report = train(model, text.task(config()), config(steps=3), tmp_path / "run", quiet=True)
    assert weights(load(tmp_path / "run")).equal(weights(model))
    assert report.evaluation == evaluate(load(tmp_path / "run"), windows_for_eval(text.valid, 8, 4), batch_size=2)


def test_the_rate_of_each_step_is_that_of_the_schedule(text, build, config, tmp_path):
    ran = config(steps=20, lr=1e-3, warmup=5, floor=0.0)
    train(build(), text.task(ran), ran, tmp_path / "run", quiet=True)
    rates = [line["lr"] for line in read_metrics(tmp_path / "run" / "metrics.jsonl") if "lr" in line]
    expected = [1e-3 * min((s + 1) / 5, (1 + math.cos(math.pi * max(0, s - 5) / 15)) / 2) for s in range(20)]
    assert rates == pytest.approx(expected)


def test_measuring_sampling_and_saving_leave_the_training_alone(text, build, config, tmp_path):
    ended = []
    for n, changes in enumerate(({}, {"eval_every": 1, "sample_every": 1, "save_every": 2, "log_every": 3})):
        model = build(dropout=0.3)
        train(model, text.task(config()), config(steps=4, **changes), tmp_path / f"{n}", quiet=True)
        ended.append(weights(model))
    assert ended[0].equal(ended[1])


def test_pieces_are_the_same_run(text, build, config, tmp_path):
    ended = []
    for n in (1, 2):
        model, forwards = build().double(), []
        model.register_forward_pre_hook(lambda module, args, forwards=forwards: forwards.append(module.training))
        ran = config(steps=3, batch_size=4, accumulate=n, dtype="float64")
        train(model, text.task(ran), ran, tmp_path / f"{n}", quiet=True)
        assert sum(forwards) == 3 * n
        ended.append(weights(model))
    torch.testing.assert_close(ended[0], ended[1], rtol=0, atol=1e-9)


def test_another_seed_is_another_run(text, build, config, tmp_path):
    ended = []
    for n, seed in enumerate((3, 3, 4)):
        model = build(dropout=0.3)
        train(model, text.task(config(steps=2, seed=seed)), config(steps=2, seed=seed), tmp_path / f"{n}", quiet=True)
        ended.append(weights(model))
    assert ended[0].equal(ended[1])
    assert not ended[0].equal(ended[2])


def test_each_step_has_a_batch_and_a_dropout_of_its_own(text, build, config, tmp_path, monkeypatch):
    steps, draws = [], []
    original = LMBatches.batch

    def batch(self, step):
        steps.append(step)
        draws.append(torch.rand(()).item())
        return original(self, step)

    monkeypatch.setattr(LMBatches, "batch", batch)
    train(build(), text.task(config()), config(steps=5), tmp_path / "run", quiet=True)
    assert steps == [0, 1, 2, 3, 4]
    assert len(set(draws)) == 5


def test_padding_in_the_table_stays_zero_through_training_saving_and_loading(text, build, config, tmp_path):
    model = build(padding_id=0)
    train(model, text.task(config()), config(steps=3), tmp_path / "run", quiet=True)
    for trained in (model, load(tmp_path / "run")):
        assert trained.input.tokens.weight[0].eq(0).all()
        assert trained.input.tokens.weight[1:].ne(0).any(1).all()


@pytest.mark.parametrize("what", ["a file", "a folder with something in it"])
def test_what_is_there_is_never_replaced(text, build, config, tmp_path, what):
    file = tmp_path / "run" if what == "a file" else tmp_path / "run" / "mine.txt"
    file.parent.mkdir(exist_ok=True)
    file.write_text("mine")
    with pytest.raises(BadValue, match=f"already exists and is {'a file' if what == 'a file' else 'not empty'}"):
        train(build(), text.task(config()), config(), tmp_path / "run", quiet=True)
    assert file.read_text() == "mine"


def test_an_empty_folder_will_do(text, build, config, tmp_path):
    (tmp_path / "run").mkdir()
    train(build(), text.task(config()), config(steps=1), tmp_path / "run", quiet=True)


REFUSED = {
    "bidirectional": ({"causal": False}, {}, "causal=True"),
    "a window longer than a learned table": ({"position": "learned"}, {"length": 9}, "hold 8 rows"),
    "a text longer than nothing": ({}, {"length": 10_000}, "tokens"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_trained_is_refused_before_anything_is_written(text, build, config, tmp_path, case):
    model, training, message = REFUSED[case]
    with pytest.raises((BadValue, BadInput), match=message):
        train(build(**model), text.task(config(**training)), config(**training), tmp_path / "run", quiet=True)
    assert not (tmp_path / "run").exists()


def test_a_vocabulary_larger_than_the_models_is_refused(text, config, tmp_path):
    with pytest.raises(BadValue, match="257 different tokens, but the model knows 100"):
        train(DecoderOnly(100, 16, 1, 2), text.task(config()), config(), tmp_path / "run", quiet=True)


def test_a_loss_that_is_no_number_stops_and_leaves_the_last_good_save(text, build, config, tmp_path):
    model, calls = build(), []

    def break_later(module, args, logits):
        calls.append(None)
        return logits * (math.nan if len(calls) == 6 else 1.0)

    model.head.register_forward_hook(break_later)
    with pytest.raises(NotFinite, match=r"stopped at step 5: .* nan .*holds the weights of step 4"):
        train(model, text.task(config()), config(save_every=4), tmp_path / "run", quiet=True)
    assert read_state(tmp_path / "run").step == 4
    assert weights(load(tmp_path / "run")).isfinite().all()


def test_a_run_without_a_tokenizer_has_no_samples(text, build, config, tmp_path):
    model = build()
    model.tokenizer = None
    report = train(model, text.task(config()), config(steps=1), tmp_path / "run", quiet=True)
    assert report.samples == []
    assert load(tmp_path / "run").tokenizer is None
