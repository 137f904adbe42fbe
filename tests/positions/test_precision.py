"""Position arithmetic is exact, whatever the dtype of the model around it."""

import copy
import math

import numpy as np
import pytest
import torch

import gnomon as gn
from gnomon.positions import ALiBi, RoPE, Sinusoidal
from gnomon.positions.frequencies import angles

FAR = 131_072
SIZES = {"d_model": 64, "d_head": 64, "n_heads": 8, "causal": True, "max_positions": 64}
COMPUTED = ("sinusoidal", "rope", "alibi")


def row(*positions):
    return gn.Layout.from_hf(position_ids=torch.tensor([positions]))


def numbers(encoding, at):
    """What an encoding computes for these positions, in float32."""
    if encoding.acts == "input":
        return encoding.vectors(at)
    if encoding.acts == "rotation":
        return torch.stack(encoding.prepare(at)[:2])
    return encoding.bias_tensor(at)


@pytest.mark.parametrize("base", [10_000.0, 500_000.0, 100.0])
def test_cosines_and_sines_are_within_a_millionth_up_to_position_131072(base):
    """Against numpy in float64. The rounding of angles to float32 would cost up to 8e-3."""
    places = np.concatenate([np.arange(0, FAR, 997), np.arange(FAR - 64, FAR + 1)])
    theta = base ** (-np.arange(0, 64, 2) / 64)
    a = places[:, None] * theta
    cos, sin = RoPE(64, base=base).prepare(row(*places.tolist()))
    assert np.abs(cos[0, 0].numpy() - np.cos(a)).max() <= 1e-6
    assert np.abs(sin[0, 0].numpy() - np.sin(a)).max() <= 1e-6
    pe = Sinusoidal(64, base=base).vectors(row(*places.tolist()))[0].numpy()
    assert np.abs(pe[:, 0::2] - np.sin(a)).max() <= 1e-6
    float32 = np.cos((places[:, None].astype(np.float32) * theta.astype(np.float32)).astype(np.float64))
    assert np.abs(float32 - np.cos(a)).max() > 1e-3  # what this test would see


def test_known_angles_are_known():
    """Position 1857, pair 1 of 16: angle 1044.26784088."""
    a = angles(torch.tensor([1857]), RoPE(32).frequencies())[0, 1]
    assert float(a) == pytest.approx(1044.26784088, abs=1e-8)


@pytest.mark.parametrize("name", COMPUTED)
@pytest.mark.parametrize("change", ["half", "bfloat16", "double", "deepcopy", "meta"])
def test_nothing_done_to_a_module_moves_a_position(name, change):
    plain, at = gn.positions.get(name).build(**SIZES), row(0, 1, 256, 257, 2049, FAR)
    want = numbers(plain, at)
    changed = {
        "half": lambda: copy.deepcopy(plain).half(),
        "bfloat16": lambda: copy.deepcopy(plain).bfloat16(),
        "double": lambda: copy.deepcopy(plain).double(),
        "deepcopy": lambda: copy.deepcopy(plain),
        "meta": lambda: _from_meta(name),
    }[change]()
    assert torch.equal(numbers(changed, at), want)


def _from_meta(name):
    with torch.device("meta"):
        module = gn.positions.get(name).build(**SIZES)
    return module.to_empty(device="cpu")


@pytest.mark.parametrize("name", COMPUTED)
def test_autocast_rounds_no_position(name):
    """A product of positions and frequencies as a matrix product would run in bfloat16 here: 256 and 257 would meet."""
    encoding, at = gn.positions.get(name).build(**SIZES), row(255, 256, 257, 1023, 1024)
    want = numbers(encoding, at)
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.equal(numbers(encoding, at), want)


def test_the_fastest_pair_tells_256_from_257():
    cos, _ = RoPE(8).prepare(row(256, 257))
    assert cos[0, 0, :, 0].tolist() == pytest.approx([-0.03979076, 0.81930553], abs=1e-7)


@pytest.mark.parametrize("name", COMPUTED)
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_neighbouring_positions_stay_apart_in_a_half_precision_model(name, dtype):
    """Held in bfloat16, positions 255..259 would be 255, 256, 256, 258, 260."""
    encoding = gn.positions.get(name).build(**SIZES).to(dtype)
    shown = numbers(encoding, row(*range(2040, 2060)))
    along = shown[0] if name == "sinusoidal" else shown[0, 0, 0] if name == "rope" else shown[0, 0]
    assert torch.pdist(along.double()).min() > 1e-3


@pytest.mark.parametrize("name", gn.positions.names())
def test_tables_are_computed_and_not_saved(name):
    """Only learned numbers stand in a checkpoint, so that any length loads into any other."""
    encoding = gn.positions.get(name).build(**SIZES)
    at, before = row(*range(60)), {key: x.shape for key, x in encoding.state_dict().items()}
    if encoding.acts != "nowhere":
        numbers(encoding, at)
    assert {key: x.shape for key, x in encoding.state_dict().items()} == before
    assert set(before) == {key for key, _ in encoding.named_parameters()}
    assert not list(encoding.buffers())


@pytest.mark.parametrize("name", ["none", "sinusoidal", "rope", "alibi", "t5"])
def test_a_model_loads_into_one_of_another_length_and_answers_alike(name):
    """A table grown by a longer call is not part of the model."""

    def build(length):
        return gn.DecoderOnly(50, 16, 1, 2, position=name, max_positions=length).eval()

    saved, ids = build(16), torch.randint(50, (1, 8))
    saved(torch.randint(50, (1, 20)))
    for length in (8, 32):
        other = build(length)
        other.load_state_dict(saved.state_dict(), strict=True)
        assert torch.equal(other(ids), saved(ids))


@pytest.mark.parametrize("name", gn.positions.names())
def test_a_model_built_without_memory_answers_like_any_other(name):
    """Built on the meta device, given memory, then loaded: slopes, tables and frequencies are all there."""
    normal, ids = gn.DecoderOnly(50, 16, 2, 2, position=name, max_positions=16).eval(), torch.randint(50, (1, 9))
    with torch.device("meta"):
        late = gn.DecoderOnly(50, 16, 2, 2, position=name, max_positions=16)
    late = late.to_empty(device="cpu").eval()
    late.load_state_dict(normal.state_dict())
    assert torch.equal(late(ids), normal(ids))


def test_float64_in_is_float64_out_and_exact():
    y = RoPE(8)(torch.ones(1, 1, 1, 8, dtype=torch.float64), row(FAR))
    a = [FAR * 10_000 ** (-2 * i / 8) for i in range(4)]
    want = [math.cos(x) - math.sin(x) for x in a] + [math.cos(x) + math.sin(x) for x in a]
    torch.testing.assert_close(y[0, 0, 0], torch.tensor(want, dtype=torch.float64), atol=1e-10, rtol=0)
    slope = ALiBi(8).bias_tensor(row(0, FAR), dtype=torch.float64)[0, 0, 1, 0]
    assert float(slope) == -FAR / 2
