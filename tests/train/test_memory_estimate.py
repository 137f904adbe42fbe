"""What a training needs at least is asked of the machine before anything is built."""

import pytest
import torch

from gnomon.errors import BadValue
from gnomon.models import preset
from gnomon.train import TrainConfig
from gnomon.train.memory_estimate import check_memory

CPU, GPU = torch.device("cpu"), torch.device("cuda")


def needs(monkeypatch, config, ran, device):
    """The bytes that are asked for, the batch's and the model's."""
    asked = []
    monkeypatch.setattr("gnomon.train.memory_estimate.room_for", lambda n_bytes, what, instead: asked.append(n_bytes))
    check_memory(config, ran, device)
    return asked


@pytest.mark.slow
def test_no_preset_is_thought_to_need_more_than_it_does(monkeypatch):
    for name in ("mini-gpt", "mini-llama", "gpt2-small", "vaswani-base", "bert-base"):
        from gnomon.models.plan import plan

        _, model = needs(monkeypatch, preset(name), TrainConfig(), CPU)
        assert 0.3 * 16 * plan(preset(name)).total < model <= 16 * plan(preset(name)).total


def test_pieces_of_a_batch_need_less_and_another_device_needs_little_here(monkeypatch):
    config, ran = preset("mini-gpt"), TrainConfig(batch_size=8, length=64)
    ids = 8 * 64 * 8
    assert needs(monkeypatch, config, ran, CPU)[0] == ids + 8 * 64 * 128 * 4 * 4
    assert needs(monkeypatch, config, TrainConfig(batch_size=8, length=64, accumulate=4), CPU)[0] == ids + 65536 * 4
    assert needs(monkeypatch, config, ran, GPU)[0] == ids


def test_a_training_that_cannot_fit_is_refused_naming_what_to_change():
    with pytest.raises(BadValue, match="choose a smaller length or batch_size"):
        check_memory(preset("mini-gpt"), TrainConfig(length=2**40), CPU)
    with pytest.raises(BadValue, match="choose a smaller vocab_size, d_model"):
        check_memory(preset("mini-gpt", d_model=2**20, n_layers=1000), TrainConfig(length=1, batch_size=1), CPU)
