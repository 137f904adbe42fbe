"""Recipes for position ids in a model: chosen by name, saved, drawn from the run's own stream, and read exactly."""

import copy
import importlib
import json
import pickle
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
import torch

import gnomon as gn
from gnomon.audit import LAWS, SmallModel
from gnomon.positions import PositionIds, get
from gnomon.positions.ids.base import _RECIPES, documents, move

IN_TRAINING = ["randomized(64)", "random-start(64)", "cape(5.0, 0.5, 2.0)"]
IN_READING = ["abacus(digits=[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11])", "randomized(64, reading='sampled')"]


def seen(model, ids, at=None):
    """The layouts that the encodings of a model read during one call."""
    found = []
    stack = model.stack if hasattr(model, "stack") else model.decoder
    hook = stack.register_forward_pre_hook(lambda _, given: found.append(given[1]))
    model(ids, at)
    hook.remove()
    return found[0]


# ------------------------------------------------------------------ chosen


@pytest.mark.parametrize(
    "given",
    ["randomized(2048)", "randomized(max=2048)", {"name": "randomized", "max": 2048}, gn.positions.Randomized(2048)],
)
def test_a_recipe_is_chosen_by_text_by_data_or_as_an_object(given):
    spec = get("rope", base=1e6, positions=given)
    assert spec == get("rope", base=1e6, positions=gn.positions.Randomized(2048))
    assert repr(spec) == "rope(base=1000000.0, positions='randomized(max=2048)')"


def test_it_survives_json_copies_pickles_and_text():
    spec = get("rope", base=5e5, positions=gn.positions.Abacus(start=9, digits=(4, 5)))
    plain = get(**json.loads(json.dumps(spec.to_dict())))
    text = gn.models.config.as_position(repr(spec))
    for again in (
        plain,
        text,
        copy.deepcopy(spec),
        pickle.loads(pickle.dumps(spec)),
        spec.with_options(pairing="half"),
    ):
        assert again.positions == spec.positions
    assert plain == text == spec
    assert hash(plain) == hash(spec)


def test_a_saved_model_keeps_it(tmp_path):
    from gnomon.checkpoints import load, save_model

    model = gn.DecoderOnly(30, 16, 1, 2, position=get("sinusoidal", positions="cape(3.0)"))
    save_model(model, tmp_path / "run")
    assert load(tmp_path / "run").recipe == gn.positions.CAPE(shift=3.0)


@pytest.mark.parametrize("save", ["hf.save_hf", "gguf.save"])
def test_files_of_other_libraries_leave_training_out_and_refuse_the_rest(save, tmp_path):
    """Without a word they would be read at other positions."""
    module, name = save.split(".")
    write = getattr(importlib.import_module(f"gnomon.checkpoints.{module}"), name)
    llama = {"norm": "rmsnorm", "bias": False, "gated": True, "activation": "silu"}
    for text in (IN_TRAINING[0], IN_READING[0]):
        model = gn.DecoderOnly(300, 16, 1, 2, position=get("rope", positions=text), **llama)
        if text == IN_TRAINING[0]:
            write(model, tmp_path / "file.gguf")
        else:
            with pytest.raises(gn.BadValue, match="says where tokens sit when a text is read"):
                write(model, tmp_path / "other.gguf")
    assert not (tmp_path / "other.gguf").exists()


@pytest.mark.parametrize(
    ("name", "given", "message"),
    [
        ("rope", "randomised(4)", "unknown recipe for positions 'randomised': did you mean 'randomized'"),
        ("rope", "randomized(most=4)", "unknown option of randomized 'most'. Known: max"),
        ("rope", "randomized", r"randomized needs max: randomized\(max=\.\.\.\)"),
        ("rope", "randomized(0)", "at least 1, and seed at least 0; got 0"),
        ("rope", "randomized(9, 'rows')", "unknown per 'rows': did you mean 'row'"),
        ("rope", "randomized(2.5)", "max must be a whole number"),
        ("rope", "random-start(0)", "at least 1; got 0"),
        ("rope", "cape(-1.0)", "at least 0"),
        ("rope", "cape(scale=0.5)", "scales by at least 1"),
        ("rope", "abacus(-2)", "at least 0; got -2"),
        ("rope", "cape(1, 2, 3, 4)", "takes shift, local, scale"),
        ("rope", 7, "one of abacus, cape, random-start, randomized"),
        ("none", "cape", "none reads no positions"),
    ],
)
def test_a_mistake_is_named_where_it_is_chosen(name, given, message):
    with pytest.raises(gn.BadValue, match=message):
        get(name, positions=given)


@pytest.mark.parametrize(
    ("position", "message"),
    [
        ([get("rope", positions="cape"), get("alibi", positions="random-start(9)")], "two recipes were given"),
        (get("learned", max_positions=8, positions="randomized(64)"), "hold 8 rows .* reaches from position 63"),
        (get("learned", max_positions=64, positions="cape"), "need whole positions"),
        (get("rope", positions="abacus"), "nothing says which tokens these are"),
    ],
)
def test_a_model_that_could_not_use_it_is_not_built(position, message):
    with pytest.raises(gn.BadValue, match=message):
        gn.DecoderOnly(30, 16, 2, 2, position=position)


def test_an_encoding_at_the_input_brings_its_recipe_to_the_layers_too():
    """Abacus beside a relative encoding: both read the same positions."""
    abacus = get("learned", positions=gn.positions.Abacus(start=9))
    config = gn.ModelConfig(30, 16, 2, 2, position="fire", input_position=abacus, max_positions=16)
    assert config.recipe == gn.positions.Abacus(start=9)
    assert config.fitted(gn.Tokenizer.bytes()).recipe.digits
    with pytest.raises(gn.BadValue, match="two recipes were given"):
        gn.ModelConfig(30, 16, 2, 2, position=get("rope", positions="cape"), input_position=abacus)


def test_sinks_that_would_move_are_refused():
    with pytest.raises(gn.BadValue, match="moves: leave one out"):
        gn.ModelConfig(30, 16, 2, 2, position=get("rope", positions="cape"), window=4, sink_tokens=1)


# ------------------------------------------------------------------ read


@pytest.mark.parametrize("text", IN_TRAINING)
def test_what_is_drawn_in_training_changes_nothing_in_reading(text):
    torch.manual_seed(0)
    model = gn.DecoderOnly(30, 16, 2, 2, position=get("sinusoidal", positions=text)).eval()
    plain = gn.DecoderOnly(30, 16, 2, 2, position="sinusoidal").eval()
    plain.load_state_dict(model.state_dict())
    ids = torch.randint(30, (2, 9))
    assert torch.equal(model(ids), plain(ids))
    model.train()
    assert not torch.allclose(model(ids), plain(ids), atol=1e-4)
    torch.manual_seed(3)
    one = model(ids)
    torch.manual_seed(3)
    assert torch.equal(model(ids), one)


AT_ONCE = [
    "packed = separate",
    "left padding changes nothing",
    "interior padding changes nothing",
    "right padding changes nothing",
    "influence = visibility",
    "garbage in masked slots",
]
STEP_BY_STEP = [
    "cached = full",
    "chunks = whole",
    "crop = never read",
    "reorder = rerun",
    "causality",
    "padded rows decode at their own places",
    "packed rows and rows with gaps decode in place",
]


@pytest.mark.parametrize(
    ("text", "law"),
    [*((text, law) for text in IN_READING for law in AT_ONCE), *((IN_READING[0], law) for law in STEP_BY_STEP)],
)
def test_laws_hold_where_tokens_are_said_to_sit_elsewhere(law, text):
    """Not step by step where a longer text sits elsewhere altogether: a token's logits were those of a shorter one."""
    assert law in LAWS
    for spec in (get("rope", base=100.0, positions=text), get("sinusoidal", positions=text)):
        report = gn.audit(SmallModel(spec).model(), only=[law])
        assert report.failed == (), report


@pytest.mark.parametrize("text", IN_READING)
@pytest.mark.parametrize("kind", ["growing", "preallocated", "rolling"])
def test_every_cache_reads_on_as_the_text_is_read_whole(kind, text):
    """A text whose tokens move, as those of a sampled one do, is read again from its start."""
    torch.manual_seed(0)
    position = get("rope", base=100.0, positions=text)
    model = gn.DecoderOnly(30, 16, 2, 2, position=position, window=4, init_std=0.3).eval()
    ids, cache = torch.randint(30, (2, 9)), model.cache(kind, capacity=9)
    with torch.no_grad():
        for t in range(1, 10):
            torch.testing.assert_close(model(ids[:, t - 1 : t], cache=cache)[:, 0], model(ids[:, :t])[:, -1])


def test_all_layers_of_both_stacks_read_the_same_recipe():
    model = gn.EncoderDecoder(30, 16, 2, 2, position=get("rope", positions=IN_READING[0]))
    ids = torch.tensor([[3, 5, 20, 7, 7, 7]])
    model.eval()
    assert model.encode(ids).at.pos.tolist() == [[1, 2, 0, 1, 2, 3]]
    hook = []
    model.decoder.register_forward_pre_hook(lambda _, given: hook.append(given[1].pos.tolist()))
    model(ids, ids)
    assert [min(row) for row in hook[0]] == [0]
    assert (
        gn.EncoderOnly(30, 16, 2, 2, position=get("rope", positions=IN_READING[0])).eval().encode(ids).at.pos[0, 1] == 2
    )


# ------------------------------------------------------------------ one of your own


@pytest.fixture
def coupling():
    """Position coupling (Cho et al. 2024) of sums such as 12+34=46: digits of one value share a position, counted from
    the lowest digit. `plus`, `equals` and everything else sit at 0."""
    known = dict(_RECIPES)

    @dataclass(frozen=True)
    class Coupled(PositionIds):
        name: ClassVar[str] = "coupled"
        paper: ClassVar[str] = "Cho et al. 2024, arXiv:2405.20671"
        digits: int = 10

        def read(self, ids, at):
            digit, pos = (ids < self.digits) & at.real, torch.zeros_like(ids)
            for t in reversed(range(ids.shape[1])):
                after = pos[:, t + 1] if t + 1 < ids.shape[1] else torch.zeros_like(ids[:, 0])
                pos[:, t] = torch.where(digit[:, t], after + 1, 0)
            return move(at, pos)

    yield Coupled
    _RECIPES.clear()
    _RECIPES.update(known)


def test_positions_may_be_any_function_of_the_tokens(coupling):
    """One that looks ahead too: what a cache holds is then read again."""
    model = gn.DecoderOnly(
        30, 16, 2, 2, position=get("learned", max_positions=16, positions="coupled(digits=10)")
    ).eval()
    ids = torch.tensor([[1, 2, 11, 3, 4, 5, 12, 4]])
    assert seen(model, ids).pos.tolist() == [[2, 1, 0, 3, 2, 1, 0, 1]]
    cache = model.cache()
    with torch.no_grad():
        for t in range(1, 9):
            torch.testing.assert_close(model(ids[:, t - 1 : t], cache=cache)[:, 0], model(ids[:, :t])[:, -1])


def test_a_text_may_be_longer_than_a_table_of_places_within_numbers():
    """Only where tokens are said to sit must have a row: 40 tokens, whose numbers have 12 digits at most."""
    position = get("learned", max_positions=24, positions=gn.positions.Abacus(start=9, digits=(1, 2)))
    model = gn.DecoderOnly(30, 16, 1, 2, position=position).eval()
    [written] = model.generate([[1, 2, 3] * 10], max_new_tokens=9, eos_ids=None, strategy=gn.Sample(), seed=0)
    assert len(written.ids) == 9
    with pytest.raises(gn.BadValue, match="hold 24 rows"):
        model(torch.ones(1, 30, dtype=torch.long))


def test_the_documents_of_a_layout_are_counted():
    at = gn.Layout.packed([[3, 2], [4]])
    told = documents(at)
    real = at.real
    np.testing.assert_array_equal(told.count[real], at.length[real])
    np.testing.assert_array_equal(told.rank[real], at.pos[real])
    assert told.most == 2


@pytest.mark.parametrize("digits", [[-1], [3, -4], (-1,)])
def test_a_digit_that_is_no_id_is_an_error(digits):
    with pytest.raises(gn.BadValue, match="digits are the ids of tokens, 0 or more"):
        gn.positions.get("learned", positions={"name": "abacus", "digits": digits})
