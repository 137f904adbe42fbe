"""Adapters for libraries that are not installed here can be imported, and know what a config promises."""

import importlib
import subprocess
import sys

import pytest

from gnomon.audit.outside.adapters import ADAPTERS
from gnomon.audit.outside.adapters.litgpt import promised
from gnomon.errors import BadValue
from gnomon.positions.scaling import Linear, Llama3, YaRN


@pytest.mark.parametrize(("file", "name"), ADAPTERS.values())
def test_every_adapter_that_is_named_exists(file, name):
    assert isinstance(getattr(importlib.import_module(f"gnomon.audit.outside.adapters.{file}"), name), type)


def test_no_adapter_imports_its_library():
    files = sorted({file for file, _ in ADAPTERS.values()})
    code = "\n".join(f"import gnomon.audit.outside.adapters.{file}" for file in files)
    libraries = ("transformers", "x_transformers", "litgpt", "rotary_embedding_torch", "positional_encodings")
    code += f"\nimport sys\nprint([name for name in {libraries} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_what_litgpts_rope_adjustments_promise():
    window = {"factor": 8.0, "original_max_seq_len": 4096}
    assert promised(None) is None
    assert promised({"factor": 4}) == Linear(4.0)
    assert promised({**window, "low_freq_factor": 1, "high_freq_factor": 4}) == Llama3(8.0, 4096, 1, 4)
    yarn = {**window, "beta_fast": 32, "beta_slow": 1, "mscale": 0.7, "mscale_all_dim": 1.0}
    assert promised(yarn) == YaRN(8.0, 4096, 32, 1, mscale=0.7, mscale_all_dim=1.0)
    with pytest.raises(BadValue):
        promised({"factor": 0.5})
