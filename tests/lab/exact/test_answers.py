"""Answers written by a model: greedy, with a cache, of forced length and ended by the model."""

import pytest
import torch

from gnomon.lab.exact.answers import answered, filled, written
from gnomon.lab.exact.examples import ANSWER, BLANK, END, SPECIAL, START
from gnomon.models import DecoderOnly

PAIRS = [((1, 2, 3), (1, 2, 3)), ((4, 5), (4, 5)), ((6, 7), (6, 7))]


class Scripted(DecoderOnly):
    """A model that says what `says` makes of the row so far: tokens, the likeliest first."""

    def hidden(self, ids, at=None, cache=None, trace=None, memory=None):
        self.rows = cache.rows = torch.cat([getattr(cache, "rows", ids[:, :0]), ids], 1)
        return torch.zeros(*ids.shape, 1)

    def head(self, states):
        logits = torch.zeros(len(self.rows), SPECIAL + 10)
        for i, row in enumerate(self.rows.tolist()):
            for rank, token in enumerate(self.says(row[1 : row.index(ANSWER)], row[row.index(ANSWER) + 1 :])):
                logits[i, token] = 10 - rank
        return logits


def model_that(says):
    model = Scripted(SPECIAL + 10, 16, 1, 2)
    model.says = says
    return model


def copies(question, said):
    return [END] if len(said) == len(question) else [question[len(said)]]


def ends_too_early(question, said):
    return [END, *copies(question, said)]


def never_ends(question, said):
    return [START, BLANK, SPECIAL] if len(said) == len(question) else copies(question, said)


@pytest.mark.parametrize(("says", "ended"), [(copies, True), (ends_too_early, False), (never_ends, False)])
def test_forced_length_and_the_models_own_end_are_apart(says, ended):
    scores = answered(model_that(says), PAIRS, eos=True)
    assert scores.tokens == [1, 1, 1]
    assert scores.exact == [True] * 3
    assert scores.stopped == [ended] * 3


def test_a_wrong_token_costs_its_share_and_the_whole_answer():
    def wrong_at_the_end(question, said):
        return [SPECIAL + 9] if len(said) == len(question) - 1 else copies(question, said)

    scores = answered(model_that(wrong_at_the_end), PAIRS[:2], eos=True)
    assert scores.tokens == pytest.approx([2 / 3, 1 / 2])
    assert scores.exact == scores.stopped == [False, False]


def test_one_that_never_learned_to_end_is_not_asked_to():
    assert answered(model_that(never_ends), PAIRS, eos=False).stopped is None


@pytest.mark.parametrize("position", ["rope", "learned(positions='random-start(16)')", "t5"])
def test_answers_are_those_of_reading_all_again_for_each_token(position):
    torch.manual_seed(0)
    model = DecoderOnly(SPECIAL + 10, 16, 2, 2, position=position, max_positions=16, init_std=0.5).eval()
    prompt = torch.tensor([[START, 5, 6, 7, ANSWER], [START, 8, 8, 4, ANSWER]])
    rows, wanted = prompt, []
    for _ in range(4):
        wanted.append(model(rows)[:, -1, SPECIAL:].argmax(-1) + SPECIAL)
        rows = torch.cat([rows, wanted[-1][:, None]], 1)
    assert written(model, prompt, 4)[0].tolist() == torch.stack(wanted, 1).tolist()


def test_one_that_sees_both_ways_fills_blanks_in_one_forward():
    model = DecoderOnly(SPECIAL + 10, 16, 1, 2, causal=False, position="alibi").eval()
    found = filled(model, torch.tensor([[START, 5, 6, ANSWER]]), 2)
    logits = model(torch.tensor([[START, 5, 6, ANSWER, BLANK, BLANK]]))
    assert found.tolist() == (logits[:, -2:, SPECIAL:].argmax(-1) + SPECIAL).tolist()


def test_past_the_end_of_a_table_there_is_no_answer():
    model = DecoderOnly(SPECIAL + 10, 16, 1, 2, position="learned", max_positions=6)
    assert answered(model, PAIRS[:1], eos=True) is None


def test_where_positions_are_drawn_from_too_few_there_is_no_answer():
    model = DecoderOnly(SPECIAL + 10, 16, 1, 2, position="rope(positions='randomized(7, reading=\"sampled\")')")
    assert answered(model, PAIRS[:1], eos=True) is None
    assert answered(model, PAIRS[1:], eos=True) is not None
