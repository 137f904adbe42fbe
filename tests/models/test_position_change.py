"""Retrofitting keeps everything but a model's sense of position."""

import pytest
import torch

import gnomon as gn
from gnomon.models import extend, retrofit

SIZES = {"vocab_size": 30, "d_model": 16, "n_layers": 2, "n_heads": 2}


def model(position="rope", **changes):
    return gn.DecoderOnly(**SIZES, position=position, **{"max_positions": 32, **changes}).eval()


def same_but_position(old, new):
    ours, theirs = old.state_dict(), new.state_dict()
    return all(torch.equal(ours[name], x) for name, x in theirs.items() if name in ours and "position" not in name)


@pytest.mark.parametrize("old", gn.positions.names())
@pytest.mark.parametrize("new", gn.positions.names())
def test_any_encoding_takes_the_place_of_any_other(old, new):
    before = model(old)
    done = retrofit(before, new)
    assert same_but_position(before, done.model)
    assert done.model.config.position.name == new
    assert done.model(torch.randint(30, (1, 9))).isfinite().all()
    all_numbers = sum(p.numel() for p in done.model.parameters())
    assert done.unchanged == all_numbers - sum(torch.Size(shape).numel() for shape in done.added.values())
    if old == new:
        ids = torch.randint(30, (2, 9))
        assert torch.equal(done.model(ids), before(ids))


def test_numbers_of_another_encoding_are_not_taken_for_its_own():
    """A table of two buckets has the shape of KERPLE's numbers, and the name; it means something else."""
    before = model(gn.positions.get("t5", n_buckets=2, max_distance=2))
    done = retrofit(before, "kerple")
    assert done.added == done.removed == {"stack.positions.0.weight": (2, 2)}
    assert not torch.equal(done.model.stack.positions[0].weight, before.stack.positions[0].weight)


def test_what_belongs_to_an_encoding_goes_with_it():
    done = retrofit(model("learned"), "t5")
    assert done.removed == {"input.position.weight": (32, 16)}
    assert done.added == {"stack.positions.0.weight": (32, 2)}
    assert any("no longer have learned positions" in note for note in done.notes)


@pytest.mark.parametrize("change", [lambda m: extend(m, 64, "yarn"), lambda m: retrofit(m, "alibi")])
def test_what_a_model_knows_besides_its_weights_goes_along(change):
    """Without its own end tokens a model would write on and on."""
    old = model()
    old.tokenizer, old.labels = gn.Tokenizer.characters(["abc"]), ("a", "b")
    old.ends, old.start, old.first = (5, 7), 2, 3
    new = change(old).model
    assert (new.tokenizer, new.labels) == (old.tokenizer, ("a", "b"))
    assert (new.ends, new.start, new.first) == ((5, 7), 2, 3)
    assert new.training == old.training


def test_the_old_model_is_left_alone():
    old, ids = model("alibi"), torch.randint(30, (1, 9))
    before = old(ids)
    new = retrofit(old, "rope").model
    with torch.no_grad():
        for p in new.parameters():
            p.zero_()
    assert torch.equal(old(ids), before)


def test_torchs_random_state_is_left_alone():
    old = model()
    torch.manual_seed(3)
    want = torch.rand(3)
    torch.manual_seed(3)
    retrofit(old, "t5")
    assert torch.equal(torch.rand(3), want)
