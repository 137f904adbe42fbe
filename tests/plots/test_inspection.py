"""What an inspection shows is what the model computes."""

import pytest
import torch

import gnomon as gn
from gnomon import plots
from gnomon.data import Tokenizer


@pytest.fixture(params=["sinusoidal", "learned", "rope", "alibi", "none"])
def seen_and_model(request, model):
    m = model(position=request.param, max_positions=32)
    return plots.inspect(m, [101, 75, 208, 102]), m


def test_ids_become_rows_of_the_table_plus_position(seen_and_model):
    seen, model = seen_and_model
    rows = model.input.tokens.weight[[101, 75, 208, 102]].detach() * model.input.tokens.scale
    torch.testing.assert_close(seen.vectors, rows)
    if model.input.position is None:
        assert seen.position is None
        torch.testing.assert_close(seen.hidden[0], seen.vectors)
    else:
        torch.testing.assert_close(seen.position, model.input.position.vectors(gn.Layout.dense(1, 4))[0].detach())
        torch.testing.assert_close(seen.hidden[0], seen.vectors + seen.position)


def test_attention_has_a_row_of_shares_per_query_and_head_and_looks_at_no_future(seen_and_model):
    seen, model = seen_and_model
    assert len(seen.attention) == model.config.n_layers
    for weights in seen.attention:
        assert weights.shape == (4, 4, 4)
        torch.testing.assert_close(weights.sum(-1), torch.ones(4, 4))
        assert float(weights.triu(1).abs().max()) == 0.0


def test_the_output_is_the_models_and_the_guesses_its_best(seen_and_model):
    seen, model = seen_and_model
    with torch.no_grad():
        logits = model(torch.tensor([seen.ids]))[0, -1]
    torch.testing.assert_close(seen.logits, logits)
    p = logits.softmax(-1)
    best = p.argsort(descending=True)[: len(seen.guesses)].tolist()
    assert [guess.id for guess in seen.guesses] == best
    assert [guess.probability for guess in seen.guesses] == pytest.approx([float(p[i]) for i in best])


def test_the_first_layers_attention_is_softmax_of_scaled_scores(model):
    """Written out by hand for one head: softmax(q k^T / sqrt(C)) over what came before."""
    m = model(position="none", n_kv_heads=4)
    seen, block = plots.inspect(m, [1, 2, 3]), m.stack.blocks[0]
    x = block.around_attention.norm(seen.hidden[0])
    q, k = (w(x)[:, 32:64] for w in (block.attention.q, block.attention.k))  # head 2 of width 32
    s = (q @ k.T / 32**0.5).masked_fill(torch.ones(3, 3).triu(1).bool(), float("-inf"))
    torch.testing.assert_close(seen.attention[0][1], s.softmax(-1).detach())


def test_what_a_query_looks_at_is_its_largest_weights(model):
    seen = plots.inspect(model(), "the dog")
    weights = seen.attention[1].mean(0)[-1]
    looks = seen.looks(1, top=3)
    assert [key for key, _ in looks] == weights.argsort(descending=True)[:3].tolist()
    assert sum(weight for _, weight in seen.looks(1, top=99)) == pytest.approx(1.0)


def test_a_text_is_read_by_the_models_tokenizer(model):
    seen = plots.inspect(model(), "añ b")
    assert seen.ids == list("añ b".encode())
    assert seen.tokens == ["a", "\\xc3", "\\xb1", "␣", "b"]


def test_ids_without_a_tokenizer_are_their_own_names(model):
    m = model()
    m.tokenizer = None
    seen = plots.inspect(m, [300, 7])
    assert seen.tokens == ["300", "7"]
    assert all(guess.token == str(guess.id) for guess in seen.guesses)


def test_looking_changes_nothing(model):
    m = model(dropout=0.5).train()
    before = {name: x.clone() for name, x in m.state_dict().items()}
    first, second = plots.inspect(m, "abc"), plots.inspect(m, "abc")
    assert torch.equal(first.logits, second.logits)  # without dropout
    assert m.training
    assert all(torch.equal(x, before[name]) for name, x in m.state_dict().items())
    assert all(p.grad is None for p in m.parameters())


def test_a_mix_of_encodings_is_named_in_the_order_of_layers(model):
    seen = plots.inspect(model(position=["rope", "none"]), "abc")
    assert [encoding.name for encoding in seen.encodings] == ["rope", "none"]


def test_plain_data_has_the_shapes_and_the_numbers(model):
    seen = plots.inspect(model(position="sinusoidal"), "abc")
    data = seen.to_dict()
    assert data["shapes"] == {
        "ids": [1, 3],
        "vectors": [1, 3, 128],
        "position": [1, 3, 128],
        "attention": [[1, 4, 3, 3]] * 2,
        "output": [1, 3, 128],
        "logits": [1, 3, 512],
    }
    assert data["input"] == seen.hidden[0].tolist()


@pytest.mark.parametrize(
    ("changes", "text", "message"),
    [
        ({}, "", "nothing to inspect"),
        ({}, [], "nothing to inspect"),
        ({}, [512], r"token id 512 .* outside the vocabulary of 512"),
        ({"position": "learned", "max_positions": 4}, "hello", "hold 4 rows"),
    ],
)
def test_what_cannot_be_read_is_said(model, changes, text, message):
    with pytest.raises(gn.BadValue, match=message):
        plots.inspect(model(**changes), text)


def test_a_text_for_a_model_without_a_tokenizer_is_refused(model):
    m = model()
    m.tokenizer = None
    with pytest.raises(gn.BadValue, match="no tokenizer"):
        plots.inspect(m, "abc")


@pytest.mark.slow
def test_tokens_and_ids_are_written_as_they_are_in_every_language(model):
    m = model(vocab_size=4000)
    m.tokenizer = None
    shown = {}
    for lang in ("en", "es"):
        axes = plots.inspect(m, [1234, 3999]).picture(lang).figure.axes[0]
        shown[lang] = [label.get_text() for label in axes.get_xticklabels()]
    assert shown["en"] == shown["es"] == ["1234", "3999"]


def test_of_many_layers_and_heads_the_first_and_last_are_drawn(model):
    figure = plots.inspect(model(n_heads=8, d_model=64), "ab").picture().figure
    titles = {axes.get_title(loc="left") for axes in figure.axes}
    assert {"head 1", "head 8"} <= titles
    assert len([title for title in titles if title.startswith("head")]) == 4


def test_the_picture_shows_the_inspections_numbers(model):
    seen = plots.inspect(model(position="sinusoidal"), "abc")
    images = [axes.images[0].get_array() for axes in seen.picture().figure.axes if axes.images]
    for shown, want in zip(images, (seen.vectors, seen.position, seen.hidden[0]), strict=False):
        torch.testing.assert_close(torch.as_tensor(shown), want.T)
    torch.testing.assert_close(torch.as_tensor(images[3]), seen.attention[0][0])


# ------------------------------------------------------------------ encoders, and encoder-decoders


SMALL = {"vocab_size": 257, "d_model": 16, "n_layers": 2, "n_heads": 2}


def encoder(**changes):
    torch.manual_seed(0)
    model = gn.EncoderOnly(**SMALL, **changes).eval()
    model.tokenizer = Tokenizer.bytes()
    return model


def translator(**changes):
    torch.manual_seed(0)
    model = gn.EncoderDecoder(**SMALL, **changes).eval()
    model.tokenizer = Tokenizer.bytes()
    return model


@pytest.mark.parametrize(
    ("head", "answer"),
    [
        ({"head": "tokens"}, "each"),
        ({"head": "masked"}, "each"),
        ({"head": "labels", "n_classes": 3}, "each"),
        ({"head": "classes", "n_classes": 3}, "classes"),
        ({"head": "pooled"}, "vector"),
    ],
)
def test_an_encoder_says_what_its_head_says(head, answer):
    model = encoder(**head)
    model.labels = ("a", "b", "c") if "n_classes" in head else None
    seen = plots.inspect(model, "gato")
    with torch.no_grad():
        output = model(torch.tensor([seen.ids]))[0]
    assert seen.answer == answer
    torch.testing.assert_close(seen.vector if answer == "vector" else seen.logits, output)
    if answer == "each":
        assert [guess.id for guess in seen.guesses] == output.argmax(-1).tolist()
    if model.labels:
        assert all(guess.token == model.labels[guess.id] for guess in seen.guesses)
    assert all(float(a.triu(1).sum()) > 0 for a in seen.attention)  # both sides are seen


def test_a_norm_after_the_sum_is_named_and_is_what_the_first_block_reads():
    model = encoder(position="learned", max_positions=8, input_norm="layernorm")
    seen = plots.inspect(model, [1, 2, 3])
    assert seen.enters == "input_normed"
    torch.testing.assert_close(seen.hidden[0], model.input.norm(seen.vectors + seen.position).detach())


@pytest.mark.parametrize("own", [{}, {"source_vocab_size": 300}])
def test_an_encoder_decoder_shows_the_numbers_of_both_stacks(own):
    model = translator(position="rope", **own)
    seen = plots.inspect(model, [5, 6, 7, 8], target=[9, 10])
    source, target = torch.tensor([[5, 6, 7, 8]]), torch.tensor([[256, 9, 10]])
    with torch.no_grad():
        memory, logits = model.encode(source), model(source, target)[0, -1]
    assert (seen.ids, seen.source.ids) == (target[0].tolist(), source[0].tolist())
    torch.testing.assert_close(seen.logits, logits)
    torch.testing.assert_close(model.encoder.norm(seen.source.hidden[-1]), memory.states[0], atol=1e-5, rtol=1e-5)
    assert [a.shape for a in seen.cross] == [(2, 3, 4)] * 2
    for weights in (*seen.cross, *seen.source.attention):
        torch.testing.assert_close(weights.sum(-1), torch.ones(weights.shape[:2]))


def test_a_source_with_positions_of_its_own_shows_those():
    model = translator(position="learned", max_positions=8, source_positions=True)
    seen = plots.inspect(model, [5, 6], target=[9])
    assert seen.source.encodings == [model.source_input.position]
    assert seen.encodings == [model.input.position]
    own = model.source_input.position.vectors(gn.Layout.dense(1, 2))[0]
    torch.testing.assert_close(seen.source.position, own.detach())


def test_what_is_written_by_default_is_what_the_model_writes():
    model = translator()
    written = model.generate(source=[[5, 6, 7]], max_new_tokens=16)[0].ids
    assert plots.inspect(model, [5, 6, 7]).ids == [256, *(i for i in written if i != 256)]


def test_a_target_without_a_source_is_refused(model):
    with pytest.raises(gn.BadValue, match="a target goes with a source"):
        plots.inspect(model(), [1, 2], target=[3])


@pytest.mark.slow
@pytest.mark.parametrize("lang", ["en", "es", "pt"])
def test_every_architecture_has_its_picture(lang):
    titles = {"en": "cross-attention", "es": "atención cruzada", "pt": "atenção cruzada"}
    both = plots.inspect(translator(position="sinusoidal"), "ab", target="c").picture(lang)
    assert any(sub._suptitle and titles[lang] in sub._suptitle.get_text() for sub in _areas(both.figure))
    vector = plots.inspect(encoder(head="pooled"), "ab").picture(lang)
    assert len(vector.figure.axes[-1].patches) == SMALL["d_model"]


def _areas(figure):
    for sub in figure.subfigs:
        yield sub
        yield from _areas(sub)
