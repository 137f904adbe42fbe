"""Who bit whom: without position a bidirectional stack cannot tell, in any language."""

import pytest
import torch

import gnomon as gn
from gnomon import plots
from gnomon.glossary import LANGUAGES
from gnomon.plots.word_order import sentence, stack

SENTENCES = {
    "en": ("the dog bit the man", "the man bit the dog"),
    "es": ("el perro mordió al hombre", "el hombre mordió al perro"),
    "pt": ("o cachorro mordeu o homem", "o homem mordeu o cachorro"),
}


@pytest.fixture(scope="module", params=LANGUAGES)
def shown(request):
    return plots.order(request.param)


def test_the_sentences_are_the_courses(shown):
    assert (shown.a.text, shown.b.text) == SENTENCES[shown.lang]
    assert bytes(shown.a.ids).decode() == shown.a.text
    assert bytes(shown.b.ids).decode() == shown.b.text


def test_spans_of_several_tokens_change_places_and_nothing_else(shown):
    assert [shown.a.ids[place] for place in shown.back] == shown.b.ids
    assert sorted(shown.back) == list(range(len(shown.a.ids)))
    one, other = shown.swapped
    assert all(shown.a.spans[run.start].stop - shown.a.spans[run.start].start > 1 for run in (one, other))
    assert (shown.b.words[one], shown.b.words[other]) == (shown.a.words[other], shown.a.words[one])


def test_without_position_everything_permutes_and_the_mean_does_not_move(shown):
    (off,) = (c for c in shown.comparisons if c.position == "none")
    assert off.scores < 1e-12  # float64: sums in another order differ in their last digits
    assert off.outputs < 1e-12
    assert off.pooled < 1e-12


def test_with_any_position_scores_outputs_and_mean_tell_the_sentences_apart(shown):
    on = [c for c in shown.comparisons if c.position != "none"]
    assert [c.position for c in on] == ["sinusoidal", "learned", "rope", "alibi", "t5"]
    for c in on:
        assert min(c.scores, c.outputs, c.pooled) > 1e-3, c.position


def test_a_causal_stack_of_two_layers_sees_order_without_position(shown):
    """One layer sees a bag of tokens (Kazemnejad et al. 2023: depth lets a causal stack find positions)."""
    assert shown.causal[1] < 1e-12
    assert min(shown.causal[2], shown.causal[3]) > 1e-2


@pytest.mark.parametrize("seed", [1, 2])
def test_it_holds_for_other_weights_and_depths(seed):
    shown = plots.order("en", ("rope",), seed=seed, layers=4)
    off, on = shown.comparisons
    assert max(off.scores, off.outputs, off.pooled) < 1e-12
    assert min(on.scores, on.outputs, on.pooled) > 1e-3


def test_any_permutation_commutes_with_a_stack_without_position():
    """f(Px) = P f(x), checked on the model itself, not only on the swap of two words."""
    ids = torch.tensor([sentence(["o", "cachorro"]).ids])
    P = torch.randperm(ids.shape[1], generator=torch.Generator().manual_seed(3))
    with torch.no_grad():
        blind, seeing = (stack(name, 0, 2, causal=False) for name in ("none", "rope"))
        torch.testing.assert_close(blind.hidden(ids[:, P]), blind.hidden(ids)[:, P], rtol=0, atol=1e-12)
        assert (seeing.hidden(ids[:, P]) - seeing.hidden(ids)[:, P]).abs().max() > 0.1


def test_scores_are_those_whose_softmax_is_the_attention():
    from gnomon.plots.word_order import _first_scores

    model = stack("alibi", 0, 1, causal=False)
    x, trace = torch.tensor([[1, 2, 3]]), gn.Trace()
    with torch.no_grad():
        model(x, trace=trace)
        torch.testing.assert_close(_first_scores(model, x).softmax(-1), trace.attention[0])


def test_the_picture_has_a_blank_difference_without_position_and_none_with_it():
    figure = plots.order("es", ("rope",)).picture().figure
    images = [axes.images[0].get_array() for axes in figure.axes if axes.images]
    assert float(images[2].max()) < 1e-12
    assert float(images[5].max()) > 0.01
    with pytest.raises(gn.BadValue, match="'t5' was not compared"):
        plots.order("es", ("rope",)).picture("t5")


def test_plain_data_tells_it_all():
    data = plots.order("pt", ("alibi",)).to_dict()
    assert data["a"]["text"] == SENTENCES["pt"][0]
    assert [row["position"] for row in data["bidirectional"]] == ["none", "alibi"]
    assert [row["layers"] for row in data["causal_without_position"]] == [1, 2, 3]


def test_a_stack_has_layers():
    with pytest.raises(gn.BadValue, match="at least one layer"):
        plots.order(layers=0)


# ------------------------------------------------------------------ sentences of one's own


@pytest.mark.parametrize(
    ("a", "b", "runs"),
    [
        ("Ann saw Bob", "Bob saw Ann", ("Ann", "Bob")),
        ("the big dog bit the man", "the man bit the big dog", ("big dog", "man")),
        ("una niña ve al gato", "una gato ve al niña", ("niña", "gato")),
        ("a b", "b a", ("a", "b")),
        ("a b c d", "b a d c", None),
    ],
)
def test_the_runs_of_words_that_change_places_are_found(a, b, runs):
    shown = plots.order(encodings=("rope",), sentences=(a, b))
    found = shown.swapped and tuple(" ".join(shown.a.words[run]) for run in shown.swapped)
    assert found == runs
    assert [shown.a.ids[place] for place in shown.back] == shown.b.ids
    off, on = shown.comparisons
    assert max(off.scores, off.outputs, off.pooled) < 1e-12
    assert on.outputs > 1e-3


def test_a_sentence_may_be_longer_than_the_own_ones():
    a, b = " ".join("abcdefghijklmnopqrstuvwxyz" * 2), " ".join("zbcdefghijklmnopqrstuvwxya" * 2)
    shown = plots.order(encodings=("learned",), sentences=(a, b), layers=1)
    assert len(shown.a.ids) > 64
    assert shown.comparisons[0].outputs < 1e-12 < shown.comparisons[1].outputs


@pytest.mark.parametrize(
    ("pair", "message"),
    [
        (("a dog", "a cat"), r"only in the first: 'dog'; only in the second: 'cat'"),
        (("a dog", "a dog"), "are the same"),
        (("", ""), "are the same"),
        (("a b", "b a a"), "only in the first: nothing; only in the second: 'a'"),
        (("a b",), "two sentences"),
        ((1, 2), "two sentences"),
        (("x" * 500 + " y", "y " + "x" * 500), "at most 400 tokens"),
    ],
)
def test_sentences_that_differ_in_more_than_order_are_refused(pair, message):
    with pytest.raises(gn.BadValue, match=message):
        plots.order(sentences=pair)


def test_without_any_encoding_there_is_one_row():
    figure = plots.order(encodings=("none",)).picture("none").figure
    assert len([axes for axes in figure.axes if axes.images and axes.get_title(loc="left")]) == 3
