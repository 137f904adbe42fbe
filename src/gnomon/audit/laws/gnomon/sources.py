"""Laws of cross-attention: what a decoder sees of its source, with and without a cache.

They are asked of the subject's settings as an encoder-decoder, whatever it is itself.
"""

from dataclasses import replace

import torch

from gnomon.attention import Memory
from gnomon.audit.law import Evidence
from gnomon.audit.laws.gnomon import make_evidence, small_law
from gnomon.audit.laws.gnomon.caches import paddings
from gnomon.audit.small import VOCAB, SmallModel, flatten
from gnomon.audit.source_model import DecoderOverSource
from gnomon.audit.target import NotApplicable
from gnomon.errors import BadValue
from gnomon.layout import Layout
from gnomon.shapes import Float, Int

ROWS = 3


def decoder(s: SmallModel) -> DecoderOverSource:
    """The same settings as an encoder-decoder, with sublayers in a row. Raise NotApplicable if they make none."""
    options = {**s.options, "causal": True, "residual": "sequential", "distinct_layers": None}
    try:
        model = replace(s, architecture="encoder-decoder", options=options).model()
    except BadValue as no:
        raise NotApplicable(f"with a source these settings make no model: {no}") from no
    assert isinstance(model, DecoderOverSource)
    return model


def sources(s: SmallModel) -> Int:
    """(3, 7) ids of sources."""
    return torch.randint(VOCAB, (ROWS, 7), generator=torch.Generator().manual_seed(s.seed + 5))


def logits(model: DecoderOverSource, target: Int, memory: Memory) -> Float:
    """(B, T, V) of a target whose rows look at `memory`."""
    return model.head(model.hidden(target, memory=memory))


@small_law(
    "a source is read both ways",
    hint="an encoder has no causal mask",
)
def a_source_is_read_both_ways(s: SmallModel) -> Evidence:
    """Another source token anywhere changes what the encoder makes of every source token, and so every logit."""
    model, source = decoder(s.with_options(window=None)), sources(s)[:1].expand(7, 7)
    other = source + torch.diag((source[0] + 1) % VOCAB - source[0])
    before, after = model.encode(source), model.encode(other)
    target = s.ids(1, 4).expand(7, 4)
    got = [before.states != after.states, logits(model, target, before) != logits(model, target, after)]
    reached = flatten(*(changed.any(-1).float() for changed in got))
    return make_evidence(reached, torch.ones_like(reached), slack=0.0)


@small_law(
    "source padding gets no gradient",
    hint="padding of the source must be hidden in the encoder and in cross-attention",
)
def source_padding_gets_no_gradient(s: SmallModel) -> Evidence:
    """Tokens in the padding of a source receive exactly no gradient, and its real ones some."""
    model, source, at = decoder(s.with_options(tied=False)), sources(s) % (VOCAB - 1), Layout.padded(paddings()[2])
    source = source.masked_fill(~at.real, VOCAB - 1)
    model.zero_grad()
    with torch.enable_grad():
        out = logits(model, s.ids(ROWS, 4) % (VOCAB - 1), model.encode(source, at))
        torch.autograd.backward(out.square().sum())
    sent = model.input.tokens.weight.grad
    assert sent is not None
    got = [sent[VOCAB - 1].abs().amax(), (sent[:-1].abs().amax() > 0).float()]
    return make_evidence(torch.stack(got), torch.tensor([0.0, 1.0]), slack=0.0)


@small_law(
    "cross-attention has no distance",
    hint="no bias or rotation acts between two texts",
    shown_by="rope, alibi, t5",
)
def cross_attention_has_no_distance(s: SmallModel) -> Evidence:
    """Under a relative encoding, moving the whole source away from the target changes nothing."""
    if not s.spec.cls.relative:
        raise NotApplicable(f"{s.spec.name} is not a relative encoding")
    if s.options.get("sink_tokens"):
        raise NotApplicable("the tokens that are kept are told by their position")
    model, target, source, at = decoder(s), s.ids(ROWS, 5), sources(s), Layout.dense(ROWS, 7)
    moved, stretched = replace(at, pos=at.pos + 37), replace(at, pos=at.pos * 2, kind="custom")
    got = logits(model, target, model.encode(source, moved))
    fault = logits(model, target, model.encode(source, stretched))
    return make_evidence(got, logits(model, target, model.encode(source, at)), fault)


__all__ = ["decoder", "sources"]
