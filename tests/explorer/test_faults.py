"""The classic faults, played on a model: which encodings can see which is what the theory says."""

import pytest
import torch

import gnomon as gn
from gnomon.data import Tokenizer
from gnomon.explorer import Shelf
from gnomon.explorer.questions import answered

#: which faults change the next token's logits: the others are not observable under that encoding
SEEN = {
    "none": {"padding_seen", "documents_leak"},
    "learned": {
        "decode_at_zero",
        "decode_off_by_one",
        "decode_one_behind",
        "counted_from_padding",
        "padding_seen",
        "packed_not_restarted",
        "documents_leak",
    },
    "rope": {"decode_at_zero", "decode_off_by_one", "decode_one_behind", "padding_seen", "documents_leak"},
    "t5": {"decode_at_zero", "decode_off_by_one", "decode_one_behind", "padding_seen", "documents_leak"},
}


@pytest.mark.parametrize("position", SEEN)
def test_each_fault_shows_where_it_can(position):
    torch.manual_seed(0)
    model = gn.DecoderOnly(
        vocab_size=257, d_model=32, n_layers=2, n_heads=2, position=position, max_positions=64, init_std=0.25
    )
    if position == "t5":
        torch.nn.init.normal_(model.get_submodule("stack.positions.0").weight)
    model.tokenizer = Tokenizer.bytes()
    said = answered(Shelf([model]), "faults", {"model": "decoder-only", "text": "one two three"})
    assert {each["name"] for each in said["faults"] if each["seen"]} == SEEN[position]
    best = model.generate(["one two three"], max_new_tokens=1)[0].ids[0]
    assert said["right"][0]["id"] == best
