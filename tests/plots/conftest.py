"""A model small enough to be drawn in a moment."""

import pytest
import torch

import gnomon as gn
from gnomon.data import Tokenizer


def small_model(**changes):
    """Two causal layers with random weights and a byte tokenizer, the same every time."""
    torch.manual_seed(0)
    model = gn.DecoderOnly.from_preset("mini-llama", n_layers=2, **changes)
    model.tokenizer = Tokenizer.bytes()
    return model.eval()


@pytest.fixture
def model():
    """model(**changes) builds one."""
    return small_model
