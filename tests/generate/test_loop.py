"""The loop: what is written does not depend on batch, padding, cache or mode, and costs one forward a step."""

import inspect
import math

import pytest
import torch

import gnomon as gn
from gnomon.attention import GrowingCache
from gnomon.data import Tokenizer
from gnomon.errors import BadInput, BadValue
from gnomon.generate import Greedy, Sample, generate

ENCODINGS = gn.positions.names()
PROMPTS = [[3, 1, 4], [1, 5, 9, 2, 6, 5], [3], [5, 8, 9, 7]]
SHAPES = {  # what else may go wrong in a cache or a padded batch
    "modern": {"n_kv_heads": 2, "norm": "rmsnorm", "activation": "silu", "gated": True, "bias": False},
    "post-norm": {"placement": "post"},
    "window": {"window": 3},
    "multi-query, tied, narrow table": {"n_kv_heads": 1, "tied": True, "d_embed": 16, "embed_scale": "sqrt"},
}


def ids(out):
    return [g.ids for g in out]


def assert_same(one, other):
    """The same tokens, and the same probabilities up to rounding: tokens alone would not show a small fault."""
    assert ids(one) == ids(other)
    for a, b in zip(one, other, strict=True):
        assert (a.text, a.finish_reason, a.prompt_ids) == (b.text, b.finish_reason, b.prompt_ids)
        torch.testing.assert_close(torch.tensor(a.logprobs), torch.tensor(b.logprobs), atol=1e-4, rtol=0)


def singly(model, prompts, seeds, **settings):
    return [generate(model, p, seed=s, **settings)[0] for p, s in zip(prompts, seeds, strict=True)]


# ------------------------------------------------------------------ a row is its own


@pytest.mark.parametrize("strategy", [Greedy(), Sample(1.5), Sample(0.9, 20, 0.9, 0.02)], ids=repr)
@pytest.mark.parametrize("position", ENCODINGS)
def test_a_batch_of_uneven_prompts_equals_its_single_runs(tiny, position, strategy):
    model, seeds = tiny(position), [5, 6, 7, 8]
    together = generate(model, PROMPTS, strategy=strategy, seed=seeds, max_new_tokens=12)
    assert_same(together, singly(model, PROMPTS, seeds, strategy=strategy, max_new_tokens=12))


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("position", ["rope", "learned", "alibi"])
def test_it_does_so_in_every_shape_of_model(tiny, position, shape):
    model = tiny(position, **SHAPES[shape])
    together = generate(model, PROMPTS, strategy=Sample(), seed=1, max_new_tokens=12)
    assert_same(together, singly(model, PROMPTS, [1, 2, 3, 4], strategy=Sample(), max_new_tokens=12))


@pytest.mark.parametrize("position", ENCODINGS)
def test_greedy_with_a_cache_equals_reading_everything_again_at_each_step(tiny, by_hand, position):
    model = tiny(position)
    out = generate(model, PROMPTS, max_new_tokens=12)
    assert ids(out) == [by_hand(model, p, 12) for p in PROMPTS]


@pytest.mark.parametrize("shape", SHAPES)
def test_it_does_so_in_every_shape_of_model_too(tiny, by_hand, shape):
    model = tiny(**SHAPES[shape])
    assert ids(generate(model, PROMPTS, max_new_tokens=12)) == [by_hand(model, p, 12) for p in PROMPTS]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["preallocated", "rolling"])
@pytest.mark.parametrize("position", ["learned", "rope", "t5"])
def test_every_kind_of_cache_gives_the_same(tiny, position, kind):
    model = tiny(position, window=4)
    settings = {"strategy": Sample(), "seed": 1, "eos_ids": range(0, 60, 6), "max_new_tokens": 20}
    assert_same(generate(model, PROMPTS, cache=kind, **settings), generate(model, PROMPTS, **settings))


def test_the_order_of_the_batch_changes_nothing(tiny):
    model, order = tiny(), [2, 0, 3, 1]
    straight = generate(model, PROMPTS, strategy=Sample(), seed=[1, 2, 3, 4], max_new_tokens=8)
    moved = generate(model, [PROMPTS[i] for i in order], strategy=Sample(), seed=[3, 1, 4, 2], max_new_tokens=8)
    assert_same(moved, [straight[i] for i in order])


@pytest.mark.parametrize("position", ENCODINGS)
def test_a_row_that_ends_changes_nothing_for_the_others(tiny, position):
    model, seeds, end = tiny(position), [5, 6, 7, 8], range(0, 60, 6)
    together = generate(model, PROMPTS, strategy=Sample(2.0), seed=seeds, eos_ids=end, max_new_tokens=25)
    assert len({len(g.ids) for g in together}) > 1  # they end at different steps
    assert_same(together, singly(model, PROMPTS, seeds, strategy=Sample(2.0), eos_ids=end, max_new_tokens=25))


@pytest.mark.parametrize("position", ENCODINGS)
def test_what_stands_in_the_padding_does_not_matter(tiny, position, monkeypatch):
    model = tiny(position)
    plain = generate(model, PROMPTS, max_new_tokens=6)
    hidden = type(model).hidden

    def with_noise(self, ids, at=None, cache=None, trace=None):
        noise = torch.randint(model.config.vocab_size, ids.shape)
        return hidden(self, torch.where(at.real, ids, noise), at, cache, trace)

    monkeypatch.setattr(type(model), "hidden", with_noise)
    assert_same(generate(model, PROMPTS, max_new_tokens=6), plain)


# ------------------------------------------------------------------ what it costs


def test_a_batch_costs_one_forward_per_step_and_one_logit_row_per_forward(chain):
    model = chain({1: [2], 2: [3], 3: [4], 4: [1]})
    generate(model, PROMPTS, max_new_tokens=5)
    assert model.reads == [(4, 6), *[(4, 1)] * 4]
    assert model.asked == [(4, 1, 64)] * 5


def test_rows_that_ended_are_read_no_more(chain):
    model = chain({1: [2], 2: [3], 3: [4], 4: [9]})
    out = generate(model, [[2], [1], [4], [3]], eos_ids=[9], max_new_tokens=50)
    assert [len(g.ids) for g in out] == [3, 4, 1, 2]
    assert model.reads == [(4, 1), (3, 1), (2, 1), (1, 1)]


# ------------------------------------------------------------------ how rows end


@pytest.mark.parametrize("end", [[1, 6], [6, 1]])
def test_every_end_token_ends_a_row(chain, end):
    model = chain({2: [3], 3: [6], 4: [1]})
    out = generate(model, [[2], [4]], eos_ids=end, max_new_tokens=9)
    assert [(g.ids, g.finish_reason) for g in out] == [([3, 6], "eos"), ([1], "eos")]


def test_no_end_token_is_chosen_before_the_least_length_but_the_next_best(chain):
    model = chain({2: [3], 3: [6, 1, 2], 4: [1, 6, 3]})
    out = generate(model, [[2], [4]], eos_ids=[1, 6], min_new_tokens=4, max_new_tokens=9)
    assert ids(out) == [[3, 2, 3, 2, 3, 6], [3, 2, 3, 2, 3, 6]]
    out = generate(model, [[2], [4]], eos_ids=[1, 6], min_new_tokens=2, max_new_tokens=9)
    assert ids(out) == [[3, 2, 3, 6], [3, 2, 3, 6]]


def test_the_tokenizers_end_of_text_ends_a_row_unless_nothing_is_to_end_it(scripted):
    model = scripted(b"abc")
    assert (out := generate(model, [0])[0]).ids == [97, 98, 99, 256]
    assert (out.text, out.finish_reason) == ("abc", "eos")
    assert generate(model, [0], eos_ids=[98])[0].ids == [97, 98]
    assert generate(model, [97], eos_ids=[5])[0].ids == [98, 99, 256]  # other end tokens come on top of it
    assert generate(model, [97], eos_ids=None, max_new_tokens=3)[0].finish_reason == "length"


@pytest.mark.parametrize(
    ("stop", "text", "n", "reason"),
    [
        ("thrwx", "one, ", 10, "stop"),
        (["zz", "hr"], "one, t", 8, "stop"),
        ("o", "", 1, "stop"),
        ("nowhere", "one, thrwxyz", 13, "eos"),
    ],
)
def test_a_stop_string_over_several_tokens_ends_the_text_before_it(scripted, stop, text, n, reason):
    out = generate(scripted(b"one, thrwxyz"), [0], stop=stop)[0]
    assert (out.text, len(out.ids), out.finish_reason) == (text, n, reason)


def test_the_stop_string_is_looked_for_in_what_is_new(scripted):
    for stop in ("ab", "bc"):  # in the prompt, and begun in it
        assert generate(scripted(b"bc"), "ab", stop=stop)[0].text == "c"


def test_a_row_ends_at_the_length_that_is_given(chain):
    out = generate(chain({1: [1]}), [1], max_new_tokens=3)[0]
    assert (out.ids, out.finish_reason) == ([1, 1, 1], "length")


def test_a_full_table_of_positions_ends_the_row_and_only_that_row(tiny):
    """8 rows. A prompt of 6 reads two more tokens, and the third it writes has no row to be read at."""
    model = tiny("learned", max_positions=8)
    prompts = [[1, 2, 3, 4, 5, 6], [1, 2], list(range(8))]
    out = generate(model, prompts, max_new_tokens=5)
    assert [(len(g.ids), g.finish_reason) for g in out] == [(3, "positions"), (5, "length"), (1, "positions")]
    assert_same(out, singly(model, prompts, [0, 0, 0], max_new_tokens=5))


def test_a_prompt_longer_than_the_table_is_refused_before_anything_is_read(tiny, monkeypatch):
    model = tiny("learned", max_positions=8)
    monkeypatch.setattr(type(model), "hidden", lambda *_, **__: pytest.fail("read"))
    with pytest.raises(BadValue) as error:
        generate(model, [[1, 2], list(range(10))])
    assert "prompt 1 is too long, it has 10 tokens: learned positions hold 8 rows" in str(error.value)


# ------------------------------------------------------------------ what may be chosen


def test_the_padding_token_is_never_chosen_not_even_by_chance(tiny):
    model = tiny(vocab_size=4, padding_id=2, tied=True)  # tied, its logit would be 0, which is not little
    out = generate(model, [[1]] * 50, strategy=Sample(50.0), seed=0, max_new_tokens=8)
    assert {i for g in out for i in g.ids} == {0, 1, 3}
    assert all(torch.tensor(g.logprobs).exp().le(1).all() for g in out)


def test_log_probabilities_are_the_models_own_without_the_padding_token(tiny):
    model = tiny(padding_id=7, tied=True)
    out = generate(model, [1, 2, 3], strategy=Sample(3.0, top_k=30), seed=0, max_new_tokens=6)[0]
    with torch.no_grad():
        logits = model.eval()(torch.tensor([[1, 2, 3, *out.ids]]))[0, 2:-1]
    logits[:, 7] = -math.inf
    expected = logits.log_softmax(-1).gather(-1, torch.tensor(out.ids)[:, None])[:, 0]
    torch.testing.assert_close(torch.tensor(out.logprobs), expected, atol=1e-4, rtol=0)


def test_ids_without_text_are_never_chosen(tiny):
    model = tiny(vocab_size=300)
    model.tokenizer = Tokenizer.bytes()  # 257 ids; the table was rounded up
    out = generate(model, [[1]] * 20, strategy=Sample(50.0), seed=0, eos_ids=None, max_new_tokens=20)
    assert max(i for g in out for i in g.ids) <= 256


def test_an_empty_prompt_starts_a_document(tiny):
    model = tiny(vocab_size=257)
    model.tokenizer = Tokenizer.bytes()
    out = generate(model, ["", "a"], seed=1, strategy=Sample(), max_new_tokens=5)
    assert_same(out, [*generate(model, [256], seed=1, strategy=Sample(), max_new_tokens=5),
                      *generate(model, [97], seed=2, strategy=Sample(), max_new_tokens=5)])  # fmt: skip
    assert out[0].prompt_ids == [256]


@pytest.mark.parametrize("damage", [math.nan, math.inf, -math.inf])
def test_broken_weights_are_named_rather_than_drawn_from(chain, damage):
    model = chain({1: [2], 2: [3]})
    model.table[2] = damage
    for strategy in (Greedy(), Sample()):
        with pytest.raises(BadInput, match="row 1, new token 2: the logits hold NaN or infinity"):
            generate(model, [[3], [1]], strategy=strategy, max_new_tokens=4)


# ------------------------------------------------------------------ seeds


def test_one_seed_stands_for_as_many_as_there_are_rows(tiny):
    model = tiny()
    out = generate(model, [[1], [1], [1]], strategy=Sample(), seed=10, max_new_tokens=8)
    assert [g.seed for g in out] == [10, 11, 12]
    assert ids(out) == ids(generate(model, [[1]] * 3, strategy=Sample(), seed=[10, 11, 12], max_new_tokens=8))
    assert len(set(map(tuple, ids(out)))) == 3
    assert generate(model, [1], strategy=Sample(), seed=out[2].seed, max_new_tokens=8)[0].ids == out[2].ids


def test_without_seeds_torchs_own_generator_decides(tiny):
    model = tiny()
    first, again, other = (
        torch.manual_seed(s) and generate(model, [1, 2], strategy=Sample(), max_new_tokens=8)[0] for s in (1, 1, 2)
    )
    assert first == again
    assert first.ids != other.ids
    assert generate(model, [1, 2], strategy=Sample(), seed=first.seed, max_new_tokens=8)[0] == first


# ------------------------------------------------------------------ what it leaves behind


@pytest.mark.parametrize("training", [True, False])
def test_it_works_in_evaluation_mode_and_restores_every_part(tiny, training):
    model = tiny(dropout=0.5).train(training)
    model.stack.blocks[0].eval()
    before = [part.training for part in model.modules()]
    out = generate(model, PROMPTS, max_new_tokens=6)
    assert [part.training for part in model.modules()] == before
    assert_same(out, generate(model.eval(), PROMPTS, max_new_tokens=6))


def test_the_mode_is_restored_when_it_fails(tiny, monkeypatch):
    model = tiny().train()
    monkeypatch.setattr(type(model.head), "forward", lambda self, h: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        generate(model, [1])
    assert model.training


def test_no_gradient_is_kept_and_a_models_own_cache_can_still_be_trained_through(tiny):
    model = tiny()
    cache = model.cache()
    generate(model, [1, 2], cache=cache, max_new_tokens=3)
    assert not cache.k[0].requires_grad
    assert not cache.k[0].is_inference()  # an inference tensor could not be used in a later backward
    model(torch.tensor([[5]]), cache=cache).sum().backward()


def test_an_interruption_leaves_with_everything_written_so_far_seen(chain):
    model, seen = chain({1: [2], 2: [3], 3: [4], 4: [5]}), []

    def interrupt(token):
        seen.append(token.id)
        if len(seen) == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        generate(model, [1], on_token=interrupt)
    assert seen == [2, 3, 4]


def test_tokens_are_told_as_they_are_written(scripted):
    tokens = []
    out = generate(scripted(b"abc"), [[97], [98], [0]], max_new_tokens=3, on_token=tokens.append)
    assert [token.row for token in tokens] == [0, 1, 2, 0, 1, 2, 0, 2]
    for row, g in enumerate(out):
        mine = [token for token in tokens if token.row == row]
        assert [token.id for token in mine] == g.ids
        assert [token.logprob for token in mine] == g.logprobs
        assert "".join(token.piece for token in mine) == g.text
        assert [token.finish_reason for token in mine] == [None] * (len(mine) - 1) + [g.finish_reason]


# ------------------------------------------------------------------ a cache of one's own


@pytest.mark.parametrize("position", ENCODINGS)
@pytest.mark.parametrize("strategy", [Greedy(), Sample()], ids=repr)
def test_going_on_from_a_held_cache_equals_one_call(tiny, position, strategy):
    model = tiny(position)
    whole = generate(model, PROMPTS, max_new_tokens=9)
    cache = model.cache()
    first = generate(model, PROMPTS, cache=cache, max_new_tokens=4)
    rest = generate(model, [g.ids[-1:] for g in first], cache=cache, max_new_tokens=5)
    assert [a.ids + b.ids for a, b in zip(first, rest, strict=True)] == ids(whole)


@pytest.mark.parametrize("position", ENCODINGS)
@pytest.mark.parametrize("read", [1, 4])
def test_a_cache_filled_by_hand_is_gone_on_from(tiny, position, read):
    model, prompt = tiny(position), [3, 1, 4, 1, 5]
    cache = model.cache()
    with torch.no_grad():
        model(torch.tensor([prompt[:read]]), cache=cache)
    out = generate(model, [prompt[read:]], cache=cache, max_new_tokens=8)
    assert ids(out) == ids(generate(model, prompt, max_new_tokens=8))


@pytest.mark.parametrize("position", ENCODINGS)
@pytest.mark.parametrize("kind", ["growing", "preallocated", "rolling"])
def test_a_held_cache_keeps_rows_that_ended_so_that_a_dialogue_can_go_on(tiny, position, kind):
    """Two rounds over three rows that end at different steps, with new texts of different lengths in between, equal
    one call on everything that was said."""
    model, end = tiny(position, window=6, d_model=64), range(0, 60, 5)
    prompts, more = PROMPTS[:3], [[7], [8, 9, 10], [11, 12]]
    cache = model.cache(kind, capacity=64)
    settings = {"strategy": Sample(1.5), "eos_ids": end}
    first = generate(model, prompts, cache=cache, seed=1, max_new_tokens=12, **settings)
    assert len({len(g.ids) for g in first}) > 1
    unread = [g.ids[-1:] + new for g, new in zip(first, more, strict=True)]
    second = generate(model, unread, cache=cache, seed=9, max_new_tokens=12, **settings)
    whole = [p + g.ids + new for p, g, new in zip(prompts, first, more, strict=True)]
    expected = generate(model, whole, seed=9, max_new_tokens=12, **settings)
    assert ids(second) == ids(expected)
    for a, b in zip(second, expected, strict=True):
        torch.testing.assert_close(torch.tensor(a.logprobs), torch.tensor(b.logprobs), atol=1e-4, rtol=0)


def test_a_held_cache_that_reaches_the_end_of_the_table_says_so(tiny):
    model = tiny("learned", max_positions=8)
    cache = model.cache()
    generate(model, [1, 2, 3, 4], cache=cache, max_new_tokens=4)  # it has read 7
    assert generate(model, [5], cache=cache, max_new_tokens=4)[0].finish_reason == "positions"
    with pytest.raises(BadValue, match="learned positions hold 8 rows"):
        generate(model, [5], cache=cache)
    assert len(cache) == 8


def test_a_held_cache_without_room_is_refused_before_anything_is_lost(tiny):
    model = tiny()
    cache = model.cache("preallocated", capacity=12)
    with pytest.raises(BadValue, match="room for 12 more tokens, but the longest prompt and max_new_tokens need 13"):
        generate(model, [[1, 2, 3], [1]], cache=cache, max_new_tokens=11)
    generate(model, [[1, 2, 3], [1]], cache=cache, max_new_tokens=5)
    with pytest.raises(BadValue, match="room for 5 more tokens"):
        generate(model, [[1], [1]], cache=cache, max_new_tokens=6)
    assert len(generate(model, [[1], [1]], cache=cache, max_new_tokens=5)[0].ids) == 5


def test_a_cache_of_other_rows_is_refused(tiny):
    model, cache = tiny(), GrowingCache()
    generate(model, [[1], [2]], cache=cache, max_new_tokens=2)
    with pytest.raises(BadValue, match="the cache holds 2 rows but there are 3 prompts"):
        generate(model, [[1], [2], [3]], cache=cache)
    with pytest.raises(BadValue, match="row 1 gives the model no token to read"):
        generate(model, [[1], []], cache=cache)


# ------------------------------------------------------------------ mistakes


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"eos_ids": [64]}, "eos_ids holds 64, which is not one of the 64 token ids, 0 to 63"),
        ({"stop": "x"}, "this model has no tokenizer"),
        ({"seed": [1, 2, 3]}, "one for each of the 1 rows; got [1, 2, 3]"),
        ({"seed": -1}, "seed is a whole number from 0 to 2^63 - 1"),
        ({"max_new_tokens": 0}, "max_new_tokens must be at least 1"),
        ({"strategy": "beam"}, "strategy must be an object such as Greedy(), Sample(0.8) or Beam(4), got 'beam'"),
        ({"top_logprobs": 65}, "top_logprobs counts tokens, from 0 to the 64 of the vocabulary"),
        ({"cache": "growin"}, "unknown cache 'growin': did you mean 'growing'?"),
        ({"cache": "rolling"}, "a rolling cache drops tokens"),
    ],
)
def test_a_setting_that_cannot_be_right_is_refused(tiny, settings, says):
    with pytest.raises(BadValue) as error:
        generate(tiny(), [1], **settings)
    assert says in str(error.value)


def test_a_bidirectional_model_is_refused(tiny):
    with pytest.raises(BadValue, match="this model is bidirectional"):
        generate(tiny(causal=False), [1])


# ------------------------------------------------------------------ as a method


def test_a_model_generates_by_itself(tiny):
    model = tiny(vocab_size=257)
    model.tokenizer = Tokenizer.bytes()
    settings = {"strategy": Sample(), "max_new_tokens": 6}
    assert model.generate("ab", seed=1, **settings) == generate(model, "ab", seed=1, **settings)
    assert "".join(model.stream("ab", seed=1, **settings)) == model.generate("ab", seed=1, **settings)[0].text
    assert next(iter(inspect.signature(model.generate).parameters)) == "prompts"


def test_the_mini_gpt_of_the_course_writes_until_its_64_positions_are_full():
    """A prompt of 4 tokens; positions 4 to 63 hold 60 more, and one more token is written after them."""
    torch.manual_seed(0)
    model = gn.DecoderOnly.from_preset("mini-gpt")
    out = model.generate([76, 299, 412, 5], max_new_tokens=100)[0]
    assert (len(out.ids), out.finish_reason) == (61, "positions")
