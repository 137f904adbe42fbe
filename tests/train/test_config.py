"""Settings that cannot be right are refused by name before anything starts."""

from dataclasses import replace

import pytest

from gnomon.errors import BadValue
from gnomon.train import TrainConfig
from gnomon.train.config import CHANGEABLE


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("steps", 0), ("batch_size", 0), ("length", 0), ("accumulate", 0), ("log_every", 0), ("eval_windows", 0),
        ("eval_every", 0), ("save_every", -1), ("sample_every", 0), ("warmup", -1), ("seed", -1),
        ("weight_decay", -0.1),
        ("lr", 0.0), ("lr", float("nan")), ("lr", float("inf")), ("floor", 1.5), ("clip", 0.0), ("dtype", "float8"),
        ("label_smoothing", 1.0), ("label_smoothing", -0.1),
    ],
)  # fmt: skip
def test_a_setting_that_cannot_be_right_is_named(setting, value):
    with pytest.raises(BadValue, match=setting):
        TrainConfig(**{setting: value})


def test_a_batch_has_at_least_as_many_rows_as_pieces():
    with pytest.raises(BadValue, match="2 rows cannot be cut into 3"):
        TrainConfig(batch_size=2, accumulate=3)


def test_what_leaves_it_the_same_run_may_change():
    config = TrainConfig()
    assert config.with_changes(steps=9, save_every=None) == replace(config, steps=9, save_every=None)
    assert config.with_changes(lr=config.lr) == config


def test_what_would_make_it_another_run_may_not_change():
    for setting in set(TrainConfig.__dataclass_fields__) - set(CHANGEABLE):
        with pytest.raises(BadValue, match=f"this run has {setting}="):
            TrainConfig().with_changes(**{setting: 7})
    with pytest.raises(BadValue, match="did you mean 'steps'"):
        TrainConfig().with_changes(step=7)


def test_all_differences_that_would_make_it_another_run_are_listed():
    with pytest.raises(BadValue, match="this run has lr=0.003, seed=0; with lr=1.0, seed=7 it would be another one"):
        TrainConfig().with_changes(lr=1.0, seed=7, steps=9)


def test_runs_of_before_these_settings_mean_their_defaults():
    """What a state of the first format lacks, it did as the defaults say."""
    plain = TrainConfig()
    assert (plain.schedule, plain.optimizer, plain.ema, plain.lora_rank) == ("cosine", "adamw", None, None)
    assert (plain.on_bad_step, plain.spike, plain.keep, plain.keep_best) == ("stop", None, 1, False)
