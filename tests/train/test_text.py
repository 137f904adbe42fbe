"""The task of guessing a text: batches that are functions of the step, and settings that must be the run's."""

import pytest
import torch

from gnomon.data import document_lengths
from gnomon.errors import BadValue
from gnomon.layout import Layout
from gnomon.models import EncoderDecoder
from gnomon.train import Windows, adamw, train, training_step
from gnomon.train import text as task_module


def test_a_batch_is_a_function_of_the_seed_and_the_number(text, config):
    task, again, other = (text.task(config(seed=seed)) for seed in (1, 1, 2))
    assert [task.batch(n).ids.tolist() for n in (4, 0)] == [again.batch(n).ids.tolist() for n in (4, 0)]
    assert not task.batch(0).ids.equal(other.batch(0).ids)
    assert not task.batch(0).ids.equal(task.batch(1).ids)


def test_its_fingerprint_is_that_of_the_training_text_alone(text, config):
    assert text.task(config()).fingerprint == text.task(config(seed=9, steps=1)).fingerprint
    assert text.task(config()).fingerprint != text.task(config(), text.valid).fingerprint


@pytest.mark.parametrize("setting", ["batch_size", "length", "seed", "eval_windows", "label_smoothing"])
def test_a_task_made_with_other_settings_than_the_runs_is_refused(text, build, config, tmp_path, setting):
    other = config(**{setting: 0.5 if setting == "label_smoothing" else 7})
    with pytest.raises(BadValue, match=f"the task was made for {setting}="):
        train(build(), text.task(other), config(), tmp_path / "run", quiet=True)
    assert not (tmp_path / "run").exists()


def test_a_model_that_reads_a_source_cannot_guess_a_text(text, config):
    with pytest.raises(BadValue, match="guessed by a decoder-only model; this one is encoder-decoder"):
        text.task(config()).check(EncoderDecoder(257, 16, 1, 2), config())


def test_targets_are_counted_and_pieces_hold_all_of_them():
    at = Layout.padded(torch.arange(6) < torch.tensor([[4], [2], [6]]))
    windows = Windows(torch.zeros(3, 6, dtype=torch.long), at, smoothing=0.1)
    assert windows.targets == 3 + 1 + 5
    assert [piece.targets for piece in windows.pieces(3)] == [3, 1, 5]
    assert {piece.smoothing for piece in windows.pieces(2)} == {0.1}


def test_smoothing_is_of_training_and_not_of_what_is_measured(text, build, config):
    smoothed, plain = (text.task(config(label_smoothing=s)) for s in (0.2, 0.0))
    model = build()
    assert smoothed.evaluate(model) == plain.evaluate(model)
    optimizer = adamw(model, 1e-3)
    losses = [training_step(model, optimizer, task.batch(0), 0.0, None) for task in (smoothed, plain)]
    assert losses[0].total != losses[1].total
    assert losses[0].count == losses[1].count


def test_documents_kept_apart_do_not_see_one_another_nor_guess_across(text, build, config):
    ran = config(batch_size=6, length=40)
    task = task_module.Text(text.train, text.valid, ran, apart=True)
    windows, joined = task.batch(0), text.task(ran).batch(0)
    assert windows.ids.equal(joined.ids)
    edges = sum(len(document_lengths(store, start, 41)) - 1 for store, start in task.batches.places(0))
    assert edges > 3
    assert windows.targets == joined.targets - edges
    model = build(max_positions=64)
    store, start = task.batches.places(0)[0]
    first = document_lengths(store, start, 41)[0]
    logits = model(windows.ids[:1, :-1], windows.at.rows(torch.tensor([0])).tokens(slice(None, -1)))
    alone = model(windows.ids[:1, first:-1])
    torch.testing.assert_close(logits[:, first : first + 5], alone[:, :5], rtol=1e-4, atol=1e-5)


def test_held_out_documents_kept_apart_are_measured_apart(text, build, config):
    ran = config(length=40, eval_windows=3)
    apart = task_module.Text(text.train, text.valid, ran, apart=True)
    together = text.task(ran)
    model = build(max_positions=64)
    assert apart.evaluate(model).targets < together.evaluate(model).targets
    assert apart.windows.n_bytes.sum() < together.windows.n_bytes.sum()


def test_streams_are_mixed_by_weight_and_a_run_knows_all_of_them(text, config):
    one, both = (task_module.Text(stores, text.valid, config()) for stores in (text.train, [text.train, text.valid]))
    assert one.fingerprint != both.fingerprint
    assert one.fingerprint == text.task(config()).fingerprint
