"""Laws of the token table: one matrix, counted once, with rows that stay what they are."""

import copy
from collections.abc import Iterator

import torch
from torch.nn import functional as F

from gnomon.audit.law import Evidence
from gnomon.audit.laws.gnomon import make_evidence, small_law
from gnomon.audit.small import D_MODEL, VOCAB, SmallModel, flatten
from gnomon.models import DecoderOnly
from gnomon.shapes import Float


def treatments(s: SmallModel) -> Iterator[DecoderOnly]:
    """A tied model after each treatment that is known to cut ties."""
    yield s.model(tied=True, embed_scale="sqrt")  # which the head knows nothing of
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


@small_law(
    "the head reads the table",
    hint="logits are h E^T times the head's own scale, E the very matrix that embeds tokens",
)
def the_head_reads_the_table(s: SmallModel) -> Evidence:
    """After copying, loading, assigning, casting or resizing, logits are h E^T, with a scale of their own."""
    got, want = [], []
    for model in treatments(s):
        head = model.over_vocabulary
        assert head is not None
        h = s.normal(1, 2, D_MODEL).to(model.input.tokens.weight.dtype)
        model.input.tokens.weight.add_(s.normal(*model.input.tokens.weight.shape, stream=1))
        got.append(head(h).float())
        want.append(logits_of(model, h).float())
    return make_evidence(flatten(*got), flatten(*want))


@small_law(
    "the padding row stays zero",
    hint="zero the row after weights are drawn, and keep gradients of the head from it",
)
def the_padding_row_stays_zero(s: SmallModel) -> Evidence:
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
    return make_evidence(flatten(*got, (others > 0).float()), flatten(*[zero] * 6, torch.ones(VOCAB + 2)), slack=0.0)
