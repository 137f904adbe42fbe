"""Laws of the token table: one matrix, counted once, with rows that stay what they are."""

import copy
from collections.abc import Iterator

import torch
from torch.nn import functional as F

from gnomon.audit.law import Evidence, law
from gnomon.audit.subject import D_MODEL, VOCAB, Subject, joined
from gnomon.audit.told import vocabulary_of
from gnomon.models import DecoderOnly
from gnomon.shapes import Float
from gnomon.trace import Trace


def treated(s: Subject) -> Iterator[DecoderOnly]:
    """A tied model after each treatment that is known to cut ties."""
    yield s.model(tied=True)
    yield copy.deepcopy(s.model(tied=True))
    loaded = s.model(tied=True)
    loaded.load_state_dict(s.model(tied=True).state_dict())
    yield loaded
    assigned = s.model(tied=True)
    assigned.load_state_dict(copy.deepcopy(assigned.state_dict()), assign=True)
    yield assigned
    with torch.device("meta"):
        empty = s.model(tied=True)
    filled = empty.to_empty(device="cpu")
    filled.load_state_dict(s.model(tied=True).state_dict())
    yield filled
    yield s.model(tied=True).double()
    for size in (VOCAB + 6, VOCAB - 4):
        resized = s.model(tied=True)
        resized.resize(size, pad_to_multiple=8)
        yield resized


def logits_of(model: DecoderOnly, h: Float) -> Float:
    """h E^T with the model's own table E, scaled and capped as its config says."""
    c = model.config
    logits = c.head_scale * h @ model.input.tokens.weight.T
    return logits if c.head_softcap is None else c.head_softcap * torch.tanh(logits / c.head_softcap)


@law("a tie stays a tie")
def a_tie_stays_a_tie(s: Subject) -> Evidence:
    """After copying, loading, assigning, casting or resizing, head and table are one matrix."""
    got, want = [], []
    for model in treated(s):
        h = s.normal(1, 2, D_MODEL).to(model.input.tokens.weight.dtype)
        model.input.tokens.weight.add_(s.normal(*model.input.tokens.weight.shape, stream=1))
        got.append(vocabulary_of(model)(h).float())
        want.append(logits_of(model, h).float())
    return Evidence(joined(*got), joined(*want))


@law("the scale counts once")
def the_scale_counts_once(s: Subject) -> Evidence:
    """The embedding scale multiplies token vectors once, and the tied head not at all: its scale is its own."""
    ids, scale = s.ids(2, 6), D_MODEL**0.5
    model, trace = s.model(embed_scale="sqrt", tied=True), Trace()
    model(ids, trace=trace)
    assert trace.tokens is not None
    table, h = model.input.tokens.weight, s.normal(2, 6, D_MODEL)
    want = joined(F.one_hot(ids, VOCAB).float() @ table * scale, logits_of(model, h))
    uncounted = joined(F.one_hot(ids, VOCAB).float() @ table, logits_of(model, h))
    return Evidence(joined(trace.tokens, vocabulary_of(model)(h)), want, uncounted)


@law("the padding row stays zero")
def the_padding_row_stays_zero(s: Subject) -> Evidence:
    """The padding token's vector is 0 after building, training (tied or not), loading and resizing."""
    got = []
    for tied in (True, False):
        model = s.model(tied=tied, padding_id=3)
        got.append(model.input.tokens.weight[3].clone())
        with torch.enable_grad():
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            ids = torch.tensor([[3, 1, 2, 3, 4]])
            torch.autograd.backward(F.cross_entropy(model(ids)[0, :-1], ids[0, 1:]))
            optimizer.step()
        got.append(model.input.tokens.weight[3].clone())
        model.resize(VOCAB + 3)
        got.append(model.input.tokens.weight[3].clone())
    others = model.input.tokens.weight[[*range(3), *range(4, VOCAB + 3)]].abs().amin(1)
    zero = torch.zeros(D_MODEL)
    return Evidence(joined(*got, (others > 0).float()), joined(*[zero] * 6, torch.ones(VOCAB + 2)), slack=0.0)


@law("resizing keeps old rows")
def resizing_keeps_old_rows(s: Subject) -> Evidence:
    """A larger or smaller vocabulary leaves the rows that remain, and so their logits, bit-equal."""
    ids, got, want = s.ids(2, 6) % 20, [], []
    for tied in (True, False):
        for size in (VOCAB + 4, 20):
            model = s.model(tied=tied)
            kept = min(size, VOCAB)
            h, before = model.hidden(ids), vocabulary_of(model).weight[:kept].clone()
            rows = model.resize(size, pad_to_multiple=3)
            shapes = [vocabulary_of(model).weight.shape[0], model.input.tokens.weight.shape[0], model.config.vocab_size]
            got += [vocabulary_of(model).weight[:kept], model.hidden(ids), torch.tensor(shapes)]
            want += [before, h, torch.tensor([-(-size // 3) * 3] * 3)]
            assert rows == shapes[0]
    return Evidence(joined(*got), joined(*want), slack=0.0)
