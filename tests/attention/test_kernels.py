"""Which kernel runs where, at sizes beyond one block, and on FlexAttention; how much memory it takes is test_memory.py.

That every kernel equals the dense definition, forward and backward, on every layout is a law (tests/audit).
"""

import warnings
from dataclasses import replace

import pytest
import torch

import gnomon as gn
from gnomon import Layout
from gnomon.attention import KERNELS, AttentionSettings, attend, choose, distances, kernels, stretches, watch
from gnomon.attention.dense import dense
from gnomon.positions import PositionEncoding, base, get

BIASED = [name for name in gn.positions.names() if gn.positions.encoding(name).acts == "score"]
CONTENT = [name for name in gn.positions.names() if gn.positions.encoding(name).acts == "attention"]
BARE = [name for name in gn.positions.names() if name not in BIASED + CONTENT]
MASK = torch.tensor([[0, 0, 1, 1, 1, 1], [1, 1, 1, 1, 1, 1]])

ABSOLUTE = [
    name for name in BIASED if not gn.positions.encoding(name).relative
]  # a bias that is no function of distance

# What runs in every layer of a model: (layout, model settings) -> kernel without a bias, kernel with one of distances.
EXPECTED = {
    "whole prompt": ("causal", "toeplitz"),
    "bidirectional": ("plain", "toeplitz"),
    "window": ("toeplitz", "toeplitz"),
    "bidirectional window": ("toeplitz", "toeplitz"),
    "chunk after a cache": ("toeplitz", "toeplitz"),
    "one token after a cache": ("plain", "toeplitz"),
    "left padding": ("blocked", "blocked"),
    "one token after left padding": ("blocked", "blocked"),
    "packed": ("blocked", "blocked"),
    "prefix": ("blocked", "blocked"),
    "random positions": ("causal", "ordered"),
    "window at random positions": ("toeplitz", "ordered"),
    "training with dropout": ("blocked", "blocked"),
}


def run(position: str, case: str) -> set[str]:
    """The kernels that a two-layer model uses in this case."""
    settings = {"causal": "bidirectional" not in case, "window": 3 if "window" in case else None}
    model = gn.DecoderOnly(11, 16, 2, 4, position=position, max_positions=32, dropout=0.1, **settings)
    model.train(case == "training with dropout")
    ids = torch.randint(11, (2, 6))
    layouts = {
        "left padding": Layout.padded(MASK),
        "packed": Layout.packed([[3, 3], [2, 4]]),
        "prefix": Layout.prefix(3, 6),
        "random positions": Layout.randomized(6, 32, batch=2),
        "window at random positions": Layout.randomized(6, 32, batch=2),
        "one token after left padding": Layout.padded(MASK),
    }
    if "after" not in case:
        with watch() as ran:
            model(ids, layouts.get(case))
        return set(ran)
    cache = model.cache()
    model(ids, layouts.get(case), cache)
    with watch() as ran:
        model(ids[:, :1] if "one token" in case else ids[:, :3], cache=cache)
    return set(ran)


@pytest.mark.parametrize("case", EXPECTED)
@pytest.mark.parametrize("position", BARE + BIASED + CONTENT)
def test_this_kernel_runs(position, case):
    """A dense fallback where a faster rule applies is a failure."""
    if "bidirectional" in case and gn.positions.encoding(position).one_sided:
        pytest.skip("for causal attention only")
    usual = EXPECTED[case][position in BIASED]
    if position in ABSOLUTE and usual == "toeplitz":
        usual = "blocked" if case == "one token after a cache" else "ordered"
    assert run(position, case) == {"content" if position in CONTENT else usual}


@pytest.mark.parametrize("position", BARE + BIASED)
def test_on_a_gpu_what_is_not_plain_goes_to_flex_attention(position):
    sizes = {"d_model": 8, "d_head": 8, "n_heads": 4, "max_positions": 8}
    module, at, long = get(position).build(**sizes), Layout.dense(2, 6), Layout.dense(2, 9)
    padded = Layout.padded(MASK)
    assert choose(module, at, at, AttentionSettings(), "cuda") == ("flex" if position in BIASED else "causal")
    assert choose(module, padded, padded, AttentionSettings(), "cuda") == "flex"
    assert choose(module, long.tokens(slice(3, None)), long, AttentionSettings(), "cuda") == "flex"
    assert choose(module, padded, padded, AttentionSettings(dropout=0.1), "cuda") == "blocked"


def test_an_encoding_that_defines_the_score_gets_the_blocked_dense_form(monkeypatch):
    monkeypatch.setattr(base, "_REGISTRY", dict(base._REGISTRY))

    class Louder(PositionEncoding):
        """Doubles every score."""

        name = "louder"
        acts = "attention"

        def scores(self, q, k, tables, ok, scale):
            return 2 * (q.x @ k.x.transpose(-1, -2)) * scale

    at = Layout.dense(1, 6)
    q, k, v = torch.randn(3, 1, 2, 6, 4)
    monkeypatch.setattr(kernels, "BLOCK", 2 * 6 * 2)
    with watch() as ran:
        out = attend(q, k, v, Louder(), at, at)
    assert ran == ["content"]
    assert torch.allclose(out, attend(2 * q, k, v, get("none").build(), at, at), atol=1e-6)


@pytest.mark.parametrize("position", ["none", "alibi", "t5"])
def test_many_blocks_are_one_computation(position, monkeypatch):
    """Sizes at which a query block ends in the middle, with gradients."""
    module, at = get(position).build(n_heads=2), Layout.padded(torch.rand(2, 150) > 0.2)
    long = Layout.dense(2, 150)
    torch.manual_seed(0)
    start, cotangent = torch.randn(3, 2, 2, 150, 8), torch.randn(2, 2, 150, 8)
    results = []
    for kernel, block in (("dense", 2**24), (None, 2**24), (None, 2 * 2 * 150 * 37)):
        monkeypatch.setattr(kernels, "BLOCK", block)
        monkeypatch.setattr(stretches, "CACHED", block)
        monkeypatch.setattr(stretches, "STRETCH", 37 if block < 2**24 else 512)
        found = []
        for where in (at, long):
            q, k, v = (x.clone().requires_grad_() for x in start)
            module.zero_grad()
            (attend(q, k, v, module, where, where, kernel=kernel) * cotangent).sum().backward()
            found += [x.grad for x in (q, k, v, *module.parameters())]
        results.append(found)
    for found in results[1:]:
        assert max((a - b).abs().max() for a, b in zip(results[0], found, strict=True)) < 1e-4


@pytest.mark.parametrize("position", ["none", "alibi"])
def test_blocks_computed_again_drop_the_same_weights(position, monkeypatch):
    """The output is linear in v, so with the same weights in both passes <out, c> = <v, gradient of v>."""
    monkeypatch.setattr(kernels, "BLOCK", 2 * 30 * 7)
    module, at = get(position).build(n_heads=2), Layout.dense(1, 30)
    q, k, v = (torch.randn(1, 2, 30, 8, requires_grad=True) for _ in range(3))
    cotangent = torch.randn(1, 2, 30, 8)
    with watch() as ran:
        out = attend(q, k, v, module, at, at, dropout=0.5)
    torch.rand(100)  # what happens between the passes must not matter
    state = torch.get_rng_state()
    (out * cotangent).sum().backward()
    assert ran == ["blocked"]
    assert (out * cotangent).sum().item() == pytest.approx((v * v.grad).sum().item(), abs=1e-3)
    assert torch.equal(state, torch.get_rng_state())


@pytest.mark.slow
@pytest.mark.parametrize("position", ["none", "rope", "alibi", "t5"])
def test_flex_attention_equals_the_dense_definition(position):
    """On the CPU flex runs unfused and forward only, which is enough to check the two functions it is given."""
    module, at = get(position).build(n_heads=2, d_head=8), Layout.packed([[5, 3], [6]])
    q, k, v = torch.randn(3, 2, 2, 8, 8)
    padded = Layout.padded(at.real)
    for where, settings in (
        (at, AttentionSettings(window=3, scale=0.3)),
        (at, AttentionSettings(causal=False, scale=0.3)),
        (padded, AttentionSettings(scale=0.3)),
    ):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch advises to compile it
            got = kernels.flex(q, k, v, module, where, where, settings)
        want = dense(q, k, v, module, where, where, settings)
        real = where.real[:, None, :, None]
        assert ((got - want) * real).abs().max() < 1e-5


# ------------------------------------------------------------------ asked for by name

NAMED = [name for name in KERNELS if name not in ("dense", "flex")]
NAMED += [pytest.param("flex", marks=pytest.mark.slow)]  # seconds where it is not compiled
ASKED = {
    "nothing": {"causal": False},
    "causal": {},
    "window": {"window": 2},
    "window to both sides": {"causal": False, "window": 2},
    "sink tokens": {"window": 2, "sink_tokens": 1},
    "soft cap": {"softcap": 0.5},
    "sinks": {"sinks": torch.ones(4)},
}
PLACES = {
    "dense": (Layout.dense(2, 6), Layout.dense(2, 6)),
    "one layout": (DENSE := Layout.dense(2, 6), DENSE),
    "chunk": (DENSE.tokens(slice(3, None)), DENSE),
    "padded": (PADDED := Layout.padded(MASK), PADDED),
    "packed": (PACKED := Layout.packed([[3, 3], [2, 4]]), PACKED),
    "after padding": (PADDED.then(2), PADDED),
    "random": (RANDOM := Layout.randomized(6, 32, torch.Generator().manual_seed(0), 2), RANDOM),
}


@pytest.mark.filterwarnings("ignore")  # torch advises to compile flex, and speaks of caches
@pytest.mark.parametrize("kernel", NAMED)
@pytest.mark.parametrize("position", BARE + BIASED)
def test_a_kernel_by_name_is_the_dense_one_or_an_error_that_names_what_it_lacks(kernel, position):
    """All that is asked in every place; flex, slow where it is not compiled, all in one place each, in turn."""
    module = get(position).build(d_model=8, d_head=8, n_heads=4, max_positions=32)
    torch.manual_seed(0)
    held, turn = 0, (BARE + BIASED).index(position)
    for i, asked in enumerate(ASKED.values()):
        for j, (at, k_at) in enumerate(PLACES.values()):
            if kernel == "flex" and (i + turn) % len(PLACES) != j:
                continue
            q, k, v = (torch.randn(2, 4, where.shape[1], 8) for where in (at, k_at, k_at))
            want = attend(q, k, v, module, at, k_at, **asked, kernel="dense")
            try:
                with torch.no_grad():
                    got = attend(q, k, v, module, at, k_at, **asked, kernel=kernel)
            except gn.BadValue as error:
                refused = str(error)
            else:
                refused = ""
            if refused:
                assert f"kernel {kernel!r} cannot compute" in refused
                continue
            held += 1
            assert torch.allclose(got, want, atol=1e-5), (asked, at.kind, k_at.kind)
    assert (
        held
        or (kernel in ("plain", "causal") and position in BIASED)
        or (kernel == "toeplitz" and position in ABSOLUTE)
    )


@pytest.mark.parametrize("kernel", ["plain", "causal", "toeplitz", "flex"])
def test_a_kernel_without_dropout_refuses_it(kernel):
    q, at = torch.randn(1, 2, 3, 4), Layout.dense(1, 3)
    with pytest.raises(gn.BadValue, match="cannot compute.*dropout"):
        attend(q, q, q, get("none").build(), at, at, causal=kernel != "plain", dropout=0.5, kernel=kernel)


# ------------------------------------------------------------------ alone


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("queries", [1, 3, 6])
def test_alone_it_is_causal_attention_of_the_last_tokens(queries, causal):
    torch.manual_seed(0)
    q, k, v = torch.randn(2, 4, queries, 8), torch.randn(2, 4, 6, 8), torch.randn(2, 4, 6, 8)
    mask = torch.ones(6, 6, dtype=torch.bool).tril()[6 - queries :] if causal else None
    want = torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)
    assert torch.allclose(attend(q, k, v, causal=causal), want, atol=1e-6)


def test_alone_and_both_sided_there_may_be_more_queries_than_keys():
    q, k = torch.randn(1, 2, 5, 4), torch.randn(1, 2, 3, 4)
    want = torch.nn.functional.scaled_dot_product_attention(q, k, k)
    assert torch.allclose(attend(q, k, k, causal=False), want, atol=1e-6)
    with pytest.raises(gn.BadValue, match="5 queries cannot be placed beside 3 keys where neither has a layout"):
        attend(q, k, k)
    with pytest.raises(gn.BadValue, match="where only at places the queries: give at and k_at"):
        attend(q, k, k, at=Layout.dense(1, 5))


@pytest.mark.parametrize(
    ("name", "value"),
    [("softcap", 0.0), ("softcap", -1.0), ("softcap", float("nan")), ("scale", float("nan")), ("sink_tokens", -1)],
)
def test_numbers_that_make_no_attention_are_refused_by_name(name, value):
    """A cap of 0 would weigh all that is seen alike, without a word."""
    x = torch.randn(1, 1, 3, 4)
    with pytest.raises(gn.BadValue, match="unknown setting 'sofcap': did you mean 'softcap'"):
        attend(x, x, x, sofcap=3.0)
    with pytest.raises(gn.BadValue, match=f"^{name} "):
        attend(x, x, x, **{name: value})


# ------------------------------------------------------------------ distances: work and memory


def multiplied(monkeypatch, position, T, **settings):
    """Pairs of tokens that torch's fused kernel is given for T tokens of one layout."""
    given, healthy = [], torch.nn.functional.scaled_dot_product_attention
    monkeypatch.setattr(stretches, "STRETCH", 8)
    monkeypatch.setattr(distances, "attend_compiled", lambda *given: None)
    monkeypatch.setattr(
        distances.F,
        "scaled_dot_product_attention",
        lambda q, k, v, **more: (given.append(q.shape[2] * k.shape[2]), healthy(q, k, v, **more))[1],
    )
    module, at, x = get(position).build(n_heads=2), Layout.dense(1, T), torch.randn(1, 2, T, 4)
    out = attend(x, x, x, module, at, at, **settings)
    monkeypatch.undo()
    assert torch.allclose(out, attend(x, x, x, module, at, at, **settings, kernel="dense"), atol=1e-5)
    return sum(given)


@pytest.mark.parametrize("position", ["none", "alibi", "t5", "kerple"])
def test_keys_that_none_of_a_stretch_of_queries_sees_are_left_out(position, monkeypatch):
    """Eight stretches of 8: half of all pairs, and half a stretch; within a window a band, whatever the length."""
    causal = multiplied(monkeypatch, position, 64, window=64)
    assert causal == 8 * 8 * (1 + 2 + 3 + 4 + 5 + 6 + 7 + 8)
    assert multiplied(monkeypatch, position, 64, window=4) == 8 * 8 + 7 * 8 * (8 + 3)
    both = multiplied(monkeypatch, position, 64, window=4, causal=False)
    assert both == 2 * 8 * (8 + 3) + 6 * 8 * (8 + 6)


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("window", [None, 5])
def test_gradients_of_a_learned_bias_are_those_of_the_dense_form_in_stretches(causal, window, monkeypatch):
    monkeypatch.setattr(stretches, "STRETCH", 7)
    monkeypatch.setattr(stretches, "CACHED", 2 * 30 * 4)
    module, at, later = get("kerple").build(n_heads=2).double(), Layout.dense(1, 30), Layout.dense(1, 40)
    cotangent = torch.randn(1, 2, 30, 4, dtype=torch.float64)
    for k_at in (at, later, Layout.placed(list(range(50, 80)))):  # also keys that are all ahead
        k_at = k_at if k_at.kind == "dense" else Layout(k_at.pos, k_at.step + 50, None, k_at.length, "dense")
        found = []
        for kernel in ("toeplitz", "dense"):
            torch.manual_seed(0)
            q, k, v = (
                torch.randn(1, 2, where.shape[1], 4, dtype=torch.float64, requires_grad=True)
                for where in (at, k_at, k_at)
            )
            module.zero_grad()
            out = attend(q, k, v, module, at, k_at, causal=causal, window=window, kernel=kernel)
            (out * cotangent).sum().backward()
            found.append([out.detach(), q.grad, k.grad, v.grad, module.weight.grad])
        for fast, right in zip(*found, strict=True):
            torch.testing.assert_close(fast, right)


@pytest.mark.parametrize("name", ["rope", "alibi", "t5"])
@pytest.mark.parametrize("window", [None, 4])
def test_a_step_over_a_cache_asks_each_mask_once_and_plain_attention_for_none(name, window, monkeypatch):
    """Ten layers, one token after another: what depends on the layout alone is made at most once a step."""
    made = []
    whole = distances.distance_vector
    monkeypatch.setattr(distances, "distance_vector", lambda *given: made.append(1) or whole(*given))
    model = gn.DecoderOnly(
        vocab_size=20, d_model=16, n_layers=10, n_heads=4, n_kv_heads=2, position=name, window=window
    ).eval()
    ids, cache = torch.randint(0, 20, (1, 9)), model.cache()
    with torch.no_grad():
        want = model(ids)
        for i in range(9):
            made.clear()
            with watch() as ran:
                got = model(ids[:, i : i + 1], cache=cache)
            torch.testing.assert_close(got[:, 0], want[:, i])
            needed = name != "rope" or (window is not None and i >= window)
            assert set(ran) == {"toeplitz" if needed else "plain"}
            assert len(made) == needed


def test_two_parts_of_one_forward_do_not_share_a_mask():
    """What is noted is for the newest tokens of a cache, as one object; a part of them is another."""
    at, q, k = Layout.dense(1, 6), torch.randn(1, 2, 2, 8), torch.randn(1, 2, 6, 8)
    alibi = gn.positions.get("alibi").build(n_heads=2, d_head=8, d_model=16)
    seen = replace(at, newest=at, notes={})
    with torch.no_grad():
        for part in (slice(0, 2), slice(2, 4), slice(4, 6)):
            here = at.tokens(part)
            torch.testing.assert_close(
                attend(q, k, k, alibi, here, seen), attend(q, k, k, alibi, here, at, kernel="dense")
            )


@pytest.mark.parametrize("name", ["none", "alibi", "kerple"])
@pytest.mark.parametrize("padded", [False, True])
def test_gradients_of_one_query_with_shared_keys_are_those_of_the_dense_form(name, padded):
    mask = torch.tensor([[0, 1, 1, 1, 1], [1, 1, 1, 1, 1]])
    k_at = Layout.padded(mask) if padded else Layout.dense(2, 5)
    at = k_at.tokens(slice(4, None))
    module = get(name).build(n_heads=4, d_head=8, d_model=32).double()
    found = []
    for kernel in (None, "dense"):
        torch.manual_seed(0)
        q, k, v = (
            torch.randn(2, n, t, 8, dtype=torch.float64, requires_grad=True) for n, t in ((4, 1), (2, 5), (2, 5))
        )
        module.zero_grad()
        out = attend(q, k, v, module, at, replace(k_at, newest=at, notes={}), kernel=kernel)
        out.square().sum().backward()
        found.append([out.detach(), q.grad, k.grad, v.grad, *(p.grad for p in module.parameters())])
    for fast, right in zip(*found, strict=True):
        torch.testing.assert_close(fast, right)
