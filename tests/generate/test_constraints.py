"""Constraints: what each penalty and ban does to the logits, in which order, and that every strategy keeps them."""

import itertools
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gnomon.data import Tokenizer
from gnomon.errors import BadInput, BadValue
from gnomon.generate import (
    Beam,
    Constraints,
    Contrastive,
    DiverseBeam,
    Greedy,
    History,
    Lookup,
    Sample,
    Speculative,
    generate,
)
from gnomon.generate.logits import forbid_incomplete, force, no_repeat, presence_frequency, repetition, restrict

INF = math.inf


def after(prompt=(), new=(), row=0):
    return [History(row, list(prompt), list(new))]


# ------------------------------------------------------------------ what each does


def test_a_repetition_penalty_lowers_both_signs_and_once_for_each_token():
    """Seen: 0, 1 twice, 3. A division alone would raise -1 to -.5."""
    logits = torch.tensor([[2.0, -1.0, 0.5, -0.5]])
    assert repetition(logits, after([0, 1], [1, 3]), 2.0).tolist() == [[1.0, -2.0, 0.5, -1.0]]
    assert torch.equal(repetition(logits, after([0, 1], [1, 3]), 1.0), logits)
    assert repetition(torch.tensor([[-INF, 1.0]]), after([0]), 2.0).tolist() == [[-INF, 1.0]]


def test_presence_counts_once_frequency_each_time_and_the_prompt_not_at_all():
    logits = torch.zeros(1, 4)
    assert presence_frequency(logits, after([3, 3], [1, 1, 2]), 0.5, 0.25).tolist() == [[0.0, -1.0, -0.75, 0.0]]
    assert presence_frequency(logits, after([], [1]), -0.5, 0.0).tolist() == [[0.0, 0.5, 0.0, 0.0]]


@pytest.mark.parametrize(
    ("ids", "n", "banned"),
    [([1, 2, 3, 1, 2], 3, [3]), ([1, 2, 1], 2, [2]), ([1, 2, 1, 3, 1], 2, [2, 3]), ([1, 2], 1, [1, 2]), ([1], 3, [])],
)
def test_no_n_tokens_occur_twice_across_prompt_and_text(ids, n, banned):
    for cut in range(len(ids) + 1):
        out = no_repeat(torch.zeros(1, 4), after(ids[:cut], ids[cut:]), n)
        assert (out[0] == -INF).nonzero().flatten().tolist() == banned


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 3), max_size=12), st.integers(1, 4))
def test_exactly_the_tokens_are_banned_that_would_repeat(ids, n):
    def repeats(text):
        grams = [tuple(text[i : i + n]) for i in range(len(text) - n + 1)]
        return bool(grams) and grams[-1] in grams[:-1]

    out = no_repeat(torch.zeros(1, 4), after(ids), n)[0]
    assert [bool(x == -INF) for x in out] == [repeats([*ids, i]) for i in range(4)]


def test_a_bad_word_is_banned_where_it_would_be_complete():
    words = [[1], [2, 3], [0, 0, 2]]
    for ids, banned in [([], [1]), ([2], [1, 3]), ([0, 0], [1, 2]), ([0], [1]), ([3, 2], [1, 3])]:
        for cut in range(len(ids) + 1):
            out = forbid_incomplete(torch.zeros(1, 4), after(ids[:cut], ids[cut:]), words)
            assert (out[0] == -INF).nonzero().flatten().tolist() == banned


def test_only_leaves_each_row_its_own_and_forced_overrules_it():
    logits = torch.tensor([[1.0, 2.0, 3.0]]).expand(3, -1)
    allowed = restrict(logits, [[0], None, []])
    assert allowed.tolist() == [[1.0, -INF, -INF], [1.0, 2.0, 3.0], [-INF] * 3]
    assert force(allowed, logits, [2, None, 1]).tolist() == [[-INF, -INF, 3.0], [1.0, 2.0, 3.0], [-INF, 2.0, -INF]]


# ------------------------------------------------------------------ in every strategy

CONSTRAINTS = {
    "repetition": Constraints(repetition_penalty=1.5),
    "presence and frequency": Constraints(presence_penalty=0.7, frequency_penalty=0.4),
    "no 2-gram twice": Constraints(no_repeat_ngram=2),
    "bad words": Constraints(bad_words=[[2], [3, 4], [7, 8, 9]]),
    "a callback": Constraints(allowed=lambda row, ids: range((ids[-1] + row) % 2, 12, 2)),
    "a beginning": Constraints(prefix=[5, 6, 5], bad_words=[[6]]),
}
STRATEGIES = [Greedy(), Sample(1.3), Beam(3, n_best=3), DiverseBeam(4, 2), Contrastive(), Lookup(ngram=1), "draft"]


@pytest.mark.parametrize("strategy", STRATEGIES, ids=repr)
@pytest.mark.parametrize("name", CONSTRAINTS)
def test_every_strategy_keeps_every_constraint_in_a_batch_as_alone(tiny, name, strategy):
    model, constraints = tiny(vocab_size=12), CONSTRAINTS[name]
    strategy = Speculative(tiny("rope", 9, vocab_size=12), Sample()) if strategy == "draft" else strategy
    prompts = [[3, 1, 4], [5, 9, 2]]
    out = generate(model, prompts, strategy=strategy, constraints=constraints, seed=3, max_new_tokens=8)
    for row, g in enumerate(out):
        for one in (g, *g.alternatives):
            check(name, row, prompts[row], one.ids)
    if name != "a callback":  # which asks for the number of the row
        alone = [
            generate(model, p, strategy=strategy, constraints=constraints, seed=3 + n, max_new_tokens=8)[0].ids
            for n, p in enumerate(prompts)
        ]
        assert [g.ids for g in out] == alone


def check(name, row, prompt, new):
    text = prompt + new
    if name == "no 2-gram twice":
        pairs = list(itertools.pairwise(text))
        assert len(set(pairs)) == len(pairs)
    if name == "bad words":
        assert 2 not in new
        assert all((a, b) != (3, 4) for a, b in itertools.pairwise(text))
    if name == "a callback":
        assert all(b % 2 == (a + row) % 2 for a, b in zip(text[2:], new, strict=False))
    if name == "a beginning":
        assert new[:3] == [5, 6, 5]
        assert 6 not in new[3:]


def test_penalties_reshape_and_bans_cost_what_they_cost(markov):
    """From 0: 1 has .6, 2 has .3, 3 has .1. A ban of 1 leaves the beam the score of 2 as it is, log .3. A penalty on 2
    changes what the distribution is: .3 e^-1 over the sum."""
    model = markov({0: {1: 0.6, 2: 0.3, 3: 0.1}}, 4)
    out = generate(model, [0], strategy=Beam(2), constraints=Constraints(bad_words=[[1]]), max_new_tokens=1)[0]
    assert (out.ids, out.score) == ([2], pytest.approx(math.log(0.3), abs=1e-5))
    table = {0: {1: 0.6, 2: 0.3, 3: 0.1}, 2: {1: 0.6, 2: 0.3, 3: 0.1}}
    forced_ = Constraints(presence_penalty=1.0, prefix=[2, 2])
    out = generate(markov(table, 4), [0], strategy=Beam(2), constraints=forced_, max_new_tokens=2)[0]
    again = 0.3 * math.exp(-1)
    assert out.score == pytest.approx((math.log(0.3) + math.log(again / (0.7 + again))) / 2, abs=1e-5)
    assert out.logprobs == pytest.approx([math.log(0.3)] * 2, abs=1e-5)  # the model's own, as ever


def test_every_end_token_is_banned_before_the_least_length(chain):
    model = chain({2: [3], 3: [6, 1, 2], 4: [1, 6, 3]})
    out = generate(
        model, [2], eos_ids=[1, 6], min_new_tokens=4, constraints=Constraints(bad_words=[[2]]), max_new_tokens=9
    )[0]
    assert not {1, 2, 6} & set(out.ids[:4])


def test_texts_are_read_by_the_tokenizer(tiny):
    model = tiny(vocab_size=257)
    model.tokenizer = Tokenizer.bytes()
    out = generate(model, "x", constraints=Constraints(prefix="né", bad_words=["ab", "n"]), max_new_tokens=12)[0]
    assert out.text.startswith("né")
    assert "n" not in out.text[1:]


def test_a_callback_hears_the_row_and_its_ids(chain):
    heard = []
    model = chain({1: [2], 2: [3], 3: [4], 4: [5]})
    listen = Constraints(allowed=lambda row, ids: heard.append((row, ids)))
    generate(model, [[1], [3, 2]], constraints=listen, max_new_tokens=2)
    assert heard == [(0, [1]), (1, [3, 2]), (0, [1, 2]), (1, [3, 2, 3])]


@pytest.mark.parametrize("strategy", STRATEGIES, ids=repr)
def test_a_callback_is_never_asked_about_a_text_that_it_forbade(tiny, strategy):
    """A grammar in a table: after 1 come 2 or 3, after those 4, then 1. The prompt suggests otherwise to whoever looks
    it up; what is not in the table is a KeyError."""
    model = tiny(vocab_size=12)
    strategy = Speculative(tiny("rope", 9, vocab_size=12), Sample()) if strategy == "draft" else strategy
    grammar = Constraints(allowed=lambda row, ids: {1: [2, 3], 2: [4], 3: [4], 4: [1]}[ids[-1]])
    out = generate(model, [[1, 7, 1, 2, 9, 4, 1]], strategy=strategy, constraints=grammar, seed=1, max_new_tokens=9)[0]
    assert set(itertools.pairwise([1, *out.ids])) <= {(1, 2), (1, 3), (2, 4), (3, 4), (4, 1)}


def test_the_most_probable_tokens_are_reported_on_request(tiny):
    model = tiny(vocab_size=12)
    for strategy in (Sample(2.0), Beam(3), Contrastive(), Lookup(ngram=1)):
        tokens = []
        out = generate(
            model, [[1, 2]], strategy=strategy, seed=1, top_logprobs=3, max_new_tokens=5, on_token=tokens.append
        )[0]
        assert tuple(token.top for token in tokens) == out.top_logprobs
        with torch.no_grad():
            expected = model.eval()(torch.tensor([[1, 2, *out.ids]]))[0, 1:-1].log_softmax(-1).topk(3)
        assert [[i for i, _ in top] for top in out.top_logprobs] == expected.indices.tolist()
        found = [[p for _, p in top] for top in out.top_logprobs]
        assert torch.tensor(found) == pytest.approx(expected.values, abs=1e-4)
    assert generate(model, [1], max_new_tokens=2)[0].top_logprobs == ()


# ------------------------------------------------------------------ mistakes


@pytest.mark.parametrize(
    ("bad", "says"),
    [
        ({"repetition_penalty": 0.0}, "repetition_penalty divides, so it is a number above 0"),
        ({"presence_penalty": INF}, "presence_penalty is a finite number"),
        ({"frequency_penalty": math.nan}, "frequency_penalty is a finite number"),
        ({"no_repeat_ngram": 0}, "no_repeat_ngram counts tokens"),
        ({"bad_words": [[]]}, "a bad word must not be empty"),
        ({"bad_words": "ab"}, "bad_words is a list of texts"),
    ],
)
def test_a_constraint_that_cannot_be_right_is_refused_when_it_is_made(bad, says):
    with pytest.raises(BadValue, match=says):
        Constraints(**bad)


@pytest.mark.parametrize(
    ("bad", "says"),
    [
        ({"prefix": "ab"}, "prefix holds the text 'ab', and this model has no tokenizer"),
        ({"prefix": [99]}, "prefix holds 99, which is not one of the 64 token ids"),
        ({"bad_words": [[-1]]}, "bad_words holds -1"),
        ({"allowed": lambda row, ids: [64]}, "allowed returned the id 64 for row 0: ids run to 63"),
    ],
)
def test_what_does_not_fit_the_model_is_refused(tiny, bad, says):
    with pytest.raises(BadValue, match=says):
        generate(tiny(), [1], constraints=Constraints(**bad))


def test_a_beginning_of_padding_is_refused(tiny):
    with pytest.raises(BadValue, match="the prefix holds 7, the padding id"):
        generate(tiny(padding_id=7), [1], constraints=Constraints(prefix=[7]))


@pytest.mark.parametrize("strategy", [Greedy(), Sample(), Lookup(), Contrastive()], ids=repr)
def test_a_row_with_nothing_left_to_choose_is_named(tiny, strategy):
    stuck = Constraints(allowed=lambda row, ids: [] if row == 1 and len(ids) == 3 else None)
    with pytest.raises(BadInput, match="row 1, new token 3: the constraints leave no token to choose"):
        generate(tiny(), [[1], [2]], strategy=strategy, constraints=stuck, max_new_tokens=5)
