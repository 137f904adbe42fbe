"""Sources: an encoder-decoder reads each once, whatever its length, and writes as a decoder does."""

import pytest
import torch

import gnomon as gn
from gnomon.data import Tokenizer
from gnomon.errors import BadValue
from gnomon.generate import Beam, Contrastive, DiverseBeam, Greedy, Lookup, Sample, generate, stream

SOURCES = [[3, 1, 4, 1, 5], [9, 2], [6, 5, 3, 5], [8]]
STARTS = [[1], [2, 3], [4], [5, 6, 7]]
STRATEGIES = [Greedy(), Sample(1.2), Beam(3), DiverseBeam(4, 2), Contrastive(), Lookup(Sample(), ngram=1)]


def ids_of(out):
    return [g.ids for g in out]


@torch.no_grad()
def by_hand(model, source, start, n):
    """Greedy tokens without a cache and without a batch."""
    text = list(start)
    for _ in range(n):
        text.append(int(model(torch.tensor([source]), torch.tensor([text]))[0, -1].argmax()))
    return text[len(start) :]


@pytest.mark.filterwarnings("ignore:a bidirectional stack without position")
@pytest.mark.parametrize("position", [n for n in gn.positions.names() if not gn.positions.encoding(n).one_sided])
def test_greedy_equals_reading_everything_again_at_each_step(encoder_decoder, position):
    model = encoder_decoder(
        position=gn.positions.get(position, **gn.positions.encoding(position).tiny), max_positions=32
    )
    out = generate(model, STARTS, source=SOURCES, max_new_tokens=10)
    assert ids_of(out) == [by_hand(model, s, t, 10) for s, t in zip(SOURCES, STARTS, strict=True)]


@pytest.mark.parametrize("strategy", STRATEGIES, ids=repr)
@pytest.mark.parametrize("seed", range(3))
def test_a_batch_of_uneven_sources_equals_its_single_runs(encoder_decoder, seed, strategy):
    model = encoder_decoder(seed)
    settings = {"strategy": strategy, "eos_ids": [0], "max_new_tokens": 10}
    together = generate(model, STARTS, source=SOURCES, seed=[1, 2, 3, 4], **settings)
    alone = [
        generate(model, t, source=s, seed=n, **settings)[0]
        for n, (s, t) in enumerate(zip(SOURCES, STARTS, strict=True), 1)
    ]
    assert ids_of(together) == ids_of(alone)


def test_padding_is_told_by_lengths_so_a_source_may_hold_the_padding_id(encoder_decoder):
    model = encoder_decoder(padding_id=3)
    together = generate(model, STARTS, source=SOURCES, max_new_tokens=6)
    assert ids_of(together) == [by_hand_without(model, s, t, 6, 3) for s, t in zip(SOURCES, STARTS, strict=True)]


@torch.no_grad()
def by_hand_without(model, source, start, n, never):
    text = list(start)
    for _ in range(n):
        logits = model(torch.tensor([source]), torch.tensor([text]))[0, -1]
        logits[never] = -torch.inf
        text.append(int(logits.argmax()))
    return text[len(start) :]


def test_all_sources_are_encoded_in_one_forward_and_once(encoder_decoder, monkeypatch):
    model, seen, encode = encoder_decoder(), [], gn.EncoderDecoder.encode
    monkeypatch.setattr(
        gn.EncoderDecoder,
        "encode",
        lambda self, source, at: seen.append((tuple(source.shape), at.kind)) or encode(self, source, at),
    )
    generate(model, STARTS, source=SOURCES, max_new_tokens=6)
    assert seen == [((4, 5), "padded")]


def test_without_a_prompt_the_text_starts_at_end_of_text(encoder_decoder):
    model = encoder_decoder(vocab_size=257)
    model.tokenizer = Tokenizer.bytes()
    out = model.generate(source=["two", "one"], max_new_tokens=5)
    assert [g.prompt_ids for g in out] == [[256], [256]]
    ids = [list(b"two"), list(b"one")]
    assert ids_of(out) == ids_of(generate(model, [[256], [256]], source=ids, max_new_tokens=5))
    assert ids_of(out) == ids_of(generate(model, ["", ""], source=["two", "one"], max_new_tokens=5))
    assert "".join(stream(model, source="two", max_new_tokens=5)) == out[0].text


def test_a_held_cache_keeps_its_source(encoder_decoder):
    model = encoder_decoder()
    cache = model.cache()
    first = generate(model, STARTS, source=SOURCES, cache=cache, max_new_tokens=4)
    rest = generate(model, [g.ids[-1:] for g in first], cache=cache, max_new_tokens=5)
    whole = generate(model, STARTS, source=SOURCES, max_new_tokens=9)
    assert [a.ids + b.ids for a, b in zip(first, rest, strict=True)] == ids_of(whole)
    with pytest.raises(BadValue, match="the cache holds an encoded source already"):
        generate(model, [[1]] * 4, source=SOURCES, cache=cache)


def test_a_source_with_a_vocabulary_of_its_own_is_checked_against_it(encoder_decoder):
    model = encoder_decoder(source_vocab_size=30)
    assert len(generate(model, [[1]], source=[[29, 20]], max_new_tokens=3)[0].ids) == 3
    with pytest.raises(BadValue, match="token id 30"):
        generate(model, [[1]], source=[[30]])
    model.tokenizer = Tokenizer.characters(["abc"])
    with pytest.raises(BadValue, match="no tokenizer to read a text with"):
        generate(model, [[1]], source="abc")


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"prompts": [1]}, "an encoder-decoder writes about a source: give source="),
        ({"prompts": [1], "source": [[1], [2]]}, "there are 2 sources but 1 prompts"),
        ({"prompts": [[1], [1]], "source": [[1], []]}, "source 1 is empty: there is nothing to write about"),
        ({"prompts": [1], "source": []}, "there are no sources"),
        ({"prompts": [1], "source": [12]}, "token id 12"),
        ({"source": [1]}, "prompt 0 is empty and there is no end-of-text token to start from"),
    ],
)
def test_a_source_that_cannot_be_right_is_refused(encoder_decoder, settings, says):
    with pytest.raises(BadValue, match=says):
        generate(encoder_decoder(), **settings)


def test_a_source_longer_than_the_table_is_refused(encoder_decoder):
    model = encoder_decoder(position="learned", max_positions=4)
    with pytest.raises(BadValue, match="source 1 is too long, it has 5 tokens: learned positions hold 4 rows"):
        generate(model, [[1], [1]], source=[[1], [1] * 5])


def test_a_decoder_has_no_source(tiny):
    with pytest.raises(BadValue, match="this model has no encoder to read a source with: give the text as a prompt"):
        generate(tiny(), [1], source=[1])
    with pytest.raises(BadValue, match="there is nothing to go on from: give a prompt"):
        generate(tiny())


@pytest.mark.parametrize(("start", "first"), [(None, None), (7, None), (7, 9), (None, 9)])
def test_the_beginning_of_an_answer_as_text_is_the_answer_itself_continued(encoder_decoder, start, first):
    """As a translator's own words given back to it: what it would have written follows, not what a bare text brings."""
    tokenizer = Tokenizer.characters(["abcdefgh"])
    model = encoder_decoder(vocab_size=tokenizer.vocab_size, max_positions=64)
    model.tokenizer, model.start, model.first = tokenizer, start, first
    lead = [i for i in (tokenizer.eos_id if start is None else start, first) if i is not None]
    ids = tokenizer.encode("cab")
    by_text = generate(model, "cab", source="abba", max_new_tokens=6)
    by_ids = generate(model, [[*lead, *ids]], source="abba", max_new_tokens=6)
    assert ids_of(by_text) == ids_of(by_ids)
    assert by_text[0].prompt_ids == [*lead, *ids]
