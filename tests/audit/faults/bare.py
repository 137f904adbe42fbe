"""Faults of position modules by themselves, of losses and of copies: each a line or two."""

from collections.abc import Callable
from typing import Any

import torch
from torch.nn import functional as F

from faults.fault import Fault
from faults.students import HEALTHY, made
from gnomon.audit import Law, Target, Torch
from gnomon.audit.adapters.positions import Bias, Rotation, Table
from gnomon.audit.laws import bare, copies, embedding, loss, sinusoids
from gnomon.layout import Layout
from gnomon.positions.scaling import plain_frequencies
from gnomon.positions.sinusoidal import Sinusoidal

C = 16
THETA = torch.tensor(plain_frequencies(10000.0, C))

# ---------------------------------------------------------------------- healthy modules


def turned(x, positions, theta=THETA, sign=1.0):
    angles = positions[:, None] * theta
    a, b = x[..., ::2], x[..., 1::2]
    pairs = [a * angles.cos() - sign * b * angles.sin(), sign * a * angles.sin() + b * angles.cos()]
    return torch.stack(pairs, -1).flatten(-2)


def rotation(turn=turned, **more: Any) -> Rotation:
    return Rotation("rope", turn, width=C, **{"promised": plain_frequencies(10000.0, C), **more})


def alibi(queries, keys, sign=-1.0):
    slopes = torch.tensor([0.5, 0.25])[:, None, None]
    return sign * slopes * (queries[:, None] - keys).abs()


def sinusoid(n):
    return Sinusoidal(C).vectors(Layout.dense(1, n))[0]


def kept(q, k, first=None):
    """Queries as the last of as many tokens as there are keys, or from another first place."""
    S, T = k.shape[2], q.shape[2]
    return turned(q, torch.arange(T) + (S - T if first is None else first)), turned(k, torch.arange(S))


# ---------------------------------------------------------------------- broken ones


class Keeps:
    """A table kept from the first call for its length, in which later calls look up positions from the end."""

    def __init__(self):
        self.seen = 0

    def turn(self, x, positions):
        self.seen = max(self.seen, len(positions))
        return turned(x, positions + (self.seen - len(positions)))

    def bias(self, queries, keys):
        self.seen = max(self.seen, len(keys))
        return alibi(queries, keys) * self.seen

    def rows(self, n):
        self.seen = max(self.seen, n)
        return sinusoid(self.seen)[self.seen - n :]


def rounded(x, positions):
    return turned(x.float(), positions.bfloat16(), THETA.bfloat16()).to(x.dtype)


def coarse(n, dtype):
    return (torch.arange(n).to(dtype)[:, None] * THETA).sin().repeat_interleave(2, 1)


def fault(law: Law, story: str, healthy: Callable[[], Target], broken: Callable[[], Target], says: str = "") -> Fault:
    return Fault(
        f"{law.name}: {story}", "a part", story, (law,), lambda wrong: broken() if wrong else healthy(), says=says
    )


def bias(of=alibi, **more: Any) -> Bias:
    return Bias("alibi", of, **{"falls": True, "promised": alibi, **more})


def table(rows=sinusoid, **more: Any) -> Table:
    return Table("sinusoid", rows, **{"promised": sinusoid, **more})


def student(edits: dict[str, str]) -> Target:
    """The student's model with other lines."""
    source = HEALTHY
    for right, other in edits.items():
        if source.count(right) != 1:
            raise ValueError(f"{right!r} stands {source.count(right)} times in student.py, not once")
        source = source.replace(right, other)
    return made(source)


PAD = {"self.table = nn.Embedding(vocab, d_model)": "self.table = nn.Embedding(vocab, d_model, padding_idx=0)"}
BY_HAND = {"self.table(ids)": "self.table(ids) + self.table.weight[ids] - self.table(ids).detach()"}
LAMBDA = {
    "        self.ffn = nn.Sequential(": "        self.parts = nn.Sequential(",
    "    def forward(self, x: Tensor, past: Past | None) -> tuple[Tensor, Past]:\n"
    '        """x (B, T, D) -> the same shape, and what attention has read."""': "        parts = self.parts\n"
    "        self.ffn = lambda x: parts(x)\n\n"
    "    def forward(self, x: Tensor, past: Past | None) -> tuple[Tensor, Past]:",
}


def trained(padding: float) -> Torch:
    """A student whose loss weighs padding so."""

    def of(model, ids, mask):
        lost = F.cross_entropy(model(ids)[0][:, :-1].transpose(1, 2), ids[:, 1:], reduction="none")
        weight = torch.where(mask[:, 1:], 1.0, padding)
        return (lost * weight).sum() / weight.sum()

    return Torch(made(HEALTHY).module, padded_loss=of, masked=lambda model, ids, mask: model(ids))


def sinusoids_of(exponent: str) -> Target:
    """The student's model with sinusoids of this exponent of pair i, added to token vectors that are not scaled."""
    add = (
        "i = torch.arange(0, vectors.shape[-1], 2, device=ids.device)\n"
        "        angles = torch.arange(ids.shape[1], device=ids.device)[:, None] * 10000.0 ** "
        f"-({exponent} / vectors.shape[-1])\n"
        "        return vectors + torch.stack([angles.sin(), angles.cos()], -1).flatten(1)"
    )
    return Torch(student({"return vectors * self.scale": add}).module)


FAULTS = [
    fault(
        bare.keeps_lengths,
        "Vectors grow with their position.",
        rotation,
        lambda: rotation(lambda x, p: turned(x, p) * (1 + p[:, None] / 10)),
    ),
    fault(
        bare.sees_distance_only,
        "Keys turn the other way.",
        rotation,
        lambda: rotation(key=lambda x, p: turned(x, p, sign=-1.0)),
    ),
    fault(bare.zero_turns_nothing, "Positions begin at 1.", rotation, lambda: rotation(lambda x, p: turned(x, p + 1))),
    fault(bare.rotation_forgets, "A longer call leaves its table.", rotation, lambda: rotation(Keeps().turn)),
    fault(
        bare.rotation_is_precise,
        "Angles are made in the dtype of the module.",
        lambda: rotation(cast=lambda dtype: turned),
        lambda: rotation(cast=lambda dtype: rounded),
    ),
    fault(
        bare.cached_keys_are_whole,
        "Queries beside kept keys begin at 0.",
        lambda: rotation(cached=kept),
        lambda: rotation(cached=lambda q, k: kept(q, k, 0)),
    ),
    fault(
        bare.bias_sees_distance_only,
        "The bias grows with the query's place.",
        bias,
        lambda: bias(lambda q, k: alibi(q, k) * (1 + q[:, None] / 50)),
    ),
    fault(bare.bias_forgets, "A longer call leaves its factor.", bias, lambda: bias(Keeps().bias)),
    fault(
        bare.bias_falls,
        "The slope has the wrong sign.",
        bias,
        lambda: bias(lambda q, k: alibi(q, k, 1.0)),
        "sign of the slope",
    ),
    fault(bare.bias_as_published, "Slopes are twice as large.", bias, lambda: bias(lambda q, k: 2 * alibi(q, k))),
    fault(bare.table_as_published, "The first row is missing.", table, lambda: table(lambda n: sinusoid(n + 1)[1:])),
    fault(
        bare.table_begins_alike, "Rows are counted from the end.", table, lambda: table(lambda n: sinusoid(n).flip(0))
    ),
    fault(
        bare.table_is_precise,
        "Positions are counted in the dtype of the module.",
        lambda: table(cast=lambda dtype: lambda n: sinusoid(n).to(dtype)),
        lambda: table(cast=lambda dtype: lambda n: coarse(n, dtype)),
    ),
    fault(
        embedding.padding_is_not_trained,
        "The row of padding is looked up by hand.",
        lambda: student(PAD),
        lambda: student(PAD | BY_HAND),
    ),
    fault(
        copies.a_deep_copy_is_its_own,
        "A function over its parts is kept.",
        lambda: student({}),
        lambda: student(LAMBDA),
        "computes with",
    ),
    fault(
        loss.padding_stays_out,
        "Padding is predicted like text.",
        lambda: trained(0.0),
        lambda: trained(1.0),
        "padding is predicted",
    ),
    fault(
        sinusoids.sinusoids_as_published,
        "The exponent counts pairs twice.",
        lambda: sinusoids_of("i"),
        lambda: sinusoids_of("2 * i"),
        "exponents are 4i/d",
    ),
]
