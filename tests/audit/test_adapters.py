"""Which adapter a model gets, and that nobody needs the libraries of the others."""

import importlib
import subprocess
import sys

import pytest
from torch import nn

from gnomon.audit import Target, Torch, target
from gnomon.audit.adapters import ADAPTERS
from gnomon.errors import BadValue


@pytest.mark.parametrize(("file", "name"), ADAPTERS.values())
def test_every_row_of_the_table_names_an_adapter(file, name):
    adapter = getattr(importlib.import_module(f"gnomon.audit.adapters.{file}"), name)
    assert isinstance(adapter, type) or callable(adapter)


@pytest.mark.slow
def test_adapters_import_no_library():
    names = [file for file, _ in ADAPTERS.values()]
    code = f"import importlib, sys\nfor n in {names!r}: importlib.import_module('gnomon.audit.adapters.' + n)"
    wanted = "print(*(m for m in ('transformers', 'x_transformers', 'litgpt') if m in sys.modules))"
    out = subprocess.run([sys.executable, "-c", f"{code}\n{wanted}"], capture_output=True, text=True, check=True)
    assert out.stdout.split() == []


def test_a_target_is_itself():
    t = Target("mine", 7)
    assert target(t) is t


def test_a_plain_module_is_a_plain_module():
    class Mine(nn.Module):
        def __init__(self):
            super().__init__()
            self.table = nn.Embedding(7, 4)

        def forward(self, ids):
            return self.table(ids)

    assert type(target(Mine())) is Torch


@pytest.mark.parametrize(("model", "says"), [(5, "got 5"), (nn.Linear, "the class Linear: make a model of it first")])
def test_what_is_no_model_is_refused(model, says):
    with pytest.raises(BadValue, match=says):
        target(model)
