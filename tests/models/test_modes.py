"""Training and evaluation mode are one computation but for dropout, in every architecture under every encoding."""

import pytest
import torch

import gnomon as gn

ARCHITECTURES = {"decoder-only": gn.DecoderOnly, "encoder-only": gn.EncoderOnly, "encoder-decoder": gn.EncoderDecoder}
every = pytest.mark.parametrize("architecture", ARCHITECTURES)
each = pytest.mark.parametrize("position", [name for name in gn.positions.names() if name != "none"])
IDS = torch.tensor([[1, 2, 3, 4, 5], [6, 7, 8, 9, 10]])


def model(architecture, position, **settings):
    if architecture != "decoder-only" and gn.positions.encoding(position).one_sided:
        pytest.skip("for causal attention only")
    torch.manual_seed(0)
    return ARCHITECTURES[architecture](11, 16, 2, 4, position=position, max_positions=16, init_std=0.2, **settings)


def texts(architecture):
    return (IDS, IDS.flip(1)) if architecture == "encoder-decoder" else (IDS,)


@every
@each
def test_dropout_sleeps_in_evaluation(architecture, position):
    """Also after training, in cross-attention, and step by step with a cache."""
    dropping, plain = model(architecture, position, dropout=0.9), model(architecture, position)
    given = texts(architecture)
    assert not torch.equal(dropping.train()(*given), dropping(*given))
    want = plain.eval()(*given)
    assert torch.equal(dropping.eval()(*given), want)
    assert torch.equal(dropping(*given), want)
    if architecture == "encoder-only":
        return
    cache, ids = dropping.cache(), given[-1]
    if architecture == "encoder-decoder":
        cache.memory = dropping.encode(IDS)
    steps = [dropping.head(dropping.hidden(ids[:, i:j], cache=cache)) for i, j in ((0, 3), (3, 4), (4, 5))]
    torch.testing.assert_close(torch.cat(steps, 1), want, atol=1e-5, rtol=1e-5)


@every
@each
@pytest.mark.parametrize("lengths", [(3, 2), (3, 0)])
def test_without_dropout_both_modes_give_the_same_at_real_tokens(architecture, position, lengths):
    """No slot is cut off or turned into something else where no gradient is kept, and an empty row is no error."""
    both, at = model(architecture, position), gn.Layout.padded(torch.arange(5) < torch.tensor(lengths)[:, None])
    given = (*texts(architecture), at)
    training, evaluation = both.train()(*given), both.eval()(*given)
    with torch.inference_mode():
        bare = both(*given)
    assert training.shape == evaluation.shape == bare.shape == (2, 5, 11)
    assert bare.isfinite().all()
    seen = torch.ones_like(at.real) if architecture == "encoder-decoder" else at.real
    for other in (evaluation, bare):
        torch.testing.assert_close(other[seen], training[seen], atol=1e-5, rtol=1e-5)
