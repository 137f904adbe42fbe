"""Laws of repetition: the same question gets the same answer, whatever came before and however the model was made."""

import copy
import io
from dataclasses import replace

import torch

from gnomon.audit.law import Evidence
from gnomon.audit.laws.gnomon import make_evidence, small_law
from gnomon.audit.laws.gnomon.caches import paddings
from gnomon.audit.small import SmallModel
from gnomon.layout import Layout


@small_law(
    "training = evaluation without dropout",
    hint="dropout is all that may differ between the modes",
)
def training_is_evaluation_without_dropout(s: SmallModel) -> Evidence:
    """Without dropout, a row in a batch in training gives the logits it gives alone in evaluation, padded or not."""
    model, ids, at = s.model(dropout=0.0), s.ids(3, 7), Layout.padded(paddings()[1])
    alone = torch.cat([model(row[None]) for row in ids])
    want = torch.stack([alone, model(ids, at)])
    model.train()
    with torch.enable_grad():
        got = torch.stack([model(ids), model(ids, at)])
    return make_evidence(got, want)


@small_law(
    "copies compute the same",
    hint="look for numbers that a state dict does not hold",
)
def copies_compute_the_same(s: SmallModel) -> Evidence:
    """A deep copy, a reloaded model and one built without memory and then filled give the same bits."""
    model, ids = s.model(), s.ids(2, 9)
    other = replace(s, seed=s.seed + 1)
    reloaded, assigned = other.model(), other.model()
    saved = io.BytesIO()
    torch.save(model.state_dict(), saved)
    saved.seek(0)
    reloaded.load_state_dict(torch.load(saved, weights_only=True))
    assigned.load_state_dict(copy.deepcopy(model.state_dict()), assign=True)
    with torch.device("meta"):
        empty = s.model()
    filled = empty.to_empty(device="cpu")
    for x in (*filled.parameters(), *filled.buffers()):
        x.fill_(float("nan"))  # what fresh memory may hold
    filled.load_state_dict(model.state_dict())
    got = torch.stack([twin(ids) for twin in (copy.deepcopy(model), reloaded, assigned, filled)])
    return make_evidence(got, torch.stack([model(ids)] * 4), slack=0.0)
