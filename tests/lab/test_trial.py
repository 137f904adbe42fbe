"""What differs between the models of an experiment is position and nothing else."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch

from gnomon.checkpoints import load
from gnomon.errors import BadInput
from gnomon.lab import trial as trial_module
from gnomon.lab.protocols import choose_targets
from gnomon.lab.settings import Recipe, Trial
from gnomon.lab.trial import TrialResult, build, fingerprint, measure, position_weights, train


def shared_weights(model):
    return {name: weight for name, weight in model.named_parameters() if name not in position_weights(model)}


def test_all_models_begin_with_the_same_weights_but_for_position(settings, tokenizer):
    """Building an encoding, or the projection of a concatenation, draws from a stream of its own."""
    grid = replace(settings, combine=("add", "concat")).trials()
    models = [build(settings, trial, tokenizer) for trial in grid]
    first = shared_weights(models[0])
    for model in models:
        assert shared_weights(model).keys() == first.keys()
        assert all(torch.equal(weight, first[name]) for name, weight in shared_weights(model).items())
    assert len({fingerprint(model) for model in models}) == 1


def test_another_seed_or_a_changed_weight_is_another_beginning(settings, tokenizer):
    model = build(settings, Trial("rope", "add", 0), tokenizer)
    before = fingerprint(model)
    assert fingerprint(build(settings, Trial("rope", "add", 1), tokenizer)) != before
    with torch.no_grad():
        model.stack.blocks[1].ffn.up.bias[3] += 1e-3
    assert fingerprint(model) != before


def test_what_belongs_to_position_is_told_by_name(settings, tokenizer):
    def names(position, combine="add"):
        return position_weights(build(settings, Trial(position, combine, 0), tokenizer))

    assert names("rope") == names("none") == names("sinusoidal") == set()
    assert names("t5") == {"stack.positions.0.weight"}
    assert names("learned") == {"input.position.weight"}
    assert names("sinusoidal", "concat") == {"input.project.weight", "input.project.bias"}


def trained(settings, store, tokenizer, position="rope", seed=0):
    trial = Trial(position, "add", seed)
    model = build(settings, trial, tokenizer)
    losses, _ = train(model, store, settings, trial, lambda step, loss: None)
    return model, losses


def test_the_same_seed_gives_the_same_numbers_bit_for_bit(settings, store, tokenizer):
    (one, losses), (other, again) = (trained(settings, store, tokenizer) for _ in range(2))
    assert losses == again
    assert all(torch.equal(a, b) for a, b in zip(one.parameters(), other.parameters(), strict=True))
    assert trained(settings, store, tokenizer, seed=1)[1] != losses


def test_all_encodings_see_the_same_batches_at_the_same_rates(settings, store, tokenizer, monkeypatch):
    seen = []

    def note(model, optimizer, batch, lr, clip, **more):
        seen.append((batch.ids.tolist(), lr))
        return step(model, optimizer, batch, lr, clip, **more)

    step = trial_module.training_step
    monkeypatch.setattr(trial_module, "training_step", note)
    runs = []
    for position in ("none", "alibi"):
        seen.clear()
        trained(settings, store, tokenizer, position)
        runs.append(list(seen))
    assert runs[0] == runs[1]
    assert len(runs[0]) == settings.train.steps


def test_a_rate_can_be_given_for_single_encodings(settings, store, tokenizer):
    recipe = replace(settings.train, lr_of={"alibi": 1e-9})
    assert recipe.rate_of("alibi") == 1e-9
    assert recipe.rate_of("rope") == recipe.lr
    asleep, _ = trained(replace(settings, train=recipe), store, tokenizer, "alibi")
    fresh = build(settings, Trial("alibi", "add", 0), tokenizer)
    assert all(torch.allclose(a, b, atol=1e-6) for a, b in zip(asleep.parameters(), fresh.parameters(), strict=True))


def test_training_lowers_the_loss(settings, store, tokenizer):
    longer = replace(settings, train=Recipe(steps=60, batch_size=8, warmup=5, lr=1e-2))
    _, losses = trained(longer, store, tokenizer)
    assert losses[-1][0] == 60
    assert losses[-1][1] < 0.7 * losses[0][1]


def test_a_learned_table_is_measured_up_to_its_end(settings, store, tokenizer):
    targets = choose_targets(store, 8, (1, 2, 4), 1)
    found = measure(build(settings, Trial("learned", "add", 0), tokenizer), targets, settings)
    assert [nats is None for nats in found.nats] == [False, True, True]
    assert found.shifted is found.far is None
    assert len(found.by_position) == 8
    everywhere = measure(build(settings, Trial("rope", "add", 0), tokenizer), targets, settings)
    assert None not in everywhere.nats
    assert len(everywhere.by_position) == 32


def test_measuring_reads_no_token_twice(settings, store, tokenizer):
    """As many as the targets say, by which the time is told beforehand, and a few windows for the far attention."""
    targets = choose_targets(store, 8, (1, 2, 4), 3)
    model, read = build(settings, Trial("rope", "add", 0), tokenizer), []
    model.input.register_forward_hook(lambda part, given, out: read.append(given[0].numel()))
    measure(model, targets, settings)
    assert len(targets.windows) >= 4
    assert sum(read) == targets.tokens_read(settings.lengths) + 4 * targets.longest


def test_what_is_kept_can_be_read_back(report, folder, settings):
    """The fixture `report` ran every trial: each folder holds a whole model, and what was measured of it."""
    for trial in settings.trials():
        data = json.loads((folder / trial.folder / "measured.json").read_text())
        measured = TrialResult.from_result(data["result"])
        assert measured.trial == trial
        model = load(folder / trial.folder)
        assert sum(p.numel() for p in model.parameters()) == measured.parameters
        assert model.tokenizer is not None
        nats = np.array([x for x in measured.measurements.nats if x is not None])
        assert nats.shape[1] == report.targets["documents"]
        assert (nats > 0).all()


def test_a_result_of_another_version_is_refused():
    with pytest.raises(BadInput, match="another|this version"):
        TrialResult.from_result({"trial": {"position": "rope", "combine": "add", "seed": 0}})
