"""A family of llama.cpp is one file in checkpoints/gguf/families, known without being listed anywhere."""

import torch

import gnomon as gn
from gnomon.checkpoints import gguf
from gnomon.checkpoints.discovery import discover_families
from gnomon.checkpoints.gguf import families, read, registry, settings
from gnomon.checkpoints.gguf.header import GGUF

PARROT = """
from gnomon.checkpoints.gguf.family import LLAMA, PLAIN, Family


def read(keys, found):
    keys.must("beak", "hooked")
    return {"dropout": 0.5}


FAMILY = Family("parrot", "rope", {**LLAMA, **PLAIN}, read, lambda config: {"beak": "hooked"}, rank=0)
"""


def test_a_family_is_added_by_one_file(tmp_path, monkeypatch):
    (tmp_path / "test_only_parrot_gguf.py").write_text(PARROT)
    monkeypatch.setattr(families, "__path__", [*families.__path__, str(tmp_path)])
    for module in (settings, read):
        monkeypatch.setattr(module, "FAMILIES", registry.find_families())
    model = gn.DecoderOnly.from_preset("mini-llama", vocab_size=32, d_model=32, n_layers=1).eval()
    file = gguf.save(model, tmp_path / "x.gguf")
    assert GGUF(file).metadata["parrot.beak"] == "hooked"
    again = gn.load(file)
    assert again.config.dropout == 0.5
    ids = torch.tensor([[1, 2, 3]])
    assert again(ids).equal(model(ids))


def test_each_file_is_called_as_its_family():
    names = {name: family.arch.replace("-", "_") for name, family in discover_families(families).items()}
    assert names == {name: name for name in names}
    assert len(registry.FAMILIES) == len(names)
