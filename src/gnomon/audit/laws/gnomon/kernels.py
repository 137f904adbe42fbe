"""Laws of attention: every kernel computes the one dense definition, and the definition is the paper's equation."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from typing import Any
from unittest.mock import patch

import torch

from gnomon.attention import kernels as fast
from gnomon.attention import stretches
from gnomon.attention.attend import attend
from gnomon.attention.dense import Content
from gnomon.attention.multihead import MultiHeadAttention
from gnomon.audit.law import Evidence
from gnomon.audit.laws.gnomon import make_evidence, small_law
from gnomon.audit.laws.gnomon.caches import paddings
from gnomon.audit.small import D_HEAD, D_MODEL, N_HEADS, SmallModel, flatten
from gnomon.audit.target import NotApplicable
from gnomon.errors import BadValue
from gnomon.layout import ORDERED, Layout, sees, visible
from gnomon.positions import PositionEncoding
from gnomon.shapes import Bool, Float, Int

B, T = 3, 7
FAST = ("content", "plain", "causal", "toeplitz", "ordered", "blocked")  #: fused kernels of other devices: see one_pair


@dataclass(frozen=True)
class Case:
    """One attention: where queries and keys sit, and what may be seen."""

    name: str
    at: Layout
    k_at: Layout
    causal: bool
    window: int | None
    sink_tokens: int = 0
    softcap: float | None = None
    sinks: Float | None = None

    def how(self) -> dict[str, Any]:
        """As `attend` takes it."""
        return {f.name: getattr(self, f.name) for f in fields(self) if f.name not in ("name", "at", "k_at")}


def layouts(s: SmallModel) -> dict[str, tuple[Layout, Layout]]:
    """Queries and keys for every way of sitting that the package knows."""
    dense, long = Layout.dense(B, T), Layout.dense(B, T + 4)
    left, right, inside = (Layout.padded(mask) for mask in paddings())
    random = Layout.randomized(T, 40, s.rng(), B)
    packed, prefix = Layout.packed([[4, 3], [2, 3, 1], [7]]), Layout.prefix([3, 0, 5], T)
    empty = replace(left, doc=left.doc.index_fill(0, torch.tensor([1]), -1))  # type: ignore[union-attr]
    return {
        "dense": (dense, dense),
        "chunk": (long.tokens(slice(-T, None)), long),
        "more queries than keys": (dense, dense.tokens(slice(-3, None))),
        "step": (long.tokens(slice(-1, None)), long),
        "left": (left, left),
        "right": (right, right),
        "inside": (inside, inside),
        "empty row": (empty, empty),
        "packed": (packed, packed),
        "prefix": (prefix, prefix),
        "after padding": (left.then(2), left.cat(left.then(2))),
        "random": (random, random),
    }


def cases(s: SmallModel) -> Iterator[Case]:
    """Every layout, with and without a window; some with first tokens kept, some with scores capped and a sink."""
    sinks = s.normal(N_HEADS, stream=3)
    for name, (at, k_at) in layouts(s).items():
        for window in (None, 3):
            if name != "prefix" or (s.causal and window is None):
                yield Case(name, at, k_at, s.causal, window)
        if name in ("dense", "step", "inside", "packed"):
            yield Case(name, at, k_at, s.causal, 3, sink_tokens=2)
            yield Case(name, at, k_at, s.causal, 3, softcap=1.5, sinks=sinks)


def supports(kernel: str, position: PositionEncoding, case: Case) -> bool:
    """Whether this kernel is meant for this case, as its docstring says."""
    biased, dense = position.acts == "score", case.at.kind == case.k_at.kind == "dense"
    ordered = case.at.kind in ORDERED and case.k_at.kind in ORDERED
    bare = not biased and case.window is None and ordered
    if case.softcap is not None:
        return kernel == "content"
    return position.acts != "attention" and {
        "plain": bare and not case.causal,
        "causal": bare and case.causal and case.at is case.k_at,
        "toeplitz": not case.sink_tokens and (dense and position.relative if biased else ordered),
        "ordered": not case.sink_tokens and ordered,
    }.get(kernel, True)


def inputs(s: SmallModel, case: Case, n_kv_heads: int = 2) -> tuple[Float, Float, Float]:
    """Random q (B, H, T, C), k and v (B, K, S, C)."""
    n, m = case.at.shape[1], case.k_at.shape[1]
    q = s.normal(B, N_HEADS, n, D_HEAD)
    k, v = (s.normal(B, n_kv_heads, m, D_HEAD, stream=i) for i in (1, 2))
    return q, k, v


def content(s: SmallModel, position: PositionEncoding, case: Case) -> Content | None:
    """What an encoding that acts in attention reads besides queries and keys: drawn tokens of both sides."""
    if position.acts != "attention":
        return None
    tables = position.project(position.of_layer(None, 0), *(projection(s, stream) for stream in (6, 7)))
    sides = ((where.expand(B), stream) for where, stream in ((case.at, 4), (case.k_at, 5)))
    q, k = (position.state(s.normal(*at.shape, D_MODEL, stream=stream), tables, at) for at, stream in sides)
    return Content(tables or (), q, k)


def projection(s: SmallModel, stream: int) -> Callable[[Float], Float]:
    """(B, T, D) -> (B, H, T, C), as a layer projects its tokens."""
    weight = s.normal(D_MODEL, N_HEADS * D_HEAD, stream=stream)
    return lambda x: (x @ weight).view(*x.shape[:2], N_HEADS, D_HEAD).transpose(1, 2)


def forward(s: SmallModel, position: PositionEncoding, case: Case, kernel: str | None) -> Float:
    """What this kernel computes."""
    q, k, v = inputs(s, case)
    beside = content(s, position, case)
    return attend(q, k, v, position, case.at, case.k_at, **case.how(), kernel=kernel, content=beside)


def backward(s: SmallModel, position: PositionEncoding, case: Case, kernel: str | None) -> Float:
    """Its gradients in q, k, v, the sinks and the encoding's parameters."""
    q, k, v = (x.requires_grad_() for x in inputs(s, case))
    sinks = None if case.sinks is None else case.sinks.clone().requires_grad_()
    position.zero_grad()
    with torch.enable_grad():
        how = {**case.how(), "sinks": sinks, "content": content(s, position, case)}
        out = attend(q, k, v, position, case.at, case.k_at, **how, kernel=kernel)
        torch.autograd.backward((out * s.normal(*out.shape, stream=9)).sum())
    learned = (q, k, v, *position.parameters(), *(() if sinks is None else (sinks,)))
    return flatten(*(torch.zeros_like(x) if x.grad is None else x.grad for x in learned))


def compare_kernels(s: SmallModel, what: Callable[..., Float]) -> Evidence:
    """All kernels on all cases against the dense one; those that work in blocks of queries must use several."""
    position = s.encoding()
    got: list[Float] = []
    want: list[Float] = []
    heads = N_HEADS if position.acts in ("score", "attention") else 1
    for case in cases(s):
        truth = what(s, position, case, "dense")
        got.append(what(s, position, case, None))
        few = 3 * B * heads * case.k_at.shape[1]
        with patch.object(fast, "BLOCK", few), patch.multiple(stretches, STRETCH=3, CACHED=few):
            got += [what(s, position, case, kernel) for kernel in FAST if supports(kernel, position, case)]
        want += [truth] * (len(got) - len(want))
    return make_evidence(flatten(*got), flatten(*want))


@small_law(
    "every kernel = dense, forward",
    hint="compare with `attention/dense.py`, which is the definition",
)
def every_kernel_is_dense_forward(s: SmallModel) -> Evidence:
    """Every kernel that may run gives the numbers of the dense definition, on every layout and window."""
    return compare_kernels(s, forward)


@small_law(
    "every kernel = dense, backward",
    hint="compare with `attention/dense.py`, which is the definition",
)
def every_kernel_is_dense_backward(s: SmallModel) -> Evidence:
    """Every kernel that may run gives the gradients of the dense definition, for learned biases too."""
    return compare_kernels(s, backward)


@small_law(
    "one pair = one entry",
    hint="mask and bias depend on one query and one key, whatever other tokens are there",
)
def one_pair_is_one_entry(s: SmallModel) -> Evidence:
    """Mask and bias asked about one pair of tokens, as fused kernels do, give the entry of the dense tensor."""
    position, got, want = s.encoding(), [], []
    for case in cases(s):
        at, k_at = case.at.expand(B), case.k_at.expand(B)
        got.append(pair_by_pair(position, at, k_at, case))
        want.append(visible(at, k_at, case.causal, case.window, case.sink_tokens).float())
        if position.acts == "score":
            bias = position.bias_tensor(at, k_at, N_HEADS)
            assert bias is not None
            want.append(bias.expand(B, -1, -1, -1))
    return make_evidence(flatten(*got), flatten(*want))


def pair_by_pair(position: PositionEncoding, at: Layout, k_at: Layout, case: Case) -> Float:
    """Mask, then bias, each computed for one (row, head, query, key) at a time."""

    def mask(b: Int, i: Int, j: Int) -> Bool:
        return sees(at.pair(b, i), k_at.pair(b, j), case.causal, case.window, case.sink_tokens)

    def bias(b: Int, h: Int, i: Int, j: Int) -> Float:
        one = position.bias(h.float(), at.pos[b, i], k_at.pos[b, j])
        assert one is not None
        return one

    def grid(*sizes: int) -> list[Int]:
        return [x.flatten() for x in torch.meshgrid(*map(torch.arange, sizes), indexing="ij")]

    n, m = at.shape[1], k_at.shape[1]
    parts = [torch.vmap(mask)(*grid(B, n, m)).float()]
    if position.acts == "score":
        parts.append(torch.vmap(bias)(*grid(B, N_HEADS, n, m)))
    return flatten(*parts)


@small_law(
    "attention is its equation",
    hint="softmax(q k^T scale + bias) v, head by head",
)
def attention_is_its_equation(s: SmallModel) -> Evidence:
    """softmax(q . k * scale + bias) . v over what is visible, head by head, capped and with a sink if configured."""
    position, x = s.encoding(), s.normal(1, 9, D_MODEL)
    if position.acts == "attention":
        raise NotApplicable(f"{position.name} defines the score itself")
    adorned = {"qk_norm": True, "softcap": 2.0, "sinks": True, "window": 3, "sink_tokens": 1}
    both = [first_attention(s), first_attention(s, **adorned), first_attention(s, qk_norm="joint")]
    at = Layout.dense(1, 9)
    got = [attention(x, position, at=at, k_at=at) for attention in both]
    try:
        want = [attend_by_hand(attention, position, x) for attention in both]
    except BadValue as no:  # numbers that hold for a stretch of positions only
        raise NotApplicable(str(no)) from no
    return make_evidence(flatten(*got), flatten(*want))


def attend_by_hand(attention: MultiHeadAttention, position: PositionEncoding, x: Float) -> Float:
    """The attention of x (1, n, D), one score at a time."""
    n, settings = x.shape[1], attention.settings
    q, k, v = (w(x)[0] for w in (attention.q, attention.k, attention.v))
    if attention.joint_norm:
        q, k = attention.q_norm(q), attention.k_norm(k)
    q, k, v = (y.view(n, -1, D_HEAD).transpose(0, 1) for y in (q, k, v))
    if not attention.joint_norm:
        q, k = attention.q_norm(q), attention.k_norm(k)
    q, k = (y[0].double() for y in position.turned(q[None], k[None], Layout.dense(1, n)))
    heads = []
    for h in range(N_HEADS):
        shared = h // (N_HEADS // 2)
        scores = q[h] @ k[shared].T / D_HEAD**0.5
        for i in range(n):
            for j in range(n):
                bias = position.bias(torch.tensor(float(h)), torch.tensor(i), torch.tensor(j))
                far = settings.window is not None and abs(i - j) >= settings.window and j >= settings.sink_tokens
                scores[i, j] += 0.0 if bias is None else bias
                if settings.softcap is not None:
                    scores[i, j] = settings.softcap * torch.tanh(scores[i, j] / settings.softcap)
                scores[i, j] = -torch.inf if far or (settings.causal and j > i) else scores[i, j]
        sink = scores.new_tensor(-torch.inf) if attention.sinks is None else attention.sinks[h].double()
        shares = torch.cat([scores, sink.expand(n, 1)], 1).softmax(-1)
        heads.append(shares[:, :n] @ v[shared].double())
    return attention.out(torch.cat(heads, -1).float())[None]


def first_attention(s: SmallModel, **changes: Any) -> MultiHeadAttention:
    """The first attention of the subject's model, two query heads to a key/value head."""
    found = [part for part in s.model(n_kv_heads=2, **changes).stack.modules() if isinstance(part, MultiHeadAttention)]
    return found[0]


@small_law(
    "half precision keeps far biases",
    hint="add biases in float32: bfloat16 has eight bits for distance and score together",
    shown_by="alibi",
)
def half_precision_keeps_far_biases(s: SmallModel) -> Evidence:
    """In bfloat16, and under autocast, the weight of a key 3000 tokens away is right to one part in a hundred."""
    position, n, far = s.encoding(), 3000, torch.tensor([0, 1, 7, 300, 1000, 2000, 2990, 2999])
    if position.acts != "score":
        raise NotApplicable(f"{position.name} adds nothing to scores")
    q, k, v = (torch.zeros(1, N_HEADS, t, D_HEAD, dtype=torch.float64) for t in (1, n, n))
    v[:, :, n - 1 - far, torch.arange(D_HEAD)] = 1.0  # channel c of the output is the weight of key c
    got, want, fault = [], [], []
    for k_at in (Layout.dense(1, n), Layout.padded(torch.ones(1, n, dtype=torch.bool))):
        at = k_at.tokens(slice(n - 1, n))
        exact = attend(q, k, v, position, at, k_at)
        seen = exact > 1e-20  # float32 ends soon after
        narrow_q, narrow_k, narrow_v = (x.bfloat16() for x in (q, k, v))
        plain = attend(narrow_q, narrow_k, narrow_v, position, at, k_at)
        with torch.autocast("cpu", torch.bfloat16):
            cast = attend(narrow_q, narrow_k, narrow_v, position, at, k_at)
        bias = position.bias_tensor(at, k_at, N_HEADS)
        assert bias is not None
        rounded = bias.bfloat16().double().softmax(-1) @ v
        got += [(x.double() / exact)[seen] for x in (plain, cast)]
        want += [torch.ones(2 * int(seen.sum()))]
        fault += [(rounded / exact)[seen]] * 2
    return make_evidence(flatten(*got), flatten(*want), flatten(*fault), slack=0.01)


@small_law(
    "nothing seen = 0",
    hint="softmax over nothing is NaN, or a mean of what may not be seen",
)
def nothing_seen_is_0(s: SmallModel) -> Evidence:
    """A query that may see no key gets 0 and sends no gradient, and all is finite; other rows are as they were."""
    position, got, want = s.encoding(), [], []
    at = Layout.padded(torch.ones(B, T, dtype=torch.bool))
    blind = replace(at, doc=torch.zeros_like(at.pos).index_fill(0, torch.tensor([1]), 7))
    case = Case("blind", blind, at, s.causal, None)
    full = replace(case, at=at)
    for kernel in (None, "dense", "content", "blocked"):
        if kernel is None or supports(kernel, position, case):
            q, k, v = (x.requires_grad_() for x in inputs(s, case))
            with torch.enable_grad():
                beside = content(s, position, case)
                out = attend(q, k, v, position, blind, at, causal=s.causal, kernel=kernel, content=beside)
                torch.autograd.backward((out * s.normal(*out.shape, stream=9)).sum())
            sent = flatten(*(x.grad[1] for x in (q, k, v) if x.grad is not None))
            got += [out[1], sent, out[::2]]
            want += [torch.zeros_like(out[1]), torch.zeros_like(sent), forward(s, position, full, kernel)[::2]]
    return make_evidence(flatten(*got), flatten(*want))


@small_law(
    "garbage in masked slots",
    hint="clear padded slots before any kernel: a weight of 0 times NaN is NaN",
)
def garbage_in_masked_slots(s: SmallModel) -> Evidence:
    """NaN or huge numbers in padded slots change neither the output nor any gradient."""
    position, got, want = s.encoding(), [], []
    for name in ("left", "right", "inside", "packed", "after padding"):
        case = Case(name, *layouts(s)[name], s.causal, None)
        for kernel in (None, "dense", "blocked"):
            if kernel is None or supports(kernel, position, case):
                got += [attend_over_garbage(s, position, case, kernel, x) for x in (float("nan"), 1e30)]
                want += [attend_over_garbage(s, position, case, kernel, 0.0)] * 2
    return make_evidence(flatten(*got), flatten(*want))


def attend_over_garbage(
    s: SmallModel, position: PositionEncoding, case: Case, kernel: str | None, garbage: float
) -> Float:
    """Output at real tokens and all gradients, when padded slots of q, k and v hold `garbage`."""
    q, k, v = inputs(s, case)
    for x, where in ((q, case.at), (k, case.k_at), (v, case.k_at)):
        x.masked_fill_(~where.real[:, None, :, None], garbage).requires_grad_()
    beside = content(s, position, case)
    for state, where in () if beside is None else ((beside.q, case.at), (beside.k, case.k_at)):
        if state is not None:
            state.masked_fill_(~where.real[:, None, :, None], garbage)
    with torch.enable_grad():
        out = attend(q, k, v, position, case.at, case.k_at, causal=case.causal, kernel=kernel, content=beside)
        out = out.masked_fill(~case.at.real[:, None, :, None], 0.0)
        torch.autograd.backward((out * s.normal(*out.shape, stream=9)).sum())
    return flatten(out, *(x.grad for x in (q, k, v) if x.grad is not None))


@small_law(
    "grouped heads = copied heads",
    hint="neighbours share a key/value head: a, a, b, b",
)
def grouped_heads_are_copied_heads(s: SmallModel) -> Evidence:
    """Query heads that share a key/value head act as if each neighbour had its own copy of it."""
    few, ids, logits = s.model(n_kv_heads=2), s.ids(2, 9), []
    for order in ([0, 0, 1, 1], [0, 1, 0, 1]):
        state = few.state_dict()
        for name, x in state.items():
            attention, part = name.split(".")[-3:-1] if name.count(".") > 2 else ("", "")
            if attention in ("attention", "cross") and part in ("k", "v", "k_norm") and len(x) == 2 * D_HEAD:
                state[name] = x.view(2, D_HEAD, *x.shape[1:])[order].flatten(0, 1)
        many = s.model(n_kv_heads=N_HEADS)
        many.load_state_dict(state)
        logits.append(many(ids))
    return make_evidence(few(ids), *logits)


__all__ = ["Case", "cases", "supports"]
