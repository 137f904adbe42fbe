"""Hidden tokens: 15 %, of these 80/10/10, drawn from the seed and the step, and gaps filled in a text."""

import numpy as np
import pytest
import torch

import gnomon as gn
from gnomon.data import Corpus, Tokenizer, TokenStore
from gnomon.tasks.masked import Guess, Masked, MaskedKind, encode_with_gaps, fill, fill_gaps
from gnomon.train import TrainConfig
from gnomon.train.loss import IGNORE

TEXTS = [
    f"import {name}\nfor i in range({i}):\n    print(i)\n" * 8 for i, name in enumerate(["os", "re", "sys", "ast"])
]
CONFIG = TrainConfig(batch_size=16, length=40, eval_windows=30)


@pytest.fixture(scope="module")
def tokenizer():
    return Tokenizer.bytes().with_mask()


@pytest.fixture(scope="module")
def task(tokenizer):
    store = TokenStore.open(Corpus.from_texts(TEXTS), tokenizer)
    return Masked(store, store, tokenizer, CONFIG)


@pytest.fixture
def model(tokenizer):
    model = gn.EncoderOnly(tokenizer.vocab_size, 32, 1, 2, causal=False, head="masked", init_std=0.1)
    model.tokenizer = tokenizer
    return model


def test_a_mask_is_a_control_token_after_all_others():
    plain = Tokenizer.bytes()
    masked = plain.with_mask()
    assert (plain.mask_id, masked.mask_id) == (None, 257)
    assert (masked.vocab_size, masked.eos_id) == (258, plain.eos_id)
    assert masked.mask_id in masked.control_ids
    assert masked.encode("[MASK] and text") == plain.encode("[MASK] and text")  # text is text
    assert masked.encode("a[MASK]", special=True) == [97, 257]
    assert masked.decode([97, 257]) == "a"
    assert masked.with_mask() is masked


def test_a_tokenizer_keeps_its_mask_on_disk(tmp_path, tokenizer):
    tokenizer.save(tmp_path)
    again = Tokenizer.load(tmp_path)
    assert (again.mask_id, again.eos_id, again.sha256) == (tokenizer.mask_id, tokenizer.eos_id, tokenizer.sha256)


def test_the_shares_are_those_of_bert(task, tokenizer):
    """Devlin et al. 2019, section 3.1: 15 % are asked for; of these 80 % are masked, 10 % another token, 10 % stay."""
    ids = np.random.default_rng(0).integers(256, size=(2000, 40))
    hidden = task.hidden(ids, np.random.default_rng(1))
    asked = (hidden.labels != IGNORE).numpy()
    assert (asked.sum(1) == 6).all()  # 15 % of 40
    shown, real = hidden.ids.numpy()[asked], ids[asked]
    assert (hidden.labels.numpy()[asked] == real).all()
    assert (hidden.ids.numpy()[~asked] == ids[~asked]).all()
    assert (shown == tokenizer.mask_id).mean() == pytest.approx(0.8, abs=0.015)
    assert (shown == real).mean() == pytest.approx(0.1 + 0.1 / 256, abs=0.01)


def test_ends_of_documents_are_never_asked_for_and_never_put_in(task, tokenizer):
    ids = np.full((500, 40), tokenizer.eos_id)
    ids[:, 5] = 65
    hidden = task.hidden(ids, np.random.default_rng(0))
    assert (hidden.labels != IGNORE).sum(1).tolist() == [1] * 500
    assert (hidden.labels[:, 5] == 65).all()
    assert set(hidden.ids[:, :5].flatten().tolist()) == {tokenizer.eos_id}


def test_masks_are_drawn_from_the_seed_and_the_number(task, tokenizer):
    first, again, other = task.batch(5), task.batch(5), task.batch(6)
    assert torch.equal(first.ids, again.ids)
    assert torch.equal(first.labels, again.labels)
    assert not torch.equal(first.labels, other.labels)
    reseeded = Masked(task.training, task.training, tokenizer, TrainConfig(batch_size=16, length=40, seed=1))
    assert not torch.equal(reseeded.batch(5).labels, first.labels)
    assert torch.equal(
        reseeded.held_out.ids[:5],
        Masked(task.training, task.training, tokenizer, TrainConfig(length=40)).held_out.ids[:5],
    )


@pytest.mark.slow
def test_it_is_learned_and_gaps_are_filled(task, model):
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
    before = task.evaluate(model)
    for number in range(120):
        loss = task.batch(number).loss(model).mean
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    after = task.evaluate(model)
    assert after.loss < before.loss / 2
    assert after.measures["accuracy"].value > 0.5
    [guesses] = fill(model, "impor[MASK] os\nfor i in range(1):\n", 3)
    assert guesses[0].text == "t"
    assert guesses == sorted(guesses, key=lambda guess: -guess.probability)
    assert len(task.samples(model)) == 4


def test_all_guesses_for_a_gap_are_a_distribution_over_text(model, tokenizer):
    gaps = fill(model, "[MASK]a[MASK]", 10_000)
    assert len(gaps) == 2
    for guesses in gaps:
        assert sum(guess.probability for guess in guesses) == pytest.approx(1)
        assert not {guess.id for guess in guesses} & tokenizer.control_ids


def test_a_blank_before_a_gap_belongs_to_it_where_words_begin_with_blanks(tokenizer):
    bpe = Tokenizer.bpe(["for i in range(i): in range"] * 30, 270).with_mask()
    assert encode_with_gaps(bpe, "for i in [MASK](i)") == [*bpe.encode("for i in"), bpe.mask_id, *bpe.encode("(i)")]
    assert encode_with_gaps(tokenizer, "a [MASK]b") == [97, 32, 257, 98]


@pytest.mark.parametrize(("guess", "expected"), [(" x", "in x(1)"), ("x", "in x(1)"), ("\n", "in \n(1)")])
def test_a_filled_gap_has_one_blank(guess, expected):
    assert fill_gaps("in [MASK](1)", [Guess("", 0, 1.0, guess)]) == expected


def test_what_cannot_be_filled_is_named(model):
    with pytest.raises(gn.BadValue, match="there is no gap"):
        fill(model, "no gap")
    with pytest.raises(
        gn.BadValue, match="fills no gaps, it is decoder-only .*: take one that `gnomon train --task masked` made"
    ):
        fill(gn.DecoderOnly(258, 16, 1, 2), "[MASK]")
    model.tokenizer = Tokenizer.bytes()
    with pytest.raises(gn.BadValue, match="has no mask"):
        fill(model, "[MASK]")


def test_what_cannot_be_learned_is_named(task, tokenizer):
    with pytest.raises(gn.BadValue, match="no mask: take tokenizer.with_mask"):
        Masked(task.training, task.training, Tokenizer.bytes(), CONFIG)
    short = TokenStore.open(Corpus.from_texts(["short"]), tokenizer)
    with pytest.raises(gn.BadInput, match="of what is held out for evaluation, the text has 6 tokens"):
        Masked(task.training, short, tokenizer, CONFIG)
    pooled = gn.EncoderOnly(258, 16, 1, 2, causal=False, head="pooled")
    with pytest.raises(gn.BadValue, match="head of masked or tokens; this one has pooled"):
        task.check(pooled, CONFIG)


def test_a_model_with_another_head_is_given_one_for_gaps():
    sizes = {
        "architecture": "encoder-only",
        "vocab_size": 258,
        "d_model": 16,
        "n_layers": 1,
        "n_heads": 2,
        "causal": False,
    }
    for head, expected in (("pooled", "masked"), ("masked", "masked"), ("tokens", "tokens")):
        config = gn.ModelConfig.from_dict({**sizes, "head": head})
        assert MaskedKind().new_model(config).config.head == expected


def test_the_kind_gives_every_tokenizer_a_mask():
    assert MaskedKind().vocabulary(Tokenizer.bytes()).mask_id == 257
