"""Encoder-decoders that somebody hands over: their arguments are told apart however they are spelt, all functions read
one source, and tutorials' masks, which are made from the padding id, are not accused of counting slots."""

import pytest
import torch
from torch import nn
from translator import PAD, Attention, D, Translator, Unhiding, V, WrongAxis

import gnomon as gn
from gnomon.audit import Torch
from gnomon.audit.adapters.signature import kind
from gnomon.errors import BadValue

PADDING = ["left padding", "right padding", "interior padding", "masked tokens", "an empty row", "source padding"]


def named(arguments: str, base: type[nn.Module] = Translator) -> nn.Module:
    """A Translator whose forward takes these arguments, the source before the target."""
    first, second = arguments.split(", ")
    names: dict[str, object] = {"Base": base}
    body = f"    def forward(self, {arguments}, scale=1.0):\n        return Base.forward(self, {first}, {second})"
    exec(f"class Named(Base):\n{body}", names)
    return names["Named"]()


@pytest.mark.parametrize(
    "arguments",
    [
        "src, trg", "src, tgt", "source, target", "src_seq, trg_seq", "src_tokens, tgt_tokens",
        "src_token_ids, trg_token_ids", "source_ids, target_ids", "encoder_input, decoder_input",
        "enc_inputs, dec_inputs", "input_ids, decoder_input_ids", "inputs, targets", "sources, inputs",
        "srcSeq, tgtSeq", "src_token_ids_batch, trg_token_ids_batch", "input, target",
    ],
)  # fmt: skip
def test_a_source_and_a_target_are_recognised_however_they_are_spelt(arguments):
    target = Torch(named(arguments))
    assert target.architecture == "encoder-decoder"
    ids, source = target.ids(2, 4), target.ids(2, 6, stream=1)
    assert torch.equal(target.with_source(source).logits(ids), target.model(source, ids))


def test_a_target_may_come_first():
    class Turned(Translator):
        def forward(self, tgt, src):
            return super().forward(src, tgt)

    target = Torch(Turned())
    ids, source = target.ids(2, 4), target.ids(2, 6, stream=1)
    assert torch.equal(target.with_source(source).logits(ids), target.model(ids, source))


@pytest.mark.parametrize(
    "name",
    ["memory", "src_mask", "tgt_key_padding_mask", "labels", "past", "source_embeddings", "position_ids"],
)
def test_other_arguments_are_no_text(name):
    assert kind(name) == "other"


class Predicts(nn.Module):
    """A language model that wants what it is to predict, beside what it reads."""

    def __init__(self):
        super().__init__()
        self.table, self.head = nn.Embedding(V, D), nn.Linear(D, V)

    def forward(self, inputs, targets):
        logits = self.head(self.table(inputs).cumsum(1))
        return logits, nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten())


def test_targets_that_are_labels_are_no_target():
    target = Torch(Predicts())
    assert (target.architecture, target.can) == ("decoder-only", {"module"})
    assert target.logits(target.ids(2, 5)).shape == (2, 5, V)


def test_logits_may_have_their_rows_in_one():
    class Flat(Translator):
        def forward(self, src, trg):
            return super().forward(src, trg).flatten(0, 1)

    assert torch.equal(Torch(Flat()).logits(torch.full((2, 3), 5)), Torch(Translator()).logits(torch.full((2, 3), 5)))


# ------------------------------------------------------------------ one source


def told(model: nn.Module) -> Torch:
    return Torch(
        model,
        masked=lambda model, source, ids, mask: model.read(source, ids, source != PAD, mask),
        stepped=lambda model, state, source, ids: grown(model, state, source, ids),
        loss=lambda model, source, ids: model.loss(source, ids),
    )


def grown(model, state, source, ids):
    seen = ids if state is None else torch.cat([state, ids], 1)
    return model(source, seen)[:, -ids.shape[1] :], seen


def test_all_functions_read_the_source_that_plain_calls_read():
    target = told(Translator())
    ids = target.ids(2, 5)
    for asked in (target, target.with_source(target.ids(2, 7, stream=1))):
        want = asked.logits(ids)
        assert torch.allclose(asked.logits(ids, mask=torch.ones_like(ids).bool()), want, atol=1e-6)
        assert torch.allclose(asked.step(None, ids)[0], want, atol=1e-6)
        assert asked.loss(ids).dim() == 0
    report = gn.audit(target, only=["cached = full", "the source is seen through", *PADDING])
    assert report.failed == ()
    assert {report[law].verdict for law in ("cached = full", "the source is seen through the cache")} == {"pass"}
    assert report["right padding changes nothing"].verdict == "pass"


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"masked": lambda model, ids, mask: ids}, r"masked is given the source, too: .*model, source, ids, mask"),
        ({"stepped": lambda model, state, ids: ids}, r"stepped=lambda model, state, source, ids"),
        ({"loss": lambda model, ids: ids}, r"loss=lambda model, source, ids"),
    ],
)
def test_a_function_that_would_draw_a_source_of_its_own_is_refused(given, says):
    with pytest.raises(BadValue, match=says):
        Torch(Translator(), **given)


# ------------------------------------------------------------------ masks made from the padding id


def test_an_id_that_hides_itself_is_padding_and_is_not_drawn():
    target = Torch(Translator())
    assert (target.pad, target.special, target.hides) == (PAD, {PAD}, ({PAD}, {PAD}))
    assert "mask" in target.can
    assert Torch(Unhiding()).hides == ({PAD}, frozenset())
    assert "mask" not in Torch(Unhiding()).can


def by_id(model: nn.Module) -> Torch:
    """As its user tells it: the mask is what the padding id makes it."""
    return Torch(model, masked=lambda model, source, ids, mask: model(source, ids.masked_fill(~mask, PAD)))


@pytest.mark.parametrize("make", [Torch, told, by_id])
def test_a_right_translator_that_counts_slots_is_accused_of_nothing(make):
    report = gn.audit(make(Translator()), only=PADDING)
    assert report.failed == ()
    for side in ("left", "interior"):
        assert "nobody says that Translator is padded here" in report[f"{side} padding changes nothing"].note
    assert report["masked tokens get no gradient"].verdict == "pass"
    assert report["source padding on the right changes nothing"].verdict == "pass"


@pytest.mark.parametrize(
    ("make", "model", "says"),
    [
        (told, Unhiding, "the mask changes nothing"),
        (by_id, Unhiding, "padding is not masked out as a key"),
        (told, WrongAxis, "the mask lies along the queries"),
        (by_id, WrongAxis, "the mask lies along the queries"),
    ],
)
def test_padding_that_is_seen_is_told_by_what_hides_it_wrongly(make, model, says):
    report = gn.audit(make(model()), only=["left padding", "interior padding"])
    assert [says in found.note for found in report.failed] == [True, True], report


# ------------------------------------------------------------------ a source is no table of positions


def test_a_source_of_consecutive_ids_is_no_table_of_positions():
    target = Torch(Translator(), forward=lambda model, ids: model((torch.arange(5) + 2).expand(len(ids), -1), ids))
    assert target.limit is None or target.limit > V


def test_a_subclass_of_nn_transformer_with_its_own_forward_is_a_plain_module():
    class Mine(nn.Transformer):
        def __init__(self):
            super().__init__(D, 2, 1, 1, 32, dropout=0.0, batch_first=True)
            self.table, self.head = nn.Embedding(V, D), nn.Linear(D, V)
            del self.decoder
            self.decoder = nn.GRU(D, D, batch_first=True)

        def forward(self, src, tgt):
            memory = self.encoder(self.table(src)).mean(1, keepdim=True)
            return self.head(self.decoder(self.table(tgt) + memory)[0])

    target = gn.audit.target(Mine())
    assert (type(target), target.architecture) == (Torch, "encoder-decoder")
    assert gn.audit(target, only=["causality", "the source is seen"]).ok


class Tables(Translator):
    """Its tables say which id is padding; attention to the source may not be told."""

    def __init__(self, told=True):
        super().__init__()
        self.told = told
        self.source, self.target = nn.Embedding(V, D, padding_idx=PAD), nn.Embedding(V, D, padding_idx=PAD)

    def read(self, source, ids, source_real, real):
        return super().read(source, ids, source_real if self.told else torch.ones_like(source_real), real)


@pytest.mark.parametrize(("hides", "verdict"), [(True, "pass"), (False, "FAIL")])
def test_a_source_whose_table_pads_is_to_hide_what_the_target_hides(hides, verdict):
    report = gn.audit(Tables(hides), only=["source padding on the right"])
    assert report["source padding on the right changes nothing"].verdict == verdict


class HeadsAsTokens(Attention):
    """Two heads, put together without transposing them back."""

    def forward(self, x, y, visible):
        q, k, v = (part.unflatten(-1, (2, -1)).transpose(1, 2) for part in (self.q(x), self.k(y), self.v(y)))
        scores = (q @ k.mT / D**0.5).masked_fill(~visible[:, None], -1e9)
        return self.o((scores.softmax(-1) @ v).reshape(x.shape))


def test_heads_that_are_put_together_as_tokens_are_told_in_a_decoder_too():
    model = Translator()
    for block in model.decoder:
        block.own, block.cross = HeadsAsTokens(), HeadsAsTokens()
    assert "2 heads are put together as if they were tokens" in gn.audit(model, only="causality")["causality"].note


# ------------------------------------------------------------------ masks that are wanted


def masked(square, row, hidden, base=Translator):
    """A Translator that is handed its masks, of these shapes."""

    class Handed(base):
        def forward(self, src, trg, src_mask, trg_mask):
            real, seen = (~src_mask, ~trg_mask) if hidden else (src_mask, trg_mask)
            assert (real.dim(), seen.dim()) == (row, square)
            self.seen = seen[:, 0] if square == 4 else seen
            real = real.reshape(len(src), -1)
            return self.read(src, trg, real, torch.ones_like(trg).bool())

        def order(self, T):
            return torch.ones(T, T, dtype=torch.bool)

        def real_target(self, real):
            return self.seen

    return Handed()


@pytest.mark.parametrize("hidden", [False, True])
@pytest.mark.parametrize(("square", "row"), [(4, 4), (3, 3), (2, 2)])
def test_masks_that_a_forward_wants_are_given_as_it_wants_them(square, row, hidden):
    target = Torch(masked(square, row, hidden))
    assert target.architecture == "encoder-decoder"
    report = gn.audit(target, only=["causality", "the past is seen", "the source is seen", "batch mates"])
    assert report.failed == ()
    assert report["causality"].verdict == "pass"


def test_a_mask_that_does_nothing_is_not_guessed():
    class Deaf(Translator):
        def forward(self, src, trg, src_mask, trg_mask):
            return super().forward(src, trg)

    with pytest.raises(BadValue, match=r"forward\(src, trg, src_mask, trg_mask\) wants more than ids"):
        Torch(Deaf())
