"""What a model makes on its way lies where its tokens lie, asked of a device that holds no numbers."""

import pytest
import torch

import gnomon as gn
from gnomon.positions.registry import encoding, names

BY_VALUE = {"fire": "which distances share a network's value", "xpos": "in how many parts queries are turned"}
KNOWN = [name for name in names() if encoding(name).for_text and name not in BY_VALUE]


def read(device, name):
    """Forward and backward of texts long and short, padded, and one token after others; by a model on this device."""
    with torch.device(device):
        model = gn.DecoderOnly(vocab_size=20, d_model=16, n_layers=1, n_heads=2, position=name, max_positions=64)
    ids = torch.zeros(2, 40, dtype=torch.long, device=device)
    model(ids).sum().backward()
    with torch.no_grad():
        model(ids, gn.Layout.padded(torch.ones(2, 40, dtype=torch.bool, device=device)))
        cache = model.cache()
        model(ids[:, :3], cache=cache)
        return model(ids[:, 3:4], cache=cache)


@pytest.mark.parametrize("name", KNOWN)
def test_a_model_makes_nothing_on_another_device_than_its_own(name):
    """Mixed with a tensor of the processor, one without numbers is an error."""
    assert read("meta", name).device.type == "meta"


@pytest.mark.parametrize("name", names())
def test_a_default_device_does_not_reach_what_lies_elsewhere(name):
    """Whoever sets a default device may still compute on the processor."""
    if not encoding(name).for_text:
        pytest.skip("tokens sit at coordinates")
    model = gn.DecoderOnly(vocab_size=20, d_model=16, n_layers=1, n_heads=2, position=name, max_positions=64).eval()
    ids = torch.randint(0, 20, (2, 41))
    want = model(ids)
    with torch.device("meta"):
        torch.testing.assert_close(model(ids), want)
