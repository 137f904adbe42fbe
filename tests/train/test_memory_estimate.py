"""What a training needs at least is asked of the machine before anything is built."""

import os
import sys
from pathlib import Path

import pytest
import torch

from gnomon.errors import BadValue
from gnomon.models import ModelConfig, preset
from gnomon.train import TrainConfig
from gnomon.train.memory_estimate import check_memory, is_out_of_memory

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


def test_a_model_of_which_only_changes_are_trained_needs_a_quarter(monkeypatch):
    model = ModelConfig(vocab_size=1000, d_model=64, n_layers=2, n_heads=2)
    whole, changes = TrainConfig(batch_size=1, length=1), TrainConfig(batch_size=1, length=1, lora_rank=2)
    needed = []
    monkeypatch.setattr("gnomon.train.memory_estimate.room_for", lambda n_bytes, *words: needed.append(n_bytes))
    for config in (whole, changes):
        check_memory(model, config, torch.device("cpu"))
    assert needed[1] == 4 * needed[3]


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="limits memory as Linux does")
def test_memory_that_cannot_be_had_is_told_from_other_errors():
    import resource

    if (child := os.fork()) == 0:
        size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (size + 2**28, size + 2**28))
        try:
            torch.ones(2**30)
        except (RuntimeError, MemoryError) as error:
            os._exit(0 if is_out_of_memory(error) else 1)
        os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert not is_out_of_memory(RuntimeError("shapes do not fit"))
