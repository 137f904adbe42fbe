"""Laws of the key/value cache: going step by step is never another computation."""

from collections.abc import Iterator
from dataclasses import replace

import torch

from gnomon.attention.cache import Cache, RollingCache
from gnomon.audit.law import Evidence, law
from gnomon.audit.subject import Subject, alone, at_real, decode, joined
from gnomon.layout import Layout
from gnomon.models import DecoderOnly, Writer
from gnomon.shapes import Float, Int

POSITIONAL = "sinusoidal, learned, rope, alibi, t5"


def caches(model: Writer, rollback: int = 0) -> Iterator[Cache]:
    """An empty cache of every kind this model can use."""
    yield model.cache("growing")
    yield model.cache("preallocated", capacity=32)
    if None not in model.config.windows(model.config.n_layers):
        yield model.cache("rolling", rollback=rollback)


@law("cached = uncached")
def cached_is_uncached(s: Subject) -> Evidence:
    """Decoding with a cache of any kind gives the logits of one full forward."""
    s.must_be_causal()
    model, ids = s.model(), s.ids(2, 12)
    got = [decode(model, ids, [5] + [1] * 7, cache) for cache in caches(model)]
    past_forgotten = torch.cat([model(part) for part in torch.split(ids, [5] + [1] * 7, 1)], 1)
    return Evidence(joined(*got), joined(*[model(ids)] * len(got)), joined(*[past_forgotten] * len(got)))


@law("decoding continues positions", shown_by=POSITIONAL)
def decoding_continues_positions(s: Subject) -> Evidence:
    """A decoded token sits right after the last one that the cache holds."""
    s.must_be_causal()
    model, ids = s.model(), s.ids(2, 12)
    got = decode(model, ids, [4] + [1] * 8, model.cache())
    at_zero = decode(
        model, ids, [4] + [1] * 8, model.cache(), place=lambda at: replace(at, pos=at.pos * 0, kind="custom")
    )
    return Evidence(got, model(ids), at_zero)


@law("chunked = whole")
def chunked_is_whole(s: Subject) -> Evidence:
    """A prompt read in chunks gives the logits of one read at once, whatever the sizes of the chunks."""
    s.must_be_causal()
    model, ids = s.model(), s.ids(2, 14)
    got = [decode(model, ids, s.cuts(14), cache) for cache in caches(model)]
    past_forgotten = torch.cat([model(part) for part in torch.split(ids, s.cuts(14), 1)], 1)
    return Evidence(joined(*got), joined(*[model(ids)] * len(got)), joined(*[past_forgotten] * len(got)))


@law("padded rows decode at their own places", shown_by=POSITIONAL)
def padded_rows_decode_at_their_own_places(s: Subject) -> Evidence:
    """A batch padded on either side, or inside, goes on with each row as if the row were alone."""
    s.must_be_causal()
    model, ids = s.model(), s.ids(3, 12)
    got: list[Float] = []
    want: list[Float] = []
    fault: list[Float] = []
    for mask in paddings():
        at = Layout.padded(mask)
        whole = Layout.padded(torch.cat([mask, torch.ones(3, 5, dtype=torch.bool)], 1))
        for cache in caches(model):
            got.append(at_real(decode(model, ids, [7, 2, 1, 1, 1], cache, at), whole))
            want.append(alone(model, ids, whole))
        fault += [at_real(_counted(model, ids, at), whole)] * (len(got) - len(fault))
    return Evidence(joined(*got), joined(*want), joined(*fault))


def paddings() -> tuple[Int, Int, Int]:
    """Masks (3, 7) of left, right and interior padding; the first row has none."""
    slot, missing = torch.arange(7), torch.tensor([[0], [2], [4]])
    inside = torch.tensor([[1, 1, 1, 1, 1, 1, 1], [1, 0, 1, 1, 0, 0, 1], [0, 1, 1, 0, 1, 1, 0]])
    return slot >= missing, slot < 7 - missing, inside.bool()


def _counted(model: DecoderOnly, ids: Int, at: Layout) -> Float:
    """Logits of a batch whose later positions are counted in slots."""
    cache = model.cache()
    return decode(model, ids, [7, 2, 1, 1, 1], cache, at, lambda after: _by_slot(after, cache))


def _by_slot(at: Layout, cache: Cache) -> Layout:
    """Positions counted in slots of memory, padding included."""
    return replace(at, pos=(len(cache) + torch.arange(at.shape[1])).expand(at.shape), kind="custom")


@law("packed rows continue their last document")
def packed_rows_continue_their_last_document(s: Subject) -> Evidence:
    """Tokens decoded after packed documents belong to the last document of their row."""
    s.must_be_causal()
    model, ids, at = s.model(), s.ids(2, 11), Layout.packed([[3, 4], [5]])
    doc, length = torch.tensor([[1], [0]]).expand(2, 4), [4, 5]
    pos = torch.stack([n + torch.arange(4) for n in length])
    step = torch.stack([n + torch.arange(4) for n in (7, 5)])
    whole = at.cat(Layout(pos, step, doc, pos[:, -1:].expand_as(pos) + 1, "packed"))
    want = alone(model, ids, whole)
    got = at_real(decode(model, ids, [7, 2, 1, 1], model.cache(), at), whole)

    def into_the_first(at: Layout) -> Layout:
        return replace(at, doc=torch.zeros_like(at.pos))

    fault = at_real(decode(model, ids, [7, 2, 1, 1], model.cache(), at, into_the_first), whole)
    return Evidence(got, want, fault)


@law("rolling = windowed")
def rolling_is_windowed(s: Subject) -> Evidence:
    """A rolling cache gives the logits of a full forward with the same window, padded rows and kept tokens included."""
    s.must_be_causal()
    window = max(3, s.window or 4)
    model, ids, left = s.model(window=window), s.ids(3, 14), paddings()[0]
    got, fault, want = [], [], [model(ids)] * 3
    for first, rollback in ((2, 0), (window, 2), (window + 2, 0)):
        chunks = [first] + [1] * (10 - first) + [3, 1]
        got.append(decode(model, ids, chunks, model.cache("rolling", rollback=rollback)))
        fault.append(decode(model, ids, chunks, RollingCache(window - 2)))
    whole = Layout.padded(torch.cat([left, torch.ones(3, 7, dtype=torch.bool)], 1))
    for this in (model, s.model(window=window, sink_tokens=2)):
        got.append(at_real(decode(this, ids, [7] + [1] * 4 + [3], this.cache("rolling"), Layout.padded(left)), whole))
        want.append(alone(this, ids, whole))
    return Evidence(joined(*got), joined(*want), joined(*fault, *want[-2:]))


@law("eviction moves no position", shown_by=POSITIONAL)
def eviction_moves_no_position(s: Subject) -> Evidence:
    """A token's position is its own count, not the number of tokens that a rolling cache still holds."""
    s.must_be_causal()
    model, ids, chunks = s.model(window=max(3, s.window or 4)), s.ids(2, 14), [2] + [1] * 12
    by_slot = decode(model, ids, chunks, c := model.cache("rolling"), place=lambda at: _by_slot(at, c))
    return Evidence(decode(model, ids, chunks, model.cache("rolling")), model(ids), by_slot)


@law("reorder = rerun")
def reorder_is_rerun(s: Subject) -> Evidence:
    """After `reorder`, every row goes on as if it had been read in its new order from the start."""
    s.must_be_causal()
    model, (mask, _, _), index = s.model(), paddings(), torch.tensor([2, 0, 0, 1])
    start, more = s.ids(3, 7), s.ids(4, 4)
    whole = Layout.padded(torch.cat([mask[index], torch.ones(4, 4, dtype=torch.bool)], 1))
    want = alone(model, torch.cat([start[index], more], 1), whole)[:, 7:]
    got, fault = [], []
    for cache in caches(model):
        model(start, Layout.padded(mask), cache)
        cache.reorder(index)
        got.append(decode(model, more, [1, 3], cache))
        unmoved = model.cache()
        model(torch.cat([start, start[:1]]), Layout.padded(torch.cat([mask, mask[:1]])), unmoved)
        fault.append(decode(model, more, [1, 3], unmoved))
    return Evidence(joined(*got), joined(*[want] * len(got)), joined(*fault))


@law("crop = never gone on")
def crop_is_never_gone_on(s: Subject) -> Evidence:
    """After `crop`, each row goes on as if the tokens cut off had never been read."""
    s.must_be_causal()
    model, keep = s.model(), torch.tensor([4, 5, 2])
    mask, draft, more = paddings()[0], s.ids(3, 10), s.ids(3, 13)[:, 10:]
    got, want, fault = [], [], []
    for sink_tokens in (keep, torch.tensor([2, 2, 2])):
        real = mask.sum(1)
        rows = [torch.cat([draft[b, 7 - int(real[b]) :][: int(sink_tokens[b])], more[b]])[None] for b in range(3)]
        after = torch.cat([model(row)[:, -3:] for row in rows])
        for cache in caches(model, rollback=12):
            decode(model, draft, [7, 1, 2], cache, Layout.padded(mask))
            cache.crop(sink_tokens if sink_tokens is keep else 2)
            got.append(decode(model, more, [1, 2], cache))
            want.append(after)
            uncut = model.cache()
            decode(model, draft, [7, 1, 2], uncut, Layout.padded(mask))
            fault.append(decode(model, more, [1, 2], uncut))
    return Evidence(joined(*got), joined(*want), joined(*fault))


class _Stumble(Exception):
    """Raised on purpose behind the last block."""


@law("a failed step leaves the cache")
def a_failed_step_leaves_the_cache(s: Subject) -> Evidence:
    """A step that fails half-way leaves the cache as it was: the next one goes on from there."""
    s.must_be_causal()
    model, ids, wrong = s.model(), s.ids(2, 9), s.ids(2, 11)[:, 9:]
    got, fault = [], []

    def stumble(*_: object) -> None:
        raise _Stumble

    for cache in caches(model):
        model(ids[:, :6], cache=cache)
        hook = model.stack.blocks[-1].register_forward_hook(stumble)
        try:
            model(wrong, cache=cache)
        except _Stumble:
            hook.remove()
        got.append(decode(model, ids[:, 6:], [1, 2], cache))
        gone_on = model.cache()
        decode(model, torch.cat([ids[:, :6], wrong], 1), [6, 2], gone_on)
        fault.append(decode(model, ids[:, 6:], [1, 2], gone_on))
    return Evidence(joined(*got), joined(*[model(ids)[:, 6:]] * len(got)), joined(*fault))


@law("garbage in empty slots")
def garbage_in_empty_slots(s: Subject) -> Evidence:
    """NaN in the padded, cut or unfilled slots of a cache changes nothing."""
    s.must_be_causal()
    model, (mask, _, _), ids = s.model(), paddings(), s.ids(3, 13)
    got, want = [], []
    for clean, poisoned in zip(caches(model, rollback=12), caches(model, rollback=12), strict=True):
        for cache in (clean, poisoned):
            decode(model, ids, [7, 2], cache, Layout.padded(mask))
            cache.crop(torch.tensor([9, 6, 3]))
        _poison(poisoned)
        got.append(decode(model, ids[:, 9:], [1, 3], poisoned))
        want.append(decode(model, ids[:, 9:], [1, 3], clean))
    real_slots_poisoned = joined(*want) * float("nan")
    return Evidence(joined(*got), joined(*want), real_slots_poisoned)


def _poison(cache: Cache) -> None:
    """Put NaN or huge numbers wherever the cache holds no token."""
    assert cache.at is not None
    empty, held = ~cache.at.real, len(cache)
    for store, garbage in ((cache.k, float("nan")), (cache.v, 1e30), (cache.state, float("nan"))):
        for x in store.values():
            x[:, :, :held].masked_fill_(empty[:, None, :, None], garbage)
            x[:, :, held:] = garbage


@law("past the table is an error")
def past_the_table_is_an_error(s: Subject) -> Evidence:
    """Where a table of positions ends, the model says so and its cache stays as it was; elsewhere there is no end."""
    s.must_be_causal()
    model, ids, too_many = s.model(max_positions=8), s.ids(2, 8), s.ids(2, 4)
    size, longer = (sum(p.numel() for p in s.model(max_positions=n).parameters()) for n in (8, 9))
    cache, refused = model.cache(), False
    model(ids[:, :6], cache=cache)
    try:
        model(too_many, cache=cache)
    except ValueError:
        refused = True
    got, want = [float(refused), len(cache)], [1.0, 6.0] if longer > size else [0.0, 10.0]
    if not refused:
        return Evidence(torch.tensor(got), torch.tensor(want))
    after = model(ids[:, 6:], cache=cache)
    return Evidence(joined(torch.tensor(got), after), joined(torch.tensor(want), model(ids)[:, 6:]))


__all__ = ["caches", "paddings"]
