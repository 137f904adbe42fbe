"""Laws of the encodings themselves: exact arithmetic, no state, and what rotations promise."""

from dataclasses import replace

import torch

from gnomon import positions
from gnomon.audit.law import Evidence
from gnomon.audit.laws.gnomon import make_evidence, small_law
from gnomon.audit.small import D_HEAD, D_MODEL, N_HEADS, SmallModel, flatten
from gnomon.audit.target import NotApplicable
from gnomon.errors import BadValue
from gnomon.layout import Layout, visible
from gnomon.positions import PositionEncoding, RoPE, get
from gnomon.positions.base import Side
from gnomon.shapes import Float, Int

#: where float16 and bfloat16 stop counting by ones, and where float32 angles give way
FAR = [0, 1, 2, 255, 256, 257, 2047, 2048, 2049, 4095, 65537, 131071]
NEAR = [0, 1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 63]
NARROW = (torch.float16, torch.bfloat16)


def places(position: PositionEncoding) -> Layout:
    """One row at FAR positions, or at NEAR ones under an encoding whose table ends."""
    far = layout_at(torch.tensor([FAR]))
    try:
        position.check(far)
    except BadValue:
        return layout_at(torch.tensor([NEAR]))
    return far


def layout_at(pos: Int) -> Layout:
    """Tokens in time order at any positions (B, T)."""
    return Layout(pos, torch.arange(pos.shape[1]).expand(pos.shape), None, pos + 1)


def round_positions(at: Layout, dtype: torch.dtype = torch.bfloat16) -> Layout:
    """The fault: positions held in a narrow dtype."""
    return replace(at, pos=at.pos.to(dtype).to(at.pos.dtype), kind="custom")


def tables(position: PositionEncoding, at: Layout) -> Float:
    """All that an encoding makes of these positions: vectors, turned queries and keys, biases."""
    parts = [v.float() for v in [position.vectors(at)] if v is not None]
    if position.acts == "rotation":
        x = torch.linspace(-1, 1, N_HEADS * D_HEAD).view(1, N_HEADS, 1, D_HEAD).expand(-1, -1, at.shape[1], -1)
        parts += list(rotate_both(position, x, at))
    if position.acts == "score":
        bias = position.bias_tensor(at, n_heads=N_HEADS)
        parts += [] if bias is None else [bias]
    if position.acts == "attention":
        parts.append(_scores(position, at))
    if not parts:
        raise NotApplicable(f"{position.name} makes no tables")
    return flatten(*parts)


def rotate_both(position: PositionEncoding, x: Float, at: Layout) -> tuple[Float, Float]:
    """x (1, H, T, C) as queries and as keys are turned to be multiplied. Under an encoding whose numbers hold for a
    stretch of positions only, each token is turned for itself."""
    try:
        return position.turned(x, x, at)
    except BadValue:
        one = [at.tokens(slice(t, t + 1)) for t in range(at.shape[1])]
        pairs = [position.turned(x[:, :, t : t + 1], x[:, :, t : t + 1], where) for t, where in enumerate(one)]
        return torch.cat([q for q, _ in pairs], 2), torch.cat([k for _, k in pairs], 2)


def _scores(position: PositionEncoding, at: Layout) -> Float:
    """The scores of tokens at these places, all with the same vectors."""
    x = torch.linspace(-1, 1, D_MODEL).expand(1, at.shape[1], -1)

    def heads(x: Float) -> Float:
        return x[..., : N_HEADS * D_HEAD].view(*x.shape[:2], N_HEADS, D_HEAD).transpose(1, 2)

    tables = position.project(position.of_layer(None, 0), heads, heads)
    side = Side(heads(x), at, position.state(x, tables, at))
    wide = tuple(table.float() for table in tables or ())
    with torch.autocast("cpu", enabled=False):  # as attention calls it
        return position.scores(side, side, wide, visible(at, at), D_HEAD**-0.5)


@small_law(
    "casting moves no position",
    hint="angles come from whole positions in float64, whatever `.to(dtype)` and autocast do",
    shown_by="sinusoidal, rope, alibi, t5",
)
def casting_moves_no_position(s: SmallModel) -> Evidence:
    """After `.half()` or `.bfloat16()`, and under autocast, positions are computed as before; only weights round."""
    got, want, fault = [], [], []
    for dtype in (*NARROW, torch.float32):
        cast, twin = s.encoding().to(dtype), s.encoding()
        for p, q in zip(twin.parameters(), cast.parameters(), strict=True):
            p.copy_(q)
        at = places(twin)
        with torch.autocast("cpu", torch.bfloat16, enabled=dtype == torch.float32):
            got.append(tables(cast, at))
        want.append(tables(twin, at))
        fault.append(tables(twin, round_positions(at)))
    computed, right, wrong = flatten(*got), flatten(*want), flatten(*fault)
    rounded = 0.0 if torch.equal(right, wrong) else 1e-6  # the compiled rotation, which autocast bypasses, rounds apart
    return make_evidence(computed, right, wrong, slack=rounded)


@small_law(
    "positions are whole and exact",
    hint="positions are integers of 64 bits from where a layout is made",
)
def positions_are_whole_and_exact(s: SmallModel) -> Evidence:
    """Positions count up by one without end, in every layout and after every step."""
    n, mask = 131_072, torch.ones(1, 5000, dtype=torch.bool)
    mask[0, 0] = False
    got = [Layout.dense(1, n), Layout.dense(1, n).then(3), Layout.padded(mask), Layout.padded(mask).then(2)]
    got += [Layout.packed([[4100, 2060]]), Layout.packed([[9, 5000]]).then(1), Layout.prefix(4, 5000)]
    want = [range(n), range(n, n + 3), [0, *range(4999)], [4999, 5000]]
    want += [[*range(4100), *range(2060)], [5000], range(5000)]
    return make_evidence(flatten(*(at.pos for at in got)), torch.tensor([p for part in want for p in part]), slack=0.0)


@small_law(
    "an encoding keeps no state",
    hint="register parameters alone: tables are made anew from positions",
)
def an_encoding_keeps_no_state(s: SmallModel) -> Evidence:
    """An encoding holds learnable parameters and nothing else, before use and after it: no buffers, no tables."""
    position = s.encoding()
    before = list(position.state_dict())
    for at in (places(position), Layout.dense(1, 7)):
        position.vectors(at), position.prepare(at)
        if position.acts == "score":
            position.bias_tensor(at, n_heads=N_HEADS)
    buffers = len(list(position.buffers()))
    hidden = sum(isinstance(x, torch.Tensor) for x in vars(position).values())
    learned = [name for name, _ in position.named_parameters()]
    same = float(before == learned == list(position.state_dict()))
    return make_evidence(torch.tensor([buffers, hidden, same]), torch.tensor([0.0, 0.0, 1.0]), slack=0.0)


# -------------------------------------------------------------------- rotations


def require_rotation(s: SmallModel) -> PositionEncoding:
    """The subject's encoding, if it is a rotation."""
    if s.spec.acts != "rotation":
        raise NotApplicable(f"{s.spec.name} rotates nothing")
    return s.encoding()


@small_law(
    "rotations keep norms",
    hint="a pair takes part in one rotation with cos and sin of one angle",
)
def rotations_keep_norms(s: SmallModel) -> Evidence:
    """A rotated query or key is as long as it was."""
    position, at = require_rotation(s), layout_at(torch.tensor([FAR]))
    if type(position).read is not PositionEncoding.read:
        raise NotApplicable(f"{position.name} makes something else of keys when they are read")
    if type(position).rotate is PositionEncoding.rotate:
        raise NotApplicable(f"{position.name} scales queries and turns nothing")
    x, turn = s.normal(1, N_HEADS, len(FAR), D_HEAD), position.prepare(at)
    got = [position.query(x, turn).norm(dim=-1), position.key(x, turn).norm(dim=-1)]
    return make_evidence(flatten(*got), flatten(x.norm(dim=-1), x.norm(dim=-1)))


@small_law(
    "a rotation keeps the dtype",
    hint="turn in float32, and cast what comes out",
)
def a_rotation_keeps_the_dtype(s: SmallModel) -> Evidence:
    """Queries and keys leave in the dtype they came in, rounded once after arithmetic in float32."""
    position, at = require_rotation(s), layout_at(torch.tensor([FAR]))
    got, want = [], []
    for dtype in NARROW:
        x, turn = s.normal(1, N_HEADS, len(FAR), D_HEAD).to(dtype), position.prepare(at)
        turned = position.query(x, turn)
        got += [turned.float(), torch.tensor(float(turned.dtype == dtype))]
        want += [position.query(x.float(), turn).to(dtype).float(), torch.ones(())]
    return make_evidence(flatten(*got), flatten(*want), slack=0.0)


@small_law(
    "the two pairings agree",
    hint="`pairing_order` puts rows of projections from one pairing into the other",
)
def the_two_pairings_agree(s: SmallModel) -> Evidence:
    """Both pairings of a rotation give the same logits once the rows of the projections are put in order."""
    if s.spec.cls is not RoPE:
        raise NotApplicable(f"{s.spec.name} has no pairings")
    ids, got, want, fault = s.ids(2, 9), [], [], []
    for old, new in (("interleaved", "half"), ("half", "interleaved")):
        model, other = (s.model(position=get("rope", pairing=pairing)) for pairing in (old, new))
        want.append(model(ids))
        fault.append(other(ids))
        for name, p in other.named_parameters():
            if ".attention.q" in name or ".attention.k" in name:  # and the norms of queries and keys
                heads = p.shape[0] // D_HEAD
                p.copy_(p[positions.pairing_order(D_HEAD, "half" if new == "half" else "interleaved", heads)])
        got.append(other(ids))
    return make_evidence(flatten(*got), flatten(*want), flatten(*fault))


__all__ = ["FAR", "layout_at", "places", "tables"]
