"""A law of parts: what is made is used.

What else a model gives beside logits, a value say, counts as a use. An end for another task, which this call does not
ask for, is not accused.
"""

import inspect
import re
from collections.abc import Iterator, Mapping

import torch
from torch import nn

from gnomon.audit.law import Evidence, law
from gnomon.audit.laws.positions import open_gates
from gnomon.audit.target import NotApplicable, Target
from gnomon.shapes import Float, Int

#: first parts of the names of what reads a whole text, or is trained beside the logits
ENDS = re.compile(r"head|classif|pool|score|value|critic|reward", re.IGNORECASE)

#: inputs that have no part of their own: what is to be predicted, which tokens are real and where, what was read
GIVEN = re.compile(
    r"^(x|idx|(input_)?ids|tokens|state)$|embeds|target|label|mask|pos|past|cache|return|output|use_|start|offset|kv|loss"
    r"|len",
    re.IGNORECASE,
)


@law(
    "every part is used",
    "module",
    source="a table of positions or a norm that is made and never called; a loop that keeps the last block alone",
    hint="look for a part that forward() forgets, for a result that is thrown away, for detach()",
    shrinks=False,
)
def every_part_is_used(t: Target, n: int) -> Evidence:
    """Every weight has a part in the logits."""
    if not t.uses_all or t.routed:
        raise NotApplicable(f"nobody says that {t.name} uses all of its weights for every text")
    if n < 2:
        raise NotApplicable(f"{t.name} reads one token alone, which needs neither queries nor keys")
    if wants := not_given(t.module):
        raise NotApplicable(f"{t.name} also takes {wants}, which a text does not need: a part may be for that")
    with open_gates(t) as asked:
        ids = t.ids(2, n)
        idle = drop_callers_heads(asked, unused_weights(asked, ids), asked.logits(ids).shape[-1])
    named = ", ".join(idle[:4]) + (f" and {len(idle) - 4} more" if len(idle) > 4 else "")
    got = torch.tensor(float(len(idle)))
    return Evidence(got, torch.zeros(()), tolerance=0.0, cause=f"no logit depends on {named}" if idle else "")


def unused_weights(t: Target, ids: Int) -> list[str]:
    """Names of trained weights that no logit depends on."""
    weights = {
        name: w
        for name, w in t.module.named_parameters()
        if w.requires_grad and not chosen_among(name) and not is_another_end(name)
    }
    if not weights:
        raise NotApplicable(f"{t.name} has no weights that are trained")
    with torch.enable_grad():
        logits, given = all_given(t, ids)
        if not logits.requires_grad:
            return [name for name, w in weights.items() if not moves(t, ids, w, [logits, *given])]
        rng = t.rng(8)
        total = [(x * torch.randn(x.shape, generator=rng).to(x)).sum() for x in (logits, *given) if x.requires_grad]
        grads = torch.autograd.grad(total, list(weights.values()), allow_unused=True)
    return [
        name for (name, w), g in zip(weights.items(), grads, strict=True) if g is None or (w.dim() > 1 and not g.any())
    ]


def drop_callers_heads(t: Target, idle: list[str], width: int) -> list[str]:
    """The idle weights without those of a head that the caller is to call: one that makes logits of a vocabulary from
    what forward gives, vectors of this width."""
    heads = [
        path
        for path, m in t.module.named_modules()
        if isinstance(m, nn.Linear) and (m.in_features, m.out_features) == (width, t.vocab) and width != t.vocab
    ]
    return [name for name in idle if name.rpartition(".")[0] not in heads]


def moves(t: Target, ids: Int, weight: Float, before: list[Float]) -> bool:
    """Whether what a model gives, logits first, changes with this weight of a lent module."""
    was = weight.data.clone()
    weight.data.add_(torch.randn(was.shape, generator=t.rng(8)).to(was))
    logits, given = all_given(t, ids)
    weight.data.copy_(was)
    return any(not torch.equal(a, b) for a, b in zip(before, [logits, *given], strict=False))


def not_given(module: nn.Module) -> str:
    """Name of an input that forward takes beside ids and that no law gives; "" where there is none."""
    optional = [name for name, p in inspect.signature(module.forward).parameters.items() if p.default is None]
    return next((name for name in optional if not GIVEN.search(name)), "")


def all_given(t: Target, ids: Int) -> tuple[Float, list[Float]]:
    """Logits (B, T, V), and all other numbers that come out of the model."""
    out: list[Float] = []
    handle = t.module.register_forward_hook(lambda _, __, made: out.extend(tensors(made)))
    try:
        logits = t.logits(ids)
    finally:
        handle.remove()
    return logits, [x for x in out if x.is_floating_point()]


def tensors(made: object) -> Iterator[Float]:
    """All that are in what a forward returns."""
    if isinstance(made, torch.Tensor):
        yield made
    elif isinstance(made, Mapping | list | tuple):
        for part in made.values() if isinstance(made, Mapping) else made:
            yield from tensors(part)


def is_another_end(name: str) -> bool:
    """Whether a weight lies at the end of a model, outside its lists, in a part for something else than its tokens."""
    parts = name.split(".")
    return not any(part.isdigit() for part in parts) and any(ENDS.search(part) for part in parts[:-1])


def chosen_among(name: str) -> bool:
    """Whether a weight lies in a list within a list, as experts do, of which a text may need a few alone."""
    return sum(part.isdigit() for part in name.split(".")) > 1


__all__ = [
    "all_given",
    "chosen_among",
    "every_part_is_used",
    "is_another_end",
    "not_given",
    "tensors",
    "unused_weights",
]
