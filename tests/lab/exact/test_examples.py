"""The split, and rows of tokens."""

import numpy as np
import pytest
import torch

from gnomon.errors import BadValue
from gnomon.lab.exact.examples import ANSWER, BLANK, END, SPECIAL, START, Split, Stretch, framed, rows, stretches
from gnomon.lab.exact.tasks import exact_task, exact_tasks


def split(name="reverse", train_length=8, factors=(1.0, 2.0, 3.0), count=12, seed=0):
    return Split(exact_task(name), train_length, factors, count, seed)


def test_lengths_asked_are_disjoint_and_only_the_first_lie_within_training():
    parts = stretches(10, (1, 1.5, 2, 3))
    assert parts == [Stretch(6, 10), Stretch(11, 15), Stretch(16, 20), Stretch(21, 30)]
    asked = [set(part.lengths) for part in parts]
    assert all(lengths <= set(range(part.first, part.last + 1)) for lengths, part in zip(asked, parts, strict=True))
    assert max(map(len, asked)) <= 4


@pytest.mark.parametrize("name", exact_tasks())
def test_no_question_that_is_asked_is_trained_on(name):
    s = split(name, train_length=7 if name in ("parity", "majority") else 4)
    asked = {question for part in s.tested for question, _ in part}
    trained = {question for n in range(20) for question, _ in s.batch(n, 16)}
    assert not asked & trained
    assert len(asked) == sum(map(len, s.tested))  # none twice


def test_questions_of_training_are_no_longer_than_they_may_be_and_of_every_length():
    lengths = {len(question) for n in range(8) for question, _ in split().batch(n, 16)}
    assert lengths == set(range(1, 9))


def test_a_batch_is_a_function_of_the_seed_and_its_number():
    assert split().batch(3, 8) == split().batch(3, 8)
    assert split().batch(3, 8) != split().batch(4, 8)
    assert split().batch(3, 8) != split(seed=1).batch(3, 8)
    assert split().tested == split().tested


def test_a_task_with_too_few_questions_says_so():
    with pytest.raises(BadValue, match=r"parity has too few questions of length 3"):
        split("parity", train_length=4, count=100).tested  # noqa: B018


def test_the_loss_is_on_the_answer_alone():
    found = rows([((1, 2), (2, 1)), ((0,), (0,))], eos=True)
    assert found.ids.tolist() == [
        [START, 1 + SPECIAL, 2 + SPECIAL, ANSWER, 2 + SPECIAL, 1 + SPECIAL, END],
        [START, SPECIAL, ANSWER, SPECIAL, END, BLANK, BLANK],
    ]
    assert found.labels.tolist() == [
        [-100, -100, -100, 2 + SPECIAL, 1 + SPECIAL, END, -100],
        [-100, -100, SPECIAL, END, -100, -100, -100],
    ]
    assert found.targets == 5
    assert found.real.sum(1).tolist() == [7, 5]
    assert framed(((1, 2), (2, 1))) == found.ids[0, :-1].tolist()


def test_without_an_end_nothing_is_asked_after_the_answer():
    found = rows([((1, 2), (2, 1))], eos=False)
    assert END not in found.ids
    assert found.labels[0].tolist() == [-100, -100, -100, 2 + SPECIAL, 1 + SPECIAL, -100]


def test_one_that_fills_blanks_does_not_see_the_answer():
    found = rows([((1, 2), (2, 1))], eos=True, causal=False)
    assert found.ids[0].tolist() == [START, 1 + SPECIAL, 2 + SPECIAL, ANSWER, BLANK, BLANK]
    assert found.labels[0].tolist() == [-100] * 4 + [2 + SPECIAL, 1 + SPECIAL]


def test_padding_changes_no_answer_of_a_causal_model():
    from gnomon.models import DecoderOnly

    torch.manual_seed(0)
    model = DecoderOnly(SPECIAL + 10, 16, 1, 2, position="alibi")
    pairs = [((1, 2, 3), (3, 2, 1)), ((4,), (4,))]
    together = rows(pairs, eos=True).loss(model)
    apart = [rows([pair], eos=True).loss(model) for pair in pairs]
    np.testing.assert_allclose(together.total.item(), sum(x.total.item() for x in apart), rtol=1e-5)
