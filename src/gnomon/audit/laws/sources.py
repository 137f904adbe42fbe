"""Laws of encoder-decoders: the source is seen, and its padding is not."""

import torch

from gnomon.audit.law import Evidence, law
from gnomon.audit.laws.caches import for_each_cache, read_in_chunks
from gnomon.audit.laws.influence import demand_difference
from gnomon.audit.laws.padding import is_close, left_padding_mask, padding_is_seen, right_padding_mask, slots_count
from gnomon.audit.target import NotApplicable, Target
from gnomon.shapes import Bool, Float

UNMASKED = "an encoder or a cross-attention that is not told which source tokens are real"
HIDE = "the mask of the source must reach the encoder and every cross-attention, and its positions count real tokens"


@law(
    "the source is seen",
    "source",
    source=UNMASKED,
    hint="no logit depends on the source: it is not handed on, or the decoder does not look at it",
    shrinks=False,
)
def the_source_is_seen(t: Target, n: int) -> Evidence:
    """Another source gives other logits."""
    ids, source = t.ids(2, n), t.ids(2, n, stream=11)
    return demand_difference(t, t.with_source(t.other(source)).logits(ids), t.with_source(source).logits(ids), ids)


@law("source padding on the left changes nothing", "source", source=UNMASKED, hint=HIDE)
def source_padding_on_the_left(t: Target, n: int) -> Evidence:
    """A source padded on the left gives the logits of the source alone."""
    return _check_padded_source(t, n, left_padding_mask(t, n))


@law("source padding on the right changes nothing", "source", source=UNMASKED, hint=HIDE)
def source_padding_on_the_right(t: Target, n: int) -> Evidence:
    """A source padded on the right gives the logits of the source alone."""
    return _check_padded_source(t, n, right_padding_mask(t, n))


def _ask_padded_sources(t: Target, n: int, mask: Bool) -> tuple[Float, Float]:
    """The logits of rows whose sources are padded where mask is False, and of each row with its source alone."""
    ids, source = t.ids(3, n), t.fill_padding(t.ids(3, n + 1, stream=11), mask)
    want = torch.cat([t.with_source(source[b, mask[b]][None]).logits(ids[b : b + 1]) for b in range(3)])
    return t.with_source(source, mask).logits(ids), want


def _check_padded_source(t: Target, n: int, mask: Bool) -> Evidence:
    ids, text = t.ids(3, n), t.ids(3, n + 1, stream=11)
    got, want = _ask_padded_sources(t, n, mask)
    fault = t.with_source(text).logits(ids)  # of real tokens in all places: a padding id may hide itself
    if bool(mask[:, 0].logical_not().any()) and not is_close(t, got, want) and "left" in t.slots:
        padded = t.fill_padding(text, mask)
        seen = padding_is_seen(t, lambda: t.with_source(padded, mask).logits(ids), padded, mask)
        if not seen and is_close(t, *_ask_padded_sources(t, n, right_padding_mask(t, n))):
            raise NotApplicable(slots_count(t))
    ignored = torch.equal(t.with_source(text, mask).logits(ids), fault)
    cause = "the mask of the source changes nothing: it does not arrive" if ignored else ""
    return Evidence(got, want, fault, ids, cause=cause)


@law(
    "rows keep their source",
    "source",
    source="a source shared, repeated or reordered wrongly among rows",
    hint="row b reads source b",
)
def rows_keep_their_source(t: Target, n: int) -> Evidence:
    """In a batch each row gives the logits that it gives with its own source alone."""
    ids, source = t.ids(3, n), t.ids(3, n + 1, stream=11)
    want = torch.cat([t.with_source(source[b : b + 1]).logits(ids[b : b + 1]) for b in range(3)])
    return Evidence(t.with_source(source).logits(ids), want, t.with_source(source.roll(1, 0)).logits(ids), ids)


@law(
    "the source is seen through the cache",
    "source",
    "cache",
    source="cross-attention keys that grow, vanish or are overwritten by a step",
    hint="keys and values of the source are made once and kept as they are, beside those that grow",
)
@for_each_cache
def the_source_is_seen_through_the_cache(t: Target, n: int) -> Evidence:
    """Reading token by token with a padded source gives the logits of one read at once."""
    mask, ids = right_padding_mask(t, n), t.ids(3, n)
    source = t.ids(3, n + 1, stream=11)
    try:
        read = t.with_source(t.fill_padding(source, mask), mask)
        got: Float = read_in_chunks(read, ids, [1] * n)
    except NotApplicable:  # of a target whose steps take no mask of the source
        read = t.with_source(source)
        got = read_in_chunks(read, ids, [1] * n)
    return Evidence(got, read.logits(ids), t.with_source(t.ids(3, n + 1, stream=12)).logits(ids), ids)


__all__ = [
    "rows_keep_their_source",
    "source_padding_on_the_left",
    "source_padding_on_the_right",
    "the_source_is_seen",
    "the_source_is_seen_through_the_cache",
]
