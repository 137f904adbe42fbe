"""Laws of who sees whom, and of what order and distance mean."""

from collections.abc import Callable
from dataclasses import replace

import torch

from gnomon.audit.law import Evidence, difference, largest, law
from gnomon.audit.subject import VOCAB, Model, NotApplicable, Subject, decode, joined
from gnomon.layout import Layout
from gnomon.shapes import Float, Int

T = 10


def influence(model: Model, ids: Int, at: Layout) -> Float:
    """(T, T): entry [i, j] is 1 where another token at j changes a single bit of the logits at i. ids are one row."""
    n = ids.shape[1]
    before, rows = ids.expand(n, n).clone(), at.expand(n)
    after = before.clone()
    after.fill_diagonal_(0)
    after += torch.diag((ids[0] + 1) % VOCAB)
    return (model(before, rows) != model(after, rows)).any(-1).T.float()


def demanded(rule: Callable[[int, int], bool], n: int = T) -> Float:
    """(n, n) from a rule about i (who looks) and j (who is seen)."""
    return torch.tensor([[float(rule(i, j)) for j in range(n)] for i in range(n)])


@law("causality")
def causality(s: Subject) -> Evidence:
    """Another token changes every later logit and leaves every earlier one bit-equal, in chunks as in one piece."""
    s.must_be_causal()
    model, ids = s.model(window=None), s.ids(1, T)

    def in_chunks(ids: Int, at: Layout | None = None, cache: object = None) -> Float:
        return decode(model, ids, [3, 1, 4, 2], model.cache())

    got = [influence(model, ids, Layout.dense(1, T)), influence(in_chunks, ids, Layout.dense(1, T))]
    return Evidence(torch.stack(got), demanded(lambda i, j: j <= i).expand(2, T, T), slack=0.0)


@law("both sides are seen")
def both_sides_are_seen(s: Subject) -> Evidence:
    """In a bidirectional model every token reaches every other."""
    if s.causal:
        raise NotApplicable("the model is causal")
    got = influence(s.model(window=None), s.ids(1, T), Layout.dense(1, T))
    return Evidence(got, demanded(lambda i, j: True), slack=0.0)


@law("a window is as wide as it says")
def a_window_is_as_wide_as_it_says(s: Subject) -> Evidence:
    """Two layers with a window of w reach 2 (w - 1) tokens, no more and no less, padded or not; kept ones are seen."""
    w = 3
    model, ids = s.model(window=w), s.ids(1, T)
    padded = Layout.padded(torch.arange(T)[None] >= 2)

    def seen(i: int, j: int) -> bool:
        return (abs(i - j) < w or j < model.config.sink_tokens) and (j <= i or not s.causal)

    def in_two_layers(n: int) -> Float:
        once = demanded(seen, n)
        return (once @ once > 0).float()

    got = [influence(model, ids, Layout.dense(1, T)), influence(model, ids, padded)[2:, 2:].flatten()]
    return Evidence(joined(*got), joined(in_two_layers(T), in_two_layers(T - 2)), slack=0.0)


@law("a prefix sees itself")
def a_prefix_sees_itself(s: Subject) -> Evidence:
    """Tokens of a bidirectional prefix see one another; later ones look back only, and the prefix not ahead."""
    s.must_be_causal()
    got = influence(s.model(window=None), s.ids(1, T), Layout.prefix(4, T))
    return Evidence(got, demanded(lambda i, j: j <= i or max(i, j) < 4), slack=0.0)


@law("documents do not reach one another")
def documents_do_not_reach_one_another(s: Subject) -> Evidence:
    """Another token in one packed document leaves the others bit-equal."""
    got = influence(s.model(window=None), s.ids(1, T), Layout.packed([[4, 3, 3]]))
    doc = [0] * 4 + [1] * 3 + [2] * 3
    return Evidence(got, demanded(lambda i, j: doc[i] == doc[j] and (j <= i or not s.causal)), slack=0.0)


@law("permutation equivariance without position")
def permutation_equivariance_without_position(s: Subject) -> Evidence:
    """Without position, a bidirectional model permutes its logits as its tokens are permuted."""
    if s.spec.acts != "nowhere" or s.second is not None:
        raise NotApplicable(f"{s.spec.name} tells positions apart")
    model, ids, order = s.model(causal=False, window=None), s.ids(2, T), torch.randperm(T, generator=s.rng())
    seeing = s.model(causal=False, window=None, position="sinusoidal")
    fault = model(ids)[:, order] + (seeing(ids[:, order]) - seeing(ids)[:, order])
    return Evidence(model(ids[:, order]), model(ids)[:, order], fault)


@law("order is seen")
def order_is_seen(s: Subject) -> Evidence:
    """With position, a bidirectional model tells two orders of the same tokens apart."""
    if s.spec.acts == "nowhere":
        raise NotApplicable(f"{s.spec.name} is no position")
    model, ids, order = s.model(causal=False, window=None), s.ids(2, T), torch.arange(T).roll(3)
    moved, still = model(ids[:, order]), model(ids)[:, order]
    return Evidence(torch.tensor([float(difference(moved, still) > 1e-3 * largest(still))]), torch.ones(1), slack=0.0)


@law("shift invariance", shown_by="rope, alibi, t5")
def shift_invariance(s: Subject) -> Evidence:
    """Under a relative encoding, moving every token by the same distance changes nothing."""
    if not s.spec.cls.relative:
        raise NotApplicable(f"{s.spec.name} is not a relative encoding")
    if s.options.get("sink_tokens"):
        raise NotApplicable("the tokens that are kept are told by their position")
    model, ids, at = s.model(), s.ids(2, T), Layout.dense(2, T)
    moved = [_moved(at, by) for by in (37, 100_003)]
    got = [model(ids, where) for where in (*moved, *(replace(where, kind="custom") for where in moved))]
    stretched = model(ids, replace(at, pos=at.pos * 2, kind="custom"))
    return Evidence(torch.stack(got), torch.stack([model(ids)] * 4), torch.stack([stretched] * 4))


def _moved(at: Layout, by: int) -> Layout:
    return replace(at, pos=at.pos + by, length=at.length + by)


__all__ = ["demanded", "influence"]
