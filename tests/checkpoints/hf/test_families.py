"""A family of checkpoints is one file in checkpoints/hf/families, known without being listed anywhere."""

import json

import pytest
import torch

import gnomon as gn
from gnomon.checkpoints.discovery import discover_families
from gnomon.checkpoints.hf import families, registry, save_hf

PARROT = '''
"""Parrot: Llama's table under another model_type."""

from gnomon.checkpoints.hf.families.llama import read, relative, width, write
from gnomon.checkpoints.hf.rope import Rotary

ROTARY = Rotary(base=500.0)


def read_config(keys):
    keys.must("beak", "hooked")
    return read(keys, ROTARY, width(keys))


def write_config(c):
    return write(c, "a_parrot", "ParrotForCausalLM", ROTARY, beak="hooked")


FAMILY = relative("a_parrot", read_config, write_config)
'''


@pytest.fixture
def parrot(tmp_path, monkeypatch):
    (tmp_path / "families").mkdir()
    (tmp_path / "families" / "test_only_parrot.py").write_text(PARROT)
    monkeypatch.setattr(families, "__path__", [*families.__path__, str(tmp_path / "families")])
    monkeypatch.setattr(registry, "FAMILIES", registry.find_families())


@pytest.mark.usefixtures("parrot")
def test_a_family_is_added_by_one_file(tmp_path):
    position = gn.positions.get("rope", base=500.0)
    torch.manual_seed(0)
    model = gn.DecoderOnly.from_preset("mini-llama", vocab_size=30, d_model=16, n_layers=1, position=position).eval()
    save_hf(model, tmp_path / "out", "a_parrot")
    config = json.loads((tmp_path / "out" / "config.json").read_text())
    assert (config["model_type"], config["beak"]) == ("a_parrot", "hooked")
    again = gn.load(tmp_path / "out")
    assert again.config.position == position
    ids = torch.tensor([[1, 2, 3]])
    assert again(ids).equal(model(ids))
    (tmp_path / "out" / "config.json").write_text(json.dumps(config | {"beak": "straight"}))
    with pytest.raises(gn.BadInput, match="beak"):
        gn.load(tmp_path / "out")


@pytest.mark.usefixtures("parrot")
def test_a_new_family_takes_no_model_from_the_one_it_extends(tmp_path):
    model = gn.DecoderOnly.from_preset("mini-llama", vocab_size=30, d_model=16, n_layers=1)
    assert registry.family_for(model.config).name == "llama"


def test_each_file_is_called_as_its_family():
    assert {name: family.name.replace("-", "_") for name, family in discover_families(families).items()} == {
        name: name for name in discover_families(families)
    }
