"""Beams: the best texts there are, whatever the batch, the cache and the length of the prompt."""

import itertools
import math
import random

import pytest
import torch

import gnomon as gn
from gnomon.data import Tokenizer
from gnomon.errors import BadInput, BadValue
from gnomon.generate import Beam, Constraints, DiverseBeam, Node, Tree, draw, generate
from gnomon.generate.hypotheses import Group, by_score

PROMPTS = [[3, 1, 4], [1, 5, 2, 6, 5], [3], [5, 6, 2, 1]]
EOS = {"eos_ids": [0]}


def found(g):
    """All results of a row, best first: ids and scores."""
    return [(one.ids, one.score) for one in (g, *g.alternatives)]


def assert_same(one, other):
    for a, b in zip(one, other, strict=True):
        assert [ids for ids, _ in found(a)] == [ids for ids, _ in found(b)]
        assert [score for _, score in found(a)] == pytest.approx([score for _, score in found(b)], abs=1e-4)


def ids_of(out):
    return [g.ids for g in out]


# ------------------------------------------------------------------ known answers

START, A, B, C, END = range(5)
#: start: A .6, B .4; A: END .6, A .4; B: C .875, END .125; C: END 1
BIGRAMS = {START: {A: 0.6, B: 0.4}, A: {END: 0.6, A: 0.4}, B: {C: 0.875, END: 0.125}, C: {END: 1.0}}


RULES = [True, False, "never"]


@pytest.mark.parametrize("early", RULES)
def test_a_bigram_model_gives_distinct_sorted_texts_that_end_once(early, markov):
    """Probabilities .36 of A END, .35 of B C END, .144 of A A END, .05 of B END; without a penalty for length."""
    out = generate(
        markov(BIGRAMS, 5), [START], strategy=Beam(3, 0.0, early, n_best=3), eos_ids=[END], max_new_tokens=6
    )[0]
    assert found(out) == [
        ([A, END], pytest.approx(math.log(0.36), abs=1e-5)),
        ([B, C, END], pytest.approx(math.log(0.35), abs=1e-5)),
        ([A, A, END], pytest.approx(math.log(0.144), abs=1e-5)),
    ]


def test_greedy_takes_the_wrong_turn_that_a_beam_does_not(markov):
    """a .6 then .5; b .4 then 1: greedy finds .3, a beam of two .4."""
    model = markov({0: {1: 0.6, 2: 0.4}, 1: {3: 0.5, 4: 0.5}, 2: {5: 1.0}}, 6)
    assert generate(model, [0], max_new_tokens=2)[0].ids == [1, 3]
    assert generate(model, [0], strategy=Beam(2), max_new_tokens=2)[0].ids == [2, 5]


def test_texts_that_were_cut_off_fill_up_where_too_few_ended(markov):
    out = generate(markov(BIGRAMS, 5), [START], strategy=Beam(3, n_best=3), eos_ids=[END], max_new_tokens=2)[0]
    results = [out, *out.alternatives]
    assert sorted(map(tuple, (g.ids for g in results))) == [(A, A), (A, END), (B, C)] or len(results) == 3
    assert [g.score for g in results] == sorted((g.score for g in results), reverse=True)
    assert {tuple(g.ids): g.finish_reason for g in results}[(A, END)] == "eos"
    only = generate(markov(BIGRAMS, 5), [START], strategy=Beam(3), eos_ids=[END], max_new_tokens=2)[0]
    assert (only.ids, only.finish_reason) == ([A, END], "eos")


@pytest.mark.parametrize("prompt", [1, 10, 100])
@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize(("penalty", "best", "score"), [(1.0, [3, 4, 5, 9], -0.9), (0.0, [1, 9], -2.0)])
def test_only_new_tokens_count_as_length(prompt, batch, penalty, best, score, markov):
    """Two texts: log-probability -2.0 with 2 tokens, -3.6 with 4. By the length of the text -1.0 loses to -0.9; with a
    prompt of 10 tokens counted, -0.1667 would win over -0.2571."""
    model = markov({0: {1: math.exp(-2.0), 3: math.exp(-3.6)}, 1: {9: 1}, 3: {4: 1}, 4: {5: 1}, 5: {9: 1}}, 11)
    prompts = [[0] * prompt, [0] * 4, [0]][:batch]
    out = generate(model, prompts, strategy=Beam(3, penalty), eos_ids=[9], max_new_tokens=6)
    for g in out:
        assert (g.ids, g.score) == (best, pytest.approx(score, abs=1e-4))


@pytest.mark.parametrize("n_best", [1, 5])
@pytest.mark.parametrize("penalty", [-1.0, 0.0, 0.5, 2.0])
@pytest.mark.parametrize("seed", range(8))
def test_without_early_stopping_nothing_better_is_ever_missed(seed, penalty, n_best, markov):
    """Of all texts of up to 5 tokens over 4, whatever the penalty for length is worth: the bound that ends the search
    must know whether longer texts gain or lose."""
    rng = torch.Generator().manual_seed(seed)
    table = {i: dict(enumerate(torch.rand(4, generator=rng).tolist())) for i in range(4)}
    model = markov(table, 4)
    out = generate(model, [1], strategy=Beam(256, penalty, "never", n_best=n_best), **EOS, max_new_tokens=5)[0]
    worth = {tuple(ids): s / len(ids) ** penalty for ids, s in model.texts(1, 0, 5) if ids[-1] == 0}
    assert [score for _, score in found(out)] == pytest.approx(sorted(worth.values(), reverse=True)[:n_best], abs=1e-4)
    assert [worth[tuple(ids)] for ids, _ in found(out)] == pytest.approx([score for _, score in found(out)], abs=1e-4)


def test_the_bound_ends_a_search_that_nothing_can_change_any_more(markov):
    """Short texts gain at a penalty below 0, so the first end is the best; the longest text has 60 tokens."""
    model = markov({1: {0: 0.5, 2: 0.5}, 2: {2: 0.9, 0: 0.1}}, 3)
    generate(model, [1], strategy=Beam(2, -1.0, "never"), **EOS, max_new_tokens=60)
    assert len(model.reads) < 5
    model.reads.clear()
    generate(model, [1], strategy=Beam(2, 1.0, "never"), **EOS, max_new_tokens=60)
    assert len(model.reads) == 60  # 2 2 2 ... may still win: -.69 - .105 n over n + 1 tokens


@pytest.mark.parametrize("groups", [1, 2, 3])
@pytest.mark.parametrize("penalty", [0.0, 0.5, 1.0, 2.0])
@pytest.mark.parametrize("seed", range(6))
def test_a_live_text_worth_more_than_all_finished_ones_is_never_dropped(seed, penalty, groups, markov):
    """One text is all but certain at every step, and as many as the beam is wide end beside each of its tokens: by any
    rule but the first, they have to wait for it. `groups` keep apart, but the first is free to write it."""
    rng = random.Random(seed)
    length, width = rng.randrange(3, 12), 2
    ends = [0, *range(length + 2, length + 2 + width)]
    rare = [10.0 ** -rng.uniform(3, 6) for _ in range(length)]
    table = {i: {i + 1: 1 - width * p, **dict.fromkeys(ends[1:], p)} for i, p in enumerate(rare, 1)}
    model = markov({**table, length + 1: {0: 1.0}}, ends[-1] + 1)
    settings = {"eos_ids": ends, "max_new_tokens": 20}
    certain = [*range(2, length + 2), 0]
    for rule in (False, "never"):
        strategy = DiverseBeam(width * groups, groups, 0.5, penalty, rule)
        assert generate(model, [1], strategy=strategy, **settings)[0].ids == certain
    hasty = generate(model, [1], strategy=Beam(width, penalty, True), **settings)[0]
    assert hasty.ids != certain
    assert hasty.score < math.log(1e-2)


@pytest.mark.slow
def as_transformers_stops(logprobs, width, penalty, n, end=0):
    """Its rule with early_stopping=True: an end counts only among the best `width` of all that may follow, and so does
    a text that was cut off. `logprobs`: of what follows new tokens."""
    live, finished = [(0.0, [])], []
    while len(finished) < width and len(live[0][1]) < n:
        options = [(logp + p, [*ids, i]) for logp, ids in live for i, p in enumerate(logprobs(ids))]
        best = sorted(options, reverse=True)[: 2 * width]
        ended = [(logp, ids) for logp, ids in best[:width] if ids[-1] == end or len(ids) == n]
        finished += [(logp / len(ids) ** penalty, ids) for logp, ids in ended]
        live = [(logp, ids) for logp, ids in best if ids[-1] != end][:width]
    return max(finished)[1]


@torch.no_grad()
def test_with_early_stopping_transformers_counts_fewer_texts_as_ended(markov, tmp_path):
    """Its rule in our words, held against it; and where the two rules differ. Of 2 4, 3 5 and the two ends beside them,
    one end is among the best two, so transformers goes on to 2 4 6 END; here both ends are better than 3 5."""
    from transformers import GenerationConfig, LlamaConfig, LlamaForCausalLM

    sizes = {"vocab_size": 12, "hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 2}
    ids = {"bos_token_id": None, "eos_token_id": 0, "pad_token_id": None}
    torch.manual_seed(1)
    theirs = LlamaForCausalLM(LlamaConfig(**sizes, **ids, num_attention_heads=4, initializer_range=0.5)).eval()

    def following(new):
        return theirs(torch.tensor([[3, 1, 4, *new]])).logits[0, -1].log_softmax(-1).tolist()

    for width, penalty in itertools.product((2, 4), (0.0, 1.0)):
        search = {"num_beams": width, "length_penalty": penalty, "early_stopping": True}
        settings = GenerationConfig(**search, max_new_tokens=12, do_sample=False, eos_token_id=0, pad_token_id=0)
        prompt = torch.tensor([[3, 1, 4]])
        [text] = theirs.generate(prompt, attention_mask=torch.ones_like(prompt), generation_config=settings).tolist()
        expected = as_transformers_stops(following, width, penalty, 12)
        assert text[3 : 3 + len(expected)] == expected

    table = {1: {2: 0.5, 3: 0.4}, 2: {0: 0.4, 4: 0.35}, 3: {0: 0.4, 5: 0.3}, 4: {6: 1.0}, 5: {5: 1.0}, 6: {0: 1.0}}
    model = markov(table, 8)

    def known(new):
        return model.logp[[1, *new][-1]].tolist()

    assert as_transformers_stops(known, 2, 1.0, 9) == [2, 4, 6, 0]
    assert generate(model, [1], strategy=Beam(2, 1.0, True), **EOS, max_new_tokens=9)[0].ids == [2, 0]


@pytest.mark.slow
@pytest.mark.parametrize("rule", [False, "never"])
def test_what_ends_by_itself_is_what_transformers_finds(rule, tmp_path):
    """The best text of tiny random Llamas, each with two widths and two penalties. (Where the best is a text that was
    cut off, or with early_stopping=True, the two can differ: transformers counts what was cut off as a result, and an
    end only if it is among the best `width` of all that may follow.)"""
    from transformers import GenerationConfig, LlamaConfig, LlamaForCausalLM

    sizes = {"vocab_size": 12, "hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 2}
    ids = {"bos_token_id": None, "eos_token_id": 0, "pad_token_id": None}
    alike = 0
    for seed in range(3):
        torch.manual_seed(seed)
        theirs = LlamaForCausalLM(LlamaConfig(**sizes, **ids, num_attention_heads=4, initializer_range=0.5)).eval()
        theirs.save_pretrained(tmp_path / str(seed))
        ours = gn.load(tmp_path / str(seed))
        for width, penalty in itertools.product((2, 4), (0.0, 1.0)):
            search = {"num_beams": width, "length_penalty": penalty, "early_stopping": rule}
            settings = GenerationConfig(**search, max_new_tokens=30, do_sample=False, eos_token_id=0, pad_token_id=0)
            prompt = torch.tensor([[3, 1, 4]])
            [text] = theirs.generate(
                prompt, attention_mask=torch.ones_like(prompt), generation_config=settings
            ).tolist()
            if 0 in text:
                [own] = generate(ours, [[3, 1, 4]], strategy=Beam(width, penalty, rule), **EOS, max_new_tokens=30)
                assert own.ids == text[3 : text.index(0) + 1]
                alike += 1
    assert alike >= 6


def test_each_rule_ends_a_search_when_it_says(markov):
    """2 2 2 ... goes on with .8 and ends with .2. Sums: the first to end has -1.609, the second -1.833, and what goes
    on -.223 n, which is below the second from n = 9 on and below the first from n = 8 on. As means of n tokens, what
    goes on is always worth more than what ended."""
    table, steps = {1: {2: 0.8, 0: 0.2}, 2: {2: 0.8, 0: 0.2}}, {}
    for penalty, rule in itertools.product((0.0, 1.0), RULES):
        model = markov(table, 3)
        generate(model, [1], strategy=Beam(2, penalty, rule), **EOS, max_new_tokens=20)
        steps[penalty, rule] = len(model.reads)
    assert [steps[0.0, rule] for rule in RULES] == [2, 9, 8]  # the exact rule wants one result, the others two
    assert [steps[1.0, rule] for rule in RULES] == [2, 20, 20]


# ------------------------------------------------------------------ whole spaces


@pytest.mark.parametrize("seed", range(3))
def test_a_beam_as_wide_as_the_space_enumerates_it(tiny, seed):
    model = tiny(seed=seed, vocab_size=4, d_model=16)
    out = generate(model, [[1, 2], [3]], strategy=Beam(4**4, 0.7, "never", n_best=20), **EOS, max_new_tokens=4)
    for g, prompt in zip(out, [[1, 2], [3]], strict=True):
        every = [ids for n in range(1, 5) for ids in itertools.product(range(4), repeat=n) if 0 not in ids[:-1]]
        ended = [list(ids) for ids in every if ids[-1] == 0]
        logps = [log_probability(model, prompt, ids) / len(ids) ** 0.7 for ids in ended]
        best = sorted(zip(logps, ended, strict=True), reverse=True)[:20]
        assert [ids for ids, _ in found(g)] == [ids for _, ids in best]
        assert [score for _, score in found(g)] == pytest.approx([score for score, _ in best], abs=1e-4)


@torch.no_grad()
def log_probability(model, prompt, ids):
    logits = model.eval()(torch.tensor([prompt + ids]))[0, len(prompt) - 1 : -1]
    return float(logits.log_softmax(-1).gather(-1, torch.tensor(ids)[:, None]).sum())


@pytest.mark.parametrize("seed", range(10))
def test_width_one_is_greedy(tiny, seed):
    model = tiny(seed=seed, vocab_size=16)
    greedy = generate(model, PROMPTS, **EOS, max_new_tokens=15)
    beam = generate(model, PROMPTS, strategy=Beam(1), **EOS, max_new_tokens=15)
    assert ids_of(beam) == ids_of(greedy)
    assert [g.logprobs for g in beam] == [pytest.approx(g.logprobs, abs=1e-5) for g in greedy]
    assert [g.finish_reason for g in beam] == [g.finish_reason for g in greedy]
    assert [g.score for g in beam] == [pytest.approx(sum(g.logprobs) / len(g.ids), abs=1e-5) for g in greedy]


# ------------------------------------------------------------------ caches and batches

BEAMS = [
    Beam(4, n_best=3),
    Beam(3, -0.5, "never", n_best=2),
    Beam(2, 1.5, True, n_best=2),
    DiverseBeam(4, 2, 0.8, n_best=2),
]


@torch.no_grad()
def slowly(model, prompt, source, beam, n, end=0):
    """Beam search by its definition, every text read from its beginning at every step."""
    memory = {} if source is None else {"memory": model.eval().encode(torch.tensor([source]))}

    def worth(text):
        return text[0] / len(text[1]) ** beam.length_penalty

    def reachable(text):
        """An upper bound, by trying all lengths."""
        return max(text[0] / m**beam.length_penalty for m in range(len(text[1]) + 1, n + 1))

    def over():
        """The three rules, each in its own words."""
        match beam.early_stopping:
            case True:
                return len(finished) >= beam.width
            case False:
                kept = finished[: beam.width]
                return len(kept) == beam.width and not any(worth(text) > worth(kept[-1]) for text in live)
            case "never":
                kept = finished[: beam.n_best]
                return len(kept) == beam.n_best and not any(reachable(text) > worth(kept[-1]) for text in live)

    live, finished = [(0.0, [])], []
    while True:
        options = []
        for logp, ids in live:
            logits = model.eval().head(model.hidden(torch.tensor([prompt + ids]), **memory))[0, -1]
            options += [(logp + p, [*ids, i]) for i, p in enumerate(logits.log_softmax(-1).tolist())]
        live = []
        for text in sorted(options, reverse=True):
            if len(live) < beam.width:
                (finished if text[1][-1] == end else live).append(text)
        finished.sort(key=worth, reverse=True)
        if len(live[0][1]) == n:
            finished = [*finished, *sorted(live, key=worth, reverse=True)]
            break
        if over():
            break
    best = finished[: beam.n_best]
    return [(ids, pytest.approx(worth((logp, ids)), abs=1e-4)) for logp, ids in sorted(best, key=worth, reverse=True)]


@pytest.mark.parametrize("seed", [*range(10), *(pytest.param(n, marks=pytest.mark.slow) for n in range(10, 50))])
def test_with_a_cache_it_finds_what_it_finds_reading_everything_again(tiny, encoder_decoder, seed):
    """Texts change places at nearly every step; some part of a cache that is not reordered with them shows here."""
    source = [[1, 2, 3, 4], [5, 6]] if seed % 4 == 3 else None
    model, kind = [
        lambda: (tiny("rope", seed, vocab_size=12, d_model=16), "growing"),
        lambda: (tiny("learned", seed, vocab_size=12, d_model=16, window=3), "rolling"),
        lambda: (tiny("alibi", seed, vocab_size=12, d_model=16), "preallocated"),
        lambda: (encoder_decoder(seed), "growing"),
    ][seed % 4]()
    prompts, beam = [[3, 1, 4], [1, 5]], BEAMS[seed // 4 % 3]
    out = generate(model, prompts, source=source, strategy=beam, cache=kind, **EOS, max_new_tokens=7)
    for n, g in enumerate(out):
        assert found(g) == slowly(model, prompts[n], source and source[n], beam, 7)


@pytest.mark.parametrize("strategy", BEAMS, ids=repr)
@pytest.mark.parametrize("seed", range(4))
def test_a_batch_equals_its_single_runs(tiny, seed, strategy):
    """Rows end at different steps; one that goes on longer does not change what others have found."""
    model = tiny(seed=seed, vocab_size=12)
    together = generate(model, PROMPTS, strategy=strategy, **EOS, max_new_tokens=12)
    alone = [generate(model, p, strategy=strategy, **EOS, max_new_tokens=12)[0] for p in PROMPTS]
    assert_same(together, alone)


def test_each_row_stops_on_its_own(markov):
    """One prompt ends at step 2, the other at 10: the first has what it has alone, and is read no more."""
    table = {1: {2: 1.0}, 2: {0: 1.0}, **{i: {i + 1: 1.0} for i in range(3, 12)}, 12: {0: 1.0}}
    for width, early in itertools.product((1, 3), RULES):
        model = markov(table, 13)
        strategy = Beam(width, early_stopping=early)
        together = generate(model, [[1], [3]], strategy=strategy, **EOS, max_new_tokens=12)
        assert ids_of(together) == [[2, 0], [*range(4, 13), 0]]
        assert_same(together, [generate(model, p, strategy=strategy, **EOS, max_new_tokens=12)[0] for p in ([1], [3])])


def test_a_step_is_one_forward_for_all_texts_of_all_rows(tiny, monkeypatch):
    model, shapes, hidden = tiny(), [], gn.DecoderOnly.hidden
    monkeypatch.setattr(
        gn.DecoderOnly, "hidden", lambda self, ids, *rest: shapes.append(tuple(ids.shape)) or hidden(self, ids, *rest)
    )
    generate(model, PROMPTS, strategy=Beam(3), max_new_tokens=5)
    assert shapes == [(4, 5), *[(12, 1)] * 4]


def test_a_held_cache_goes_on_from_the_best_text(tiny):
    model = tiny(vocab_size=12)
    cache = model.cache()
    first = generate(model, PROMPTS, strategy=Beam(3), cache=cache, max_new_tokens=4)
    then = generate(model, [g.ids[-1:] for g in first], cache=cache, max_new_tokens=5)
    whole = generate(model, [p + g.ids for p, g in zip(PROMPTS, first, strict=True)], max_new_tokens=5)
    assert ids_of(then) == ids_of(whole)


def test_a_full_table_of_positions_cuts_texts_off(tiny):
    model = tiny("learned", max_positions=8)
    out = generate(model, [[1, 2, 3, 4, 5, 6], [1, 2]], strategy=Beam(3), max_new_tokens=5)
    assert [(len(g.ids), g.finish_reason) for g in out] == [(3, "positions"), (5, "length")]


# ------------------------------------------------------------------ ends, constraints, streams


def test_no_text_of_a_beam_ends_before_the_least_length(tiny):
    model = tiny(seed=1, vocab_size=8)
    out = generate(model, PROMPTS, strategy=Beam(4, n_best=4), eos_ids=[1, 6], min_new_tokens=4, max_new_tokens=9)
    for ids, _ in itertools.chain.from_iterable(map(found, out)):
        assert not {1, 6} & set(ids[:4])
        assert not {1, 6} & set(ids[:-1])


@pytest.mark.parametrize("seed", range(4))
def test_texts_end_at_stop_strings_as_at_end_tokens_however_many_there_are(tiny, seed):
    """Most of what may follow ends a text: the few best candidates do not hold enough that go on."""
    model = tiny(seed=seed, vocab_size=257)
    model.tokenizer = Tokenizer.bytes()
    many = [i for i in range(128) if i % 8]
    settings = {"strategy": Beam(4, n_best=4), "max_new_tokens": 6}
    stopped = generate(model, [[1], [2]], stop=[chr(i) for i in many], **settings)
    ended = generate(model, [[1], [2]], eos_ids=many, **settings)
    assert_same(stopped, ended)
    assert {g.finish_reason for g in stopped} == {"stop"}
    assert [g.text for g in stopped] == [g.text for g in ended]


def test_a_beam_goes_round_dead_ends_and_says_when_there_is_no_way(markov):
    model = markov({0: {1: 0.9, 2: 0.1}, 1: {3: 1.0}, 2: {4: 1.0}}, 5)
    closed = Constraints(allowed=lambda row, ids: {0: [1, 2], 1: [], 2: [4]}[ids[-1]])
    assert generate(model, [0], strategy=Beam(2), constraints=closed, max_new_tokens=2)[0].ids == [2, 4]
    with pytest.raises(BadInput, match="row 0, new token 1: the constraints leave no token"):
        generate(model, [0], strategy=Beam(2), constraints=Constraints(allowed=lambda row, ids: []), max_new_tokens=2)


@pytest.mark.parametrize("strategy", [Beam(4), Beam(4, 1.0, True), Beam(4, 1.0, "never"), DiverseBeam(4, 2)], ids=repr)
@pytest.mark.parametrize("seed", range(6))
def test_tokens_come_as_soon_as_they_are_certain_and_are_never_taken_back(tiny, seed, strategy):
    model, tokens = tiny(seed=seed, vocab_size=12), []
    out = generate(model, PROMPTS, strategy=strategy, **EOS, max_new_tokens=12, on_token=tokens.append)
    for row, g in enumerate(out):
        mine = [token for token in tokens if token.row == row]
        assert [token.id for token in mine] == g.ids
        assert [token.finish_reason for token in mine] == [None] * (len(mine) - 1) + [g.finish_reason]


def test_what_all_texts_agree_on_is_handed_over_before_the_end(markov):
    table = {i: {i + 1: 1.0} for i in range(5)} | {5: {6: 0.5, 7: 0.5}, 6: {8: 1.0}, 7: {8: 1.0}, 8: {8: 1.0}}
    model, seen = markov(table, 9), []
    generate(model, [0], strategy=Beam(2), max_new_tokens=8, on_token=lambda t: seen.append((t.id, len(model.reads))))
    assert seen[:5] == [(i, i) for i in range(1, 6)]
    assert [when for _, when in seen[5:]] == [8] * 3


# ------------------------------------------------------------------ groups


def test_groups_keep_away_from_one_another(tiny):
    plain = DiverseBeam(4, 4, 0.0, n_best=4)
    model = tiny(seed=3, vocab_size=12)
    same = generate(model, [1, 2], strategy=plain, max_new_tokens=6)[0]
    assert same.alternatives == ()  # without a cost, all groups write the same
    apart = generate(model, [1, 2], strategy=DiverseBeam(4, 4, 100.0, n_best=4), max_new_tokens=6)[0]
    columns = zip(*(g.ids for g in (apart, *apart.alternatives)), strict=True)
    assert all(len(set(column)) == 4 for column in columns)
    assert any(g.ids == same.ids for g in (apart, *apart.alternatives))  # the first group is free


def test_the_cost_decides_what_is_looked_into_and_is_no_part_of_a_score(tiny):
    model = tiny(seed=3, vocab_size=12)
    out = generate(model, [1, 2], strategy=DiverseBeam(4, 2, 5.0, 0.0, n_best=4), max_new_tokens=4)[0]
    for g in (out, *out.alternatives):
        assert g.score == pytest.approx(log_probability(model, [1, 2], g.ids), abs=1e-4)


def test_one_group_is_a_beam(tiny):
    model = tiny(seed=5, vocab_size=12)
    settings = {"eos_ids": [0], "max_new_tokens": 10}
    one = generate(model, PROMPTS, strategy=DiverseBeam(4, 1, n_best=3), **settings)
    assert_same(one, generate(model, PROMPTS, strategy=Beam(4, n_best=3), **settings))


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("seed", range(6))
def test_the_first_group_is_a_beam_of_its_own_width(tiny, seed, rule, monkeypatch):
    """With a cache and reading everything again; the others keep away from it, and it knows nothing of them."""
    model, groups = tiny(seed=seed, vocab_size=12), []

    class Seen(Group):
        def __init__(self, *settings):
            super().__init__(*settings)
            groups.append(self)

    monkeypatch.setattr("gnomon.generate.beam.Group", Seen)
    settings = {**EOS, "max_new_tokens": 7}
    generate(model, PROMPTS, strategy=DiverseBeam(6, 3, 2.0, 0.7, rule, n_best=2), **settings)
    first, plain = groups[::3], Beam(2, 0.7, rule, n_best=2)
    assert len(first) == len(PROMPTS)
    for prompt, group, g in zip(PROMPTS, first, generate(model, PROMPTS, strategy=plain, **settings), strict=True):
        ended, cut = (sorted(texts, key=by_score) for texts in (group.finished, group.cut))
        results = sorted((ended + cut)[:2], key=by_score)
        assert [(h.row.ids, pytest.approx(h.score, abs=1e-4)) for h in results] == found(g)
        assert found(g) == slowly(model, prompt, None, plain, 7)


# ------------------------------------------------------------------ trees


def test_a_tree_shows_what_was_looked_into(markov):
    """Width 2: A and B; then A END, and B C and A A go on; then B C END and, worth less, A A END."""
    out = generate(markov(BIGRAMS, 5), [START], strategy=Beam(2, n_best=2), eos_ids=[END], max_new_tokens=6)[0]
    assert draw(out.tree).splitlines() == [
        "├─ 1  60.0 %",
        "│  ├─ 4  60.0 %  #2 -0.511 (eos)",
        "│  └─ 1 4  40.0 %  -0.646 (eos)",
        "└─ 2 3 4  40.0 %  #1 -0.350 (eos)",
    ]
    plain = draw(out.tree, ascii=True)
    assert plain.isascii()
    assert plain.splitlines()[1] == "|  |- 4  60.0 %  #2 -0.511 (eos)"


def test_a_tree_marks_what_was_given_up(markov):
    """Width 2: 1 and 2 go on; then 1 3 (.27) and 1 4 (.27), with nothing of 2 (.4 in fifths); then both end."""
    table = {0: {1: 0.6, 2: 0.4}, 1: {3: 0.45, 4: 0.55}, 2: dict.fromkeys(range(1, 6), 0.2), 3: {3: 1}, 4: {4: 1}}
    out = generate(markov(table, 6), [0], strategy=Beam(2), max_new_tokens=3)[0]
    assert draw(out.tree).splitlines() == [
        "├─ 1  60.0 %",
        "│  ├─ 4 4  55.0 %  #1 -0.370 (length)",
        "│  └─ 3 3  45.0 %  -0.436 (length)",
        "└─ 2  40.0 %  ×",
    ]


def test_a_tree_says_what_is_hardly_probable_and_keeps_to_ascii():
    nodes = (Node(-1, 32, -0.0001, 0.0), Node(-1, 195, -9.0, -1.5, "eos"))
    bytes_ = Tokenizer.bytes()
    assert draw(Tree(nodes), bytes_, ascii=True).splitlines() == ["|- _  100.0 %  x", "`- \\xc3  <0.1 %  -1.500 (eos)"]
    assert draw(Tree(nodes), bytes_).splitlines() == ["├─ ␣  100.0 %  ×", "└─ \\xc3  <0.1 %  -1.500 (eos)"]


def test_a_tree_has_its_languages_numbers_and_reasons_and_its_texts_as_they_are():
    nodes = (
        Node(-1, ord("1"), math.log(0.5), 0.0),
        Node(0, ord("."), 0.0, 0.0),
        Node(1, ord("5"), 0.0, -1.5, "eos", 1),
    )
    assert draw(Tree(nodes), Tokenizer.bytes(), lang="es") == "└─ 1.5  50,0 %  #1 -1,500 (fin de texto)"


def test_a_tree_of_text_shows_the_text(scripted):
    model = scripted(b"abc")
    out = generate(model, [0], strategy=Beam(1))[0]
    assert draw(out.tree, model.tokenizer) == "└─ abc<|endoftext|>  100.0 %  #1 +0.000 (eos)"


# ------------------------------------------------------------------ mistakes


@pytest.mark.parametrize(
    ("bad", "says"),
    [
        (lambda: Beam(0), "at least 1 wide"),
        (lambda: Beam(2, n_best=3), "n_best counts results, from 1 to the width 2; got 3"),
        (lambda: Beam(2, n_best=0), "n_best"),
        (lambda: Beam(2, math.inf), "length_penalty is a finite number"),
        (lambda: Beam(2, early_stopping="always"), "early_stopping is True, False or \"never\", got 'always'"),
        (lambda: Beam(2, early_stopping=0), "early_stopping must be true or false or 'never', got 0"),
        (lambda: DiverseBeam(2, early_stopping=None), "early_stopping must be true or false or 'never', got None"),
        (lambda: DiverseBeam(4, 3), "width=4 does not divide into groups=3"),
        (lambda: DiverseBeam(4, 2, -1.0), "diversity is a cost"),
    ],
)
def test_a_setting_that_cannot_be_right_is_refused_when_the_strategy_is_made(bad, says):
    with pytest.raises(BadValue, match=says):
        bad()
