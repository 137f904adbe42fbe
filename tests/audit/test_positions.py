"""Laws of places and parts: what forgets a position or a part is told so by name; what has none is not accused."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import gnomon as gn
from gnomon.audit.laws.parts import GIVEN
from gnomon.audit.laws.positions import POSITIONAL

TABLE = 64


class Block(nn.Module):
    """Pre-norm, causal; it knows no positions."""

    def __init__(self, d: int, heads: int) -> None:
        super().__init__()
        self.heads, self.n1, self.n2 = heads, nn.LayerNorm(d), nn.LayerNorm(d)
        self.qkv, self.o, self.ffn = nn.Linear(d, 3 * d), nn.Linear(d, d), nn.Sequential(nn.Linear(d, d), nn.GELU())

    def forward(self, x):
        q, k, v = (y.unflatten(-1, (self.heads, -1)).transpose(1, 2) for y in self.qkv(self.n1(x)).chunk(3, -1))
        x = x + self.o(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))
        return x + self.ffn(self.n2(x))


class GPT(nn.Module):
    """Learned positions, three blocks."""

    def __init__(self, vocab: int = 90, d: int = 32) -> None:
        super().__init__()
        self.wte, self.wpe = nn.Embedding(vocab, d), nn.Embedding(TABLE, d)
        self.blocks = nn.ModuleList(Block(d, 4) for _ in range(3))
        self.ln_f, self.head = nn.LayerNorm(d), nn.Linear(d, vocab)

    def entered(self, ids):
        return self.wte(ids) + self.wpe(self.places(ids))

    def places(self, ids):
        return torch.arange(ids.shape[1])

    def forward(self, ids):
        x = self.entered(ids)
        for block in self.blocks:
            x = block(x)
        return self.head(self.ln_f(x))


class Forgotten(GPT):
    def entered(self, ids):
        return self.wte(ids)


class Zeros(GPT):
    def places(self, ids):
        return torch.zeros_like(ids)


class OfIds(GPT):
    def places(self, ids):
        return ids % TABLE


class Modulo(GPT):
    def places(self, ids):
        return torch.arange(ids.shape[1]) % 8


class CutOff(GPT):
    def places(self, ids):
        return torch.arange(ids.shape[1]).clamp(max=7)


class Halved(GPT):
    def places(self, ids):
        return torch.arange(ids.shape[1]) // 2


class Detached(GPT):
    def entered(self, ids):
        return self.wte(ids).detach() + self.wpe(self.places(ids))


class LastBlockAlone(GPT):
    def forward(self, ids):
        x = self.entered(ids)
        for block in self.blocks:
            y = block(x)
        return self.head(self.ln_f(y))


class Inferring(GPT):
    """Computes in inference mode, so that no gradient tells which parts it uses."""

    @torch.inference_mode()
    def forward(self, ids):
        return super().forward(ids)


class InferringWithoutItsNorm(Inferring):
    @torch.inference_mode()
    def forward(self, ids):
        x = self.entered(ids)
        for block in self.blocks:
            x = block(x)
        return self.head(x)


class NoLastNorm(GPT):
    def forward(self, ids):
        x = self.entered(ids)
        for block in self.blocks:
            x = block(x)
        return self.head(x)


REACHES, APART, USED = "a position reaches attention", "no two places are one", "every part is used"


@pytest.mark.parametrize("model", [GPT, Inferring])
def test_a_healthy_model_breaks_none_of_them(model):
    report = gn.audit(model(), only=[REACHES, APART, USED])
    assert [f.verdict for f in report.findings] == ["pass"] * 3


@pytest.mark.parametrize(
    ("model", "law", "words"),
    [
        (Forgotten, REACHES, "wpe.weight is there, but"),
        (Zeros, REACHES, "reaches no block"),
        (OfIds, REACHES, "reaches no block"),
        (Modulo, APART, "taken modulo 8"),
        (CutOff, APART, "all tokens from 7 on"),
        (Halved, APART, "tokens 0 and 1 stand"),
        (Forgotten, USED, "depends on wpe.weight"),
        (Detached, USED, "depends on wte.weight"),
        (LastBlockAlone, USED, "blocks.0"),
        (NoLastNorm, USED, "depends on ln_f.weight, ln_f.bias"),
        (InferringWithoutItsNorm, USED, "no logit depends on ln_f.weight, ln_f.bias"),
    ],
)
def test_what_is_forgotten_is_named(model, law, words):
    """Order is seen in all of them: a causal mask alone tells it from the second layer on."""
    report = gn.audit(model())
    assert report[law].verdict == "FAIL"
    assert words in report[law].note
    assert report["order is seen"].verdict == "pass"


class FarAhead(GPT):
    """Its mask is right for 48 tokens alone, as one that was made for a shorter context."""

    def entered(self, ids):
        x = super().entered(ids)
        return torch.cat([x[:, :48], x[:, 48:] + x[:, -1:]], 1)


def test_a_whole_table_is_read_where_it_is_short():
    assert gn.audit(FarAhead(), only=["prefix = beginning"])["prefix = beginning"].verdict == "FAIL"


class Without(GPT):
    """Without positions on purpose: it has no part for them."""

    def __init__(self) -> None:
        super().__init__()
        del self.wpe

    def entered(self, ids):
        return self.wte(ids)


def test_a_decoder_that_has_no_part_for_positions_is_not_accused():
    """Kazemnejad et al. 2023: a decoder without positions is a model too."""
    found = gn.audit(Without(), only=[REACHES])[REACHES]
    assert found.verdict == "not applicable"
    assert "mask alone" in found.note


def verdicts(position):
    model = gn.DecoderOnly(vocab_size=40, d_model=32, n_layers=2, n_heads=4, position=position, max_positions=32)
    report = gn.audit(model, only=[REACHES, APART])
    return report[REACHES].verdict, report[APART].verdict


def test_encodings_of_every_kind_reach_attention():
    """Those that place no key do not, by design: none, and one that scales queries."""
    for position in gn.positions.names():
        reaches = "by design" if position in ("none", "log-scale") else "pass"
        at_input = gn.positions.encoding(position).acts == "input"
        assert verdicts(position) == (reaches, "pass" if at_input else "not applicable"), position


@pytest.mark.parametrize(
    ("mix", "reaches"), [(["log-scale", "none"], "by design"), (["rope", "log-scale"], "pass")], ids=str
)
def test_layers_that_place_no_key_are_not_accused_beside_others(mix, reaches):
    assert verdicts(mix)[0] == reaches


def test_experts_that_a_text_does_not_need_are_not_called_unused():
    class Experts(nn.Module):
        def __init__(self):
            super().__init__()
            self.experts = nn.ModuleList(nn.Linear(32, 32) for _ in range(8))

        def forward(self, x):
            return x + self.experts[0](x)

    model = GPT()
    model.blocks[1] = nn.Sequential(model.blocks[1], Experts())
    assert gn.audit(model, only=[USED])[USED].verdict == "pass"


class TwoEnds(GPT):
    """An actor and a critic; and an end for whole texts, which this call does not ask for."""

    def __init__(self) -> None:
        super().__init__()
        self.critic_mlp, self.cls_head = nn.Linear(32, 16), nn.Linear(32, 2)
        self.middle, self.last = nn.Linear(32, 8), nn.Linear(8, 1)

    def forward(self, ids):
        x = self.entered(ids)
        for block in self.blocks:
            x = block(x)
        x = self.ln_f(x)
        return self.head(x), {"value": [self.last(self.middle(x))]}


def test_outputs_beside_logits_are_a_use_and_heads_of_other_tasks_pass():
    assert gn.audit(TwoEnds(), only=[USED])[USED].verdict == "pass"


class ReZero(GPT):
    """Blocks that begin as the identity (Bachlechner et al. 2021, arXiv:2003.04887, equation 1)."""

    class Block(Block):
        def __init__(self, d: int, heads: int) -> None:
            super().__init__(d, heads)
            self.gate = nn.Parameter(torch.zeros(1))

        def forward(self, x):
            return x + self.gate * (super().forward(x) - x)

    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(ReZero.Block(32, 4) for _ in range(3))


class ForgottenBehindGates(ReZero):
    def entered(self, ids):
        return self.wte(ids)


def test_gates_that_begin_closed_hide_nothing():
    for law in (REACHES, USED):
        assert gn.audit(ReZero(), only=[law])[law].verdict == "pass"
        assert gn.audit(ForgottenBehindGates(), only=[law])[law].verdict == "FAIL"


class Seeing(GPT):
    """Takes images too, which a text alone does not need."""

    def __init__(self) -> None:
        super().__init__()
        self.eye = nn.Linear(3, 32)

    def forward(self, ids, images=None, targets=None, cache=None):
        x = self.entered(ids)
        if images is not None:
            x = x + self.eye(images)
        for block in self.blocks:
            x = block(x)
        return self.head(self.ln_f(x))


@pytest.mark.parametrize(
    ("name", "law_gives_it"),
    [
        ("targets", True),
        ("attention_mask", True),
        ("position_ids", True),
        ("past_key_values", True),
        ("token_type_ids", False),
        ("encoder_hidden_states", False),
        ("context", False),
        ("pixel_values", False),
    ],
)
def test_inputs_that_have_a_part_of_their_own(name, law_gives_it):
    assert bool(GIVEN.search(name)) is law_gives_it


def test_parts_for_what_the_audit_does_not_give_are_not_accused():
    found = gn.audit(Seeing(), only=[USED])[USED]
    assert found.verdict == "not applicable"
    assert "images" in found.note


class AddedBetweenBlocks(GPT):
    def forward(self, ids):
        x = self.wte(ids)
        for n, block in enumerate(self.blocks):
            x = block(x + self.wpe(self.places(ids)) if n else x)
        return self.head(self.ln_f(x))


def test_positions_that_are_added_between_blocks_are_not_accused():
    found = gn.audit(AddedBetweenBlocks(), only=[REACHES])[REACHES]
    assert found.verdict == "not applicable"
    assert "in between the blocks" in found.note


class ByName(GPT):
    """Blocks that are called by the names of their arguments, a mask before the vectors."""

    class Block(Block):
        def forward(self, mask, x):
            q, k, v = (y.unflatten(-1, (4, -1)).transpose(1, 2) for y in self.qkv(self.n1(x)).chunk(3, -1))
            y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask[:, None]).transpose(1, 2).flatten(2)
            return (x + self.o(y) + self.ffn(self.n2(x)),)

    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(ByName.Block(32, 4) for _ in range(3))

    def forward(self, ids):
        x = self.entered(ids)
        mask = torch.full((*ids.shape, ids.shape[1]), -torch.inf).triu(1)
        for block in self.blocks:
            (x,) = block(mask=mask, x=x)
        return self.head(self.ln_f(x))


class ForgottenByName(ByName):
    def entered(self, ids):
        return self.wte(ids)


class InTheLastByName(ByName):
    """Positions in the last block alone, so that what a block is given has to be turned to show them."""

    class Block(ByName.Block):
        last = False

        def forward(self, mask, x):
            return super().forward(
                mask, x + torch.arange(x.shape[1])[:, None] * torch.linspace(0, 1, 32) if self.last else x
            )

    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(InTheLastByName.Block(32, 4) for _ in range(3))
        self.blocks[2].last = True

    def entered(self, ids):
        return self.wte(ids) + 0 * self.wpe(self.places(ids))


def test_blocks_that_are_called_by_name_are_looked_into():
    assert gn.audit(ByName(), only=[REACHES])[REACHES].verdict == "pass"
    assert gn.audit(InTheLastByName(), only=[REACHES])[REACHES].verdict == "pass"
    assert gn.audit(ForgottenByName(), only=[REACHES])[REACHES].verdict == "FAIL"


class Shifted(GPT):
    """Half of each vector comes from the token before: alike at all places but the first, and no position is added."""

    def entered(self, ids):
        x = self.wte(ids)
        return torch.cat([x[..., :16], F.pad(x[:, :-1, 16:], (0, 0, 1, 0))], -1)


def test_tokens_that_met_before_the_first_block_are_not_taken_for_places():
    found = gn.audit(Shifted(), only=[APART])[APART]
    assert found.verdict == "not applicable"
    assert "have met" in found.note


@pytest.mark.parametrize("name", ["transformer.wpe.weight", "pos_emb.weight", "rope", "embed_positions.weight", "pe"])
def test_names_of_parts_for_positions(name):
    assert POSITIONAL.search(name)


@pytest.mark.parametrize(
    "name", ["decomposition.weight", "transpose", "exposed.bias", "properties", "post_norm.weight"]
)
def test_names_of_other_parts(name):
    assert not POSITIONAL.search(name)


class LeavesItsHead(GPT):
    """Gives vectors: its head is for whoever calls it, as in the Annotated Transformer."""

    def forward(self, ids):
        x = self.entered(ids)
        for block in self.blocks:
            x = block(x)
        return self.ln_f(x)


class LeavesMore(LeavesItsHead):
    def __init__(self):
        super().__init__()
        self.other = nn.Linear(32, 32)


def test_a_head_that_is_left_to_the_caller_is_no_idle_part():
    assert gn.audit(LeavesItsHead(), only="every part")["every part is used"].verdict == "pass"
    assert "other.weight, other.bias" in gn.audit(LeavesMore(), only="every part")["every part is used"].note
