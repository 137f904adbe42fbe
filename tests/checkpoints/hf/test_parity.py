"""Published checkpoints compute what they were published to compute: our logits are the transformers library's.

Where that library itself breaks a law, ours keeps it, and the last tests say where and by how much they part.
"""

import pytest
import torch
from cases import ALL, Case, case, rope
from parity import differences, draw_ids, going_on, in_pieces, loaded, real_tokens

import gnomon as gn
from gnomon.checkpoints import save_hf, save_model
from gnomon.checkpoints.hf import FAMILIES


def test_every_family_has_cases():
    assert {one.family for one in ALL} == set(FAMILIES)


@pytest.mark.parametrize("model", ALL, ids=str)
def test_logits_are_those_of_the_other_library(model):
    found = differences(model)
    assert [(d.check, d.largest, d.allowed) for d in found if not d.largest <= d.allowed] == []


# ------------------------------------------------------------------ where it breaks a law


def _case(family: str, what: str = "") -> Case:
    return next(one for one in ALL if one.family == family and what in one.what)


def test_gpt2_padded_on_the_left_without_position_ids_shifts_there_and_not_here(tmp_path):
    """It counts positions from the first slot, so a short row in a longer batch is read with wrong rows."""
    theirs = _case("gpt2").model()
    ours, ids, real = loaded(theirs, tmp_path), draw_ids(), real_tokens("left")
    with torch.no_grad():
        alone = theirs(ids[1:2, -5:]).logits
        padded = theirs(ids, attention_mask=real.long()).logits[1:2, -5:]
        here = ours(ids, gn.Layout.padded(real))[1:2, -5:]
    assert (padded - alone).abs().max() > 0.1
    torch.testing.assert_close(here, alone, rtol=0, atol=1e-4)


@pytest.mark.parametrize("family", ["bart", "marian", "mbart", "pegasus", "m2m_100"])
def test_a_source_padded_on_the_left_shifts_there_and_not_here(tmp_path, family):
    """They too count the slots of padding as positions."""
    theirs = _case(family).model()
    ours, ids, real, target = loaded(theirs, tmp_path), draw_ids(), real_tokens("left"), draw_ids(1, 6)
    with torch.no_grad():
        alone = theirs(input_ids=ids[1:2, -5:], decoder_input_ids=target).logits
        there = theirs(input_ids=ids[1:2], attention_mask=real[1:2].long(), decoder_input_ids=target).logits
        here = ours(ids[1:2], target, gn.Layout.padded(real[1:2]))
    assert (there - alone).abs().max() > 0.1
    torch.testing.assert_close(here, alone, rtol=0, atol=1e-4)


@pytest.mark.parametrize("family", ["mbart", "m2m_100"])
def test_a_forced_first_token_is_written_first_and_costs_a_beam_nothing(tmp_path, family):
    theirs = _case(family).model()
    start = theirs.generation_config.decoder_start_token_id
    theirs.generation_config.forced_bos_token_id, theirs.generation_config.eos_token_id = 7, None
    ours, source = loaded(theirs, tmp_path), draw_ids(2, 9)
    for beams, strategy in ((1, gn.Greedy()), (3, gn.Beam(3))):
        asked = {"num_beams": beams, "max_new_tokens": 6, "do_sample": False}
        want = theirs.generate(source, **asked, return_dict_in_generate=True, output_scores=True)
        out = ours.generate(source=source, strategy=strategy, max_new_tokens=6, eos_ids=None)
        assert [row.ids for row in out] == want.sequences[:, 1:].tolist()
        assert all(row.ids[0] == 7 for row in out)
    assert [row.score for row in out] == pytest.approx(want.sequences_scores.tolist(), abs=1e-4)
    assert (ours.start, ours.first) == (start, 7)
    for write in (save_hf, save_model):
        again = gn.load(write(ours, tmp_path / write.__name__))
        assert (again.start, again.first) == (start, 7)


OUTGROWN = [
    case("llama", "dynamic", max_position_embeddings=16, rope_parameters=rope("dynamic", factor=2.0)),
    _case("phi3", "LongRoPE"),
]


@pytest.mark.parametrize("model", OUTGROWN, ids=str)
def test_past_the_trained_length_a_cache_changes_the_result_there_and_not_here(tmp_path, model):
    """Another table is in force from 17 tokens on; the other library leaves older keys turned by the old one."""
    theirs = model.model()
    ours, ids = loaded(theirs, tmp_path), draw_ids(1, 20)
    with torch.no_grad():
        whole = theirs(ids).logits[:, -1]
        half = theirs(ids[:, :14], use_cache=True)
        there = theirs(ids[:, 14:], **going_on(theirs, half)).logits[:, -1]
        here = in_pieces(ours, ids, ours.cache(), pieces=(14, 1, 1, 1, 1))[:, -1]
    torch.testing.assert_close(ours(ids)[:, -1], whole, rtol=0, atol=1e-4)
    assert (there - whole).abs().max() > 1e-2
    torch.testing.assert_close(here, whole, rtol=0, atol=1e-4)
