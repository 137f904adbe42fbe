"""A text that outgrows its table of positions: step by step it is what one full forward of that length is."""

import pytest
import torch

import gnomon as gn
from gnomon.positions.scaling import DynamicNTK, LongRoPE

L = 16
LONG = LongRoPE(4.0, L, (1.0, 1.0, 1.0, 1.0), (2.0, 2.0, 4.0, 8.0))
METHODS = pytest.mark.parametrize("method", [DynamicNTK(2.0, L), LONG], ids=["dynamic", "longrope"])


def model(method, architecture="decoder-only", **changes):
    torch.manual_seed(0)
    sizes = {"vocab_size": 30, "d_model": 16, "n_layers": 3, "n_heads": 2, "init_std": 0.3}
    cls = gn.DecoderOnly if architecture == "decoder-only" else gn.EncoderDecoder
    return cls(**sizes, position=gn.positions.get("rope", scaling=method), **changes).eval()


def ids(B, T, seed=1):
    return torch.randint(30, (B, T), generator=torch.Generator().manual_seed(seed))


def last(m, text, cache=None, at=None):
    with torch.no_grad():
        return m(text, at, cache)[:, -1]


@METHODS
@pytest.mark.parametrize("kind", ["growing", "preallocated", "rolling"])
def test_every_step_is_the_full_forward_of_its_length(method, kind):
    """The logits after n tokens with a cache are those of n tokens read at once, below L, at it and past it."""
    m, text = model(method, window=7 if kind == "rolling" else None), ids(2, 24)
    cache = m.cache(kind, capacity=24)
    last(m, text[:, :14], cache)
    for n in range(15, 25):
        torch.testing.assert_close(last(m, text[:, n - 1 : n], cache), last(m, text[:, :n]), atol=1e-5, rtol=1e-4)


@METHODS
@pytest.mark.parametrize("chunk", [1, 3, 8])
def test_chunks_end_where_the_whole_ends(method, chunk):
    m, text = model(method), ids(2, 20)
    cache = m.cache()
    for start in range(0, 20, chunk):
        got = last(m, text[:, start : start + chunk], cache)
    torch.testing.assert_close(got, last(m, text), atol=1e-5, rtol=1e-4)


@METHODS
def test_a_long_text_changes_nothing_about_the_next_short_one(method):
    m, short = model(method), ids(1, 5)
    before = last(m, short)
    last(m, ids(1, 40))
    assert torch.equal(last(m, short), before)


@METHODS
def test_each_row_has_the_table_of_its_own_length(method):
    """Row 0 stays within L while row 1 grows past it; each is its single run."""
    m, text = model(method), ids(2, 21)
    mask = torch.arange(15) >= torch.tensor([[10], [0]])
    cache = m.cache()
    last(m, text[:, :15], cache, gn.Layout.padded(mask))
    for t in range(15, 21):
        got = last(m, text[:, t : t + 1], cache)
        torch.testing.assert_close(got[0], last(m, text[:1, 10 : t + 1])[0], atol=1e-5, rtol=1e-4)
        torch.testing.assert_close(got[1], last(m, text[1:, : t + 1])[0], atol=1e-5, rtol=1e-4)


@METHODS
def test_going_back_below_the_trained_length_goes_back_to_its_table(method):
    m, text, more = model(method), ids(1, 19), ids(1, 2, seed=3)
    cache = m.cache()
    last(m, text, cache)
    cache.crop(9)
    torch.testing.assert_close(last(m, more, cache), last(m, torch.cat([text[:, :9], more], 1)), atol=1e-5, rtol=1e-4)


@METHODS
def test_reordered_rows_are_read_again_as_themselves(method):
    m, text, index = model(method), ids(3, 15), torch.tensor([2, 0, 0])
    cache, more = m.cache(), ids(3, 4, seed=5)
    last(m, text, cache)
    cache.reorder(index)
    want = last(m, torch.cat([text[index], more], 1))
    torch.testing.assert_close(last(m, more, cache), want, atol=1e-5, rtol=1e-4)


@METHODS
def test_an_encoder_decoder_reads_its_target_again_beside_the_same_source(method):
    m, source, target = model(method, "encoder-decoder"), ids(2, 6), ids(2, 20, seed=2)
    cache = m.cache()
    cache.memory = m.encode(source)
    with torch.no_grad():
        for t in range(20):
            got = m.hidden(target[:, t : t + 1], cache=cache)[:, -1]
        torch.testing.assert_close(got, m.hidden(target, memory=m.encode(source))[:, -1], atol=1e-5, rtol=1e-4)


def test_generation_crosses_the_trained_length():
    m = model(LONG)
    [text] = m.generate([[1, 2, 3]], max_new_tokens=24, eos_ids=None)
    whole = [1, 2, 3]
    for _ in range(24):
        whole.append(int(last(m, torch.tensor([whole])).argmax()))
    assert text.ids == whole[3:]


def test_a_frozen_table_never_reads_again():
    """It is the full forward that was given that length."""
    frozen = DynamicNTK(2.0, L, freeze=24)
    m, text = model(frozen), ids(1, 24)
    assert m.stack.positions[0].regime(gn.Layout.dense(1, 24)) is None
    torch.testing.assert_close(last(m, text), last(model(DynamicNTK(2.0, L)), text))
    cache = m.cache()
    steps = torch.cat([m(text[:, t : t + 1], cache=cache) for t in range(24)], 1)
    torch.testing.assert_close(steps, m(text), atol=1e-5, rtol=1e-4)


def test_a_step_that_fails_while_reading_again_leaves_the_cache():
    m, text = model(LONG), ids(1, 18)
    cache = m.cache()
    last(m, text[:, :16], cache)
    hook = m.stack.blocks[-1].register_forward_pre_hook(lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        last(m, text[:, 16:17], cache)
    hook.remove()
    torch.testing.assert_close(last(m, text[:, 16:], cache), last(m, text), atol=1e-5, rtol=1e-4)
