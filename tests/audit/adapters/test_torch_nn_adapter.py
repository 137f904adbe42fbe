"""Stacks of torch.nn as targets: their masks are asked, with an embedding and positions that are ours."""

import pytest
import torch
from torch import nn

import gnomon as gn
from gnomon.audit.adapters import target
from gnomon.audit.adapters.torch_nn import TorchNN, sinusoids
from gnomon.errors import BadValue
from gnomon.positions import sinusoidal_table

pytestmark = [  # nn.Transformer turns nested tensors on, and says so
    pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors"),
    pytest.mark.filterwarnings("ignore:enable_nested_tensor is True"),
]
LAYER = {"d_model": 32, "nhead": 4, "dim_feedforward": 64}


@pytest.fixture(autouse=True)
def no_gradients():
    with torch.no_grad():
        yield


def encoder(**options):
    torch.manual_seed(0)
    return nn.TransformerEncoder(nn.TransformerEncoderLayer(**LAYER, **options), 2, enable_nested_tensor=False)


def stacks():
    torch.manual_seed(0)
    yield TorchNN(encoder())
    yield TorchNN(encoder(), causal=True)
    yield TorchNN(encoder(norm_first=True), causal=True, hinted=True)
    yield target(nn.TransformerDecoder(nn.TransformerDecoderLayer(**LAYER), 2))
    yield target(nn.Transformer(32, 4, 2, 2, 64))


@pytest.mark.slow
def test_no_law_accuses_a_stack_on_the_slow_path():
    for t in stacks():
        report = gn.audit(t)
        assert report.failed == (), t.name
        assert len(report.of("pass")) >= 15


@pytest.mark.parametrize("fast", [True, False])
def test_the_fast_path_gives_nan_for_padding_on_the_left_and_is_called_so(fast):
    t = TorchNN(encoder(batch_first=True), causal=True)
    before = torch.backends.mha.get_fastpath_enabled()
    try:
        torch.backends.mha.set_fastpath_enabled(fast)
        verdict = gn.audit(t, only=["left padding changes nothing"])["left padding changes nothing"].verdict
    finally:
        torch.backends.mha.set_fastpath_enabled(before)
    assert verdict == ("FAIL" if fast else "pass")


def test_a_stack_with_rows_second_gives_what_one_with_rows_first_gives():
    first, second = encoder(batch_first=True), encoder()
    second.load_state_dict(first.state_dict())
    t, turned = TorchNN(first, causal=True), TorchNN(second, causal=True)
    ids = t.ids(2, 6)
    assert torch.allclose(t.logits(ids), turned.logits(ids), atol=1e-5)


def test_the_source_is_what_a_decoder_is_told():
    torch.manual_seed(0)
    t = target(nn.Transformer(32, 4, 2, 2, 64, batch_first=True))
    ids, source = t.ids(2, 4), t.ids(2, 5, stream=1)
    assert not torch.equal(t.with_source(source).logits(ids), t.logits(ids))
    mask = torch.tensor([[True] * 5, [True] * 3 + [False] * 2])
    short = t.with_source(source[1:, :3]).logits(ids[1:])
    assert torch.allclose(t.with_source(source, mask).logits(ids)[1:], short, atol=1e-5)


def test_positions_are_the_papers():
    got = sinusoids(8)(torch.tensor([[0, 3, 7]]))[0]
    table = torch.from_numpy(sinusoidal_table(8, 8, table="concatenated"))
    assert torch.allclose(got, table[[0, 3, 7]])


def test_a_layer_by_itself_is_refused():
    with pytest.raises(BadValue, match="put it into"):
        target(nn.TransformerEncoderLayer(32, 4))
