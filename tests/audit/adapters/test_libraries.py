"""Adapters for libraries that are not installed here can be imported, and know what a config promises."""

import importlib
import subprocess
import sys

import pytest
import torch
from torch import nn

import gnomon as gn
from gnomon.audit.adapters import ADAPTERS
from gnomon.audit.adapters.litgpt import expected_scaling
from gnomon.audit.adapters.rotary_embedding_torch import RotaryEmbeddingTorch
from gnomon.errors import BadValue
from gnomon.positions.scaling import Linear, Llama3, YaRN, plain_frequencies


@pytest.mark.parametrize(("file", "name"), ADAPTERS.values())
def test_every_adapter_that_is_named_exists(file, name):
    assert isinstance(getattr(importlib.import_module(f"gnomon.audit.adapters.{file}"), name), type)


@pytest.mark.slow
def test_no_adapter_imports_its_library():
    files = sorted({file for file, _ in ADAPTERS.values()})
    code = "\n".join(f"import gnomon.audit.adapters.{file}" for file in files)
    libraries = ("transformers", "x_transformers", "litgpt", "rotary_embedding_torch", "positional_encodings")
    code += f"\nimport sys\nprint([name for name in {libraries} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_what_litgpts_rope_adjustments_promise():
    window = {"factor": 8.0, "original_max_seq_len": 4096}
    assert expected_scaling(None) is None
    assert expected_scaling({"factor": 4}) == Linear(4.0)
    assert expected_scaling({**window, "low_freq_factor": 1, "high_freq_factor": 4}) == Llama3(8.0, 4096, 1, 4)
    yarn = {**window, "beta_fast": 32, "beta_slow": 1, "mscale": 0.7, "mscale_all_dim": 1.0}
    assert expected_scaling(yarn) == YaRN(8.0, 4096, 32, 1, mscale=0.7, mscale_all_dim=1.0)
    with pytest.raises(BadValue):
        expected_scaling({"factor": 0.5})


class Rotary(nn.Module):
    """What rotary-embedding-torch offers, as far as its adapter asks: heads before tokens, or after them."""

    freqs_for, use_xpos = "lang", False

    def __init__(self, heads_last):
        super().__init__()
        self.default_seq_dim, self.freqs = -3 if heads_last else -2, torch.tensor(plain_frequencies(10000.0, 16))

    def rotate_queries_or_keys(self, x, offset=0):
        at = torch.arange(x.shape[self.default_seq_dim]) + offset
        angles = at[:, None] * self.freqs
        angles = angles[:, None] if self.default_seq_dim == -3 else angles
        a, b = x.float().chunk(2, -1)
        turned = torch.cat([a * angles.cos() - b * angles.sin(), a * angles.sin() + b * angles.cos()], -1)
        return turned.to(x.dtype)

    def rotate_queries_with_cached_keys(self, q, k):
        late = k.shape[self.default_seq_dim] - q.shape[self.default_seq_dim]
        return self.rotate_queries_or_keys(q, offset=late), self.rotate_queries_or_keys(k)


@pytest.mark.parametrize("heads_last", [False, True])
def test_a_rotary_embedding_is_asked_in_its_own_order_of_axes(heads_last):
    report = gn.audit(RotaryEmbeddingTorch(Rotary(heads_last)))
    assert report.failed == ()
    for law in ("position 0 turns nothing", "cached keys = whole", "a rotation keeps its precision"):
        assert report[law].verdict == "pass"
