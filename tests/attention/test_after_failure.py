"""A cache after something went wrong, and at the edge of what it may forget."""

import pytest
import torch

import gnomon as gn
from gnomon.models import DecoderOnly


def model(**settings) -> DecoderOnly:
    torch.manual_seed(0)
    return DecoderOnly(30, 16, 2, 2, init_std=0.3, **settings).eval()


@pytest.mark.parametrize("kind", ["growing", "preallocated"])
def test_a_smaller_batch_after_a_failed_step_meets_an_empty_cache(kind):
    """The first forward dies between its layers; its two rows must not be what the next one writes into."""
    m, ids = model(), torch.randint(30, (2, 9))
    cache = m.cache(kind, capacity=20)

    def interrupted(*_):
        raise KeyboardInterrupt

    hook = m.stack.blocks[1].register_forward_pre_hook(interrupted)
    with torch.no_grad(), pytest.raises(KeyboardInterrupt):
        m(ids, cache=cache)
    hook.remove()
    with torch.no_grad():
        assert torch.equal(m(ids[:1], cache=cache), m(ids[:1]))


def test_a_window_of_one_does_not_forget_where_it_is():
    m, ids = model(position="sinusoidal", window=1), torch.randint(30, (2, 9))
    cache = m.cache("rolling")
    with torch.no_grad():
        m(ids, cache=cache)
        with pytest.raises(gn.BadValue, match="larger rollback"):
            cache.crop(8)
        assert torch.allclose(m(ids[:, :1], cache=cache), m(torch.cat([ids, ids[:, :1]], 1))[:, 9:], atol=1e-5)
