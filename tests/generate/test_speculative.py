"""Speculative decoding and look-up: exactly what the model writes alone, whoever drafts, in fewer forwards."""

import itertools

import pytest
import torch

import gnomon as gn
from gnomon.data import Tokenizer
from gnomon.errors import BadInput, BadValue
from gnomon.generate import Beam, Constraints, Contrastive, Greedy, Lookup, Row, Rules, Sample, Speculative, generate
from gnomon.generate.row import Ends
from gnomon.generate.speculative import ModelDrafter

PROMPTS = [[3, 1, 4], [1, 5, 2, 6, 5], [3], [5, 6, 2, 1]]
ENDS = {"eos_ids": [0], "max_new_tokens": 16}
TIGHT = Constraints(repetition_penalty=1.3, frequency_penalty=0.2, no_repeat_ngram=3, bad_words=[[5], [2, 6]])


def ids_of(out):
    return [g.ids for g in out]


def assert_same(one, other):
    assert ids_of(one) == ids_of(other)
    assert [g.finish_reason for g in one] == [g.finish_reason for g in other]
    for a, b in zip(one, other, strict=True):
        assert a.logprobs == pytest.approx(b.logprobs, abs=1e-4)


# ------------------------------------------------------------------ greedy: the same tokens


@pytest.mark.parametrize("seed", range(8))
def test_greedy_with_any_drafter_writes_the_tokens_of_greedy(tiny, seed):
    """Rows accept different numbers of drafted tokens, which leaves holes in the cache; positions must not see them."""
    position = ["rope", "learned", "alibi", "sinusoidal"][seed % 4]
    model, draft = tiny(position, seed, vocab_size=12), tiny("rope", seed + 99, vocab_size=12, d_model=8, n_layers=1)
    expected = generate(model, PROMPTS, **ENDS)
    for strategy in (Speculative(draft), Speculative(model, length=3), Lookup(), Lookup(ngram=1, length=3)):
        assert_same(generate(model, PROMPTS, strategy=strategy, **ENDS), expected)


@pytest.mark.parametrize("kind", ["preallocated", "rolling"])
@pytest.mark.parametrize("seed", range(4))
def test_it_does_so_with_every_kind_of_cache(tiny, seed, kind):
    model, draft = tiny("alibi", seed, vocab_size=12, window=4), tiny("rope", seed + 99, vocab_size=12)
    expected = generate(model, PROMPTS, **ENDS)
    for strategy in (Speculative(draft), Lookup(ngram=1)):
        assert_same(generate(model, PROMPTS, strategy=strategy, cache=kind, **ENDS), expected)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_it_does_so_for_an_encoder_decoder_whatever_drafts(tiny, encoder_decoder, seed):
    model, sources = encoder_decoder(seed), [[1, 2, 3, 4], [5, 6], [7], [8, 9, 10]]
    expected = generate(model, PROMPTS, source=sources, **ENDS)
    for draft in (encoder_decoder(seed + 99, d_model=8), tiny("rope", seed, vocab_size=12), model):
        out = generate(model, PROMPTS, source=sources, strategy=Speculative(draft), **ENDS)
        assert_same(out, expected)
    assert_same(generate(model, PROMPTS, source=sources, strategy=Lookup(ngram=1), **ENDS), expected)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8))
def test_constraints_hold_for_drafted_tokens_too(tiny, seed):
    model, draft = tiny("rope", seed, vocab_size=12), tiny("rope", seed + 99, vocab_size=12)
    settings = {**ENDS, "min_new_tokens": 5, "constraints": TIGHT}
    expected = generate(model, PROMPTS, **settings)
    for strategy in (Speculative(draft), Speculative(model), Lookup(ngram=1)):
        assert_same(generate(model, PROMPTS, strategy=strategy, **settings), expected)


def test_a_full_table_of_positions_ends_rows_where_it_does_without(tiny):
    model, short = tiny("learned", max_positions=12, vocab_size=12), tiny("learned", 1, max_positions=6, vocab_size=12)
    expected = generate(model, PROMPTS, max_new_tokens=30)
    assert {g.finish_reason for g in expected} == {"positions"}
    for strategy in (Speculative(model), Speculative(short), Lookup(ngram=1)):
        assert_same(generate(model, PROMPTS, strategy=strategy, max_new_tokens=30), expected)


def test_stop_strings_and_lengths_end_rows_where_they_do_without(tiny):
    model = tiny(vocab_size=257)
    model.tokenizer = Tokenizer.bytes()
    whole = generate(model, "ab", max_new_tokens=12)[0]
    stop = model.tokenizer.decode(whole.ids[4:6])
    for settings in ({"max_new_tokens": 12, "stop": stop}, *({"max_new_tokens": n} for n in range(1, 8))):
        expected = generate(model, ["ab", "b"], **settings)
        out = generate(model, ["ab", "b"], strategy=Speculative(model), **settings)
        assert_same(out, expected)
        assert [g.text for g in out] == [g.text for g in expected]


@pytest.mark.parametrize("strategy", [Lookup(), Contrastive(), Beam(2)], ids=repr)
def test_a_held_cache_goes_on_from_what_was_written(tiny, strategy):
    model = tiny(vocab_size=12)
    cache = model.cache()
    first = generate(model, PROMPTS, strategy=strategy, cache=cache, max_new_tokens=5)
    then = generate(model, [g.ids[-1:] for g in first], strategy=strategy, cache=cache, max_new_tokens=5)
    again = generate(model, [g.ids[-1:] for g in then], cache=cache, max_new_tokens=4)
    whole = [p + a.ids + b.ids for p, a, b in zip(PROMPTS, first, then, strict=True)]
    assert ids_of(again) == ids_of(generate(model, whole, max_new_tokens=4))


# ------------------------------------------------------------------ sampling: the same distribution

P = {0: {0: 0.5, 1: 0.3, 2: 0.2}, 1: {0: 0.1, 1: 0.2, 2: 0.7}, 2: {0: 0.3, 1: 0.4, 2: 0.3}}
Q = {0: {0: 0.2, 1: 0.2, 2: 0.6}, 1: {0: 0.6, 1: 0.3, 2: 0.1}, 2: {0: 0.1, 1: 0.1, 2: 0.8}}


def chi_square(model, strategy, sample, n=1000, **settings):
    """Of the joint distribution of three tokens over a vocabulary of three."""
    out = generate(model, [[0, 1, 0]] * n, strategy=strategy, seed=7, max_new_tokens=3, **settings)
    counts = dict.fromkeys(itertools.product(range(3), repeat=3), 0)
    for g in out:
        counts[tuple(g.ids)] += 1
    p = sample.process(model.logp).softmax(-1)
    total = 0.0
    for (a, b, c), count in counts.items():
        expected = n * float(p[0, a] * p[a, b] * p[b, c])
        total += (count - expected) ** 2 / expected
    return total


@pytest.mark.slow
@pytest.mark.parametrize("sample", [Sample(), Sample(0.6)], ids=repr)
@pytest.mark.parametrize("drafter", ["another model", "the model", "the text"])
def test_what_is_drawn_follows_the_models_own_distribution(markov, drafter, sample):
    """27 texts: the 0.999 quantile for 26 degrees of freedom is 54.05. Seeds are fixed: it passes always or never."""
    model = markov(P, 3)
    strategy = {
        "another model": Speculative(markov(Q, 3), sample, length=2),
        "the model": Speculative(model, sample, length=2),
        "the text": Lookup(sample, ngram=1, length=2),
    }[drafter]
    assert chi_square(model, strategy, sample) < 54.05


@pytest.mark.parametrize("strategy", [Sample(0.8), Lookup(Sample(0.8), 1)], ids=repr)
def test_a_row_draws_the_same_in_any_batch(tiny, strategy):
    model, seeds = tiny(vocab_size=12), [5, 6, 7, 8]
    together = generate(model, PROMPTS, strategy=strategy, seed=seeds, **ENDS)
    alone = [generate(model, p, strategy=strategy, seed=s, **ENDS)[0] for p, s in zip(PROMPTS, seeds, strict=True)]
    assert_same(together, alone)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_so_it_does_with_a_draft_model(tiny, seed):
    model, draft = tiny("rope", seed, vocab_size=12), tiny("learned", seed + 9, vocab_size=12, max_positions=14)
    strategy, seeds = Speculative(draft, Sample(1.2, top_k=6)), [5, 6, 7, 8]
    together = generate(model, PROMPTS, strategy=strategy, seed=seeds, **ENDS)
    alone = [generate(model, p, strategy=strategy, seed=s, **ENDS)[0] for p, s in zip(PROMPTS, seeds, strict=True)]
    assert_same(together, alone)


# ------------------------------------------------------------------ what it costs


def test_a_perfect_drafter_saves_all_but_one_in_five_forwards(markov):
    table = {i: {(i + 1) % 7: 1.0} for i in range(7)}
    model, draft = markov(table, 7), markov(table, 7)
    generate(model, [[0], [3]], strategy=Speculative(draft, length=4), max_new_tokens=20)
    assert model.reads == [(2, 5)] * 4
    assert len(draft.reads) == 4 * 4


def test_what_the_text_repeats_is_looked_up(markov):
    model = markov({i: {(i + 1) % 7: 1.0} for i in range(7)}, 7)
    generate(model, [[0, 1, 2, 3, 4, 5, 6, 0]], strategy=Lookup(length=6), max_new_tokens=14)
    assert len(model.reads) == 2
    assert model.reads[0] == (1, 8 + 6)


def test_a_source_is_looked_up_too(encoder_decoder, monkeypatch):
    """The target begins with a token of the source: what follows it there is drafted."""
    model, shapes, hidden = encoder_decoder(), [], gn.EncoderDecoder.hidden
    monkeypatch.setattr(
        gn.EncoderDecoder, "hidden", lambda self, ids, *rest: shapes.append(ids.tolist()) or hidden(self, ids, *rest)
    )
    generate(model, [[4]], source=[[3, 4, 5, 6, 7]], strategy=Lookup(length=2), max_new_tokens=5)
    assert shapes[0] == [[4, 5, 6]]


def test_a_draft_model_goes_on_from_what_the_rows_kept(tiny, by_hand):
    """It is drafted to, partly believed, and asked again: each time it continues the text there is, whatever it has
    read of drafts that were not kept. Nothing else would show in the tokens, only in how few of them are accepted."""
    model = tiny(vocab_size=12)
    ends = Ends(frozenset(), (), 0, 50)
    rules = Rules(model, ends, Constraints(), 0, torch.device("cpu"))
    rows = [Row(n, prompt, 0, ends, None) for n, prompt in enumerate(PROMPTS)]
    drafter = ModelDrafter(model, rows, rules, Greedy())
    for believed in ([0, 1, 2, 4], [3, 0, 4], [4, 4, 0]):
        drafts = drafter.draft(rows, [4] * len(rows))
        assert [draft.ids for draft in drafts] == [by_hand(model, row.prompt_ids + row.ids, 4) for row in rows]
        for row, draft, n in zip(rows, drafts, believed, strict=True):
            for i in [*draft.ids[:n], (draft.ids[n % 4] + 5) % 12]:
                row.take(i, 0.0, False)
        rows = rows[-3:]  # the first one ends


def test_a_draft_model_that_knows_no_allowed_token_drafts_none(markov):
    """The draft model never writes 2, and nothing else is allowed; the model writes it all the same."""
    draft = markov({i: {0: 0.5, 1: 0.5} for i in range(3)}, 3)
    only_two = Constraints(allowed=lambda row, ids: [2])
    strategy = Speculative(draft, Sample(), length=3)
    out = generate(markov(P, 3), [[0], [1]], strategy=strategy, constraints=only_two, seed=0, max_new_tokens=4)
    assert ids_of(out) == [[2] * 4] * 2


# ------------------------------------------------------------------ contrastive search


@pytest.mark.parametrize("strategy", [Contrastive(1, 0.6), Contrastive(4, 0.0)], ids=repr)
def test_without_candidates_or_contrast_contrastive_search_is_greedy(tiny, strategy):
    model = tiny(vocab_size=12)
    assert_same(generate(model, PROMPTS, strategy=strategy, **ENDS), generate(model, PROMPTS, **ENDS))


@pytest.mark.parametrize("seed", range(6))
def test_contrastive_search_is_equation_five(tiny, encoder_decoder, seed):
    """Token by token with no cache: every candidate's text is read whole, and its last state compared with all."""
    source = [[1, 2, 3]] if seed % 2 else None
    model = encoder_decoder(seed) if source else tiny(seed=seed, vocab_size=12)
    memory = {} if source is None else {"memory": model.eval().encode(torch.tensor(source))}
    text = [3, 1, 4]
    with torch.no_grad():
        for _ in range(8):
            h = model.eval().hidden(torch.tensor([text]), **memory)
            p = model.head(h)[0, -1].softmax(-1)
            worth = {}
            for i in p.topk(3).indices.tolist():
                states = model.hidden(torch.tensor([[*text, i]]), **memory)[0]
                likeness = torch.cosine_similarity(states[-1:], states[:-1]).max()
                worth[i] = 0.3 * p[i] - 0.7 * likeness
            text.append(max(worth, key=worth.get))
    out = generate(model, [3, 1, 4], source=source, strategy=Contrastive(3, 0.7), max_new_tokens=8)[0]
    assert out.ids == text[3:]
    assert out.ids != generate(model, [3, 1, 4], source=source, max_new_tokens=8)[0].ids or seed != 0


@pytest.mark.parametrize("seed", range(3))
def test_contrastive_search_of_a_batch_equals_its_single_runs(tiny, seed):
    model = tiny("learned", seed, vocab_size=12, max_positions=14)
    together = generate(model, PROMPTS, strategy=Contrastive(), **ENDS)
    assert_same(together, [generate(model, p, strategy=Contrastive(), **ENDS)[0] for p in PROMPTS])
    assert "positions" in {g.finish_reason for g in together}


def test_contrastive_search_reads_all_candidates_in_one_forward(markov):
    model = markov(P, 3)
    generate(model, [[0], [1]], strategy=Contrastive(2), max_new_tokens=3)
    assert model.reads == [(2, 1), *[(4, 1)] * 3]


# ------------------------------------------------------------------ mistakes


def test_a_draft_model_of_other_tokens_is_refused(tiny):
    model = tiny(vocab_size=12)
    with pytest.raises(BadValue, match="the draft model has 13 tokens and the model 12"):
        generate(model, [1], strategy=Speculative(tiny(vocab_size=13)))
    a, b = tiny(vocab_size=300), tiny(vocab_size=300)
    a.tokenizer, b.tokenizer = Tokenizer.bytes(), Tokenizer.characters(["ab"])
    with pytest.raises(BadValue, match="another tokenizer"):
        generate(a, [1], strategy=Speculative(b))


def test_a_draft_model_without_its_source_is_refused(tiny, encoder_decoder):
    with pytest.raises(BadValue, match="no source that it could read"):
        generate(tiny(vocab_size=12), [1], strategy=Speculative(encoder_decoder()))


def test_a_broken_draft_model_is_named_rather_than_drawn_from(markov):
    draft = markov(Q, 3)
    draft.logp[1] = torch.nan
    with pytest.raises(BadInput, match="row 0, new token"):
        generate(markov(P, 3), [1], strategy=Speculative(draft, Greedy()))


@pytest.mark.parametrize(
    ("bad", "says"),
    [
        (lambda model: Speculative(model, length=0), "length counts drafted tokens"),
        (lambda model: Speculative(model, Beam(2)), r"must be a Distribution, got an? .*as Greedy\(\) and Sample"),
        (lambda model: Lookup(Contrastive()), r"must be a Distribution, got an? .*as Greedy\(\) and Sample"),
        (lambda model: Lookup(ngram=0), "ngram and length are at least 1, got 0 and 8"),
        (lambda model: Contrastive(0), "k counts candidates"),
        (lambda model: Contrastive(4, 1.5), "alpha lies between 0 and 1"),
    ],
)
def test_a_setting_that_cannot_be_right_is_refused(tiny, bad, says):
    with pytest.raises(BadValue, match=says):
        bad(tiny())
