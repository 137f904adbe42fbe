"""Laws of order: who sees whom, and what a position changes."""

import torch

from gnomon.audit.outside.rule import Evidence, rule
from gnomon.audit.outside.target import Target


@rule(
    "causality",
    source="Vaswani et al. 2017, section 3.2.3",
    hint="a query sees keys behind it: look at the side of triu/tril, at <= against <, and whether the mask arrives "
    "where attention is computed",
)
def causality(t: Target, n: int) -> Evidence:
    """Changing a token changes no logits before it."""
    t.must_be_causal()
    ids = t.ids(2, n + 1)
    changed = ids.clone()
    changed[:, -1:] = t.other(ids)[:, -1:]
    got, want = t.logits(changed), t.logits(ids)
    first = ids.clone()
    first[:, :1] = t.other(ids)[:, :1]
    past_unseen = torch.equal(t.logits(first)[:, 1:], want[:, 1:])
    cause = "a token sees those behind it and none before it: the mask is the wrong way round" if past_unseen else ""
    return Evidence(got[:, :-1], want[:, :-1], None, changed, cause=cause)


__all__ = ["causality"]
