"""Laws of bare rotations, biases and tables: each passes the published method and fails on a fault in it."""

import pytest
import torch
from variants import asked

import gnomon as gn
from gnomon.audit.outside.adapters.positions import Bias, Rotation, Table
from gnomon.positions.scaling import plain_frequencies
from gnomon.positions.sinusoidal import Sinusoidal

C = 16
THETA = torch.tensor(plain_frequencies(10000.0, C))


def turned(x, positions, theta=THETA, sign=1.0):
    angles = positions[:, None] * theta
    a, b = x[..., ::2], x[..., 1::2]
    pairs = [a * angles.cos() - sign * b * angles.sin(), sign * a * angles.sin() + b * angles.cos()]
    return torch.stack(pairs, -1).flatten(-2)


def rotation(turn=turned, **more):
    return Rotation("rope", turn, width=C, **{"promised": plain_frequencies(10000.0, C), **more})


def alibi(queries, keys, sign=-1.0):
    slopes = torch.tensor([0.5, 0.25])[:, None, None]
    return sign * slopes * (queries[:, None] - keys).abs()


def sinusoid(n):
    return Sinusoidal(C).vectors(gn.Layout.dense(1, n))[0]


def test_healthy_modules_break_no_law():
    for target in (
        rotation(cast=lambda dtype: turned, scaled=1.0),
        rotation(lambda x, p: 1.2 * turned(x, p), scaled=1.2),
        Bias("alibi", alibi, falls=True, promised=alibi),
        Table("sinusoid", sinusoid, promised=sinusoid, cast=lambda dtype: lambda n: sinusoid(n).to(dtype)),
    ):
        report = gn.audit(target)
        assert report.failed == ()
        assert len(report.of("pass")) >= 3


class Keeps:
    """A table kept from the first call for its length, in which later calls look up positions from the end."""

    def __init__(self):
        self.seen = 0

    def turn(self, x, positions):
        self.seen = max(self.seen, len(positions))
        return turned(x, positions + (self.seen - len(positions)))

    def rows(self, n):
        self.seen = max(self.seen, n)
        return sinusoid(self.seen)[self.seen - n :]


def rounded(x, positions):
    return turned(x.float(), positions.bfloat16(), THETA.bfloat16()).to(x.dtype)


def sines(positions):
    return (positions[:, None] * THETA).sin().repeat_interleave(2, 1)


@pytest.mark.parametrize(
    ("law", "target"),
    [
        ("a rotation keeps lengths", lambda: rotation(lambda x, p: turned(x, p) * (1 + p[:, None] / 10))),
        ("a rotation keeps lengths", lambda: rotation(lambda x, p: turned(x, p), scaled=1.2)),
        ("a rotation sees distance only", lambda: rotation(key=lambda x, p: turned(x, p, sign=-1.0))),
        ("a rotation sees distance only", lambda: rotation(lambda x, p: turned(x, p**1.1))),
        ("position 0 turns nothing", lambda: rotation(lambda x, p: turned(x, p + 1))),
        ("a rotation forgets earlier calls", lambda: rotation(Keeps().turn)),
        ("a rotation keeps its precision", lambda: rotation(cast=lambda dtype: rounded)),
        ("scaling as published", lambda: rotation(lambda x, p: turned(x, p, THETA / 2))),
        ("scaling as published", lambda: rotation(scaled=1.3)),
        ("a bias sees distance only", lambda: Bias("b", lambda q, k: alibi(q, k) * (1 + q[:, None] / 50))),
        ("a bias falls with distance", lambda: Bias("b", lambda q, k: alibi(q, k, 1.0), falls=True)),
        ("a bias falls with distance", lambda: Bias("b", lambda q, k: alibi(q, k, 0.0), falls=True)),
        ("a bias is as published", lambda: Bias("b", lambda q, k: 2 * alibi(q, k), promised=alibi)),
        ("a table is as published", lambda: Table("t", lambda n: sinusoid(n + 1)[1:], promised=sinusoid)),
        ("a longer table begins alike", lambda: Table("t", lambda n: sinusoid(n).flip(0))),
        ("a longer table begins alike", lambda: Table("t", Keeps().rows)),
        (
            "a table keeps its precision",
            lambda: Table(
                "t", sinusoid, cast=lambda dtype: lambda n: (torch.arange(n).to(dtype)[:, None] * THETA).sin()
            ),
        ),
    ],
)
def test_each_law_sees_its_fault(law, target):
    assert asked(law, target()).verdict == "FAIL"


def test_the_cause_is_told():
    assert (
        "sign of the slope"
        in asked("a bias falls with distance", Bias("b", lambda q, k: alibi(q, k, 1.0), falls=True)).note
    )
    halves = Table("t", lambda n: sinusoid(n).view(n, -1, 2).mT.flatten(1), promised=sinusoid)
    assert "channels stand in another order" in asked("a table is as published", halves).note


def test_a_rotation_that_turns_nothing_is_seen_by_what_it_was_promised():
    still = rotation(lambda x, p: x)
    assert asked("a rotation sees distance only", still).verdict == "not observable"
    assert asked("scaling as published", still).verdict == "FAIL"


def test_the_angles_are_read_in_any_pairing():
    def by_sides(x, positions):
        order = torch.arange(C).view(2, -1).T.flatten()
        return turned(x[..., order], positions)[..., order.argsort()]

    for turn in (turned, by_sides):
        got, want = rotation(turn).table(5)
        assert got.shape == want.shape == (5, C // 2 + 1)
        assert torch.allclose(got, want, atol=1e-5)


def test_a_part_that_does_not_turn_is_promised_to_stay():
    def half(x, positions):
        return torch.cat([turned(x[..., :8], positions, THETA[::2]), x[..., 8:]], -1)

    assert asked("scaling as published", rotation(half, promised=THETA[::2].tolist())).verdict == "pass"
    assert asked("scaling as published", rotation(promised=THETA[::2].tolist())).verdict == "FAIL"


def test_a_bare_module_is_asked_nothing_about_models_and_a_model_nothing_about_bare_modules():
    laws = {f.law for f in gn.audit(rotation()).findings}
    assert "scaling as published" in laws
    assert "causality" not in laws
    model = {f.law for f in gn.audit(lambda ids: torch.zeros(*ids.shape, 7)).findings}
    assert not (model & laws) - {"scaling as published"}
    asked_for = gn.audit(rotation(), only=["causality"])
    assert asked_for["causality"].note == "rope is a bare rotation, not a model"
