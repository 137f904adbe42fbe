"""Each task's answers, by a definition of their own; and the table of tasks."""

import re
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest

from gnomon.errors import BadValue
from gnomon.glossary import glossary
from gnomon.lab.exact import tasks
from gnomon.lab.exact.tasks import exact_task, exact_tasks


def number(digits):
    return int("".join(map(str, digits)))


def closed(brackets):
    """Brackets 0 and 1 open, 2 and 3 close: what is left when matching neighbours go."""
    text = "".join("([)]"[b] for b in brackets)
    while (shorter := re.sub(r"\(\)|\[\]", "", text)) != text:
        text = shorter
    return text == ""


def added(question):
    plus = question.index(tasks.PLUS)
    return number(question[:plus]) + number(question[plus + 1 :])


RIGHT = {
    "copy-unique": lambda q, a: a == q and len(set(q)) == len(q),
    "copy-repeating": lambda q, a: a == q,
    "reverse": lambda q, a: all(q[i] == a[-1 - i] for i in range(len(q))),
    "sort": lambda q, a: Counter(a) == Counter(q) and all(x < y for x, y in pairwise(a)),
    "majority": lambda q, a: [s for s, _ in Counter(q).most_common(1)] == list(a) and 2 * sum(q) != len(q),
    "parity": lambda q, a: a == ("".join(map(str, q)).count("1") & 1,),
    "addition": lambda q, a: number(a) == added(q) and len(a) == (len(q) - 1) // 2 + 1,
    "addition-reversed": lambda q, a: number(a[::-1]) == added(q) and len(a) == (len(q) - 1) // 2 + 1,
    "recall": lambda q, a: a == (dict(zip(q[:-1:2], q[1:-1:2], strict=True))[q[-1]],),
    "passkey": lambda q, a: a == q[q.index(q[-1]) + 1 :][:3] and q.count(q[-1]) == 2,
    "dyck": lambda q, a: closed([*q, *a]) and not any(closed([*q, *a[:i]]) for i in range(len(a))),
}


@pytest.mark.parametrize("name", exact_tasks())
def test_answers_are_right_by_another_definition(name):
    task, rng = exact_task(name), np.random.default_rng(1)
    k = task.n_symbols(30)
    for n in (task.least, 2, 7, 16, 30):
        for _ in range(8):
            question, answer = task.example(rng, n, k)
            assert RIGHT[name](question, answer), (question, answer)
            assert all(0 <= symbol < k for symbol in question + answer)


@pytest.mark.parametrize("name", exact_tasks())
def test_the_same_seed_draws_the_same_examples_and_another_one_others(name):
    task = exact_task(name)

    def drawn(seed):
        rng = np.random.default_rng(seed)
        return [task.example(rng, 12, task.n_symbols(12)) for _ in range(4)]

    assert drawn(3) == drawn(3)
    assert drawn(3) != drawn(4)


@pytest.mark.parametrize(
    ("name", "ahead"), [("recall", lambda q: q[: q.index(q[-1])]), ("passkey", lambda q: q[: q.index(q[-1])])]
)
def test_depth_says_how_much_of_the_question_stands_before_what_is_asked(name, ahead):
    task, rng = exact_task(name), np.random.default_rng(0)
    before = [len(ahead(task.example(rng, 16, task.n_symbols(16), depth)[0])) for depth in (0.0, 0.5, 1.0)]
    assert before[0] == 0
    assert before[0] < before[1] < before[2]


def test_every_task_has_its_sentence_in_three_languages():
    assert [task.name for task in exact_tasks().values() if task.about not in glossary()["phrases"]] == []


def test_an_unknown_task_is_an_error_that_names_the_nearest():
    with pytest.raises(BadValue, match="did you mean 'reverse'"):
        exact_task("revers")


def test_a_function_anywhere_is_a_task(monkeypatch):
    monkeypatch.setattr(tasks, "_TASKS", dict(tasks._TASKS))

    @tasks.task(symbols=5, source="nowhere")
    def first_symbol(rng, n, k):
        """Say the first symbol again."""
        x = rng.integers(k, size=n)
        return x, x[:1]

    question, answer = exact_task("first-symbol").example(np.random.default_rng(0), 6, 5)
    assert answer == question[:1]


def test_a_name_that_is_taken_is_refused(monkeypatch):
    monkeypatch.setattr(tasks, "_TASKS", dict(tasks._TASKS))

    def sort(rng, n, k):
        """Another."""

    with pytest.raises(BadValue, match="already belongs to gnomon"):
        tasks.task(symbols=2, source="nowhere")(sort)
