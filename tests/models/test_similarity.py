"""What is near in a model's own vectors."""

import math

import pytest
import torch

import gnomon as gn
from gnomon.data import Tokenizer
from gnomon.models.similarity import (
    nearest,
    neighbors,
    plane,
    printable_tokens,
    sentence_vectors,
    token_vectors,
    word_ids,
)

SIZES = {"d_model": 8, "n_layers": 1, "n_heads": 2}
ALL = {
    "decoder": lambda v: gn.DecoderOnly(v, **SIZES),
    "encoder": lambda v: gn.EncoderOnly(v, **SIZES, causal=False),
    "encoder with classes": lambda v: gn.EncoderOnly(
        v, **SIZES, causal=False, head="classes", n_classes=2, pooler=True
    ),
    "encoder-decoder": lambda v: gn.EncoderDecoder(v, **SIZES),
}


@pytest.fixture(params=ALL)
def model(request):
    model = ALL[request.param](257)
    model.tokenizer = Tokenizer.bytes()
    return model.eval()


def test_the_nearest_have_the_largest_cosines(model):
    table = token_vectors(model)
    found = neighbors(model, "a", 5)
    others = [i for i in range(128) if i != 97]  # bytes that are characters by themselves
    cosines = [float(torch.cosine_similarity(table[97], table[i], 0)) for i in others]
    assert [n.cosine for n in found] == pytest.approx(sorted(cosines, reverse=True)[:5], abs=1e-6)
    assert [n.place for n in found] == [others[cosines.index(c)] for c in sorted(cosines, reverse=True)[:5]]
    assert found[0].text == model.tokenizer.tokens([found[0].place])[0]


def test_a_token_put_beside_another_is_its_nearest(model):
    with torch.no_grad():
        model.input.tokens.weight[98] = 3 * model.input.tokens.weight[97]
    assert neighbors(model, "a", 1)[0][:2] == ("b", 98)
    assert neighbors(model, "a", 1)[0].cosine == pytest.approx(1)


def test_a_sentence_is_itself_and_no_padding(model):
    """The vector of a text is the same whether it is read alone or beside longer ones."""
    texts = ["short", "a much longer sentence than that", "x"]
    together = sentence_vectors(model, texts)
    assert together.shape == (3, 8)
    for text, vector in zip(texts, together, strict=True):
        torch.testing.assert_close(sentence_vectors(model, [text])[0], vector, atol=1e-5, rtol=1e-4)


def test_vectors_have_length_one_where_it_is_asked_for(model):
    texts = ["one", "another"]
    vectors, units = sentence_vectors(model, texts), sentence_vectors(model, texts, unit=True)
    torch.testing.assert_close(units.norm(dim=1), torch.ones(2))
    torch.testing.assert_close(units * vectors.norm(dim=1, keepdim=True), vectors)


def test_an_encoder_pools_as_its_head_does():
    model = ALL["encoder with classes"](257)
    model.tokenizer = Tokenizer.bytes()
    ids = torch.tensor([list(b"text")])
    with torch.no_grad():
        expected = torch.tanh(model.head.pooler(model.encode(ids).states.mean(1)))
    torch.testing.assert_close(sentence_vectors(model, ["text"]), expected)


def test_nearest_is_by_angle_not_by_length():
    vectors = torch.tensor([[9.0, 9.0], [0.1, 0.0], [-5.0, 0.0], [0.0, 0.0]])
    assert nearest(torch.tensor([2.0, 0.0]), vectors, 4) == [
        (1, 1.0),
        (0, pytest.approx(math.sqrt(0.5))),
        (3, 0.0),
        (2, -1.0),
    ]


def test_a_map_keeps_what_lies_in_a_plane():
    """Unit vectors in a plane of a larger space: distances on the map are those in space, and nothing is lost."""
    angles = torch.tensor([0.0, 0.4, 1.1, 2.0, 4.0], dtype=torch.float64)
    turned, _ = torch.linalg.qr(torch.randn(7, 7, dtype=torch.float64))
    vectors = torch.stack([angles.cos(), angles.sin()], 1) @ turned[:2]
    places, shares = plane(vectors * torch.rand(5, 1, dtype=torch.float64).add(0.5))  # lengths do not matter
    torch.testing.assert_close(torch.cdist(places, places), torch.cdist(vectors, vectors))
    assert float(shares.sum()) == pytest.approx(1)
    assert shares[0] >= shares[1]
    assert places.mean(0).abs().max() < 1e-12


def test_a_map_does_not_depend_on_the_signs_a_decomposition_chooses(monkeypatch):
    vectors = torch.randn(20, 6)
    places, _ = plane(vectors)
    svd = torch.linalg.svd

    def flipped(x, full_matrices):
        u, s, v = svd(x, full_matrices=full_matrices)
        return -u, s, -v

    monkeypatch.setattr(torch.linalg, "svd", flipped)
    torch.testing.assert_close(plane(vectors)[0], places)


def test_a_map_of_two_is_refused_and_of_one_direction_is_flat():
    with pytest.raises(gn.BadValue, match="at least three vectors, got 2"):
        plane(torch.randn(2, 4))
    places, shares = plane(torch.tensor([[1.0], [-1.0], [1.0]]))
    assert places.shape == (3, 2)
    assert shares.tolist() == pytest.approx([1, 0])
    assert plane(torch.ones(3, 4))[1].tolist() == [0, 0]  # all alike: there is nothing to show


def test_words_are_found_with_the_blank_they_have_in_a_text():
    model = gn.DecoderOnly(300, **SIZES)
    model.tokenizer = Tokenizer.bpe(["the sun the moon"] * 50, 300)
    assert model.tokenizer.tokens(word_ids(model, "moon")) == ["␣moon"]


def test_a_word_of_several_tokens_is_their_mean_and_they_are_not_its_neighbours():
    model = gn.DecoderOnly(300, **SIZES)
    model.tokenizer = Tokenizer.bpe(["the sun the moon"] * 50, 300)
    ids = model.tokenizer.encode("moons")
    assert len(ids) > 1
    assert word_ids(model, "moons") == ids
    found = neighbors(model, "moons", 300)
    table = token_vectors(model)
    assert not {n.place for n in found} & set(ids)
    cosines = torch.cosine_similarity(table[ids].mean(0), table[[n.place for n in found]])
    assert [n.cosine for n in found] == pytest.approx(cosines.tolist(), abs=1e-6)


@pytest.mark.parametrize("word", ["z", "az", "", " "])
def test_a_word_that_cannot_be_read_is_refused(word):
    model = gn.DecoderOnly(10, **SIZES)
    model.tokenizer = Tokenizer.characters(["abc"])
    with pytest.raises(gn.BadValue, match=f"cannot read '{word}'"):
        word_ids(model, word)


def test_lone_bytes_and_control_tokens_are_no_words():
    assert printable_tokens(Tokenizer.bytes()) == list(range(128))


def test_what_cannot_be_read_is_named(model):
    with pytest.raises(gn.BadValue, match="text 2 has no tokens"):
        sentence_vectors(model, ["a", ""])
    model.tokenizer = None
    with pytest.raises(gn.BadValue, match="no tokenizer"):
        neighbors(model, "a")
