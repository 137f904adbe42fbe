"""Experts of 4 bits are decoded as the transformers library decodes them."""

import json

import pytest
import torch
from cases import case
from parity import draw_ids, loaded
from safetensors.torch import load_file, save_file
from transformers.integrations.mxfp4 import convert_moe_packed_tensors

from gnomon.checkpoints import load
from gnomon.checkpoints.hf.mxfp4 import decode
from gnomon.errors import BadInput

NAMES = [f"model.layers.{layer}.mlp.experts.{part}_proj" for layer in (0, 1) for part in ("gate_up", "down")]


def packed(experts, rows, width, seed=0):
    """Blocks and scales of any bytes, of sizes that keep logits small."""
    draw = torch.Generator().manual_seed(seed)
    blocks = torch.randint(256, (experts, rows, width // 32, 16), generator=draw, dtype=torch.uint8)
    return blocks, torch.randint(118, 125, (experts, rows, width // 32), generator=draw, dtype=torch.uint8)


def test_every_byte_stands_for_two_numbers():
    blocks = torch.arange(256, dtype=torch.uint8).view(4, 4, 16)
    scales = torch.tensor([[127, 120, 1, 254], [100, 150, 127, 128]]).repeat(2, 1).to(torch.uint8)
    want = convert_moe_packed_tensors(blocks[None], scales[None])[0].T
    assert torch.equal(decode(blocks, scales), want)


@pytest.fixture
def folder(tmp_path):
    """A tiny gpt-oss with packed experts, and the same in bfloat16."""
    sizes = {"hidden_size": 64, "intermediate_size": 32, "num_experts_per_tok": 2}
    one = case("gpt_oss", "", **sizes, rope_parameters={"rope_type": "default", "rope_theta": 1e4})
    for kind in ("plain", "packed"):
        loaded(one.model().bfloat16(), tmp_path / kind)
        file = tmp_path / kind / "model.safetensors"
        tensors = load_file(file)
        for n, name in enumerate(NAMES):
            experts, width, rows = tensors.pop(name).shape
            blocks, scales = packed(experts, rows, width, n)
            if kind == "plain":
                tensors[name] = convert_moe_packed_tensors(blocks, scales)
            else:
                tensors |= {f"{name}_blocks": blocks, f"{name}_scales": scales}
        save_file(tensors, file, {"format": "pt"})
    about = json.loads((tmp_path / "packed" / "config.json").read_text())
    about["quantization_config"] = {"quant_method": "mxfp4", "modules_to_not_convert": ["lm_head"]}
    (tmp_path / "packed" / "config.json").write_text(json.dumps(about))
    return tmp_path


def test_packed_experts_are_those_of_the_file_in_full(folder):
    packed, plain = load(folder / "packed"), load(folder / "plain")
    for (name, mine), want in zip(packed.named_parameters(), plain.parameters(), strict=True):
        assert torch.equal(mine, want), name
    ids = draw_ids(2, 9)
    assert torch.equal(packed.float()(ids), plain.float()(ids))
    wide = load(folder / "packed", dtype="float32")
    assert wide.stack.blocks[0].ffn.experts[1].up.weight.dtype == torch.float32


def test_what_is_packed_in_another_way_is_refused(folder):
    file = folder / "packed" / "model.safetensors"
    tensors = load_file(file)
    save_file({name: x for name, x in tensors.items() if name != f"{NAMES[0]}_scales"}, file, {"format": "pt"})
    with pytest.raises(BadInput, match="no numbers of 4 bits in MXFP4"):
        load(folder / "packed")
    about = json.loads((folder / "plain" / "config.json").read_text())
    about["quantization_config"] = {"quant_method": "awq"}
    (folder / "plain" / "config.json").write_text(json.dumps(about))
    with pytest.raises(BadInput, match="'awq'; of gpt-oss only 'mxfp4'"):
        load(folder / "plain")
