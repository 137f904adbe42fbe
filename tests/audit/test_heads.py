"""Heads are alike and have matrices of their own; whatever is not understood is not accused."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from variants import asked, student

from gnomon.audit import Torch
from gnomon.audit.attention_probe import find_attention, turns_across_heads

ALIKE, PROJECTED = "heads are interchangeable", "heads have projections"
MADE = "q, k, v = self.heads(self.q(x)), self.heads(self.k(x)), self.heads(self.v(x))"
TURNED = "q, k = rotated(q, positions), rotated(k, positions)"
SCORES = "scores = (q @ k.mT / math.sqrt(q.shape[-1]))"
SPLIT = "x.view(*x.shape[:2], self.n_heads, -1).transpose(1, 2)"
BY_SIDES = "a, b = x.chunk(2, dim=-1)"
BEFORE = {
    MADE: "q, k, v = rotated(self.q(x), positions), rotated(self.k(x), positions), self.v(x)",
    TURNED: "q, k, v = self.heads(q), self.heads(k), self.heads(v)",
}


def in_turn() -> dict[str, str]:
    """The rotation of channels 2 i and 2 i + 1."""
    line = "return torch.cat([a * angles.cos() - b * angles.sin(), a * angles.sin() + b * angles.cos()], dim=-1)"
    turned = "return torch.stack([a * angles.cos() - b * angles.sin(), a * angles.sin() + b * angles.cos()], -1)"
    return {BY_SIDES: "a, b = x[..., ::2], x[..., 1::2]", line: f"{turned}.flatten(-2)"}


# ------------------------------------------------------------------ interchangeable


def test_a_rotation_of_each_head_passes_in_both_pairings():
    assert asked(ALIKE, student()).verdict == "pass"
    assert asked(ALIKE, student(in_turn())).verdict == "pass"


def test_a_rotation_over_the_whole_width_is_named_in_both_pairings():
    for pairing in ({}, in_turn()):
        found = asked(ALIKE, student(BEFORE | pairing))
        assert found.verdict == "FAIL"
        assert "rotated over the whole d_model before they are split" in found.note


def test_the_base_and_the_number_of_heads_do_not_matter():
    for base in ("500.0", "1e6"):
        for heads in (2, 8):
            edits = BEFORE | {"10000.0": base, "n_heads: int = 4": f"n_heads: int = {heads}"}
            assert asked(ALIKE, student(edits)).verdict == "FAIL"


FUSED = {
    "self.q, self.k, self.v = (nn.Linear(d_model, d_model, bias=False) for _ in range(3))": (
        "self.qkv = nn.Linear(d_model, 3 * d_model)"
    ),
    MADE: "q, k, v = map(self.heads, self.qkv(x).chunk(3, -1))",
}


def test_a_fused_matrix_is_read_too():
    assert asked(ALIKE, student(FUSED)).verdict == "pass"
    turned = "q, k, v = self.qkv(x).chunk(3, -1); q, k = (rotated(x, positions) for x in (q, k))"
    assert asked(ALIKE, student(FUSED | {TURNED: BEFORE[TURNED], MADE: turned})).verdict == "FAIL"


def test_a_fused_matrix_that_is_laid_out_by_heads_is_not_accused():
    by_heads = "q, k, v = self.qkv(x).view(*x.shape[:2], self.n_heads, 3, -1).transpose(1, 2).unbind(3)"
    found = asked(ALIKE, student(FUSED | {MADE: by_heads}))
    assert found.verdict == "not applicable"
    assert "does not show which of its matrices" in found.note


def test_heads_with_biases_of_their_own_are_not_accused():
    alibi = "- 2.0 ** -torch.arange(4)[:, None, None] * (positions[:, None] - torch.arange(start + T)).abs())"
    found = asked(ALIKE, student({SCORES: SCORES[:-1] + alibi}))
    assert found.note == "each head of GPT has a bias of its own"


def test_biases_that_hardly_differ_between_heads_are_not_accused():
    for apart in (0.001, 0.002, 0.003):
        slopes = f"(0.6 + {apart} * torch.tensor([3, 1, 0, 2]))[:, None, None]"
        bias = f"- {slopes} * (positions[:, None] - torch.arange(start + T)).abs().sqrt())"
        found = asked(ALIKE, student({SCORES: SCORES[:-1] + bias, TURNED: ""}))
        assert found.note == "each head of GPT has a bias of its own"


def test_heads_that_differ_in_another_way_are_not_accused():
    slower = "q, k = (rotated(x * torch.arange(1, 5)[:, None, None], positions) for x in (q, k))"
    found = asked(ALIKE, student({TURNED: slower}))
    assert found.note == "heads of GPT differ, in a way that no fault known here explains"


@pytest.mark.parametrize(
    "split",
    [
        "x.view(*x.shape[:2], -1, self.n_heads).permute(0, 3, 1, 2)",  # channel c belongs to head c mod H
        "x.view(x.shape[0], self.n_heads, x.shape[1], -1)",  # tokens and heads are mixed up: not this law's fault
    ],
)
def test_channels_in_another_order_are_not_accused(split):
    assert asked(ALIKE, student({SPLIT: split})).verdict == "not applicable"


def test_one_head_and_coarse_dtypes_cannot_show_it():
    assert asked(ALIKE, student({"n_heads: int = 4": "n_heads: int = 1"})).note == "GPT has one head"
    with student().editable(torch.bfloat16) as coarse:
        assert "too coarse" in asked(ALIKE, coarse).note


def test_a_norm_of_queries_over_the_whole_width_is_not_accused():
    """As in OLMo 2: its weight is another one in each head."""
    drop = "self.drop = nn.Dropout(dropout)\n"
    made = "        self.qn = nn.RMSNorm(d_model)\n        nn.init.normal_(self.qn.weight, 1)\n"
    normed = {
        f"{drop}\n    def heads": f"{drop}{made}\n    def heads",
        MADE: MADE.replace("self.heads(self.q(x))", "self.heads(self.qn(self.q(x)))"),
    }
    assert asked(ALIKE, student(normed)).verdict == "not applicable"


def test_a_matrix_beside_queries_keys_and_values_is_not_taken_for_one_of_them():
    """Forgetting attention whose gates are made by queries and keys of their own, in a matrix as wide as W_q."""
    drop = "self.drop = nn.Dropout(dropout)\n"
    gated = {
        f"{drop}\n    def heads": f"{drop}        self.gates = nn.Linear(d_model, d_model)\n\n    def heads",
        SCORES: "a, b = (y.view(*x.shape[:2], 4, -1).transpose(1, 2) for y in self.gates(x).chunk(2, -1))\n"
        f"        {SCORES[:-1]} + F.logsigmoid(a @ b.mT).tril(-1).flip(-1).cumsum(-1).flip(-1))",
    }
    found = asked(ALIKE, student(gated))
    assert found.verdict == "not applicable"
    assert "does not show which of its matrices" in found.note


def test_what_is_read_is_what_the_heads_make():
    """Weights that are read from outside are those that attention by hand gives."""
    attention = find_attention(student({TURNED: "q, k = q, k"}))
    q, k = torch.randn(1, 4, 32), torch.randn(1, 4, 32)
    scores = torch.einsum("bthc,bshc->bhts", q.view(1, 4, 4, 8), k.view(1, 4, 4, 8)) / 8**0.5
    want = scores.masked_fill(torch.ones(4, 4).triu(1).bool(), float("-inf")).softmax(-1)
    got = attention.weights(q, k)[..., ::8].movedim(-1, 1)
    assert torch.allclose(got, want, atol=1e-5)


def test_frequencies_are_read_from_outside():
    theta = 10000.0 ** (-torch.arange(4) / 4)
    assert torch.allclose(find_attention(student()).turns()[:8].float(), theta.cos().repeat(2), atol=1e-4)


def test_a_fall_within_each_head_is_none_over_the_width():
    theta = (10000.0 ** (-torch.arange(4) / 4)).cos()
    wide = (10000.0 ** (-torch.arange(16) / 16)).cos()
    for spills in (False, True):
        assert not turns_across_heads(theta.repeat(2).repeat(4), 8, spills)
        assert not turns_across_heads(wide.flip(0).repeat(2), 8, spills)
        assert turns_across_heads(wide.repeat(2), 8, spills) is spills
        assert turns_across_heads(wide.repeat_interleave(2), 8, spills)


# ------------------------------------------------------------------ projections

NONE = {
    "        self.q, self.k, self.v = (nn.Linear(d_model, d_model, bias=False) for _ in range(3))\n": "",
    MADE: "q = k = v = self.heads(x)",
}


def test_heads_without_matrices_are_named_wherever_the_norm_stands():
    for norms in ({}, {"self.attention(self.norm1(x), past)": "self.attention(x, past)"}):
        found = asked(PROJECTED, student(NONE | norms))
        assert found.verdict == "FAIL"
        assert "no matrix stands before attention" in found.note


def test_fused_and_shared_matrices_are_matrices():
    assert asked(PROJECTED, student(FUSED)).verdict == "pass"
    assert asked(PROJECTED, student({MADE: "q = k = v = self.heads(self.q(x))"})).verdict == "pass"


def test_matrices_that_are_used_by_hand_are_not_overlooked():
    by_hand = "q, k, v = (self.heads(x @ w.weight.T) for w in (self.q, self.k, self.v))"
    found = asked(PROJECTED, student({MADE: by_hand}))
    assert found.note == "the first block of GPT has matrices that are not called as modules"


def test_tokens_that_meet_by_fixed_weights_are_not_accused():
    """FNet and the like: no queries, and none are missing."""
    mean = "y = self.drop(visible / visible.sum(-1, keepdim=True)) @ v"
    found = asked(PROJECTED, student(NONE | {"y = self.drop(scores.softmax(dim=-1)) @ v": mean}))
    assert "mixes its tokens by weights that do not depend on them" in found.note


def test_tokens_that_met_before_are_not_accused():
    met = {"self.drop(self.embedding(ids))": "self.drop(self.embedding(ids)).cumsum(1)"}
    assert "have met before" in asked(PROJECTED, student(NONE | met)).note


def test_torchs_own_attention_is_not_accused():
    class Own(nn.Module):
        def __init__(self):
            super().__init__()
            self.table = nn.Embedding(11, 8)
            self.blocks = nn.ModuleList([nn.TransformerEncoderLayer(8, 2, 16, batch_first=True) for _ in range(2)])
            self.head = nn.Linear(8, 11)

        def forward(self, ids):
            x, mask = self.table(ids), nn.Transformer.generate_square_subsequent_mask(ids.shape[1])
            for block in self.blocks:
                x = block(x, src_mask=mask, is_causal=True)
            return self.head(x)

    for law in (ALIKE, PROJECTED):
        assert asked(law, Torch(Own())).verdict == "not applicable"


def test_a_model_without_attention_is_not_accused():
    class Local(nn.Module):
        def __init__(self):
            super().__init__()
            self.table, self.head = nn.Embedding(11, 8), nn.Linear(8, 11)
            self.blocks = nn.ModuleList(nn.Sequential(nn.Linear(8, 8), nn.ReLU()) for _ in range(2))

        def forward(self, ids):
            x = self.table(ids)
            for block in self.blocks:
                x = F.relu(block(x))
            return self.head(x)

    for law in (ALIKE, PROJECTED):
        assert asked(law, Torch(Local())).verdict == "not applicable"
