"""One model on a task, and the table of many."""

import pytest

from gnomon import lab
from gnomon.errors import BadValue
from gnomon.lab.cell import from_dict
from gnomon.lab.exact.cell import ExactCell
from gnomon.lab.exact.report import TaskTable
from gnomon.lab.exact.settings import ExactRecipe, ExactSize

TINY = {"model": ExactSize(d_model=16, n_layers=1, n_heads=2), "train": ExactRecipe(steps=3, batch_size=4)}


def cell(task="sort", position="none", **more):
    return ExactCell(task, position, **({"train_length": 4, "factors": (1.0, 2.0), "count": 4} | TINY | more))


def run(cell, tmp_path):
    result = cell.run(tmp_path, lambda share, text: None)
    del result["cpu_seconds"]
    return result


def test_a_cell_is_a_function_of_its_settings(tmp_path):
    assert run(cell(), tmp_path) == run(from_dict(cell().to_dict()), tmp_path)
    assert run(cell(seed=1), tmp_path)["loss"] != run(cell(), tmp_path)["loss"]
    assert cell().key != cell(eos=False).key


def test_models_of_one_seed_begin_alike_but_for_position():
    weights = [dict(cell(position=name).build().named_parameters()) for name in ("none", "rope", "t5")]
    for name, weight in weights[0].items():
        assert all(other[name].equal(weight) for other in weights)


@pytest.mark.slow
def test_a_small_model_learns_to_sort_and_training_ends_when_it_has(tmp_path):
    recipe = ExactRecipe(steps=400, batch_size=32, stop_at=0.9, lr=1e-2)
    learner = cell(train=recipe, model=ExactSize(d_model=32), factors=(1.0,), train_length=5, count=20)
    result = run(learner, tmp_path)
    assert result["stretches"][0]["exact"] >= 0.8
    assert result["steps"] < 400


def test_the_table_is_plain_and_says_what_was_not_learned():
    rows = lab.tasks("recall", ["none", "learned"], train_length=4, factors=(1, 2), count=5, executor="serial", **TINY)
    assert [(row["position"], row["first"], row["last"]) for row in rows] == [
        ("none", 3, 4),
        ("none", 5, 8),
        ("learned", 3, 4),
        ("learned", 5, 8),
    ]
    assert rows[3]["exact"] is None  # past its table
    assert {row["depth"] for row in rows.depths} == {0.0, 0.25, 0.5, 0.75, 1.0}
    assert all(type(value) in (str, int, float, bool, type(None)) for row in rows for value in row.values())
    for lang, words in {"en": "none did not learn", "es": "none no aprendió", "pt": "none não aprendeu"}.items():
        assert words in rows.table(lang)


def made(exact, seeds=2):
    row = {"task": "sort", "position": "rope", "train_length": 4, "tokens": 1.0, "stopped": None}
    return [
        {**row, "seed": seed, "first": first, "last": 2 * first, "exact": exact, "learned": exact >= 0.9}
        for seed in range(seeds)
        for first in (2, 5)
    ]


def test_nothing_is_said_against_a_model_that_learned():
    assert "did not learn" in TaskTable(made(0.5)).table()
    assert "did not learn" not in TaskTable(made(0.95)).table()
    assert "2/2" in TaskTable(made(0.95)).table()
    assert "rope  2–4: 0.95 0.95   5–10: 0.95 0.95" in TaskTable(made(0.95)).table()  # every seed


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"task": "copy"}, "unknown task 'copy': did you mean"),
        ({"positions": ["rop"]}, "did you mean 'rope'"),
        ({"seeds": 0}, "seeds must be at least 1, got 0"),
        ({"factors": (1, 1.01)}, "name one length twice"),
        ({"factors": (0.5,)}, "multiples of the training length"),
        ({"train_length": 1}, "train_length must be at least 2"),
    ],
)
def test_what_cannot_be_right_is_an_error(given, message):
    with pytest.raises(BadValue, match=message):
        lab.tasks(**{"task": "sort", "positions": ["none"], **given})
