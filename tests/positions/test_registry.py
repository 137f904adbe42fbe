"""Encodings are chosen by name; one of your own is one class, and then it is known everywhere."""

import copy
import json
import math
import pickle

import numpy as np
import pytest
import torch
from torch import nn

import gnomon as gn
from gnomon import Layout
from gnomon.positions import NoPE, PositionEncoding, Spec
from gnomon.positions.base import _REGISTRY
from gnomon.positions.registry import parse
from gnomon.positions.scaling import SCALINGS

SIZES = {"d_model": 16, "d_head": 8, "n_heads": 2, "causal": True, "max_positions": 32}


class TestRegistry:
    def test_no_position_comes_first_and_the_published_ones_follow(self):
        names = gn.positions.names()
        assert names[0] == "none"
        assert names[1:] == sorted(names[1:])
        assert {"alibi", "learned", "rope", "sinusoidal", "t5"} <= set(names)

    def test_an_unknown_name_is_quoted_with_the_nearest_and_all_known_ones(self):
        with pytest.raises(ValueError, match="'rop'") as error:
            gn.positions.get("rop")
        assert "did you mean 'rope'" in str(error.value)
        assert all(name in str(error.value) for name in gn.positions.names())

    @pytest.mark.parametrize("text", ["cape", "randomized(2048)"])
    def test_a_recipe_taken_for_an_encoding_is_told_from_a_misspelt_one(self, text):
        with pytest.raises(gn.BadValue, match="is a recipe for position ids, not a position encoding"):
            parse(text)

    def test_an_unknown_option_names_the_nearest(self):
        with pytest.raises(gn.BadValue, match="unknown option of rope 'bas': did you mean 'base'"):
            gn.positions.get("rope", bas=3)

    @pytest.mark.parametrize("name", gn.positions.names())
    def test_every_class_says_what_people_need_to_know(self, name):
        cls = gn.positions.encoding(name)
        assert cls.name == name
        assert cls.paper
        assert cls.acts in ("nowhere", "input", "rotation", "score", "attention")
        assert cls.extrapolation
        assert cls.__doc__

    @pytest.mark.parametrize(
        ("hooks", "acts"),
        [("bias", "nowhere"), ("rotate", "score"), ("vectors", "rotation"), ("scores", "nowhere"), ("", "input")],
    )
    def test_a_hook_that_would_never_be_called_is_an_error_of_the_class(self, hooks, acts):
        body = {hook: lambda self, *given: None for hook in hooks.split()}
        with pytest.raises(gn.BadValue, match=f"acts = '{acts}'"):
            type("Lost", (PositionEncoding,), {"name": "lost", "acts": acts, **body})
        assert "lost" not in gn.positions.names()

    def test_a_class_without_a_constructor_of_its_own_is_built_like_its_parent(self, monkeypatch):
        monkeypatch.setattr("gnomon.positions.base._REGISTRY", dict(_REGISTRY))
        type("Steep", (gn.positions.encoding("alibi"),), {"name": "steep"})
        assert gn.positions.get("steep").build(**SIZES).n_heads == SIZES["n_heads"]

    def test_a_name_is_taken_once(self):
        with pytest.raises(gn.BadValue, match="'rope' already belongs to gnomon.positions.rope.RoPE"):
            type("Other", (PositionEncoding,), {"name": "rope"})
        assert gn.positions.encoding("rope") is gn.positions.RoPE

    def test_a_class_needs_a_name(self):
        with pytest.raises(gn.BadValue, match="class Nameless needs a name"):
            type("Nameless", (PositionEncoding,), {})


class TestSpec:
    def test_equal_choices_are_one_choice(self):
        one, same, other = (gn.positions.get("rope", base=base) for base in (5e5, 5e5, 1e4))
        assert one == same
        assert hash(one) == hash(same)
        assert one != other

    def test_options_given_by_hand_win_over_sizes(self):
        assert gn.positions.get("learned", max_positions=9).build(**SIZES).max_positions == 9

    def test_options_added_later_do_not_replace_those_given(self):
        spec = gn.positions.get("t5", max_distance=20).with_options(max_distance=99, n_buckets=8, unknown=1)
        assert dict(spec.options) == {"max_distance": 20, "n_buckets": 8}

    def test_a_size_that_is_missing_is_named(self):
        with pytest.raises(gn.BadValue, match="alibi needs n_heads; got d_model"):
            gn.positions.get("alibi").build(d_model=4)

    @pytest.mark.parametrize("options", [{"std": math.nan}, {"std": math.inf}, {"max_distance": 10**30}])
    def test_numbers_that_nothing_can_be_computed_with_are_refused(self, options):
        [option] = options
        with pytest.raises(gn.BadValue, match=f"{option} of deberta"):
            gn.positions.get("deberta", **options)
        with pytest.raises(gn.BadValue, match="d_head of rope"):
            gn.positions.get("rope").build(d_head=10**30)

    def test_a_choice_survives_json_copies_and_pickles(self):
        spec = gn.positions.get("rope", base=5e5, pairing="interleaved")
        for again in (
            gn.positions.get(**json.loads(json.dumps(spec.to_dict()))),
            copy.deepcopy(spec),
            pickle.loads(pickle.dumps(spec)),
        ):
            assert again == spec

    def test_a_choice_cannot_be_changed_behind_its_back(self):
        with pytest.raises(TypeError):
            gn.positions.get("rope", base=5e5).options["base"] = 1

    @pytest.mark.parametrize("name", gn.positions.names())
    def test_the_rest_of_a_model_starts_alike_under_every_encoding(self, name):
        """Random numbers of an encoding come from a stream of their own: a comparison compares position alone."""

        def start(position):
            torch.manual_seed(7)
            model = gn.DecoderOnly(30, 16, 2, 2, position=position, max_positions=32)
            return {
                key: x for key, x in model.state_dict().items() if not key.startswith(("stack.positions.", "input.pos"))
            }

        mine, plain = start(name), start("none")
        assert list(mine) == list(plain)
        assert all(torch.equal(mine[key], plain[key]) for key in plain)

    def test_random_tables_follow_torchs_seed(self):
        def table(seed):
            torch.manual_seed(seed)
            return gn.positions.get("learned").build(**SIZES).weight

        assert torch.equal(table(1), table(1))
        assert not torch.equal(table(1), table(2))

    def test_a_device_that_is_not_in_use_keeps_the_users_seed(self, monkeypatch):
        """torch keeps the last seed it was told for a GPU until that starts: a model on the CPU must not tell one."""
        told = []
        monkeypatch.setattr(torch.cuda, "is_initialized", lambda: False)
        monkeypatch.setattr(torch.cuda, "manual_seed_all", told.append)
        torch.manual_seed(7)
        gn.DecoderOnly(30, 16, 2, 2, position="learned", max_positions=32)
        assert told == [7]


class TestNoPosition:
    def test_it_adds_turns_and_biases_nothing(self):
        none, at, x = NoPE(), gn.Layout.dense(1, 4), torch.randn(1, 2, 4, 8)
        assert none.vectors(at) is None
        assert none.bias_tensor(at, n_heads=2) is None
        assert none(x) is x
        assert none.query(x, none.prepare(at)) is x
        assert not list(none.parameters())


# ------------------------------------------------------------------ one of your own


@pytest.fixture
def own():
    """Two encodings defined outside the package: one in the score, one at the input. Forgotten after the test."""
    known = dict(_REGISTRY)

    class Steps(PositionEncoding):
        """Keys lose a learned amount for every `width` tokens between them and the query."""

        name = "steps"
        paper = "A notebook, 2026"
        acts = "score"
        relative = True
        extrapolation = "who knows"

        def __init__(self, n_heads: int, width: int = 4) -> None:
            super().__init__()
            self.width = width
            self.weight = nn.Parameter(torch.linspace(0.1, 1.0, n_heads))

        def heads(self):
            return len(self.weight)

        def bias(self, h, q, k):
            return -self.weight[h.long()] * ((q - k).abs() // self.width)

    class Count(PositionEncoding):
        """The first channel counts."""

        name = "count"
        paper = "A notebook, 2026"
        acts = "input"
        extrapolation = "grows"

        def __init__(self, d_model: int) -> None:
            super().__init__()
            self.d_model = d_model

        def vectors(self, at, dtype=torch.float32):
            return nn.functional.pad(at.pos[..., None].to(dtype), (0, self.d_model - 1))

    yield Steps, Count
    _REGISTRY.clear()
    _REGISTRY.update(known)


@pytest.mark.usefixtures("own")
class TestOneOfYourOwn:
    def test_it_is_known_by_name(self):
        assert {"steps", "count"} <= set(gn.positions.names())
        assert gn.positions.get("steps", width=2).build(**SIZES).width == 2

    def test_it_acts_in_a_model_and_trains_there(self):
        model = gn.DecoderOnly(30, 16, 2, 2, position=gn.positions.get("steps", width=1))
        ids = torch.randint(30, (2, 9))
        model(ids).square().mean().backward()
        assert model.position_of(0).weight.grad.abs().sum() > 0
        plain = gn.DecoderOnly(30, 16, 2, 2, position="none")
        plain.load_state_dict(model.state_dict(), strict=False)
        assert (model(ids) - plain(ids)).abs().max() > 1e-4

    def test_every_kernel_gives_its_numbers(self):
        q, k, v = torch.randn(3, 2, 2, 7, 8)
        at, steps = gn.Layout.dense(2, 7), gn.positions.get("steps").build(**SIZES)
        want = gn.attend(q, k, v, steps, at, at, kernel="dense")
        torch.testing.assert_close(gn.attend(q, k, v, steps, at, at), want)
        torch.testing.assert_close(gn.attend(q, k, v, steps, at, at, kernel="blocked"), want)

    def test_decoding_with_a_cache_needs_nothing_more(self):
        model = gn.DecoderOnly(30, 16, 2, 2, position="steps").eval()
        ids, cache = torch.randint(30, (1, 9)), model.cache()
        with torch.no_grad():
            steps = torch.cat([model(ids[:, t : t + 1], cache=cache) for t in range(9)], 1)
            torch.testing.assert_close(steps, model(ids))

    def test_it_adds_itself_in_an_input_layer(self):
        layer = gn.InputLayer(30, 16, position="count", scale=None)
        ids = torch.tensor([[3, 3, 3]])
        assert (layer(ids) - layer.tokens(ids))[0, :, 0].tolist() == pytest.approx([0.0, 1.0, 2.0])

    def test_it_survives_a_config_a_checkpoint_and_a_card(self, tmp_path):
        from gnomon.checkpoints import load, save_model

        model = gn.DecoderOnly(30, 16, 1, 2, position=gn.positions.get("steps", width=3)).eval()
        assert gn.ModelConfig.from_dict(json.loads(json.dumps(model.config.to_dict()))) == model.config
        save_model(model, tmp_path / "run")
        again, ids = load(tmp_path / "run").eval(), torch.randint(30, (1, 9))
        assert again.position_of(0).width == 3
        assert torch.equal(again(ids), model(ids))
        assert "A notebook, 2026" in again.position_of(0)._repr_html_()

    def test_used_alone_it_is_a_layer_and_a_mask(self):
        steps = gn.positions.get("steps", width=1).build(n_heads=1)
        assert steps(torch.zeros(1, 1, 1, 3))[0, 0, 0].tolist() == pytest.approx([-0.2, -0.1, 0.0])
        mask = steps.score_mask(gn.Layout.dense(1, 2))[0, 0]
        assert mask[0].tolist() == [0.0, float("-inf")]


def test_a_choice_is_a_spec_and_a_ready_module_is_taken_too():
    assert isinstance(gn.positions.get("none"), Spec)
    ready = gn.positions.get("sinusoidal").build(d_model=16)
    assert gn.InputLayer(30, 16, position=ready).position is ready


@pytest.mark.parametrize(
    ("name", "sizes", "shape", "message"),
    [
        ("sinusoidal", {"d_model": 5}, (1, 2, 10), "built for d_model=5, got tokens of 10"),
        ("sinusoidal", {"d_model": 8}, (1, 2, 1), "built for d_model=8, got tokens of 1"),
        ("learned", {"d_model": 1, "max_positions": 4}, (1, 2, 10), "built for d_model=1, got tokens of 10"),
        ("rope", {"d_head": 4}, (1, 1, 2, 8), "built for d_head=4, got heads of width 8"),
        ("rope", {"d_head": 8}, (1, 1, 2, 4), "built for d_head=8, got heads of width 4"),
        ("alibi", {"n_heads": 4}, (1, 8, 3, 3), "built for n_heads=4, got 8 heads"),
        ("t5", {"n_heads": 4}, (1, 2, 3, 3), "built for n_heads=4, got 2 heads"),
    ],
)
def test_a_layer_built_for_another_size_is_an_error_and_not_another_result(name, sizes, shape, message):
    """Broadcasting, turning a part, or repeating the slopes of fewer heads would all be silent."""
    with pytest.raises(gn.BadValue, match=message):
        gn.positions.get(name).build(**sizes)(torch.zeros(shape))


# ------------------------------------------------------------------ called alone, at positions of any form


@pytest.mark.parametrize("name", ["sinusoidal", "learned", "rope"])
@pytest.mark.parametrize("form", ["tensor", "int32", "rows", "list", "array", "layout"])
def test_positions_may_be_a_tensor_a_list_or_an_array(name, form):
    layer = gn.positions.get(name).build(d_model=16, d_head=8, n_heads=2, max_positions=32)
    x = torch.randn(2, 3, 16) if layer.acts == "input" else torch.randn(2, 4, 3, 8)
    forms = {
        "tensor": torch.tensor([[5, 6, 7]]),
        "int32": torch.tensor([5, 6, 7], dtype=torch.int32),
        "rows": [[5, 6, 7]] * 2,
        "list": [5, 6, 7],
        "array": np.array([5, 6, 7]),
        "layout": Layout.placed([5, 6, 7]),
    }
    axis = 1 if layer.acts == "input" else 2
    longer = torch.cat([torch.zeros_like(x), torch.zeros_like(x).narrow(axis, 0, 2), x], axis)  # x at 5, 6 and 7
    assert torch.allclose(layer(x, forms[form]), layer(longer).narrow(axis, 5, 3), atol=1e-6)
    if layer.acts == "rotation":
        assert torch.equal(layer.apply(x, x, forms[form])[0], layer(x, [5, 6, 7]))


def test_one_position_is_that_of_one_token():
    layer = gn.positions.get("sinusoidal").build(d_model=16)
    x = torch.zeros(1, 1, 16)
    assert torch.equal(layer(x, 5), layer(x, torch.tensor([[5]])))
    with pytest.raises(gn.BadValue, match="places 1 tokens a row, but 3 were given"):
        layer(torch.zeros(1, 3, 16), 5)


@pytest.mark.parametrize("name", ["sinusoidal", "rope"])
def test_sines_and_cosines_alone_are_those_it_works_with(name):
    layer = gn.positions.get(name).build(d_model=16, d_head=16)
    sin, cos = layer.sin_cos([0, 5])
    angles = 5 * torch.tensor(layer.frequencies(), dtype=torch.float64)
    assert torch.equal(sin[0, 0].abs() + 1, cos[0, 0].abs())  # at position 0: 0 and 1
    assert torch.allclose(sin[0, 1].double(), angles.sin(), atol=1e-6)
    assert torch.allclose(cos[0, 1].double(), angles.cos(), atol=1e-6)


def test_the_tables_sines_and_cosines_apart_are_its_channels():
    sin, cos = gn.positions.sin_cos(9, 7)
    table = gn.positions.sinusoidal_table(9, 7)
    assert (sin.shape, cos.shape) == ((9, 4), (9, 3))
    assert (table[:, 0::2] == sin).all()
    assert (table[:, 1::2] == cos).all()


# ------------------------------------------------------------------ asked for in other words


@pytest.mark.parametrize("name", ["RoPE", "ALiBi", "T5", "Sinusoidal", "LEARNED", "None"])
def test_names_may_be_written_as_in_the_papers(name):
    assert gn.positions.get(name) == gn.positions.get(name.lower())


@pytest.mark.parametrize("kind", SCALINGS)
def test_a_scaling_taken_for_an_encoding_says_how_it_is_asked_for(kind):
    with pytest.raises(gn.BadValue, match=f"'{kind}' is no position encoding: it scales the context of rope") as error:
        gn.positions.get(kind)
    asked = str(error.value).split(": ", 2)[-1].split("gn.positions.get", 1)[1]
    assert eval(f"get{asked}", {"get": gn.positions.get}).options["scaling"]["kind"] == kind  # as it says


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"theta": 1e6}, "unknown option of rope 'theta': did you mean 'base'"),
        ({"rope_scaling": {}}, "did you mean 'scaling'"),
        ({"base": -1.0}, "must be above 0"),
        ({"base": "ten"}, "must be above 0; got 'ten'"),
        ({"scaling": {"kind": "yarn"}}, "yarn scaling takes factor, original_length"),
        ({"scaling": {"kind": "yarm", "factor": 2.0}}, "unknown context scaling 'yarm': did you mean 'yarn'"),
        ({"scaling": {"kind": "linear", "factor": 0.5}}, "at least 1"),
        ({"scaling": {"kind": "linear", "factr": 2.0}}, "did you mean 'factor'"),
        ({"scaling": {"kind": ["yarn"]}}, "unknown context scaling"),
        ({"scaling": "yarn"}, "a context scaling is given as"),
        ({"scaling": {}}, "given as"),
        ({"pairing": 3}, "pairing must be 'half' or 'interleaved', got 3"),
        ({"rotary_dim": 4.0}, "rotary_dim must be a whole number"),
    ],
)
def test_what_no_model_could_use_is_refused_where_it_is_chosen(options, message):
    with pytest.raises(gn.BadValue, match=message):
        gn.positions.get("rope", **options)
