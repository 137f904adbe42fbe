"""Laws of who sees whom, and of what order and distance mean."""

from collections.abc import Callable
from functools import partial

import torch

from gnomon.audit.law import Evidence
from gnomon.audit.laws.gnomon import make_evidence, small_law
from gnomon.audit.small import N_HEADS, VOCAB, Logits, SmallModel, decode, flatten
from gnomon.audit.target import NotApplicable
from gnomon.layout import Layout
from gnomon.positions import PositionEncoding
from gnomon.shapes import Float, Int

T, W = 10, 3


def influence(model: Logits, ids: Int, at: Layout, slack: float = 0.0) -> Float:
    """(T, T): entry [i, j] is 1 where another token at j moves a logit at i by more than `slack` of the largest one,
    by default by a single bit. ids are one row."""
    n = ids.shape[1]
    before, rows = ids.expand(n, n).clone(), at.expand(n)
    after = before.clone()
    after.fill_diagonal_(0)
    after += torch.diag((ids[0] + 1) % VOCAB)
    logits = model(before, rows)
    same = (model(after, rows) - logits).abs() <= slack * logits.abs().max()
    return (~same).any(-1).T.float()  # NaN is never the same


def matrix_of_rule(rule: Callable[[int, int], bool], n: int = T) -> Float:
    """(n, n) from a rule about i (who looks) and j (who is seen)."""
    return torch.tensor([[float(rule(i, j)) for j in range(n)] for i in range(n)])


@small_law(
    "influence = visibility",
    hint="the mask that `visible` makes must reach every layer, and nothing else may mix tokens",
)
def influence_is_visibility(s: SmallModel) -> Evidence:
    """Another token changes the logits of those that may see it, and no bit of any other's, in every layout.

    Experts are given the tokens that chose them as one matrix, and roundings of a product depend on how many rows it
    has: in their models what is no larger than roundings is no influence.
    """
    reach = partial(influence, slack=1e-5 if s.options.get("experts") else 0.0)
    model, narrow, ids, dense = s.model(window=None), s.model(window=W), s.ids(1, T), Layout.dense(1, T)
    doc, padded = [0] * 4 + [1] * 3 + [2] * 3, Layout.padded(torch.arange(T)[None] >= 2)

    def behind(i: int, j: int) -> bool:
        return j <= i or not s.causal

    def near(i: int, j: int) -> bool:
        return (abs(i - j) < W or j < narrow.config.sink_tokens) and behind(i, j)

    def in_chunks(ids: Int, at: Layout | None = None, cache: object = None) -> Float:
        return decode(model, ids, [3, 1, 4, 2], model.cache())

    found = [
        (reach(model, ids, dense), reachable(s, behind)),
        (reach(model, ids, Layout.packed([[4, 3, 3]])), reachable(s, lambda i, j: doc[i] == doc[j] and behind(i, j))),
        (reach(narrow, ids, dense), reachable(s, near)),
        (reach(narrow, ids, padded)[2:, 2:], reachable(s, near, T - 2)),
    ]
    if s.causal:
        found.append((reach(in_chunks, ids, dense), reachable(s, behind)))
        prefix = Layout.prefix(4, T)
        found.append((reach(model, ids, prefix), reachable(s, lambda i, j: j <= i or max(i, j) < 4)))
    return make_evidence(flatten(*(got for got, _ in found)), flatten(*(want for _, want in found)), slack=0.0)


def reachable(s: SmallModel, rule: Callable[[int, int], bool], n: int = T) -> Float:
    """(n, n) who reaches whom in two layers, if `rule` says who sees whom in one and no bias hides tokens for good."""
    once, apart = matrix_of_rule(rule, n), (torch.arange(n)[:, None] - torch.arange(n)).abs()
    first, second = (once * audible_distances(position)[apart] for position in (s.encoding(), s.encoding(second=True)))
    return (second @ first > 0).float()


def audible_distances(position: PositionEncoding) -> Float:
    """(T): whether any head hears a token at each distance behind it."""
    at = Layout.dense(1, T)
    bias = position.bias_tensor(at.tokens(slice(T - 1, T)), at, N_HEADS) if position.acts == "score" else None
    return torch.ones(T) if bias is None else (bias[0, :, 0] > -torch.inf).any(0).flip(0).float()


@small_law(
    "permutation equivariance without position",
    hint="something depends on where tokens stand although no position was asked for",
)
def permutation_equivariance_without_position(s: SmallModel) -> Evidence:
    """Without position, a bidirectional model permutes its logits as its tokens are permuted."""
    if s.spec.acts != "nowhere" or s.second is not None:
        raise NotApplicable(f"{s.spec.name} tells positions apart")
    model, ids, order = s.model(causal=False, window=None), s.ids(2, T), torch.randperm(T, generator=s.rng())
    seeing = s.model(causal=False, window=None, position="sinusoidal")
    fault = model(ids)[:, order] + (seeing(ids[:, order]) - seeing(ids)[:, order])
    return make_evidence(model(ids[:, order]), model(ids)[:, order], fault)


__all__ = ["influence", "influence_is_visibility", "matrix_of_rule", "permutation_equivariance_without_position"]
