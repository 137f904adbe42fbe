"""One step: the gradient of a mean over targets, clipped, and nothing done with numbers that are none."""

import weakref

import pytest
import torch
from torch import nn

from gnomon.layout import Layout
from gnomon.models import DecoderOnly
from gnomon.train import NotFinite, Windows, adamw, training_step
from gnomon.train.loss import window_loss

V = 13


def model_of(**changes) -> DecoderOnly:
    torch.manual_seed(1)
    return DecoderOnly(V, 8, 2, 2, position="alibi", **changes)


def weights(model: nn.Module) -> torch.Tensor:
    return torch.cat([p.detach().flatten() for p in model.parameters()])


UNEVEN = torch.arange(6) < torch.tensor([[4], [2], [3], [6]])  # 3, 1, 2 and 5 targets


@pytest.mark.parametrize("parts", [2, 3, 4, 9])
def test_pieces_of_a_batch_weigh_by_their_targets(parts):
    torch.manual_seed(0)
    batches = [torch.randint(0, V, (4, 6)) for _ in range(3)]
    ended = []
    for n in (1, parts):
        model = model_of().double()
        optimizer = adamw(model, 1e-2)
        losses = [training_step(model, optimizer, Windows(ids, Layout.padded(UNEVEN)), 1e-2, 1.0, n) for ids in batches]
        ended.append((weights(model), [loss.mean.item() for loss in losses], [int(loss.count) for loss in losses]))
    torch.testing.assert_close(ended[1][0], ended[0][0], rtol=0, atol=1e-9)
    assert ended[1][1] == pytest.approx(ended[0][1], abs=1e-12)
    assert ended[1][2] == ended[0][2] == [11, 11, 11]


@pytest.mark.parametrize("smoothing", [0.0, 0.2])
def test_a_piece_without_targets_changes_nothing(smoothing):
    """Two of four pieces hold a row of one token and one of none: the step is that of the other two rows."""
    torch.manual_seed(0)
    ids, mask, ended = torch.randint(0, V, (4, 6)), torch.arange(6) < torch.tensor([[4], [1], [0], [6]]), []
    for rows, parts in ((torch.tensor([0, 3]), 1), (torch.arange(4), 4)):
        model = model_of().double()
        batch = Windows(ids[rows], Layout.padded(mask[rows]), smoothing)
        loss = training_step(model, adamw(model, 1e-2), batch, 1e-2, 1.0, parts)
        ended.append((weights(model), loss.mean.item(), int(loss.count)))
    torch.testing.assert_close(ended[1][0], ended[0][0], rtol=0, atol=1e-9)
    assert ended[1][1:] == (pytest.approx(ended[0][1], abs=1e-12), 3 + 5)


def test_the_activations_of_a_piece_are_freed_before_the_next():
    class Saved:
        def __init__(self, tensor):
            self.tensor = tensor

    alive, at_start, model = weakref.WeakSet(), [], model_of()

    def pack(tensor):
        saved = Saved(tensor)
        alive.add(saved)
        return saved

    model.register_forward_pre_hook(lambda *_: at_start.append(len(alive)))
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda saved: saved.tensor):
        training_step(model, adamw(model, 1e-3), Windows(torch.randint(0, V, (4, 6))), 1e-3, None, parts=4)
    assert at_start == [0, 0, 0, 0]


def test_the_rate_given_is_the_rate_taken():
    model, ids = model_of(), torch.randint(0, V, (2, 6))
    window_loss(model, ids).mean.backward()
    expected = weights(model) - 0.3 * torch.cat([p.grad.flatten() for p in model.parameters()])
    training_step(model, torch.optim.SGD(model.parameters(), lr=123.0), Windows(ids), 0.3, None)
    torch.testing.assert_close(weights(model), expected)


def test_a_long_gradient_is_shortened_and_a_short_one_is_left():
    ids, moved = torch.randint(0, V, (2, 6)), {}
    for clip in (None, 1e6, 1e-3):
        model = model_of()
        before = weights(model)
        training_step(model, torch.optim.SGD(model.parameters()), Windows(ids), 1.0, clip)
        moved[clip] = weights(model) - before
    assert moved[1e6].equal(moved[None])
    assert moved[1e-3].norm().item() == pytest.approx(1e-3, rel=1e-2)
    torch.testing.assert_close(moved[1e-3] / moved[1e-3].norm(), moved[None] / moved[None].norm(), rtol=0, atol=1e-3)


def test_the_loss_returned_is_that_before_the_step_and_holds_no_graph():
    model, ids = model_of(), torch.randint(0, V, (2, 6))
    expected = window_loss(model, ids).mean.item()
    loss = training_step(model, adamw(model, 1e-2), Windows(ids), 1e-2, 1.0)
    assert loss.mean.item() == expected
    assert not loss.total.requires_grad
    assert window_loss(model, ids).mean.item() < expected


def test_a_batch_of_nothing_but_padding_leaves_finite_weights_and_a_loss_of_zero():
    model = model_of()
    at = Layout.padded(torch.zeros(2, 6, dtype=torch.bool))
    loss = training_step(model, adamw(model, 1e-2), Windows(torch.randint(0, V, (2, 6)), at), 1e-2, 1.0)
    assert loss.mean == 0
    assert loss.count == 0
    assert weights(model).isfinite().all()


@pytest.mark.parametrize("where", ["loss", "gradient"])
def test_numbers_that_overflow_change_nothing(where):
    model, ids = model_of(), torch.randint(0, V, (2, 6))
    optimizer = adamw(model, 1e-2)
    training_step(model, optimizer, Windows(ids), 1e-2, 1.0)
    if where == "loss":
        model.head.register_forward_hook(lambda module, args, logits: logits + torch.inf)
    else:
        model.stack.norm.weight.register_hook(lambda gradient: gradient * torch.inf)
    before, moments = weights(model), optimizer.state[model.stack.norm.weight]["exp_avg"].clone()
    with pytest.raises(NotFinite, match=r"learning rate of 0\.01"):
        training_step(model, optimizer, Windows(ids), 1e-2, 1.0)
    assert weights(model).equal(before)
    assert optimizer.state[model.stack.norm.weight]["exp_avg"].equal(moments)


def test_bfloat16_runs_the_products_in_it_and_keeps_the_weights_wide():
    model, seen = model_of(), []
    model.stack.blocks[0].ffn.up.register_forward_hook(lambda module, args, out: seen.append(out.dtype))
    ids = torch.randint(0, V, (1, 3))
    for dtype in (torch.float32, torch.bfloat16):
        training_step(model, adamw(model, 1e-2), Windows(ids), 1e-2, 1.0, dtype=dtype)
    assert seen == [torch.float32, torch.bfloat16]
    assert {p.dtype for p in model.parameters()} == {torch.float32}
