"""M-RoPE: which coordinate each pair reads, and that text is read as by RoPE."""

import numpy as np
import pytest
import torch

import gnomon as gn
from gnomon.positions.m_rope import MRoPE

AT = gn.Layout.mixed([[3, (1, 2, 3), 4], [2, (2, 2, 2)]])


def published(x, coords, sections, base):
    """(T, d) in plain numpy: pair i times e^(i c theta), c of the axis whose stretch of pairs it lies in."""
    d, y = x.shape[-1], x.copy()
    axis_of = np.repeat(np.arange(3), sections)
    for i in range(d // 2):
        z = (x[:, i] + 1j * x[:, i + d // 2]) * np.exp(1j * coords[:, axis_of[i]] * base ** (-2 * i / d))
        y[:, i], y[:, i + d // 2] = z.real, z.imag
    return y


def test_each_pair_turns_by_its_own_coordinate():
    x = torch.randn(2, 1, 13, 16, dtype=torch.float64)
    turned = MRoPE(16, [2, 3, 3], base=1e6)(x, AT)
    for row in range(2):
        want = published(x[row, 0].numpy(), AT.coords[row].numpy(), [2, 3, 3], 1e6)
        np.testing.assert_allclose(turned[row, 0].numpy(), want, atol=1e-12)


@pytest.mark.parametrize("interleaved", [False, True])
@pytest.mark.parametrize("pairing", ["half", "interleaved"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_text_is_turned_as_by_rope_bit_for_bit(interleaved, pairing, dtype):
    x = torch.randn(2, 3, 7, 16).to(dtype)
    rope = gn.positions.RoPE(16, pairing=pairing)
    m_rope = MRoPE(16, interleaved=interleaved, pairing=pairing)
    for at in (gn.Layout.packed([[4, 3], [5, 1]]), gn.Layout.placed([0, 1, 2, 257, 5000, 131_070, 131_071])):
        x = x[:, :, : at.shape[1]]
        alike = at.at_coords(at.pos[..., None].expand(-1, -1, 3))
        assert torch.equal(m_rope(x, at), rope(x, at))
        assert torch.equal(m_rope(x, alike), rope(x, at))


def test_the_axes_of_the_published_models():
    assert MRoPE(128).sections == [16, 24, 24]
    assert MRoPE(128).read_by == [0] * 16 + [1] * 24 + [2] * 24
    assert MRoPE(128, [24, 20, 20], interleaved=True).read_by == [0, 1, 2] * 20 + [0] * 4


@pytest.mark.slow
@pytest.mark.parametrize("version", ["qwen2", "qwen3"])
def test_it_is_that_of_transformers(version):
    from transformers import Qwen2VLTextConfig, Qwen3VLTextConfig
    from transformers.models.qwen2_vl.modeling_qwen2_vl import Qwen2VLRotaryEmbedding, apply_rotary_pos_emb
    from transformers.models.qwen3_vl.modeling_qwen3_vl import Qwen3VLTextRotaryEmbedding

    q, k = torch.randn(2, 2, 2, 13, 16)
    rope = {"rope_type": "default", "rope_theta": 10000.0}
    if version == "qwen2":
        rope |= {"mrope_section": [2, 3, 3]}
        config = Qwen2VLTextConfig(hidden_size=32, num_attention_heads=2, rope_parameters=rope)
        rotary, m_rope = Qwen2VLRotaryEmbedding(config), MRoPE(16, [2, 3, 3])
    else:
        rope |= {"mrope_section": [4, 2, 2], "mrope_interleaved": True}
        rotary = Qwen3VLTextRotaryEmbedding(Qwen3VLTextConfig(head_dim=16, rope_parameters=rope))
        m_rope = MRoPE(16, [4, 2, 2], interleaved=True)
    want = apply_rotary_pos_emb(q, k, *rotary(q, AT.coords.permute(2, 0, 1)))
    for mine, other in zip(m_rope.apply(q, k, AT), want, strict=True):
        torch.testing.assert_close(mine, other, atol=1e-5, rtol=1e-5)


@pytest.mark.slow
def test_text_and_pictures_are_laid_out_as_in_transformers():
    """Padding on the left, pictures merged 2 x 2: `get_rope_index` of Qwen2-VL."""
    from transformers import Qwen2VLConfig
    from transformers.models.qwen2_vl.modeling_qwen2_vl import Qwen2VLModel

    kinds = torch.tensor([[0] * 3 + [1] * 6 + [0] * 4])
    model = Qwen2VLModel.__new__(Qwen2VLModel)
    torch.nn.Module.__init__(model)
    model.config = Qwen2VLConfig()
    ids, _ = model.get_rope_index(torch.zeros_like(kinds), kinds, image_grid_thw=torch.tensor([[1, 4, 6]]))
    assert torch.equal(ids.permute(1, 2, 0), AT.rows(torch.tensor([0])).coords)
    assert torch.equal(gn.Layout.from_hf(position_ids=ids).pos, AT.pos[:1])


def test_a_decoder_writes_on_after_a_picture_as_it_reads_in_one_piece():
    torch.manual_seed(0)
    model = gn.DecoderOnly(29, 32, 2, 4, position="m-rope", init_std=0.3).eval()
    ids = torch.randint(29, (2, 16))
    whole = AT.cat(AT.then(3))
    with torch.no_grad():
        cache = model.cache()
        first = model(ids[:, :13], AT, cache)
        steps = [model(ids[:, t : t + 1], cache=cache) for t in range(13, 16)]
        got, want = torch.cat([first, *steps], 1), model(ids, whole)
    torch.testing.assert_close(got[whole.real], want[whole.real], atol=1e-4, rtol=1e-4)
    flat = model(ids, gn.Layout.padded(whole.real))
    assert (flat - want)[whole.real].abs().max() > 1e-2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sections": [2, 2, 2]}, "share out the 8 pairs"),
        ({"sections": [8]}, "one for each axis"),
        ({"sections": [9, -1]}, "one for each axis"),
        ({"sections": "2,3,3"}, "sections must be"),
        ({"base": 0.0}, "must be above 0"),
    ],
)
def test_a_mistake_is_named(options, message):
    with pytest.raises(gn.BadValue, match=message):
        gn.positions.get("m-rope", **options).build(d_head=16)
