"""Laws of cross-attention: what a decoder sees of its source, with and without a cache.

They are asked of the subject's settings as an encoder-decoder, whatever it is itself.
"""

from dataclasses import replace

import torch

from gnomon.attention import Memory
from gnomon.audit.law import Evidence, law
from gnomon.audit.laws.caches import caches, paddings
from gnomon.audit.laws.padding import all_seen
from gnomon.audit.subject import VOCAB, NotApplicable, Subject, joined
from gnomon.audit.told import ToldDecoder
from gnomon.layout import Layout
from gnomon.shapes import Float, Int

ROWS = 3


def decoder(s: Subject) -> ToldDecoder:
    """The subject's settings as an encoder-decoder, which has no form with sublayers side by side."""
    model = replace(s, architecture="encoder-decoder").model(residual="sequential")
    assert isinstance(model, ToldDecoder)
    return model


def sources(s: Subject) -> Int:
    """(3, 7) ids of sources."""
    return torch.randint(VOCAB, (ROWS, 7), generator=torch.Generator().manual_seed(s.seed + 5))


def logits(model: ToldDecoder, target: Int, memory: Memory) -> Float:
    """(B, T, V) of a target whose rows look at `memory`."""
    return model.head(model.hidden(target, memory=memory))


def row_by_row(model: ToldDecoder, target: Int, source: Int, at: Layout) -> Float:
    """The same with each row's source encoded alone, without padding."""
    rows = [(target[b : b + 1], source[b, at.real[b]][None]) for b in range(len(target))]
    return torch.cat([logits(model, one, model.encode(its)) for one, its in rows])


@law("source padding is hidden")
def source_padding_is_hidden(s: Subject) -> Evidence:
    """Sources padded on the left, on the right or inside give the logits of each source alone."""
    model, target, source = decoder(s), s.ids(ROWS, 5), sources(s)
    got, want, fault = [], [], []
    for mask in paddings():
        at = Layout.padded(mask)
        memory = model.encode(source, at)
        got.append(logits(model, target, memory))
        want.append(row_by_row(model, target, source, at))
        fault.append(logits(model, target, Memory(memory.states, all_seen(at))))
    return Evidence(joined(*got), joined(*want), joined(*fault))


@law("a source is read both ways")
def a_source_is_read_both_ways(s: Subject) -> Evidence:
    """Another source token anywhere changes what the encoder makes of every source token, and so every logit."""
    model, source = decoder(replace(s, window=None)), sources(s)[:1].expand(7, 7)
    other = source + torch.diag((source[0] + 1) % VOCAB - source[0])
    before, after = model.encode(source), model.encode(other)
    target = s.ids(1, 4).expand(7, 4)
    got = [before.states != after.states, logits(model, target, before) != logits(model, target, after)]
    reached = joined(*(changed.any(-1).float() for changed in got))
    return Evidence(reached, torch.ones_like(reached), slack=0.0)


@law("a source is seen through the cache")
def a_source_is_seen_through_the_cache(s: Subject) -> Evidence:
    """Decoding step by step from keys and values made once gives the logits of looking at the source anew."""
    model, target, at = decoder(s), s.ids(ROWS, 7), Layout.padded(paddings()[0])
    memory = model.encode(sources(s), at)
    got, want = [], logits(model, target, memory)
    for cache in caches(model):
        cache.memory = memory
        got.append(torch.cat([model(target[:, i:j], cache=cache) for i, j in ((0, 3), (3, 4), (4, 7))], 1))
    unseen = logits(model, target, replace(memory, states=memory.states * 0))
    return Evidence(joined(*got), joined(*[want] * len(got)), joined(*[unseen] * len(got)))


@law("rows keep their source")
def rows_keep_their_source(s: Subject) -> Evidence:
    """After `reorder`, every row goes on looking at the source it began with."""
    model, at, index = decoder(s), Layout.padded(paddings()[1]), torch.tensor([2, 0, 0, 1])
    start, more, memory = s.ids(ROWS, 4), s.ids(4, 3), model.encode(sources(s), at)
    want = logits(model, torch.cat([start[index], more], 1), memory.rows(index))[:, 4:]
    wrong = memory.rows(torch.tensor([0, 1, 2, 0]))
    fault = logits(model, torch.cat([start[index], more], 1), wrong)[:, 4:]
    got = []
    for cache in caches(model):
        cache.memory = memory
        model(start, cache=cache)
        cache.reorder(index)
        got.append(torch.cat([model(more[:, :1], cache=cache), model(more[:, 1:], cache=cache)], 1))
    return Evidence(joined(*got), joined(*[want] * len(got)), joined(*[fault] * len(got)))


@law("source padding gets no gradient")
def source_padding_gets_no_gradient(s: Subject) -> Evidence:
    """Tokens in the padding of a source receive exactly no gradient, and its real ones some."""
    model, source, at = decoder(replace(s, tied=False)), sources(s) % (VOCAB - 1), Layout.padded(paddings()[2])
    source = source.masked_fill(~at.real, VOCAB - 1)
    model.zero_grad()
    with torch.enable_grad():
        out = logits(model, s.ids(ROWS, 4) % (VOCAB - 1), model.encode(source, at))
        torch.autograd.backward(out.square().sum())
    sent = model.input.tokens.weight.grad
    assert sent is not None
    got = [sent[VOCAB - 1].abs().amax(), (sent[:-1].abs().amax() > 0).float()]
    return Evidence(torch.stack(got), torch.tensor([0.0, 1.0]), slack=0.0)


@law("cross-attention has no distance", shown_by="rope, alibi, t5")
def cross_attention_has_no_distance(s: Subject) -> Evidence:
    """Under a relative encoding, moving the whole source away from the target changes nothing."""
    if not s.spec.cls.relative:
        raise NotApplicable(f"{s.spec.name} is not a relative encoding")
    if s.options.get("sink_tokens"):
        raise NotApplicable("the tokens that are kept are told by their position")
    model, target, source, at = decoder(s), s.ids(ROWS, 5), sources(s), Layout.dense(ROWS, 7)
    moved, stretched = replace(at, pos=at.pos + 37), replace(at, pos=at.pos * 2, kind="custom")
    got = logits(model, target, model.encode(source, moved))
    fault = logits(model, target, model.encode(source, stretched))
    return Evidence(got, logits(model, target, model.encode(source, at)), fault)


__all__ = ["decoder", "sources"]
