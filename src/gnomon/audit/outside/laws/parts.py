"""A law of parts: what is made is used."""

import torch

from gnomon.audit.outside.rule import Evidence, rule
from gnomon.audit.outside.target import Target
from gnomon.audit.subject import NotApplicable


@rule(
    "every part is used",
    source="a table of positions or a norm that is made and never called; a loop that keeps the last block alone",
    hint="look for a part that forward() forgets, for a result that is thrown away, for detach()",
    shrinks=False,
)
def every_part_is_used(t: Target, n: int) -> Evidence:
    """Every weight has a part in the logits."""
    t.need("module")
    if not t.uses_all or t.routed:
        raise NotApplicable(f"nobody says that {t.name} uses all of its weights for every text")
    asked = t.redrawn() or t.copy()
    weights = {name: w for name, w in asked.module.named_parameters() if w.requires_grad and not chosen_among(name)}
    if not weights:
        raise NotApplicable(f"{t.name} has no weights that are trained")
    with torch.enable_grad():
        logits = asked.logits(t.ids(2, n))
        if not logits.requires_grad:
            raise NotApplicable(f"no gradient comes back from the logits of {t.name}")
        drawn = torch.randn(logits.shape, generator=t.rng(8)).to(logits)
        grads = torch.autograd.grad((logits * drawn).sum(), list(weights.values()), allow_unused=True)
    idle = [
        name for (name, w), g in zip(weights.items(), grads, strict=True) if g is None or (w.dim() > 1 and not g.any())
    ]
    named = ", ".join(idle[:4]) + (f" and {len(idle) - 4} more" if len(idle) > 4 else "")
    got = torch.tensor(float(len(idle)))
    return Evidence(got, torch.zeros(()), tolerance=0.0, cause=f"no logit depends on {named}" if idle else "")


def chosen_among(name: str) -> bool:
    """Whether a weight lies in a list within a list, as experts do, of which a text may need a few alone."""
    return sum(part.isdigit() for part in name.split(".")) > 1


__all__ = ["chosen_among", "every_part_is_used"]
