"""Every law holds for every encoding, in models drawn at random; also for an encoding written outside the package."""

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import gnomon as gn
from gnomon.audit import LAWS, Subject, judge
from gnomon.positions import PositionEncoding, base, get

OPTIONS = {
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
    {}, {"residual": "parallel"}, {"residual": "one norm"}, {"qk_norm": True}, {"qk_norm": "joint"},
    {"residual_scale": 0.3, "head_softcap": 3.0, "head_scale": 0.5}, {"softcap": 2.0}, {"sinks": True},
    {"sink_tokens": 2}, {"window": [3, None], "sink_tokens": 1},
    {"softcap": 3.0, "sinks": True, "qk_norm": True, "window": [None, 4], "sink_tokens": 2},
    {"distinct_layers": 1}, {"experts": {"n_experts": 4, "shared": 8, "dense_layers": [1]}},
]  # fmt: skip


@st.composite
def models(draw: st.DrawFn, name: str) -> Subject:
    """A tiny model of any architecture under this encoding, or under it and another in turn."""
    architecture = draw(st.sampled_from(["decoder-only", "decoder-only", "encoder-decoder", "encoder-only"]))
    causal = architecture == "encoder-decoder" or (architecture == "decoder-only" and draw(st.booleans()))
    bidirectional_only = name == "alibi" and (causal or architecture == "encoder-decoder")
    window, block = draw(st.sampled_from([None, 3, 5])), draw(st.sampled_from(BLOCKS))
    if block.get("sink_tokens") and window is None and "window" not in block:
        window = 3
    parallel = "residual" in block
    only = {"parallel": ["pre", "sandwich"], "one norm": ["pre"]}
    placements = only.get(block.get("residual"), ["pre", "post", "sandwich", "branch"])
    options = draw(st.sampled_from([{}, *([] if bidirectional_only else OPTIONS.get(name, []))]))
    spec = get(name, **options) if options else Subject.of(name).spec
    other = st.sampled_from(["none", "rope", "alibi", "t5"]).map(get)
    return Subject(
        spec,
        causal=causal,
        architecture=architecture,
        options={} if (parallel or "distinct_layers" in block) and architecture == "encoder-decoder" else block,
        window=window,
        n_kv_heads=draw(st.sampled_from([1, 2, 4])),
        placement=draw(st.sampled_from(placements)),
        norm=draw(st.sampled_from(["layernorm", "rmsnorm"])),
        tied=draw(st.booleans()),
        second=draw(st.none() | other) if spec.acts in ("rotation", "score") else None,
        seed=draw(st.integers(0, 99)),
    )


@pytest.mark.parametrize("encoding", gn.positions.names())
@pytest.mark.parametrize("law", LAWS)
def test_every_law_holds_under_every_encoding(law, encoding):
    """Nothing drawn may break a law."""

    @settings(max_examples=2, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck))
    @given(models(encoding))
    def holds(subject: Subject) -> None:
        outcome = LAWS[law](subject)
        assert outcome.verdict != "fail", f"{law}: {outcome} on {subject}"

    holds()


@pytest.mark.parametrize("architecture", ["encoder-only", "encoder-decoder"])
@pytest.mark.parametrize("law", LAWS)
def test_every_law_holds_in_every_architecture(law, architecture):
    """With sources padded on both sides; half of the encodings, bare and with everything that blocks offer."""
    rich = {"softcap": 3.0, "sinks": True, "qk_norm": True, "sink_tokens": 1}
    subjects = [
        Subject.of("rope", architecture=architecture, window=3, placement="sandwich", options=rich),
        Subject.of("sinusoidal", architecture=architecture, placement="post", tied=False, seed=1),
        Subject.of("t5", architecture=architecture, n_kv_heads=2, norm="rmsnorm", seed=2),
    ]
    outcome = judge(LAWS[law], subjects)
    assert outcome.verdict != "fail", outcome


@pytest.mark.parametrize("block", BLOCKS, ids=str)
@pytest.mark.parametrize("law", LAWS)
def test_every_law_holds_in_every_kind_of_block(law, block):
    """With a cache and in chunks as without."""
    subject = Subject.of(
        "alibi", options=block, window=3 if block.get("sink_tokens") and "window" not in block else None
    )
    outcome = LAWS[law](subject)
    assert outcome.verdict != "fail", outcome


@pytest.mark.parametrize("law", LAWS)
def test_every_law_passes_somewhere(law, subjects):
    """A law that applies nowhere, or sees nothing anywhere, guards nothing."""
    everywhere = (subject for name in ("rope", "sinusoidal", *gn.positions.names()) for subject in subjects(name))
    assert any(LAWS[law](subject).verdict == "pass" for subject in everywhere)


# What laws about positions can see under each encoding. A fault that moves whole rows is invisible where only distances
# count; one that changes distances is invisible only where there is no position.
ALL_BUT_NONE = {name for name in gn.positions.names() if name != "none"}
ABSOLUTE = {name for name in ALL_BUT_NONE if not gn.positions.encoding(name).relative}
BY_NUMBER = {name for name in ALL_BUT_NONE if not gn.positions.encoding(name).order_only}  # reads what positions are
SEEN_UNDER = {
    "left padding takes no position": ABSOLUTE,
    "packed documents start at position 0": ABSOLUTE,
    "interior padding takes no position": BY_NUMBER,
    "decoding continues positions": BY_NUMBER,
    "padded rows decode at their own places": BY_NUMBER,
    "eviction moves no position": BY_NUMBER,
    "every row has its own positions": BY_NUMBER,
    "call history": BY_NUMBER | {"fox"},
    "a bfloat16 model keeps its positions": BY_NUMBER - {"learned", "fire"},  # whose logarithms smooth the rounding
    "left padding is hidden": ALL_BUT_NONE | {"none"},
    "packed = separate": ALL_BUT_NONE | {"none"},
    "cached = uncached": ALL_BUT_NONE | {"none"},
    "rolling = windowed": ALL_BUT_NONE | {"none"},
}


@pytest.mark.slow
@pytest.mark.parametrize("law", SEEN_UNDER)
def test_what_an_encoding_cannot_show_is_not_called_a_pass(law, subjects):
    verdicts = {name: judge(LAWS[law], subjects(name)).verdict for name in ("none", *sorted(ALL_BUT_NONE))}
    assert {name for name, verdict in verdicts.items() if verdict == "pass"} == SEEN_UNDER[law]
    assert {verdict for name, verdict in verdicts.items() if name not in SEEN_UNDER[law]} <= {"not observable"}


# ------------------------------------------------------------------ encodings from outside


@pytest.fixture
def registry(monkeypatch):
    """A registry that forgets what is defined during the test."""
    monkeypatch.setattr(base, "_REGISTRY", dict(base._REGISTRY))


@pytest.mark.slow
@pytest.mark.usefixtures("registry")
def test_an_encoding_defined_elsewhere_gets_into_the_laws(subjects):
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
    outcomes = [judge(found, subjects("fading")) for found in LAWS.values()]
    assert [outcome for outcome in outcomes if outcome.verdict == "fail"] == []
    assert sum(outcome.verdict == "pass" for outcome in outcomes) > 45


@pytest.mark.slow
@pytest.mark.usefixtures("registry")
def test_the_laws_find_what_is_wrong_with_a_careless_encoding(subjects):
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

    broken = {found.name for found in LAWS.values() if judge(found, subjects("careless")[:1]).verdict == "fail"}
    assert {"shift invariance", "call history", "cached = uncached", "left padding is hidden"} <= broken
