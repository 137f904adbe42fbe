"""What is written is judged by the library that reads it: each setting of each family gives its logits or a refusal."""

import json

import pytest
import torch
import transformers as hf
from cases import ALL
from parity import loaded
from settings import changed

import gnomon as gn
from gnomon.checkpoints import load, save_hf
from gnomon.checkpoints.hf import FAMILIES, family_for
from gnomon.checkpoints.hf.registry import find_losses
from gnomon.checkpoints.hf.rope import ROTARY, share_of
from gnomon.errors import BadValue
from gnomon.models import build, preset
from gnomon.models.context_extension import extend
from gnomon.models.meta import build_on_meta
from gnomon.positions.scaling import Linear

get = gn.positions.get


def drawn(model):
    """Every weight at a size that shows it; norms around 1 (Gemma's around 0), biases around 0."""
    torch.manual_seed(3)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if weight.dim() == 1:
                weight.copy_(weight.mean().round() + 0.3 * torch.randn_like(weight))
            else:
                table = "tokens" in name or "position" in name
                weight.normal_(std=0.6 if table else weight.shape[-1] ** -0.5)
        if model.config.padding_id is not None:
            model.input.tokens.weight[model.config.padding_id] = 0
    return model.eval()


def ids(config, length):
    return torch.randint(4, config.vocab_size, (2, length), generator=torch.Generator().manual_seed(1))


def both_answers(model, folder):
    """Ours, and that of the other library's class that the written config names."""
    c = model.config
    [name] = json.loads((folder / "config.json").read_text())["architectures"]
    theirs, source = getattr(hf, name).from_pretrained(folder).eval(), ids(c, 30)
    with torch.no_grad():
        if c.architecture == "encoder-decoder":
            target = ids(c, 9)
            return model(source, target), theirs(input_ids=source, decoder_input_ids=target).logits
        out = theirs(source)
        if c.head != "pooled":
            return model(source), out.logits
        pooled = out.last_hidden_state.mean(1) if c.pooling == "mean" else out.last_hidden_state[:, 0]
        return model(source), out.pooler_output if c.pooler else pooled


def difference(model, folder, family=None):
    """How far theirs is from ours, in units of what is allowed; None for a refusal that names itself."""
    refused = ""
    try:
        save_hf(model, folder, family)
    except BadValue as error:
        refused = str(error)
    if refused:
        assert "cannot say" in refused
        assert not folder.exists()
        return None
    ours, theirs = both_answers(model, folder)
    return (ours - theirs).abs().max().item() / (1e-5 * max(1.0, theirs.abs().max().item()))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:a bidirectional stack without position")
@pytest.mark.parametrize("family", FAMILIES)
def test_every_setting_is_read_there_as_it_is_meant_or_refused(tmp_path, family):
    base = loaded(next(one for one in ALL if one.family == family).model(), tmp_path / "theirs").config
    far, refused = {}, []
    for change, config in changed(base):
        try:
            weights = build_on_meta(config).state_dict()
        except BadValue:  # no model can have it
            continue
        if find_losses(config, FAMILIES[family], weights):
            refused.append(config)
        else:
            far[str(change)] = difference(drawn(build(config)), tmp_path / str(len(far)), family)
    assert len(far) > 20
    assert {change: x for change, x in far.items() if not x <= 1} == {}
    assert difference(build(refused[0]), tmp_path / "refused", family) is None


@pytest.mark.slow
@pytest.mark.parametrize("one", ALL, ids=str)
def test_whatever_family_is_chosen_computes_the_same_there(tmp_path, one):
    """A model that was loaded may be written as another family: the first that can say it."""
    assert difference(loaded(one.model(), tmp_path / "theirs"), tmp_path / "out") <= 1


PARTIAL = get("rope", rotary_dim=16)


def test_a_model_that_turns_a_part_of_each_head_is_read_there_as_one(tmp_path):
    """The first family that says all of a Llama would turn it in full; Phi's code turns a part."""
    model = drawn(build(preset("mini-llama", position=PARTIAL)))
    assert difference(model, tmp_path / "out") <= 1
    assert json.loads((tmp_path / "out" / "config.json").read_text())["model_type"] == "phi3"
    assert load(tmp_path / "out").config.position == PARTIAL


WHOLE_HEADS = ["llama", "mistral", "qwen2", "qwen3", "smollm3"]


@pytest.mark.parametrize("family", WHOLE_HEADS)
def test_a_family_that_turns_whole_heads_refuses_a_part_and_says_who_can(family):
    changes = {"qwen2": {"qkv_bias": True}, "qwen3": {"qk_norm": True}}.get(family, {})
    with pytest.raises(BadValue, match=r"turns all 32 channels .* this model 16") as error:
        family_for(preset("mini-llama", position=PARTIAL, **changes), family)
    assert ("phi3 can" in str(error.value)) == (not changes)


def test_phi_refuses_the_scalings_that_its_code_does_not_know_and_says_who_can():
    scaled = preset("mini-llama", position=get("rope", scaling=Linear(2.0)))
    with pytest.raises(BadValue, match=r"scaled by longrope, or not at all; llama and mistral .*can"):
        family_for(scaled, "phi3")


@pytest.mark.parametrize(
    ("family", "changes", "message"),
    [
        ("gemma3_text", {"softcap": 5.0}, "softcap = 5.0"),
        ("mpt", {"d_ff": 96}, r"4 \* d_model = 128 wide"),
        ("bert", {"n_types": 0}, "n_types=1"),
    ],
)
def test_what_a_familys_code_ignores_is_refused_by_name(tmp_path, family, changes, message):
    base = loaded(next(one for one in ALL if one.family == family).model(), tmp_path).config
    with pytest.raises(BadValue, match=message):
        family_for(gn.ModelConfig.from_dict({**base.to_dict(), **changes}), family)


def test_a_translator_with_a_head_of_its_own_keeps_the_tables_of_both_sides(tmp_path):
    """Without a tie that library ties nothing: not its encoder's table to its decoder's either."""
    one = next(one for one in ALL if one.family == "bart")
    base = loaded(one.model(), tmp_path / "theirs").config.to_dict()
    model = drawn(build(gn.ModelConfig.from_dict({**base, "tied": False})))
    assert difference(model, tmp_path / "out", "bart") <= 1


@pytest.mark.parametrize("method", ["linear", "yarn"])
def test_an_extended_gemma_is_scaled_where_it_sees_all_and_is_read_there_so(tmp_path, method):
    one = next(one for one in ALL if one.family == "gemma3_text" and "below" in one.what)
    old = loaded(one.model(), tmp_path / "theirs")
    new = extend(drawn(old), 128, method).model.eval()
    assert [window is None for window in new.config.windows(2)] == ["scaling" in p.options for p in new.config.position]
    assert difference(new, tmp_path / "out") <= 1


def test_a_gemma_without_windows_is_read_there_too(tmp_path):
    """That library builds a mask with a window for every Gemma 3, whether a layer uses it or not."""
    one = next(one for one in ALL if one.family == "gemma3_text")
    base = loaded(one.model(), tmp_path / "theirs").config
    full = next(spec for spec, window in zip(base.per_layer(2), base.windows(2), strict=True) if window is None)
    model = drawn(build(gn.ModelConfig.from_dict(base.to_dict() | {"window": None, "position": full.to_dict()})))
    assert difference(model, tmp_path / "out", "gemma3_text") <= 1


def test_the_table_of_rotary_settings_has_every_family_that_turns():
    assert {name.partition(",")[0] for name in ROTARY} <= set(FAMILIES)
    assert [name for name, rotary in ROTARY.items() if rotary.partial] == [
        "glm4",
        "gptj",
        "phi",
        "stablelm",
        "gpt_neox",
        "phi3",
    ]


def test_a_share_of_a_head_is_written_so_that_every_width_comes_back():
    """30 of 44 channels is 0.6818..., of which a float's floor makes 29."""
    assert int(44 * (30 / 44)) == 29
    assert all(int(d * share_of(turned, d)) == turned for d in range(2, 300) for turned in range(2, d + 1, 2))


def test_a_width_that_no_plain_fraction_gives_goes_there_and_back(tmp_path):
    changes = {"d_model": 88, "n_heads": 2, "residual": "parallel", "vocab_size": 60, "n_layers": 2}
    position = get("rope", rotary_dim=30)
    model = drawn(gn.DecoderOnly(**changes, position=position))
    assert difference(model, tmp_path / "out", "gpt_neox") <= 1
    assert load(tmp_path / "out").config.position == position
