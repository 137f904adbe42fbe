"""Far positions are as exact as near ones; a model with a choice in it cannot show it."""

import pytest
from faults.planted import AnglesInItsDtype
from tiny import Tiny, target
from torch.nn import functional as F
from variants import asked

AUTOCAST = "autocast moves no position"


class Hard(Tiny):
    """Attention to the best key alone."""

    def attend(self, block, x, positions, seen, past):
        q, k, v = (self.heads(part) for part in block.qkv(block.norm(x)).chunk(3, -1))
        q, k = self.rotate(q, positions), self.rotate(k, positions)
        best = (q @ k.mT).masked_fill(~seen[:, None], self.hidden).argmax(-1)
        return block.out((F.one_hot(best, k.shape[2]).to(v) @ v).transpose(1, 2).flatten(2)), None


@pytest.mark.parametrize("seed", [1, 2, 14, 16])
def test_a_choice_that_roundings_turn_is_not_taken_for_a_position_that_moved(seed):
    """Of these weights far places alone have a choice so close that bfloat16 turns it."""
    found = asked(AUTOCAST, target(Hard(limit=2000, seed=seed)))
    assert found.verdict == "not applicable"
    assert "jump where weights hardly change" in found.note


@pytest.mark.parametrize("std", [0.1, 0.3, 1.0])
def test_a_steep_model_does_not_jump(std):
    """Large weights make attention hard, but not so that it jumps: its fault is seen."""
    assert asked(AUTOCAST, target(AnglesInItsDtype(limit=2000, std=std))).verdict == "FAIL"
