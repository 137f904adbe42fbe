"""Every weight belongs to the optimizer once, and decays only where it should."""

import pytest
import torch

from gnomon.checkpoints.native import read_tensors
from gnomon.embed import TokenEmbedding
from gnomon.models import DecoderOnly
from gnomon.positions import PositionEncoding, names
from gnomon.train import adamw, optimizer_of, resume, train
from gnomon.train.average import Average
from gnomon.train.optim import OptimizerSettings, parts_of


def model_of(position: str, tied: bool = True) -> DecoderOnly:
    options = {"max_positions": 8} if position == "learned" else {}
    return DecoderOnly(11, 8, 2, 2, position=position, tied=tied, d_embed=4 if tied else None, **options)


@pytest.mark.parametrize("position", names())
@pytest.mark.parametrize("tied", [True, False])
def test_every_weight_is_in_exactly_one_group(position, tied):
    model = model_of(position, tied)
    held = [id(p) for group in adamw(model, 1e-3).param_groups for p in group["params"]]
    assert sorted(held) == sorted({id(p) for p in model.parameters()})


def test_a_tied_table_is_one_weight_in_count_and_in_the_optimizer():
    model = DecoderOnly(4, 3, 0, 1, position="none", d_head=3, placement="post")  # V = 4, D = 3: nothing but the table
    assert sum(p.numel() for p in model.parameters()) == 12
    assert sum(p.numel() for group in adamw(model, 1e-3).param_groups for p in group["params"]) == 12


def test_decay_scales_a_weight_once_and_spares_tables_norms_biases_positions():
    model = model_of("t5")
    spared = {
        p for part in model.modules() if isinstance(part, TokenEmbedding | PositionEncoding) for p in part.parameters()
    }
    for p in model.parameters():
        p.data.fill_(1.0)
        p.grad = torch.zeros_like(p)
    adamw(model, lr=0.1, weight_decay=0.5).step()
    for name, p in model.named_parameters():
        expected = 0.95 if p.dim() >= 2 and p not in spared else 1.0  # 1 - lr * weight_decay
        assert p.eq(expected).all(), name


def test_frozen_weights_are_left_out():
    model = model_of("learned")
    model.input.position.weight.requires_grad_(False)
    held = {id(p) for group in adamw(model, 1e-3).param_groups for p in group["params"]}
    assert id(model.input.position.weight) not in held


def test_the_arithmetic_of_a_step_is_one_operator_for_each_group_of_weights():
    """Not a dozen for each weight, which cost small models more than their arithmetic."""
    model = model_of("t5")
    for p in model.parameters():
        p.grad = torch.ones_like(p)
    optimizer = adamw(model, lr=0.1)
    optimizer.step()  # the first one makes its state
    with torch.profiler.profile() as profile:
        optimizer.step()
    ran = [event.name for event in profile.events()]
    assert ran.count("aten::_fused_adamw_") == len(optimizer.param_groups)
    assert "aten::lerp_" not in ran
    assert "aten::addcdiv_" not in ran


def test_a_step_is_that_of_the_paper():
    """Algorithm 2 of Loshchilov and Hutter, in float64, three steps."""
    torch.manual_seed(0)
    layer = torch.nn.Linear(3, 2, bias=False).double()
    w, m, v = layer.weight.detach().clone(), 0.0, 0.0
    optimizer = adamw(layer, lr=0.1, weight_decay=0.5)
    for t in (1, 2, 3):
        g = torch.randn_like(w)
        layer.weight.grad = g.clone()
        optimizer.step()
        m, v = 0.9 * m + 0.1 * g, 0.95 * v + 0.05 * g**2
        w = w - 0.1 * 0.5 * w - 0.1 * (m / (1 - 0.9**t)) / ((v / (1 - 0.95**t)).sqrt() + 1e-8)
    torch.testing.assert_close(layer.weight.detach(), w, rtol=1e-12, atol=1e-12)


@pytest.mark.skipif(not hasattr(torch.optim, "Muon"), reason="this torch has no Muon")
@pytest.mark.parametrize("position", ["t5", "learned"])
@pytest.mark.parametrize("tied", [True, False])
def test_muon_takes_the_matrices_of_the_blocks_and_adamw_the_rest(position, tied):
    model = model_of(position, tied)
    muon, rest = parts_of(optimizer_of(model, OptimizerSettings(optimizer="muon"), 1e-3))
    named = {id(p): name for name, p in model.named_parameters()}
    held = [named[id(p)] for part in (muon, rest) for group in part.param_groups for p in group["params"]]
    assert sorted(held) == sorted(named.values())
    matrices = {named[id(p)] for group in muon.param_groups for p in group["params"]}
    assert all(".blocks." in name or name.startswith("input.") for name in matrices)
    assert {name for name in named.values() if name.endswith(("attention.q.weight", "ffn.up.weight"))} <= matrices
    assert "head.weight" not in matrices


@pytest.mark.skipif(not hasattr(torch.optim, "Muon"), reason="this torch has no Muon")
def test_a_run_with_muon_an_average_and_wsd_goes_on_bit_for_bit(text, build, config, tmp_path, no_pictures):
    ran = config(steps=6, optimizer="muon", ema=0.9, schedule="wsd", save_every=3, keep=2)
    train(build(dropout=0.1), text.task(ran), ran, tmp_path / "run", quiet=True)
    folder = tmp_path / "run" / "checkpoints" / "step-3"
    resume(folder, text.task(ran), quiet=True)
    for part in ("", "average"):
        ours, theirs = (read_tensors(f / part / "model.safetensors")[0] for f in (folder, tmp_path / "run"))
        assert all(ours[name].equal(theirs[name]) for name in theirs)
    kept = read_tensors(tmp_path / "run" / "training" / "step-6" / "optimizer.safetensors")[0]
    assert {name.rpartition(".")[2] for name in kept} == {"momentum_buffer", "step", "exp_avg", "exp_avg_sq"}


def test_an_average_is_that_of_its_formula_and_gives_the_weights_back():
    model = torch.nn.Linear(1, 1, bias=False)
    average, want = Average(model, 0.5), model.weight.item()
    for step in range(4):
        model.weight.data.fill_(step)
        average.update(step)
        beta = min(0.5, (1 + step) / (10 + step))
        want = beta * want + (1 - beta) * step
    with average.in_place():
        assert model.weight.item() == pytest.approx(want)
    assert model.weight.item() == 3.0


@pytest.mark.parametrize("position", ["t5", "rope"])
def test_activations_computed_again_give_the_same_gradient(position):
    gradients = []
    for again in (False, True):
        torch.manual_seed(0)
        model = DecoderOnly(11, 8, 2, 2, position=position, dropout=0.3)
        model.stack.gradient_checkpointing = again
        torch.manual_seed(1)
        model(torch.arange(10)[None]).sum().backward()
        gradients.append([p.grad for p in model.parameters()])
    assert all(a.equal(b) for a, b in zip(*gradients, strict=True))
