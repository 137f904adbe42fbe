"""A law of copies: what a deep copy computes with is its own.

Averages of weights (EMA), frozen teachers and ensembles are made by deepcopy, which copies modules but no functions: a
function over its parts, kept by a module, still calls the parts of the original when its module is copied.
"""

import torch

from gnomon.audit.law import Evidence, law
from gnomon.audit.laws.padding import is_close
from gnomon.audit.laws.parts import moves
from gnomon.audit.laws.positions import open_gates
from gnomon.audit.target import Target
from gnomon.shapes import Int


@law(
    "a deep copy is a model of its own",
    "module",
    source="copy.deepcopy copies no functions: a lambda over self.mlp calls the mlp of the original",
    hint="a copy gives other logits than the original with the same weights: look for functions, lists and tensors "
    "that are kept beside parameters, and for a __deepcopy__",
    shrinks=False,
)
def a_deep_copy_is_its_own(t: Target, n: int) -> Evidence:
    """A deep copy with other weights gives their logits, and the original goes on giving its own."""
    copied, ids = t.copy(), t.ids(2, n)
    before = t.logits(ids)
    with open_gates(t) as asked:
        other = {name: weight.detach().clone() for name, weight in asked.module.named_parameters()}
        want = asked.logits(ids)
    for name, weight in copied.module.named_parameters():
        if name in other:
            weight.data.copy_(other[name])
    got, after = copied.logits(ids), t.logits(ids)
    borrowed = [] if is_close(t, got, want) else _shared_weights(t, copied, ids)
    named = ", ".join(borrowed[:4]) + (f" and {len(borrowed) - 4} more" if len(borrowed) > 4 else "")
    cause = (
        f"a deep copy computes with {named} of the original, and so would an average of the weights made by deepcopy"
    )
    return Evidence(
        torch.cat([got, after]),
        torch.cat([want, before]),
        torch.cat([before, want]),
        ids,
        cause=cause if borrowed else "",
    )


def _shared_weights(t: Target, copied: Target, ids: Int) -> list[str]:
    """Names of the original's weights that the copy's logits depend on."""
    before = [copied.logits(ids)]
    with t.editable() as asked:
        return [name for name, weight in asked.module.named_parameters() if moves(copied, ids, weight, before)]


__all__ = ["a_deep_copy_is_its_own"]
