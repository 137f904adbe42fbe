"""Laws of the heads: each has matrices of its own, and all are treated alike."""

import torch

from gnomon.audit.attention_probe import TOKENS, find_attention, is_linear, record_calls
from gnomon.audit.law import Evidence, law
from gnomon.audit.laws.embedding import first_block_input
from gnomon.audit.target import NotApplicable, Target
from gnomon.shapes import Float, Int


@law(
    "heads are interchangeable",
    source="Vaswani et al. 2017, section 3.2.2; Su et al. 2021, arXiv:2104.09864, equation 15: each head turns alike",
    hint="split into heads first, (B, T, D) -> (B, H, T, C), then rotate with frequencies of width C",
    shown_by="rope",
    shrinks=False,
)
def heads_are_interchangeable(t: Target, n: int) -> Evidence:
    """Giving each head the queries, keys and values of another one gives it what that one made of them."""
    attention = find_attention(t)
    q, k, v = (torch.randn(1, TOKENS, attention.width, generator=t.rng(s)).to(t.device, t.dtype) * 2 for s in (1, 2, 3))
    C = attention.head_width()
    if attention.width == C:
        raise NotApplicable(f"{t.name} has one head")
    attention.must_have_no_biases(C)
    swapped = torch.arange(attention.width, device=t.device).view(-1, C).roll(1, 0).flatten()
    got, want = attention(q[..., swapped], k[..., swapped], v[..., swapped]), attention(q, k, v)[..., swapped]
    tolerance = 1e3 * torch.finfo(t.dtype).eps * float(v.abs().amax())
    if not (got - want).abs().amax() <= tolerance and not attention.is_turned_across_heads(C):
        raise NotApplicable(f"heads of {t.name} differ, in a way that no fault known here explains")
    cause = "queries and keys are rotated over the whole d_model before they are split into heads"
    return Evidence(got, want, None, None, tolerance, cause)


@law(
    "heads have projections",
    source="Vaswani et al. 2017, section 3.2.2: W_q, W_k, W_v of every head",
    hint="project before splitting: q, k, v = W_q x, W_k x, W_v x",
    shrinks=False,
)
def heads_have_projections(t: Target, n: int) -> Evidence:
    """In a block, tokens meet each other only after a matrix has made queries, keys and values of them."""
    block, ids = t.blocks()[0], differing_first_tokens(t, 6)
    if not t.causal:
        raise NotApplicable(f"tokens of {t.name} have met before its first block")
    require_unmixed(t, ids)
    if all(p.dim() < 2 for p in block.parameters()):
        raise NotApplicable(f"the first block of {t.name} shows no matrices: they may be quantised")
    calls = record_calls(t, block, ids)
    met = next((i for i, c in enumerate(calls) if are_mixed(c.given)), None)
    if met is None:
        raise NotApplicable(f"no part in the first block of {t.name} shows where tokens meet")
    before = [c for c in calls[:met] if any(p.dim() > 1 for p in c.module.parameters())]
    seen = {id(p) for c in calls for p in c.module.parameters()}
    if not before and any(id(p) not in seen and p.dim() > 1 for p in block.parameters()):
        raise NotApplicable(f"the first block of {t.name} has matrices that are not called as modules")
    if not before and met and is_linear(t, calls[met - 1].module, calls[met].module, ids):
        raise NotApplicable(f"{t.name} mixes its tokens by weights that do not depend on them")
    cause = "no matrix stands before attention: tokens are compared as they are, and heads are slices of them"
    return Evidence(torch.tensor(float(bool(before))), torch.tensor(1.0), tolerance=0.0, cause=cause)


def differing_first_tokens(t: Target, T: int) -> Int:
    """ids (2, T) of two rows that differ in their first token alone."""
    ids = t.ids(2, T)
    ids[1, 1:] = ids[0, 1:]
    ids[1, :1] = t.other(ids[:1])[:, :1]
    return ids


def require_unmixed(t: Target, ids: Int) -> None:
    """Raise NotApplicable where these rows show that tokens meet before the first block."""
    if are_mixed(first_block_input(t, ids)):
        raise NotApplicable(f"tokens of {t.name} have met before its first block")


def are_mixed(x: Float) -> bool:
    """Whether two rows of x (2, T, ..) that began with another token differ at those after it."""
    a, b = x[0, 1:].float(), x[1, 1:].float()
    return bool((a - b).abs().amax() > 1e-5 * a.abs().amax())


__all__ = ["are_mixed", "heads_are_interchangeable", "heads_have_projections"]
