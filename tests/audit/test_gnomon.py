"""Our own models obey every law: under every encoding, in every architecture and kind of block; also under an encoding
written outside the package."""

from random import Random
from unittest.mock import patch

import pytest
import torch

import gnomon as gn
from gnomon.audit import LAWS, SmallModel
from gnomon.audit.adapters.gnomon import Gnomon
from gnomon.audit.finding import UNASKED
from gnomon.blocks.experts import MixtureOfExperts
from gnomon.positions import PositionEncoding, base, encoding, get

OPTIONS: dict[str, list[dict]] = {
    "rope": [
        {"pairing": "interleaved"},
        {"fraction": 0.5},
        {"base": 100.0},
        {"scaling": {"kind": "ntk", "factor": 4.0}},
        {"scaling": {"kind": "llama3", "factor": 4.0, "original_length": 16}},
        {"scaling": {"kind": "proportional", "fraction": 0.5}},
    ],
    "sinusoidal": [{"table": "concatenated"}, {"table": "tensor2tensor"}],
    "t5": [{"n_buckets": 8, "max_distance": 16}],
    "alibi": [{"sides": "split"}],
    "kerple": [{"form": "power"}],
    "hard-alibi": [{"windows": 4}],
    "xpos": [{"pairing": "interleaved"}, {"scale_base": 0.25}],  # 8 tokens are read at once
}


BLOCKS = [
    {"distinct_layers": 1},
    {"experts": {"n_experts": 4, "shared": 8, "dense_layers": [1]}},
    {},
    {"residual": "parallel"},
    {"residual": "one norm"},
    {"qk_norm": True},
    {"qk_norm": "joint"},
    {"residual_scale": 0.3, "head_softcap": 3.0, "head_scale": 0.5},
    {"softcap": 2.0},
    {"sinks": True},
    {"sink_tokens": 2},
    {"window": [3, None], "sink_tokens": 1},
    {"softcap": 3.0, "sinks": True, "qk_norm": True, "window": [None, 4], "sink_tokens": 2},
]

ENCODINGS = gn.positions.names()
OURS = [law for law in LAWS.values() if law.concerns(Gnomon(SmallModel.of("rope").model()))]
PARTS = 6


def obeys(small: SmallModel, only: str = "") -> gn.audit.AuditReport:
    """Ask every law about a small model: none may be broken, and none may make it raise."""
    report = gn.audit(small.model(), only=only or [law.name for law in OURS])
    assert report.failed == (), f"{report} on {small}"
    assert not any(f.note.startswith(UNASKED) for f in report.findings), f"{report} on {small}"
    return report


def drawn(name: str, seed: int) -> SmallModel:
    """A small model of any architecture under this encoding, or under it and another in turn."""
    rng = Random(f"{name} {seed}")
    spec, options = Specs.of(name, rng), dict(rng.choice(BLOCKS))
    architectures = ["decoder-only"] if spec.cls.one_sided else ["decoder-only", "encoder-decoder", "encoder-only"]
    architecture = rng.choice(architectures)
    if architecture == "encoder-decoder":
        options = {key: value for key, value in options.items() if key not in ("residual", "distinct_layers")}
    placements = {"parallel": ["pre", "sandwich"], "one norm": ["pre"], None: ["pre", "post", "sandwich", "branch"]}
    window = 3 if options.get("sink_tokens") else rng.choice([None, 3, 5])
    options = {
        "window": window,
        "n_kv_heads": rng.choice([1, 2, 4]),
        "tied": rng.random() < 0.5,
        "norm": rng.choice(["layernorm", "rmsnorm"]),
        "placement": rng.choice(placements[options.get("residual")]),
        "causal": spec.cls.one_sided
        or architecture == "encoder-decoder"
        or (architecture == "decoder-only" and rng.random() < 0.7),
        **options,
    }
    mixed = spec.acts in ("rotation", "score") and rng.random() < 0.5
    second = get(rng.choice(["none", "rope", "alibi", "t5"])) if mixed else None
    return SmallModel(spec, architecture, second, options, seed)


class Specs:
    """Encodings in small settings, and in what else their papers have."""

    @staticmethod
    def of(name: str, rng: Random) -> gn.positions.Spec:
        options = rng.choice([{}, *OPTIONS.get(name, [])])
        return get(name, **options) if options else SmallModel.of(name).spec


@pytest.mark.parametrize("part", range(PARTS))
def test_each_law_holds_under_some_encoding(part):
    """Each encoding is asked about a few laws, and each law under one; the slow tests ask all about all."""
    for i, law in list(enumerate(OURS))[part::PARTS]:
        obeys(SmallModel.of(ENCODINGS[i % len(ENCODINGS)]), law.name)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("name", ENCODINGS)
def test_every_law_holds_under_every_encoding(name, seed):
    obeys(drawn(name, seed))


@pytest.mark.slow
@pytest.mark.parametrize("name", ENCODINGS)
def test_what_an_encoding_cannot_show_is_not_called_a_pass(name):
    """Laws about positions say nothing of a model without any."""
    report = obeys(SmallModel.of(name))
    shown = "not observable" if encoding(name).acts == "nowhere" or encoding(name).order_only else "pass"
    assert report["every row has its own positions"].verdict == shown
    assert {report[law].verdict for law in ("left padding changes nothing", "packed = separate", "cached = full")} == {
        "pass"
    }


@pytest.mark.slow
@pytest.mark.parametrize("architecture", ["encoder-only", "encoder-decoder"])
@pytest.mark.parametrize(
    ("name", "options"),
    [
        (
            "rope",
            {"window": 3, "placement": "sandwich", "softcap": 3.0, "sinks": True, "qk_norm": True, "sink_tokens": 1},
        ),
        ("sinusoidal", {"placement": "post", "tied": False, "seed": 1}),
        ("t5", {"n_kv_heads": 2, "norm": "rmsnorm", "seed": 2}),
    ],
    ids=["rope", "sinusoidal", "t5"],
)
def test_every_law_holds_in_every_architecture(name, options, architecture):
    """With sources padded on both sides, bare and with everything that blocks offer."""
    obeys(SmallModel.of(name, architecture, **options))


@pytest.mark.slow
@pytest.mark.parametrize("block", BLOCKS, ids=str)
def test_every_law_holds_in_every_kind_of_block(block):
    """With a cache and in chunks as without."""
    obeys(SmallModel.of("alibi", **{**({"window": 3} if block.get("sink_tokens") else {}), **block}))


def test_roundings_of_experts_are_no_influence():
    """Of several tokens that choose one expert, or of one, the same product may be rounded differently."""
    healthy = MixtureOfExperts.answers

    def rounded(self, x, chosen):
        return healthy(self, x, chosen) * (1 + 2.0**-23 * int((chosen == 0).sum()))

    with patch.object(MixtureOfExperts, "answers", rounded):
        obeys(SmallModel.of("rope", experts={"n_experts": 4}), "influence = visibility")


def test_a_small_model_is_the_same_every_time_and_leaves_the_random_numbers_alone():
    for name in ("learned", "t5"):
        one = SmallModel.of(name, seed=3).model()
        torch.rand(1)
        before = torch.random.get_rng_state()
        two, other = (SmallModel.of(name, seed=seed).model() for seed in (3, 4))
        assert all(torch.equal(p, q) for p, q in zip(one.parameters(), two.parameters(), strict=True))
        assert not any(torch.equal(p, q) for p, q in zip(one.parameters(), other.parameters(), strict=True))
        assert torch.equal(before, torch.random.get_rng_state())


def test_a_small_model_is_like_the_one_that_is_audited():
    config = gn.ModelConfig(
        vocab_size=512,
        d_model=96,
        n_layers=6,
        n_heads=12,
        n_kv_heads=3,
        position=get("t5", n_buckets=8),
        tied=False,
        window=(64, None),
        sink_tokens=4,
        norm="rmsnorm",
        qk_norm=True,
    )
    like = SmallModel.like(config).model().config
    assert (like.position, like.n_kv_heads, like.window, like.sink_tokens) == (config.position, 2, (5, None), 2)
    assert (like.tied, like.norm, like.qk_norm, like.n_layers, like.d_model) == (False, "rmsnorm", True, 2, 32)


def test_chunks_add_up_and_differ_with_the_seed():
    cuts = [SmallModel.of("none", seed=i).cuts(14) for i in range(8)]
    assert all(sum(chunks) == 14 and min(chunks) >= 1 for chunks in cuts)
    assert len({tuple(chunks) for chunks in cuts}) > 1


# ------------------------------------------------------------------ encodings from outside


@pytest.fixture
def registry(monkeypatch):
    """A registry that forgets what is defined during the test."""
    monkeypatch.setattr(base, "_REGISTRY", dict(base._REGISTRY))


@pytest.mark.slow
@pytest.mark.usefixtures("registry")
def test_an_encoding_defined_elsewhere_gets_into_the_laws():
    class Fading(PositionEncoding):
        """-log(1 + distance), less so in later heads."""

        name = "fading"
        paper = "nobody's"
        acts = "score"
        relative = True

        def __init__(self, n_heads: int) -> None:
            super().__init__()
            self.n_heads = n_heads

        def heads(self) -> int:
            return self.n_heads

        def bias(self, h: torch.Tensor, q: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
            return -torch.log1p((q - k).abs().to(h.dtype)) / (h + 1)

    assert "fading" in gn.positions.names()
    report = obeys(SmallModel.of("fading", window=3))
    assert len(report.of("pass")) > 45


@pytest.mark.slow
@pytest.mark.usefixtures("registry")
def test_the_laws_find_what_is_wrong_with_a_careless_encoding():
    class Careless(PositionEncoding):
        """Says that it is relative and measures from the start, by the longest call so far."""

        name = "careless"
        acts = "score"
        relative = True

        def __init__(self, n_heads: int) -> None:
            super().__init__()
            self.n_heads, self.longest = n_heads, 1

        def heads(self) -> int:
            return self.n_heads

        def bias(self, h: torch.Tensor, q: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
            self.longest = max(self.longest, int(k.max()))
            return -(k / self.longest) * (h + 1)

    broken = {found.law for found in gn.audit(SmallModel.of("careless").model()).failed}
    assert {"shift", "call history", "prefix = beginning past the limit", "crop = never read"} <= broken
