"""What is planned is what is built, and nothing is allocated for it."""

import pytest
import torch

import gnomon as gn
from gnomon.models.plan import plan
from gnomon.models.presets import PRESETS, preset


def n_parameters(module):
    return sum(p.numel() for p in module.parameters())


def test_gpt2_small_has_the_published_size_and_grows_by_31_percent_untied():
    """50257 x 768 = 38 597 376 of the 124 439 808 parameters of the published model."""
    planned = plan(preset("gpt2-small"))
    assert planned.parts["tokens"] == 50257 * 768 == 38_597_376
    assert (planned.tied, planned.untied) == (124_439_808, 163_037_184)
    assert planned.untied - planned.tied == planned.parts["tokens"]  # the matrices double, the model does not
    assert round(planned.untied / planned.tied - 1, 2) == 0.31


def test_mini_gpt_has_the_size_of_its_shape():
    """Per block 4 D^2 + 4 D attention, 8 D^2 + 5 D feed-forward, two norms of 2 D; D = 128."""
    planned, D = plan(preset("mini-gpt")), 128
    assert planned.input_layer == 512 * D + 64 * D == 73_728
    assert planned.parts["attention"] == 4 * (4 * D * D + 4 * D)
    assert planned.parts["feed_forward"] == 4 * (8 * D * D + 5 * D)
    assert planned.parts["norms"] == (4 * 2 + 1) * 2 * D
    assert (planned.tied, planned.untied) == (867_072, 932_608)


@pytest.mark.parametrize("name", [name for name in PRESETS if name.startswith("mini")])
@pytest.mark.parametrize("changes", [{}, {"tied": False}, {"position": "t5"}, {"d_embed": 32}, {"n_kv_heads": 1}])
def test_a_plan_counts_what_is_then_built(name, changes):
    planned, model = plan(preset(name, **changes)), gn.DecoderOnly.from_preset(name, **changes)
    assert planned.total == sum(planned.parts.values()) == n_parameters(model)
    assert planned.input_layer == n_parameters(model.input)


@pytest.mark.parametrize("changes", [{}, {"n_kv_heads": 1}, {"d_head": 16}, {"n_layers": 2}])
def test_the_planned_cache_is_the_cache_that_fills(changes):
    planned, model = plan(preset("mini-llama", **changes)), gn.DecoderOnly.from_preset("mini-llama", **changes)
    cache = model.cache()
    with torch.no_grad():
        model(torch.zeros(3, 7, dtype=torch.long), cache=cache)
    held = [*cache.k.values(), *cache.v.values()]
    assert planned.cache_bytes(7, torch.float32, batch=3) == sum(x.numel() * x.element_size() for x in held)
    assert planned.cache_bytes(7, torch.bfloat16, batch=3) * 2 == planned.cache_bytes(7, torch.float32, batch=3)


def test_each_layer_holds_what_its_own_window_needs():
    planned = plan(preset("mini-llama", window=[100, None], sink_tokens=4))
    alone = plan(preset("mini-llama")).cache_bytes(1000)
    assert planned.cache_bytes(1000) == alone * (104 + 1000) // 2000


def test_a_window_bounds_the_cache():
    planned = plan(preset("mini-llama", window=100))
    assert planned.cache_bytes(99) < planned.cache_bytes(100) == planned.cache_bytes(10_000)


@pytest.mark.slow
def test_a_model_too_large_for_any_memory_can_be_planned():
    huge = preset("mini-llama", d_model=16_384, n_layers=100, n_heads=128, n_kv_heads=8, vocab_size=200_000)
    assert plan(huge).total > 2e11


def test_contexts_end_where_a_learned_table_does():
    assert plan(preset("gpt2-small")).contexts() == [1024]
    assert plan(preset("mini-gpt", max_positions=5000)).contexts() == [1024, 4096, 5000]
    assert plan(preset("mini-gpt", position="rope")).contexts()[-1] == 131_072
