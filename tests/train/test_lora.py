"""Changes of low rank: the model as it was at first, only they learn, merged they are weights, and peft reads them."""

import json
import shutil

import pytest
import torch

import gnomon
from gnomon.checkpoints import load, save_hf
from gnomon.checkpoints.native import read_tensors
from gnomon.errors import BadInput, BadValue
from gnomon.models import DecoderOnly, ModelConfig, build
from gnomon.train import add_lora, load_lora, merge_lora, read_state, resume, save_lora, train
from gnomon.train.lora import lora_layers
from gnomon.train.run import Run

pytestmark = pytest.mark.usefixtures("no_pictures")

IDS = torch.tensor([[3, 1, 4, 1, 5, 9, 2, 6]])
SIZES = {"vocab_size": 20, "d_model": 16, "n_layers": 2, "n_heads": 4, "d_ff": 24, "max_positions": 16}
LLAMA = {"position": "rope", "norm": "rmsnorm", "gated": True, "bias": False, "n_kv_heads": 2, "activation": "silu"}
GPT2 = {"position": "learned", "activation": "gelu_tanh"}
BLOOM = {"position": "alibi", "activation": "gelu_tanh", "d_ff": 64, "input_norm": "layernorm", "max_positions": None}


def model_of(**settings) -> DecoderOnly:
    torch.manual_seed(1)
    return build(ModelConfig(**(SIZES | settings))).eval()


def changed(model: DecoderOnly, **settings) -> DecoderOnly:
    """With changes that are not zero."""
    add_lora(model, **settings)
    torch.manual_seed(2)
    for part in lora_layers(model).values():
        torch.nn.init.normal_(part.lora_b, std=0.3)
    return model


def test_a_model_with_changes_begins_as_it_was_and_only_they_learn():
    model = model_of(**LLAMA)
    before = model(IDS)
    add_lora(model, rank=2, targets=("q", "v"))
    torch.testing.assert_close(model(IDS), before)
    learned = {name for name, p in model.named_parameters() if p.requires_grad}
    assert learned == {f"stack.blocks.{n}.attention.{x}.lora_{ab}" for n in (0, 1) for x in "qv" for ab in "ab"}


def test_merged_it_is_a_plain_model_with_the_same_logits():
    model = changed(model_of(**LLAMA), rank=2, alpha=3)
    before = model(IDS)
    merge_lora(model)
    assert [type(part) for part in model.modules()] == [type(part) for part in model_of(**LLAMA).modules()]
    assert all(p.requires_grad for p in model.parameters())
    torch.testing.assert_close(model(IDS), before, rtol=1e-5, atol=1e-5)


def test_a_change_is_scaled_by_alpha_over_the_rank():
    model = model_of(**LLAMA)
    weight = model.stack.blocks[0].attention.q.weight.detach().clone()
    q = changed(model, rank=2, alpha=5).stack.blocks[0].attention.q
    want = weight + 5 / 2 * q.lora_b @ q.lora_a
    torch.testing.assert_close(merge_lora(model).stack.blocks[0].attention.q.weight.detach(), want.detach())


@pytest.mark.parametrize("settings", [LLAMA, GPT2, BLOOM], ids=["llama", "gpt2", "bloom"])
def test_an_adapter_comes_back_as_it_was(settings, tmp_path):
    model = changed(model_of(**settings), rank=2, alpha=3, targets=("q", "v", "up"))
    save_lora(model, tmp_path / "adapter")
    again = load_lora(model_of(**settings), tmp_path / "adapter")
    torch.testing.assert_close(again(IDS), model(IDS), rtol=1e-5, atol=1e-5)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("settings", [LLAMA, GPT2], ids=["llama", "gpt2"])
def test_peft_loads_our_adapters_and_we_load_its(settings, tmp_path):
    peft = pytest.importorskip("peft")
    from transformers import AutoModelForCausalLM

    model = model_of(**settings)
    save_hf(model, tmp_path / "base")
    changed(model, rank=2, alpha=3, targets=("q", "v", "down"))
    save_lora(model, tmp_path / "ours", base="somebody/model")
    base = AutoModelForCausalLM.from_pretrained(tmp_path / "base").eval()
    theirs = peft.PeftModel.from_pretrained(base, tmp_path / "ours").eval()
    with torch.no_grad():
        torch.testing.assert_close(theirs(IDS).logits, model(IDS), rtol=1e-4, atol=1e-5)

    base = AutoModelForCausalLM.from_pretrained(tmp_path / "base").eval()
    modules = ["c_attn", "c_fc"] if settings is GPT2 else ["q_proj", "gate_proj"]
    about = {"target_modules": modules, "fan_in_fan_out": settings is GPT2, "task_type": "CAUSAL_LM"}
    config = peft.LoraConfig(r=3, lora_alpha=7, **about)
    theirs = peft.get_peft_model(base, config).eval()
    for name, p in theirs.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(p, std=0.3)
    theirs.save_pretrained(tmp_path / "theirs")
    ours = load_lora(gnomon.load(tmp_path / "base"), tmp_path / "theirs")
    with torch.no_grad():
        torch.testing.assert_close(ours(IDS), theirs(IDS).logits, rtol=1e-4, atol=1e-5)
        torch.testing.assert_close(merge_lora(ours)(IDS), theirs(IDS).logits, rtol=1e-4, atol=1e-5)


def test_adapters_that_do_not_fit_are_refused_and_the_model_stays_as_it_was(tmp_path):
    model = model_of(**LLAMA)
    before = model(IDS)
    save_lora(changed(model_of(**LLAMA), rank=2), tmp_path / "good")
    for n, (edit, message) in enumerate(
        [
            ({"use_dora": True}, "use_dora is True"),
            ({"bias": "all"}, "bias is 'all'"),
            ({"peft_type": "IA3"}, "peft_type is 'IA3'"),
            ({"r": 5}, "has rank 5, its file has 2"),
        ]
    ):
        folder = shutil.copytree(tmp_path / "good", tmp_path / str(n))
        about = json.loads((folder / "adapter_config.json").read_text())
        (folder / "adapter_config.json").write_text(json.dumps(about | edit))
        with pytest.raises(BadInput, match=message):
            load_lora(model, folder)
    (folder / "adapter_model.safetensors").rename(folder / "adapter_model.bin")
    with pytest.raises(BadInput, match="a pickle file, which Gnomon never opens"):
        load_lora(model, folder)
    other = build(ModelConfig(**{**SIZES, **LLAMA, "n_layers": 1}))
    with pytest.raises(BadInput, match=r"it holds base_model\.model\.model\.layers\.1"):
        load_lora(other, tmp_path / "good")
    assert model(IDS).equal(before)
    assert not lora_layers(model)


def test_settings_of_changes_that_cannot_be_are_named():
    with pytest.raises(BadValue, match="no layer of this model is called query: its blocks have down, k, out, q"):
        add_lora(model_of(**GPT2), targets=("query",))
    with pytest.raises(BadValue, match="has no LoRA layers"):
        save_lora(model_of(**GPT2), "nowhere")
    with pytest.raises(BadValue, match="has LoRA layers already"):
        add_lora(add_lora(model_of(**GPT2)))


def test_a_run_of_changes_is_a_plain_model_and_goes_on_bit_for_bit(text, build, config, tmp_path, monkeypatch):
    ran = config(steps=4, lora_rank=2, lora_targets=("q", "v"), ema=0.5)
    train(build(), text.task(ran), ran, tmp_path / "whole", quiet=True)
    half = config(steps=4, lora_rank=2, lora_targets=("q", "v"), ema=0.5, save_every=2)
    original = Run.step

    def step(self, number, *stop):
        if number == 3:
            raise SystemExit
        return original(self, number, *stop)

    monkeypatch.setattr(Run, "step", step)
    with pytest.raises(SystemExit):
        train(build(), text.task(half), half, tmp_path / "run", quiet=True)
    monkeypatch.setattr(Run, "step", original)
    assert read_state(tmp_path / "run").step == 2
    resume(tmp_path / "run", text.task(half), quiet=True)
    assert {path.name for path in (tmp_path / "run" / "adapter").iterdir()} >= {"adapter_model.safetensors"}
    for part in ("", "average"):
        ours, theirs = (read_tensors(tmp_path / name / part / "model.safetensors")[0] for name in ("run", "whole"))
        assert all(ours[name].equal(theirs[name]) for name in theirs)
    plain = build()
    moved = {name for name, p in load(tmp_path / "run").named_parameters() if not p.equal(plain.get_parameter(name))}
    assert moved == {f"stack.blocks.0.attention.{x}.weight" for x in "qv"}
