"""Gnomon's models as targets: what is asked of the target is what the model itself gives."""

import pytest
import torch

import gnomon as gn
from gnomon.audit import NotApplicable, SmallModel, audit
from gnomon.audit.adapters import target
from gnomon.layout import Layout

ENCODINGS = gn.positions.names()
SIZES = {"vocab_size": 29, "d_model": 32, "n_layers": 2, "n_heads": 4, "init_std": 0.3}


def decoder(**settings):
    torch.manual_seed(0)
    return gn.DecoderOnly(**{**SIZES, "position": "rope", "max_positions": 64, **settings}).eval()


@pytest.fixture(autouse=True)
def no_gradients():
    with torch.no_grad():
        yield


@pytest.mark.slow
@pytest.mark.parametrize("architecture", ["decoder-only", "encoder-only", "encoder-decoder"])
@pytest.mark.parametrize("encoding", ["rope", "learned", "t5"])
def test_no_law_accuses_a_model_of_ours(architecture, encoding):
    assert gn.audit(SmallModel.of(encoding, architecture=architecture).model()).failed == ()


def test_masks_positions_and_documents_are_layouts():
    model = decoder(position="learned")
    t, at = target(model), Layout.packed([[2, 3]])
    ids, mask = t.ids(1, 5), torch.tensor([[False, True, True, True, True]])
    assert torch.equal(t.logits(ids, mask=mask), model(ids, Layout.padded(mask)))
    assert torch.equal(t.logits(ids, docs=torch.tensor([[0, 0, 1, 1, 1]])), model(ids, at))
    assert torch.equal(t.logits(ids, positions=at.pos), model(ids, Layout.from_hf(None, at.pos)))
    assert torch.equal(t.logits(ids, mask, at.pos), model(ids, Layout.from_hf(mask, at.pos)))


def test_documents_beside_a_mask_are_refused():
    t = target(decoder())
    with pytest.raises(NotApplicable, match="packed"):
        t.logits(t.ids(1, 2), mask=torch.ones(1, 2, dtype=torch.bool), docs=torch.zeros(1, 2).long())


@pytest.mark.parametrize("encoding", ["learned", "rope"])
def test_steps_at_given_places_are_one_read_at_these_places(encoding):
    t = target(decoder(position=encoding))
    ids, at = t.ids(2, 5), torch.tensor([[3, 5, 6, 9, 11], [0, 1, 2, 3, 4]])
    first, state = t.step(None, ids[:, :3], positions=at[:, :3])
    second, _ = t.step(state, ids[:, 3:], positions=at[:, 3:])
    assert torch.allclose(torch.cat([first, second], 1), t.logits(ids, positions=at), atol=1e-4)


@pytest.mark.parametrize("architecture", ["decoder-only", "encoder-decoder"])
def test_a_beam_without_a_cache_is_generates_own(architecture):
    t = target(SmallModel.of("rope", architecture=architecture).model())
    assert t.beam(t.ids(2, 4), 3, 6, cached=False) == t.beam(t.ids(2, 4), 3, 6, cached=True)


def test_a_beam_never_writes_the_padding_token():
    t = target(decoder(tied=False, head_bias=True, padding_id=3))
    t.model.head.bias[3] = 100.0
    assert all(3 not in row for cached in (True, False) for row in t.beam(t.ids(2, 4), 2, 5, cached))


def test_another_source_is_told_row_by_row():
    t = target(SmallModel.of("alibi", architecture="encoder-decoder").model())
    ids, source = t.ids(2, 4), t.ids(2, 6, stream=3)
    both = t.with_source(source)
    for row in (0, 1):
        alone = t.with_source(source[row : row + 1])
        assert torch.allclose(both.logits(ids)[row], alone.logits(ids[row : row + 1])[0], atol=1e-4)
        assert both.beam(ids, 2, 4, False)[row] == alone.beam(ids[row : row + 1], 2, 4, True)[0]
    assert not torch.allclose(both.logits(ids), t.logits(ids), atol=1e-2)


def test_the_loss_is_that_of_training():
    t = target(decoder())
    ids = t.ids(2, 6)
    want = torch.nn.functional.cross_entropy(t.logits(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())
    assert torch.allclose(t.loss(ids), want)


@pytest.mark.parametrize(
    ("settings", "limit", "ends", "shift", "window"),
    [
        ({"position": "learned", "max_positions": 40}, 40, True, "changed", None),
        ({"position": "sinusoidal"}, 64, False, "changed", None),
        ({"position": "alibi", "max_positions": None}, None, False, "kept", None),
        ({"position": "none"}, 64, False, "kept", None),
        (
            {"position": {"name": "rope", "scaling": {"kind": "yarn", "factor": 4.0, "original_length": 16}}},
            16,
            False,
            "kept",
            None,
        ),
        (
            {"position": {"name": "rope", "scaling": {"kind": "dynamic", "factor": 4.0, "original_length": 16}}},
            16,
            False,
            "unknown",
            None,
        ),
    ],
)
def test_what_an_encoding_promises_is_known(settings, limit, ends, shift, window):
    t = target(decoder(**settings))
    assert (t.limit, t.table_ends, t.shift, t.window) == (limit, ends, shift, window)


@pytest.mark.parametrize(
    ("settings", "shift", "window"),
    [
        ({"window": 5}, "kept", 5),
        ({"window": [5, None]}, "kept", None),
        ({"window": 5, "sink_tokens": 1}, "unknown", None),
    ],
)
def test_a_shift_is_kept_by_windows_but_not_beside_sink_tokens(settings, shift, window):
    """Sink tokens are told by their positions: moved on, none of a text is one, which a text in the window hides."""
    t = target(decoder(**settings))
    assert (t.shift, t.window) == (shift, window)
    ids, at = t.ids(1, 9), torch.arange(9)[None]
    moved = (t.logits(ids, positions=at + 20) - t.logits(ids, positions=at)).abs().amax(-1)[0]
    assert moved[:5].max() < 1e-3
    assert (moved[8] < 1e-3) == (shift == "kept")


@pytest.mark.parametrize("length", [8, 40])
@pytest.mark.parametrize("kind", ["linear", "yarn", "dynamic"])
def test_the_table_is_the_promised_one(kind, length):
    scaling = {"kind": kind, "factor": 4.0, **({} if kind == "linear" else {"original_length": 16})}
    got, want = target(decoder(position={"name": "rope", "scaling": scaling})).angles(length)
    assert torch.allclose(got, want, atol=1e-9)
    assert got.shape == (length, 4 + 1)


def test_a_head_without_a_vocabulary_gives_vectors():
    torch.manual_seed(0)
    t = target(gn.EncoderOnly(**SIZES, position="alibi", head="pooled"))
    assert t.logits(t.ids(2, 3)).shape == (2, 3, 32)
    with pytest.raises(NotApplicable, match="no head"):
        t.embedding_and_head()


def test_a_bidirectional_decoder_is_an_encoder():
    t = target(decoder(causal=False))
    assert t.architecture == "encoder-only"
    assert not t.can & {"cache", "beam", "loss"}


def test_a_saved_and_a_resized_model_are_targets_too(tmp_path):
    t = target(decoder())
    again, larger = t.save_and_load(tmp_path), t.resize(40)
    assert torch.equal(again.logits(t.ids(1, 4)), t.logits(t.ids(1, 4)))
    assert larger.vocab == 40
    assert larger.logits(t.ids(1, 4)).shape[-1] == 40
    assert t.vocab == 29


def test_special_ids_are_never_drawn():
    model = decoder(padding_id=0)
    model.ends, model.start = (1, 2), 3
    assert set(target(model).ids(8, 40).flatten().tolist()) == set(range(4, 29))


def test_audit_is_the_same_twice():
    model = decoder()
    assert audit(model, only=["cached"]).as_dict() == audit(model, only=["cached"]).as_dict()


def test_a_model_with_experts_says_that_tokens_are_sent_to_some() -> None:
    """In float16 roundings alone send some elsewhere, so laws of precision are not asked."""
    assert target(decoder(experts={"n_experts": 4})).routed
    assert not target(decoder()).routed
