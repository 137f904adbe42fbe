"""x-transformers as targets: what is asked of the target is said in the library's own words."""

import warnings

import pytest
import torch

import gnomon as gn
from gnomon.audit import NotApplicable
from gnomon.audit.adapters import target
from gnomon.audit.adapters.x_transformers import XTransformers

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # it still calls torch.jit.script
    from x_transformers import AutoregressiveWrapper, Decoder, Encoder, TransformerWrapper, XTransformer

LAYERS = {"dim": 16, "depth": 2, "heads": 2, "attn_dim_head": 8, "verbose": False}


@pytest.fixture(autouse=True)
def no_gradients():
    with torch.no_grad():
        yield


def net(kind=Decoder, outside=None, **layers):
    torch.manual_seed(0)
    made = TransformerWrapper(
        num_tokens=29, max_seq_len=64, attn_layers=kind(**LAYERS, **layers), **(outside or {})
    ).eval()
    for weight in made.parameters():
        weight.add_(0.2 * torch.randn_like(weight))
    return made


@pytest.mark.slow
@pytest.mark.parametrize("kind", [Decoder, Encoder])
def test_no_law_about_padding_order_or_caches_accuses_a_healthy_model(kind):
    laws = (
        "causality",
        "shift",
        "cached = full",
        "chunks",
        "padded rows",
        "reorder",
        "beam",
        "left",
        "right",
        "packed",
    )
    report = gn.audit(net(kind), only=laws)
    assert report.failed == ()
    assert len(report.of("pass")) >= (4 if kind is Encoder else 10)


def test_padding_at_the_beginning_is_told_as_generate_tells_it():
    model = net(rotary_pos_emb=True)
    t = target(model)
    ids, mask = t.ids(2, 6), torch.tensor([[True] * 6, [False] * 2 + [True] * 4])
    assert torch.equal(t.logits(ids, mask=mask), model(ids, seq_start_pos=torch.tensor([0, 2])))
    places = torch.tensor([[0, 1, 2, 3, 4, 5], [0, 0, 0, 1, 2, 3]])
    assert torch.equal(t.logits(ids, mask, places), model(ids, mask=mask, pos=places))


def test_padding_inside_a_text_needs_positions():
    t, mask = target(net()), torch.tensor([[True, False, True]])
    with pytest.raises(NotApplicable, match="says nothing of positions"):
        t.logits(t.ids(1, 3), mask=mask)
    t.logits(t.ids(1, 3), mask, torch.tensor([[0, 0, 1]]))
    windowed = target(net(attn_max_attend_past=2))
    with pytest.raises(NotApplicable, match="windows count slots"):
        windowed.logits(windowed.ids(1, 3), mask, torch.tensor([[0, 0, 1]]))


def test_a_step_goes_on_at_the_positions_given_before_it():
    t = target(net(rotary_pos_emb=True))
    ids, at = t.ids(2, 5), torch.tensor([[3, 5, 6, 9, 11], [0, 1, 2, 3, 4]])
    first, state = t.step(None, ids[:, :3], positions=at[:, :3])
    second, _ = t.step(state, ids[:, 3:], positions=at[:, 3:])
    assert torch.allclose(torch.cat([first, second], 1), t.logits(ids, positions=at), atol=1e-5)


def test_positions_are_offered_where_the_library_reads_them():
    assert "positions" in target(net(alibi_pos_bias=True)).can
    assert "positions" not in target(net(rel_pos_bias=True)).can
    assert "positions" not in target(net(outside={"use_abs_pos_emb": False})).can


@pytest.mark.slow
def test_a_head_that_is_a_closure_does_not_stay_tied():
    found = gn.audit(net(outside={"tie_embedding": True}), only=["a tie stays a tie"]).failed
    assert "deep copy" in found[0].note


def test_a_decoder_without_a_mask_of_the_future_is_called_so():
    found = gn.audit(net(orthog_residual=True), only=["causality"]).failed
    assert [f.law for f in found] == ["causality"]


def test_an_encoder_decoder_is_told_its_source():
    torch.manual_seed(0)
    sizes = {
        f"{end}_{name}": n
        for end in ("enc", "dec")
        for name, n in (("num_tokens", 29), ("max_seq_len", 64), ("depth", 1), ("heads", 2), ("attn_dim_head", 8))
    }
    model = XTransformer(dim=16, enc_verbose=False, dec_verbose=False, **sizes).eval()
    t = target(model)
    assert isinstance(t, XTransformers)
    source, ids, mask = t.ids(2, 4), t.ids(2, 3), torch.tensor([[True] * 4, [True] * 2 + [False] * 2])
    read = model.encoder(source, mask=mask, return_embeddings=True)
    want = model.decoder.net(ids, context=read, context_mask=mask)
    assert torch.equal(t.with_source(source, mask).logits(ids), want)
    alone = t.with_source(source[1:, :2]).logits(ids[1:])
    assert torch.allclose(t.with_source(source, mask).logits(ids)[1:], alone, atol=1e-5)


def test_the_loss_is_the_wrappers():
    model = AutoregressiveWrapper(net())
    t = target(model)
    ids = t.ids(2, 6)
    assert torch.equal(t.loss(ids), model(ids))


def test_gates_of_forgetting_attention_are_not_taken_for_queries_or_keys():
    """Made by queries and keys of their own, in one matrix as wide as those of attention."""
    gates = {"attn_data_dependent_alibi": True, "attn_data_dependent_alibi_per_row": True}
    model = net(outside={"use_abs_pos_emb": False}, **gates, attn_data_dependent_alibi_per_row_dim_head=4)
    law = "heads are interchangeable"
    assert gn.audit(model, only=[law])[law].verdict == "not applicable"
