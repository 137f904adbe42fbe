"""Laws of bare rotations, biases and tables: each passes the published method and fails on a fault in it."""

import pytest
import torch
from faults.bare import THETA, C, Keeps, alibi, rotation, sinusoid, turned
from variants import asked

import gnomon as gn
from gnomon.audit.adapters.positions import Bias, Table


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


@pytest.mark.parametrize(
    ("law", "target"),
    [
        ("a rotation keeps lengths", lambda: rotation(lambda x, p: turned(x, p), scaled=1.2)),
        ("a rotation sees distance only", lambda: rotation(lambda x, p: turned(x, p**1.1))),
        ("scaling as published", lambda: rotation(lambda x, p: turned(x, p, THETA / 2))),
        ("scaling as published", lambda: rotation(scaled=1.3)),
        ("a bias falls with distance", lambda: Bias("b", lambda q, k: alibi(q, k, 0.0), falls=True)),
        ("a longer table begins alike", lambda: Table("t", Keeps().rows)),
    ],
)
def test_laws_see_other_faults_too(law, target):
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
        got, want = rotation(turn).angles(5)
        assert got.shape == want.shape == (5, C // 2 + 1)
        assert torch.allclose(got, want, atol=1e-5)


def test_a_part_that_does_not_turn_is_promised_to_stay():
    def half(x, positions):
        return torch.cat([turned(x[..., :8], positions, THETA[::2]), x[..., 8:]], -1)

    assert asked("scaling as published", rotation(half, promised=THETA[::2].tolist())).verdict == "pass"
    assert asked("scaling as published", rotation(promised=THETA[::2].tolist())).verdict == "FAIL"


def test_bare_modules_and_models_are_asked_only_about_their_own_kind():
    laws = {f.law for f in gn.audit(rotation()).findings}
    assert "scaling as published" in laws
    assert "causality" not in laws
    model = {f.law for f in gn.audit(lambda ids: torch.zeros(*ids.shape, 7)).findings}
    assert not (model & laws) - {"scaling as published"}
    asked_for = gn.audit(rotation(), only=["causality"])
    assert asked_for["causality"].note == "rope is a bare rotation, not a model"


# ------------------------------------------------------------------ what earlier calls leave behind


class Cached:
    """A rotation that keeps its table: `key` says for which calls it is made anew."""

    def __init__(self, key=lambda x, positions: 0, keep=lambda table: table):
        self.key, self.keep, self.tables = key, keep, {}

    def turn(self, x, positions):
        key = self.key(x, positions)
        if key not in self.tables or len(self.tables[key]) <= int(positions.max()):
            kept = torch.arange(int(positions.max()) + 1).to(x.dtype)[:, None] * THETA.to(x.dtype)
            self.tables[key] = self.keep(kept)
        angles = self.tables[key][positions].float()
        a, b = x[..., ::2], x[..., 1::2]
        pairs = [a * angles.cos() - b * angles.sin(), a * angles.sin() + b * angles.cos()]
        return torch.stack(pairs, -1).flatten(-2).to(x.dtype)


def in_half(table):
    return table.bfloat16() if torch.is_autocast_enabled("cpu") else table


def by_dtype(x, positions):
    return x.dtype


class HalfFarAway(Cached):
    """A table made in bfloat16, which rounds no position below 256."""

    def turn(self, x, positions):
        kept = self.tables.setdefault("positions", positions[-1] + 1 if x.dtype == torch.bfloat16 else None)
        return turned(x.float(), positions.to(torch.bfloat16) if kept is not None and kept > 256 else positions)


class KeepsTables(Cached):
    """Cosines and sines themselves: of inference mode they are no use to a call that is differentiated."""

    def turn(self, x, positions):
        self.tables.setdefault("cos", (torch.arange(512)[:, None] * THETA).cos())
        a, b = x[..., ::2], x[..., 1::2]
        start = int(positions[0])
        cos, sin = self.tables["cos"][start : start + len(positions)], (positions[:, None] * THETA).sin()
        return torch.stack([a * cos - b * sin, a * sin + b * cos], -1).flatten(-2)


class FirstOffset(Cached):
    """Positions count from where the first call began."""

    def turn(self, x, positions):
        return turned(x, positions - self.tables.setdefault("start", positions[0]))


@pytest.mark.parametrize(
    ("cached", "says"),
    [
        (Cached(), "in torch.bfloat16"),
        (Cached(by_dtype, in_half), "under autocast"),
        (KeepsTables(), "in inference mode, and raises RuntimeError: Inference tensors cannot be saved"),
        (FirstOffset(), "at positions 500 to 511"),
        (Keeps(), "of 512 tokens"),
        (HalfFarAway(), "in torch.bfloat16"),
    ],
)
def test_what_an_earlier_call_leaves_behind_is_named(cached, says):
    found = asked("a rotation forgets earlier calls", rotation(cached.turn))
    assert found.verdict == "FAIL"
    assert f"after a call {says}" in found.note


def test_tables_that_are_kept_rightly_are_not_accused():
    for turn in (Cached(by_dtype).turn, turned, lambda x, p: turned(x.detach(), p)):
        assert gn.audit(rotation(turn)).failed == ()


def test_every_law_asks_a_module_that_was_never_called():
    """The laws before would else fill the table in float32, and hide what bfloat16 does to it."""
    cached = Cached()
    report = gn.audit(rotation(cached.turn))
    assert [found.law for found in report.failed] == ["a rotation forgets earlier calls"]
    assert cached.tables == {}


def test_a_bias_and_a_table_remember_nothing_either():
    class First:
        kept = None

        def of(self, queries, keys):
            self.kept = self.kept or torch.is_inference_mode_enabled()
            return alibi(queries, keys) * (2 if self.kept else 1)

        def rows(self, n):
            self.kept = self.kept or torch.is_autocast_enabled("cpu")
            return sinusoid(n) * (2 if self.kept else 1)

    bias = asked("a bias forgets earlier calls", Bias("b", First().of))
    table = asked("a longer table begins alike", Table("t", First().rows))
    assert (bias.verdict, table.verdict) == ("FAIL", "FAIL")
    assert "after a call in inference mode" in bias.note
    assert "after a call under autocast" in table.note
    assert asked("a bias forgets earlier calls", Bias("b", alibi)).verdict == "pass"


# ------------------------------------------------------------------ the order of axes, and kept keys


def heads_last(x, positions):
    return turned(x.transpose(1, 2), positions).transpose(1, 2)


@pytest.mark.parametrize("layout", [None, "BTHC"])
def test_heads_may_come_after_tokens(layout):
    report = gn.audit(rotation(heads_last, layout=layout, cast=lambda dtype: heads_last))
    assert report.failed == ()
    assert report["position 0 turns nothing"].verdict == "pass"
    wrong = rotation(lambda x, p: heads_last(x, p + 1), layout=layout)
    assert gn.audit(wrong)["position 0 turns nothing"].verdict == "FAIL"


def test_a_layout_that_cannot_be_seen_is_the_usual_one():
    for turn in (turned, lambda x, p: x, lambda x, p: turned(x, p[: x.shape[2]]), lambda x, p: x[0]):
        assert rotation(turn).turn is turn


def test_queries_beside_kept_keys_are_the_last_of_them():
    def right(q, k):
        S, T = k.shape[2], q.shape[2]
        return turned(q, torch.arange(S - T, S)), turned(k, torch.arange(S))

    def first(q, k):
        return turned(q, torch.arange(q.shape[2])), turned(k, torch.arange(k.shape[2]))

    def slowly(q, k):  # off by what twelve tokens do not show
        S, T = k.shape[2], q.shape[2]
        return turned(q, torch.arange(S - T, S)) * (1 + max(0, S - 64) / 1e3), turned(k, torch.arange(S))

    law = "cached keys = whole"
    assert asked(law, rotation()).verdict == "not applicable"
    assert [asked(law, rotation(cached=c)).verdict for c in (right, first, slowly)] == ["pass", "FAIL", "FAIL"]
