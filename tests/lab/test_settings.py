"""Settings are plain data: they can be written down, read back, and mean the same."""

import json
from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import gnomon as gn
from gnomon.errors import BadValue
from gnomon.lab import LabSettings, Recipe
from gnomon.lab.settings import PUBLISHED, as_texts
from gnomon.lab.trial import build
from gnomon.positions.notation import split
from gnomon.positions.registry import label, parse

SPECS = st.one_of(
    st.sampled_from(gn.positions.names()).map(gn.positions.get),
    st.builds(
        lambda base, pairing: gn.positions.get("rope", base=base, pairing=pairing),
        st.floats(2, 1e6),
        st.sampled_from(["half", "interleaved"]),
    ),
)


@given(st.lists(SPECS, min_size=1, max_size=4))
def test_encodings_written_down_lead_back_to_themselves(specs):
    texts = as_texts(specs)
    assert [parse(text) for text in texts] == specs
    assert split(", ".join(texts)) == list(texts)
    assert [label(parse(text)) for text in texts] == list(texts)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("rop", "did you mean 'rope'"),
        ("rope(bas=2)", "did you mean 'base'"),
        ("rope(2)", "OPTION=VALUE"),
        ("rope(base=", "no position encoding"),
        ("rope(base=open('x'))", "OPTION=VALUE"),
        ("rope(base=1) extra", "no position encoding"),
        ("", "no position encoding"),
    ],
)
def test_what_names_no_encoding_is_refused(text, says):
    with pytest.raises(BadValue, match=says.replace("(", r"\(")):
        parse(text)


def test_settings_survive_being_written_as_json(settings):
    assert LabSettings.from_dict(json.loads(json.dumps(settings.to_dict()))) == settings


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"train_length": 3}, "train_length must be at least 4"),
        ({"factors": ()}, "factors"),
        ({"factors": (0, 2)}, "factors"),
        ({"seeds": 0}, "seeds"),
        ({"positions": ()}, "at least one"),
        ({"positions": ("rope", "nope")}, "nope"),
        ({"combine": ("append",)}, "append"),
        ({"device": "toaster"}, "toaster"),
        ({"train": Recipe(steps=0)}, "train.steps"),
    ],
)
def test_settings_that_cannot_be_right_are_refused(settings, changes, says):
    with pytest.raises(BadValue, match=says):
        replace(settings, **changes)


def test_the_training_length_is_always_measured_first():
    assert LabSettings(train_length=8, factors=(4, 2)).lengths == [8, 16, 32]


def test_ways_to_combine_multiply_the_encodings_of_the_input_alone(settings):
    """Sum or concatenation is an axis of the grid where position meets the token vectors."""
    grid = replace(settings, positions=("rope", "sinusoidal", "learned"), combine=("add", "concat"))
    assert [trial.label for trial in grid.trials()] == [
        "rope",
        "sinusoidal",
        "sinusoidal concat",
        "learned",
        "learned concat",
    ]


def test_trials_have_folders_of_their_own(settings):
    positions = ("rope", "rope(base=200)", "learned", "rope")
    grid = replace(settings, positions=positions, combine=("add", "concat"), seeds=2)
    folders = [trial.folder for trial in grid.trials()]
    assert len(folders) == len(set(folders)) == 2 * 4
    assert all(folder.strip("/.") == folder and "/" not in folder for folder in folders)


def test_tables_fit_the_training_length_unless_a_size_is_given_by_hand():
    """T5's far buckets and rows of a learned table that training never reaches would hold noise."""
    settings = LabSettings(train_length=16)
    assert settings.fitted("t5")[0].options == {"max_distance": 8, "n_buckets": 8}
    assert settings.fitted("t5(max_distance=40)")[0].options == {"max_distance": 40, "n_buckets": 8}
    assert settings.fitted("learned")[0].options == {"max_positions": 16}
    assert settings.fitted("rope")[0].options == {}
    assert LabSettings(train_length=64).fitted("t5")[0].options == {"max_distance": 32, "n_buckets": 32}


def test_schedules_and_recipes_are_trials_like_others(settings, tokenizer):
    """Tables fit what a recipe reaches; digits are those of the vocabulary."""
    texts = split("[rope(base=200), none], learned(positions='random-start(40)'), rope(positions='abacus', base=3.0)")
    grid = replace(settings, positions=tuple(texts), combine=("add", "concat")).trials()
    assert [trial.label for trial in grid] == [
        "[rope(base=200), none]",
        "learned(positions='random-start(max=40)')",
        "learned(positions='random-start(max=40)') concat",
        "rope(base=3.0, positions='abacus')",
    ]
    schedule, start, _, abacus = (build(settings, trial, tokenizer) for trial in grid)
    assert [schedule.position_of(layer).name for layer in range(2)] == ["rope", "none"]
    assert start.input.position.max_positions == 40
    assert abacus.recipe.digits == gn.positions.Abacus().fitted(tokenizer).digits
    assert len({trial.folder for trial in grid}) == 4


@pytest.mark.parametrize("length", [4, 5, 8, 31, 64, 512])
def test_training_shows_every_bucket_of_t5_and_a_range_of_distances_to_the_last(length):
    t5 = LabSettings(train_length=length).fitted("t5")[0].build(n_heads=2)
    buckets = t5.bucket(-torch.arange(length)).tolist()
    assert set(buckets) == set(t5.bucket(-torch.arange(16 * length)).tolist())
    assert buckets.count(buckets[-1]) >= length // 2


@pytest.mark.parametrize("text", ["rope,,", "rope,", ",rope", "rope,,alibi", "", " ", "rope, ,alibi"])
def test_a_list_with_an_empty_name_is_refused(text):
    with pytest.raises(BadValue, match="lists a name that is empty"):
        split(text)


# ------------------------------------------------------------------ the standard grid


def test_the_standard_grid_is_every_encoding_that_text_is_enough_for():
    """From the registry: what needs coordinates is not in it, and what is defined later is."""
    grid = gn.lab.standard_encodings()
    assert grid[:6] == PUBLISHED
    assert set(grid) == {name for name in gn.positions.names() if gn.positions.encoding(name).for_text}
    assert not {"axial-rope", "axial-sinusoidal", "m-rope"} & set(grid)

    class Mine(gn.PositionEncoding):
        name = "mine"

    class Needy(gn.PositionEncoding):
        name = "needy"

        def __init__(self, secret):
            super().__init__()

    assert set(gn.lab.standard_encodings()) == {*grid, "mine"}


def test_all_stands_for_the_standard_grid():
    assert LabSettings(positions=("all",)).positions == gn.lab.standard_encodings()
    mixed = LabSettings(positions=("rope(base=200)", "all", "rope")).positions
    assert mixed == ("rope(base=200)", *gn.lab.standard_encodings())
    again = LabSettings.from_dict(LabSettings(positions=("all",)).to_dict())
    assert again.positions == gn.lab.standard_encodings()


def test_every_encoding_of_the_standard_grid_reads_windows_past_its_training_length():
    """As the lab builds it, and as it measures it, but for tables that end."""
    settings = LabSettings(positions=("all",), train_length=8)
    for text in settings.positions:
        model = gn.DecoderOnly(11, 16, 1, 2, position=settings.fitted(text)[0]).eval()
        assert model(torch.zeros(1, 8, dtype=torch.long)).isfinite().all()
        if text != "learned":
            assert model(torch.zeros(1, 32, dtype=torch.long)).isfinite().all()


def test_fire_interpolates_below_the_training_length():
    assert LabSettings(train_length=64).fitted("fire")[0].options == {"threshold": 32.0}
    assert LabSettings(train_length=64).fitted("fire(threshold=9)")[0].options["threshold"] == 9


def test_time_is_estimated_from_a_few_steps_under_each_encoding(monkeypatch):
    from gnomon.lab import budget

    trained = []
    monkeypatch.setattr(budget, "training_step", lambda model, *given: trained.append(model.config.position))
    settings = LabSettings(positions=("rope", "shaw", "[rope, none]"), train_length=8)
    assert budget.seconds_per_step(settings, 20) >= 0
    assert len(trained) == 3 * budget.TIMED
    assert len(set(map(repr, trained))) == 3
