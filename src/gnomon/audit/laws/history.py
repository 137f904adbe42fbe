"""Laws of repetition: the same question gets the same answer, whatever came before and however the model was made."""

import copy
import io
from dataclasses import replace

import torch

from gnomon.audit.law import Evidence, law
from gnomon.audit.laws.caches import POSITIONAL, paddings
from gnomon.audit.subject import Subject
from gnomon.layout import Layout


@law("call history", shown_by=POSITIONAL)
def call_history(s: Subject) -> Evidence:
    """A long call, or one at other positions, changes nothing about the calls after it."""
    model, ids = s.model(), s.ids(3, 7)
    fresh = [model(ids), model(ids, Layout.padded(paddings()[0]))]
    used = s.model()
    used(s.ids(3, 40))
    used(ids, Layout.randomized(7, max=50, rng=s.rng(), batch=3))
    used(ids, Layout.padded(paddings()[2]))
    got = [used(ids), used(ids, Layout.padded(paddings()[0]))]
    stretched = [s.model()(ids, replace(Layout.dense(3, 7), pos=Layout.dense(3, 7).pos * 2, kind="custom")), fresh[1]]
    return Evidence(torch.stack(got), torch.stack(fresh), torch.stack(stretched), slack=0.0)


@law("evaluation is deterministic")
def evaluation_is_deterministic(s: Subject) -> Evidence:
    """In evaluation mode dropout is off: two calls give the bits of a model without dropout."""
    model, ids = s.model(dropout=0.5), s.ids(2, 9)
    plain = s.model(dropout=0.0)(ids)
    got = torch.stack([model(ids), model(ids)])
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(s.seed)
        dropped = model.train()(ids)
    back = model.eval()(ids)
    return Evidence(torch.cat([got, back[None]]), torch.stack([plain] * 3), torch.stack([dropped] * 3), slack=0.0)


@law("training = evaluation without dropout")
def training_is_evaluation_without_dropout(s: Subject) -> Evidence:
    """Without dropout, training mode gives the logits of evaluation mode, padded batches and gradients included."""
    model, ids, at = s.model(dropout=0.0), s.ids(3, 7), Layout.padded(paddings()[1])
    want = torch.stack([model(ids), model(ids, at)])
    model.train()
    with torch.enable_grad():
        got = torch.stack([model(ids), model(ids, at)])
    return Evidence(got, want)


@law("copies compute the same")
def copies_compute_the_same(s: Subject) -> Evidence:
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
    return Evidence(got, torch.stack([model(ids)] * 4), slack=0.0)
