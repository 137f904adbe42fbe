"""A deep copy is a model of its own, and where it is not, that is the one fault that is named."""

from copy import deepcopy

import pytest
import torch
from test_positions import GPT, Block
from torch import nn
from torch.nn import functional as F
from variants import asked, student

import gnomon as gn
from gnomon.audit import Torch

LAW = "a deep copy is a model of its own"


class Functional(Block):
    """Keeps a function over its own parts, as minGPT does: healthy until it is copied."""

    def __init__(self, d: int = 32, heads: int = 4) -> None:
        super().__init__(d, heads)
        self.mlp = nn.ModuleDict({"fc": nn.Linear(d, 2 * d), "proj": nn.Linear(2 * d, d)})
        del self.ffn
        m = self.mlp
        self.ffn = lambda x: m.proj(F.gelu(m.fc(x)))


class Bound(Functional):
    """The same in a method, which a deep copy binds anew."""

    def __init__(self) -> None:
        super().__init__()
        self.ffn = self.feed_forward

    def feed_forward(self, x):
        return self.mlp.proj(F.gelu(self.mlp.fc(x)))


def gpt(block) -> GPT:
    torch.manual_seed(0)
    model = GPT()
    model.blocks = nn.ModuleList(block() for _ in range(2))
    return model


def test_a_function_over_its_own_parts_is_named_and_nothing_else():
    report = gn.audit(gpt(Functional))
    assert [found.law for found in report.failed] == [LAW]
    assert "computes with blocks.0.mlp.fc.weight, blocks.0.mlp.fc.bias" in report[LAW].note
    assert report["every part is used"].verdict == "pass"


def test_its_average_of_weights_is_wrong_indeed():
    model = gpt(Functional).eval()
    averaged, ids = deepcopy(model), torch.arange(5)[None]
    before = averaged(ids)
    with torch.no_grad():
        model.blocks[0].mlp.fc.weight.normal_()
    assert not torch.equal(averaged(ids), before)


@pytest.mark.parametrize("make", [lambda: gpt(Bound), lambda: gpt(lambda: Block(32, 4))])
def test_parts_that_are_copied_are_not_accused(make):
    report = gn.audit(make())
    assert report.failed == ()
    assert report[LAW].verdict == "pass"


def test_a_small_fresh_model_shows_it_too():
    model = gpt(Functional)
    with torch.no_grad():
        for weight in model.parameters():
            weight.mul_(1e-3)
    assert asked(LAW, Torch(model)).verdict == "FAIL"


class Listed(GPT):
    """Its table is kept in a list by a tensor that is no parameter: copied, and its own."""

    def __init__(self) -> None:
        super().__init__()
        self.fixed = [torch.randn(64, 32)]

    def entered(self, ids):
        return super().entered(ids) + self.fixed[0][: ids.shape[1]]


class Elsewhere(GPT):
    """A part that is kept outside of all modules."""

    def __init__(self) -> None:
        super().__init__()
        outside = self.ln_f
        self.last = lambda x: outside(x)

    def forward(self, ids):
        x = self.entered(ids)
        for block in self.blocks:
            x = block(x)
        return self.head(self.last(x))


def test_lists_are_copied_and_functions_are_not():
    assert asked(LAW, Torch(Listed())).verdict == "pass"
    assert "computes with ln_f.weight, ln_f.bias of the original" in asked(LAW, Torch(Elsewhere())).note


def test_a_copy_of_a_model_that_cannot_be_asked_says_so():
    class Broken(GPT):
        def __deepcopy__(self, memo):
            raise RuntimeError("one only")

    found = asked(LAW, Torch(Broken()))
    assert (found.verdict, found.note) == ("not applicable", "Broken cannot be copied: RuntimeError: one only")


class Closure(GPT):
    """Tied by a closure over the table of the original; angles of its own in half precision."""

    def __init__(self) -> None:
        super().__init__()
        del self.head
        self.head = lambda x: x @ self.wte.weight.T


def test_a_tied_model_is_asked_in_half_precision_as_its_untied_twin_is():
    def half(model):
        placed = lambda m, ids, at: m.head(m.ln_f(m.blocks[0](m.wte(ids) + m.wpe(at))))  # noqa: E731
        return [f.verdict for f in gn.audit(Torch(model, placed=placed), only=["bfloat16", "float16"]).findings]

    assert half(Closure()) == half(GPT()) == ["pass", "pass"]


def test_a_healthy_student_is_a_model_of_its_own():
    assert asked(LAW, student()).verdict == "pass"
