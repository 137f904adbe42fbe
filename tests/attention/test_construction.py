"""Building a model for long texts takes no memory for masks or tables of that length."""

import subprocess
import sys

import pytest

import gnomon as gn

BUILD = """
import resource, sys, torch
import gnomon as gn

def run(length):
    for name in sys.argv[1:]:
        model = gn.DecoderOnly(64, 16, 24, 2, position=name, max_positions=length)
        model(torch.zeros(1, 16, dtype=torch.long))

run(1024)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
run(65536)
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024)
"""


@pytest.mark.slow
def test_a_model_for_65536_tokens_is_built_and_used_like_one_for_1024():
    """In MiB: the learned rows take 4 and their copy while drawn as much; one truth value per pair would take 4096."""
    code = [sys.executable, "-c", BUILD, *gn.positions.names()]
    assert float(subprocess.run(code, capture_output=True, text=True, check=True).stdout) < 16


@pytest.mark.parametrize("name", gn.positions.names())
def test_only_what_is_learned_is_saved(name):
    model = gn.DecoderOnly(64, 16, 2, 2, position=name, max_positions=64)
    assert sorted(model.state_dict()) == sorted(name for name, _ in model.named_parameters())
    assert list(model.buffers()) == []
