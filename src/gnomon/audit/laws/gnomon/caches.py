"""Laws of the key/value cache: going step by step is never another computation."""

from collections.abc import Iterator
from dataclasses import replace

import torch

from gnomon.attention.cache import Cache
from gnomon.audit.law import Evidence
from gnomon.audit.laws.gnomon import make_evidence, small_law
from gnomon.audit.small import SmallModel, decode, documents_alone, flatten, real_logits
from gnomon.layout import Layout
from gnomon.models import Writer
from gnomon.shapes import Int


def caches(model: Writer, rollback: int = 0) -> Iterator[Cache]:
    """An empty cache of every kind this model can use."""
    yield model.cache("growing")
    yield model.cache("preallocated", capacity=32)
    if None not in model.config.windows(model.config.n_layers):
        yield model.cache("rolling", rollback=rollback)


def paddings() -> tuple[Int, Int, Int]:
    """Masks (3, 7) of left, right and interior padding; the first row has none."""
    slot, missing = torch.arange(7), torch.tensor([[0], [2], [4]])
    inside = torch.tensor([[1, 1, 1, 1, 1, 1, 1], [1, 0, 1, 1, 0, 0, 1], [0, 1, 1, 0, 1, 1, 0]])
    return slot >= missing, slot < 7 - missing, inside.bool()


@small_law(
    "packed rows and rows with gaps decode in place",
    "causal",
    hint="`Layout.then` continues the document that a row ends with, at its count of real tokens",
)
def packed_rows_and_rows_with_gaps_decode_in_place(s: SmallModel) -> Evidence:
    """Tokens decoded after packed documents join a row's last one; after a row with gaps they count its real tokens."""
    model, ids, at = s.model(), s.ids(2, 11), Layout.packed([[3, 4], [5]])
    doc, length = torch.tensor([[1], [0]]).expand(2, 4), [4, 5]
    pos = torch.stack([n + torch.arange(4) for n in length])
    step = torch.stack([n + torch.arange(4) for n in (7, 5)])
    whole = at.cat(Layout(pos, step, doc, pos[:, -1:].expand_as(pos) + 1, "packed"))
    want = [documents_alone(model, ids, whole)]
    got = [real_logits(decode(model, ids, [7, 2, 1, 1], model.cache(), at), whole)]

    def into_the_first(at: Layout) -> Layout:
        return replace(at, doc=torch.zeros_like(at.pos))

    fault = real_logits(decode(model, ids, [7, 2, 1, 1], model.cache(), at, into_the_first), whole)
    mask, ids = paddings()[2], s.ids(3, 11)
    gapped = Layout.padded(torch.cat([mask, torch.ones(3, 4, dtype=torch.bool)], 1))
    want.append(documents_alone(model, ids, gapped))
    for cache in caches(model):
        got.append(real_logits(decode(model, ids, [7, 2, 1, 1], cache, Layout.padded(mask)), gapped))
    want += want[1:] * (len(got) - 2)
    return make_evidence(flatten(*got), flatten(*want), flatten(fault, *want[1:]))


@small_law(
    "crop = never read",
    "causal",
    hint="keys, values and layout go back together, each row by its own number of tokens",
)
def crop_is_never_read(s: SmallModel) -> Evidence:
    """After `crop`, each row continues as if the tokens cut off had never been read."""
    model, keep = s.model(), torch.tensor([4, 5, 2])
    mask, draft, more = paddings()[0], s.ids(3, 10), s.ids(3, 13)[:, 10:]
    got, want, fault = [], [], []
    for kept in (keep, torch.tensor([2, 2, 2])):
        real = mask.sum(1)
        rows = [torch.cat([draft[b, 7 - int(real[b]) :][: int(kept[b])], more[b]])[None] for b in range(3)]
        after = torch.cat([model(row)[:, -3:] for row in rows])
        for cache in caches(model, rollback=12):
            decode(model, draft, [7, 1, 2], cache, Layout.padded(mask))
            cache.crop(kept if kept is keep else 2)
            got.append(decode(model, more, [1, 2], cache))
            want.append(after)
            uncut = model.cache()
            decode(model, draft, [7, 1, 2], uncut, Layout.padded(mask))
            fault.append(decode(model, more, [1, 2], uncut))
    return make_evidence(flatten(*got), flatten(*want), flatten(*fault))


class _Stumble(Exception):
    """Raised on purpose behind the last block."""


@small_law(
    "a failed step leaves the cache",
    "causal",
    hint="a step writes into the cache when all layers have made theirs: `commit`",
)
def a_failed_step_leaves_the_cache(s: SmallModel) -> Evidence:
    """A step that fails half-way leaves the cache as it was: the next one continues from there."""
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
    return make_evidence(flatten(*got), flatten(*[model(ids)[:, 6:]] * len(got)), flatten(*fault))


@small_law(
    "garbage in empty slots",
    "causal",
    hint="what stands in empty slots is cleared before any kernel: a weight of 0 times NaN is NaN",
)
def garbage_in_empty_slots(s: SmallModel) -> Evidence:
    """NaN in the padded, cut or unfilled slots of a cache changes nothing."""
    model, (mask, _, _), ids = s.model(), paddings(), s.ids(3, 13)
    got, want = [], []
    for clean, poisoned in zip(caches(model, rollback=12), caches(model, rollback=12), strict=True):
        for cache in (clean, poisoned):
            decode(model, ids, [7, 2], cache, Layout.padded(mask))
            cache.crop(torch.tensor([9, 6, 3]))
        _poison(poisoned)
        got.append(decode(model, ids[:, 9:], [1, 3], poisoned))
        want.append(decode(model, ids[:, 9:], [1, 3], clean))
    real_slots_poisoned = flatten(*want) * float("nan")
    return make_evidence(flatten(*got), flatten(*want), real_slots_poisoned)


def _poison(cache: Cache) -> None:
    """Put NaN wherever the cache holds no token; a huge number would be gone under a weight of 0."""
    assert cache.at is not None
    empty, held = ~cache.at.real, len(cache)
    for store in (cache.k, cache.v, cache.state):
        for x in store.values():
            x[:, :, :held].masked_fill_(empty[:, None, :, None], float("nan"))
            x[:, :, held:] = float("nan")


@small_law(
    "a step past the table leaves the cache",
    "causal",
    hint="`check` looks at where tokens sit, not at how many come, and before anything is computed",
)
def a_step_past_the_table_leaves_the_cache(s: SmallModel) -> Evidence:
    """Where a table of positions ends, a step past it raises and leaves the cache; elsewhere there is no end."""
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
        return make_evidence(torch.tensor(got), torch.tensor(want))
    after = model(ids[:, 6:], cache=cache)
    return make_evidence(flatten(torch.tensor(got), after), flatten(torch.tensor(want), model(ids)[:, 6:]))


__all__ = ["caches", "paddings"]
