"""Models that go on with a text, and two that look both ways, as their users would hand them over."""

import sys
from types import ModuleType, SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import torch
from cases import HEADS, LAYERS, PAD, SPECIAL, VOCAB, D, byte_masks, case, home_of
from packaging.version import Version
from torch import nn
from torch.nn import functional as F

from gnomon.audit import Torch


@case("karpathy/nanoGPT", "GPT")
def nanogpt() -> Any:
    from model import GPT, GPTConfig

    gpt = GPT(GPTConfig(block_size=48, vocab_size=VOCAB, n_layer=LAYERS, n_head=HEADS, n_embd=D))
    return Torch(gpt, tied=True, loss=lambda gpt, ids: gpt(ids[:, :-1].contiguous(), ids[:, 1:].contiguous())[1])


@case("karpathy/minGPT", "GPT")
def mingpt() -> Any:
    from mingpt.model import GPT

    config = GPT.get_default_config()
    config.model_type, config.n_layer, config.n_head, config.n_embd = None, LAYERS, HEADS, D
    config.vocab_size, config.block_size = VOCAB, 48
    return Torch(GPT(config), loss=lambda gpt, ids: gpt(ids[:, :-1], ids[:, 1:].contiguous())[1])


@case("karpathy/makemore", "Transformer", stubs=("torch.utils.tensorboard",))
def makemore() -> Any:
    from makemore import ModelConfig, Transformer

    return Transformer(ModelConfig(block_size=48, vocab_size=VOCAB, n_layer=LAYERS, n_embd=D, n_head=HEADS))


@case("karpathy/makemore", "CausalBoW", stubs=("torch.utils.tensorboard",))
def bag_of_words() -> Any:
    from makemore import BoW, ModelConfig

    return BoW(ModelConfig(block_size=48, vocab_size=VOCAB, n_embd=D, n_embd2=D))


@case("karpathy/ng-video-lecture", "GPTLanguageModel")
def lecture() -> Any:
    home = home_of("karpathy/ng-video-lecture")
    made = (home / "gpt.py").read_text().split("model = GPTLanguageModel()")[0]
    made = made.replace("'input.txt'", repr(str(home / "input.txt")))
    names: dict[str, Any] = {"__name__": "gpt"}
    exec(compile(made, str(home / "gpt.py"), "exec"), names)
    names.update(n_embd=D, n_head=HEADS, n_layer=LAYERS, block_size=48, vocab_size=VOCAB)
    torch.manual_seed(0)
    return names["GPTLanguageModel"]()


@case("karpathy/nanochat", "GPT", stubs=("filelock", "rustbpe", "tiktoken", "tokenizers", "wandb"))
def nanochat() -> Any:
    from nanochat.engine import KVCache
    from nanochat.gpt import GPT, GPTConfig

    config = GPTConfig(
        sequence_len=256, vocab_size=VOCAB, n_layer=LAYERS, n_head=HEADS, n_kv_head=2, n_embd=96, window_pattern="SL"
    )
    gpt = GPT(config, pad_vocab_size_to=1)
    gpt.init_weights()

    def stepped(gpt: Any, cache: Any, ids: torch.Tensor) -> tuple[torch.Tensor, Any]:
        if cache is None:
            cache = KVCache(len(ids), 2, 64, 96 // HEADS, LAYERS, ids.device, torch.float32)
        return gpt(ids, kv_cache=cache), cache

    return Torch(gpt, stepped=stepped, loss=lambda gpt, ids: gpt(ids[:, :-1], ids[:, 1:].contiguous()))


@case("karpathy/llama2.c", "Transformer")
def llama2c() -> Any:
    from model import ModelArgs, Transformer

    args = ModelArgs(
        dim=D, n_layers=LAYERS, n_heads=HEADS, n_kv_heads=2, vocab_size=VOCAB, multiple_of=8, max_seq_len=64
    )
    return Torch(Transformer(args), tied=True)


def parallel() -> None:
    """Fairscale's layers on one device."""

    class Layer(nn.Linear):
        def __init__(self, inputs: int, outputs: int, bias: bool = True, **_: Any) -> None:
            super().__init__(inputs, outputs, bias)

    class Table(nn.Embedding):
        def __init__(self, rows: int, width: int, **_: Any) -> None:
            super().__init__(rows, width)

    layers = ModuleType("fairscale.nn.model_parallel.layers")
    layers.__dict__.update(
        ColumnParallelLinear=Layer, RowParallelLinear=Layer, ParallelEmbedding=Table, VocabParallelEmbedding=Table
    )
    one = ModuleType("fairscale.nn.model_parallel.initialize")
    one.__dict__.update(get_model_parallel_world_size=lambda: 1)
    for name in ("fairscale", "fairscale.nn", "fairscale.nn.model_parallel"):
        sys.modules[name] = ModuleType(name)
    sys.modules["fairscale.nn"].__dict__["model_parallel"] = sys.modules["fairscale.nn.model_parallel"]
    sys.modules["fairscale"].__dict__["nn"] = sys.modules["fairscale.nn"]
    sys.modules["fairscale.nn.model_parallel"].__dict__.update(initialize=one, layers=layers)
    sys.modules[one.__name__], sys.modules[layers.__name__] = one, layers
    torch.Tensor.cuda = lambda x: x  # type: ignore[method-assign]  # the cache is made on a GPU


def steps(model: Any, start: int | None, ids: torch.Tensor) -> tuple[torch.Tensor, int]:
    """A cache inside the model, at a position that the caller counts."""
    start = start or 0
    return model(ids, start), start + ids.shape[1]


@case("meta-llama/llama", "Transformer", below=("llama",))
def llama() -> Any:
    parallel()
    from model import ModelArgs, Transformer

    args = ModelArgs(
        dim=D, n_layers=LAYERS, n_heads=HEADS, vocab_size=VOCAB, multiple_of=8, max_seq_len=64, max_batch_size=8
    )
    return Torch(Transformer(args), forward=lambda m, ids: m(ids, 0), stepped=steps)


@case("meta-llama/llama3", "Transformer", below=("llama",))
def llama3() -> Any:
    parallel()
    from model import ModelArgs, Transformer

    args = ModelArgs(
        dim=D,
        n_layers=LAYERS,
        n_heads=HEADS,
        n_kv_heads=2,
        vocab_size=VOCAB,
        multiple_of=8,
        max_seq_len=64,
        max_batch_size=8,
    )
    return Torch(Transformer(args), forward=lambda m, ids: m(ids, 0), stepped=steps)


@case("hkproj/pytorch-llama", "Transformer, through its cache")
def hkproj_llama() -> Any:
    from model import ModelArgs, Transformer

    args = ModelArgs(
        dim=D,
        n_layers=LAYERS,
        n_heads=HEADS,
        vocab_size=VOCAB,
        multiple_of=8,
        max_seq_len=64,
        max_batch_size=8,
        device="cpu",
    )

    def one_by_one(model: Any, ids: torch.Tensor) -> torch.Tensor:
        return torch.cat([model(ids[:, i : i + 1], i) for i in range(ids.shape[1])], 1)

    return Torch(Transformer(args), forward=one_by_one, stepped=steps)


@case("hkproj/pytorch-llama", "Transformer, as it is")
def hkproj_llama_plain() -> Any:
    from model import ModelArgs, Transformer

    args = ModelArgs(
        dim=D,
        n_layers=LAYERS,
        n_heads=HEADS,
        vocab_size=VOCAB,
        multiple_of=8,
        max_seq_len=64,
        max_batch_size=8,
        device="cpu",
    )
    return Torch(Transformer(args), forward=lambda m, ids: m(ids, 0), stepped=steps)


@case("pbloem/former", "GTransformer", stubs=("tqdm", "torch.utils.tensorboard"))
def former() -> Any:
    from former import GTransformer

    return GTransformer(D, HEADS, LAYERS, 48, VOCAB)


@case("pbloem/former", "GTransformer, relative", stubs=("tqdm", "torch.utils.tensorboard"))
def former_relative() -> Any:
    from former import GTransformer

    return GTransformer(D, HEADS, LAYERS, 48, VOCAB, attention_type="relative")


@case("pbloem/former", "GTransformer, narrow", stubs=("tqdm", "torch.utils.tensorboard"))
def former_narrow() -> Any:
    from former import GTransformer

    return GTransformer(D, HEADS, LAYERS, 48, VOCAB, attention_type="narrow")


@case("graykode/gpt-2-Pytorch", "GPT2LMHeadModel")
def gpt2_pytorch() -> Any:
    from GPT2.model import GPT2LMHeadModel

    config = SimpleNamespace(
        vocab_size=VOCAB, n_embd=D, n_head=HEADS, n_layer=LAYERS, n_positions=48, n_ctx=48, layer_norm_epsilon=1e-5
    )
    return Torch(GPT2LMHeadModel(config), tied=True, stepped=lambda m, past, ids: m(ids, past=past))


@case("lucidrains/PaLM-pytorch", "PaLM")
def palm() -> Any:
    from palm_pytorch import PaLM

    return PaLM(dim=D, num_tokens=VOCAB, depth=LAYERS, dim_head=16, heads=HEADS)


@case("lucidrains/performer-pytorch", "PerformerLM", stubs=("local_attention", "axial_positional_embedding"))
def performer() -> Any:
    from torch.cuda import amp

    sys.modules["distutils"], sys.modules["distutils.version"] = MagicMock(), SimpleNamespace(LooseVersion=Version)
    assert amp
    from performer_pytorch import PerformerLM

    encoder = PerformerLM(num_tokens=VOCAB, max_seq_len=64, dim=D, depth=LAYERS, heads=HEADS, dim_head=16, causal=False)
    return Torch(encoder, architecture="encoder-only")


@case("kimiyoung/transformer-xl", "MemTransformerLM", below=("pytorch", "pytorch/utils"))
def transformer_xl() -> Any:
    torch.version.cuda = "11.0"  # it takes it apart
    byte_masks()
    from mem_transformer import MemTransformerLM

    model = MemTransformerLM(
        VOCAB, LAYERS, HEADS, D, 8, 64, 0.1, 0.1, tie_weight=True, tgt_len=16, ext_len=0, mem_len=64, attn_type=0
    )
    for weight in model.parameters():
        nn.init.normal_(weight, std=0.1)

    def logits(model: Any, ids: torch.Tensor, mems: Any = None) -> tuple[torch.Tensor, Any]:
        hidden, mems = model._forward(ids.T.contiguous(), mems=mems or model.init_mems())
        table = model.crit.out_layers[0]
        return F.linear(hidden, table.weight, table.bias).transpose(0, 1), mems

    return Torch(model, forward=lambda m, ids: logits(m, ids)[0], stepped=lambda m, mems, ids: logits(m, ids, mems))


@case("codertimo/BERT-pytorch", "BERTLM")
def bert() -> Any:
    from bert_pytorch.model import BERT, BERTLM

    bert = BERT(VOCAB, hidden=D, n_layers=LAYERS, attn_heads=HEADS)

    def filled(model: Any, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        return model(ids.masked_fill(~mask, PAD), mask.long())[1]

    return Torch(
        BERTLM(bert, VOCAB),
        architecture="encoder-only",
        special=SPECIAL,
        forward=lambda m, ids: m(ids, torch.ones_like(ids))[1],
        masked=filled,
    )
