"""What a step without memory counts is what the same step allocates and multiplies on a CPU."""

import pytest
import torch
from torch.nn import functional as F
from torch.utils.flop_counter import FlopCounterMode

import gnomon as gn
from gnomon.errors import BadValue
from gnomon.models.architectures import build
from gnomon.models.dry_step import _Held
from gnomon.models.hardware import Hardware

ROWS, LENGTH = 2, 128
CASES = [
    ("mini-llama", {}),
    ("mini-gpt", {"max_positions": 128}),
    ("mini-gpt", {"max_positions": 128, "dropout": 0.0}),
    ("mini-llama", {"position": "alibi"}),
    ("mini-llama", {"position": "sinusoidal", "n_kv_heads": 4}),
]


def taken(config):
    """The peak beyond weights and the operations of a step on the CPU."""
    model, ids = build(config).train(), torch.zeros(ROWS, LENGTH, dtype=torch.long)
    with _Held() as held, FlopCounterMode(display=False) as counted:
        F.cross_entropy(model(ids).flatten(0, 1), ids.flatten(), reduction="sum").backward()
    return held.peak, counted.get_total_flops()


@pytest.mark.slow
@pytest.mark.parametrize(("name", "changes"), CASES)
def test_a_dry_step_counts_what_a_real_one_allocates(name, changes):
    planned = gn.plan(name, **changes)
    step = planned.training(ROWS, LENGTH)
    peak, flops = taken(planned.config)
    assert step.gradients + step.activations == pytest.approx(peak, rel=0.1)
    assert step.flops == pytest.approx(flops, rel=0.1)
    assert (step.weights, step.optimizer) == (4 * planned.total, 8 * planned.total)


def test_operations_are_six_a_weight_and_token_beside_attention():
    """2 forward, 4 backward (Kaplan et al. 2020, arXiv:2001.08361); the table multiplies as head, not as input."""
    planned = gn.plan("mini-llama")
    multiplied = planned.total - planned.parts["norms"]
    assert planned.training(1, 2).flops_per_token == pytest.approx(6 * multiplied, rel=0.02)


@pytest.mark.parametrize("name", ["vaswani-base", "bert-base"])
def test_every_architecture_takes_a_dry_step(name):
    step = gn.plan(name, n_layers=1, d_model=64, vocab_size=100, n_heads=2).training(2, 8, torch.bfloat16)
    assert step.activations > 0
    assert step.peak == step.states + step.activations


def test_a_count_below_one_is_refused():
    with pytest.raises(BadValue, match="batch"):
        gn.plan("mini-llama").training(0, 8)


def test_a_line_of_hardware_holds_what_it_says():
    device = Hardware.parse("80GB, 400TFLOPS,link=50GB/s")
    assert (device.memory, device.flops, device.link) == (80e9, 400e12, 50e9)


@pytest.mark.parametrize(
    "line", ["", "80GB", "80,400TFLOPS", "80GB,80GB", "0GB,1TFLOPS", "1GB,1TFLOPS,5GB/s", "link=1GB,1TFLOPS"]
)
def test_a_line_that_is_no_hardware_is_refused(line):
    with pytest.raises(BadValue, match="80GB,400TFLOPS"):
        Hardware.parse(line)


def test_devices_share_states_but_not_activations():
    step = gn.plan("mini-llama").training(1, 8)
    fits_half = Hardware("half", (step.states / 2 + step.activations) / 0.9 + 1, 1e12)
    assert fits_half.needed(step) == 2
    with pytest.raises(BadValue, match="smaller batch"):
        Hardware("tiny", step.activations, 1e12).needed(step)


def test_time_falls_with_speed_and_sharing_moves_every_weight_three_times():
    step = gn.plan("mini-llama").training(1, 8)
    assert Hardware("a", 1e9, 1e12).step_seconds(step, 0.5) == 2 * Hardware("b", 1e9, 2e12).step_seconds(step, 0.5)
    assert Hardware("a", 1e9, 1e12, 1e9).exchange_seconds(step, 2) == pytest.approx(1.5 * step.weights / 1e9)
    assert Hardware("a", 1e9, 1e12).exchanged(step, 1) == 0
