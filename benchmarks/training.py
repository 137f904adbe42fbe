"""A training step of a decoder of 10 M parameters against the same model written plainly, and in other libraries."""

import time
from collections.abc import Callable

import torch
from bench import SMOKE, machine, race
from torch import Tensor, nn
from torch.nn import functional as F
from transformers import GPT2Config, GPT2LMHeadModel
from x_transformers import Decoder, TransformerWrapper

import gnomon as gn
from gnomon.train import adamw, next_token_loss

VOCAB, D, LAYERS, HEADS = (64, 32, 1, 2) if SMOKE else (4096, 384, 5, 6)


class PlainBlock(nn.Module):
    """Pre-norm attention and feed-forward, with one product for queries, keys and values."""

    def __init__(self) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(D), nn.LayerNorm(D)
        self.qkv, self.out = nn.Linear(D, 3 * D), nn.Linear(D, D)
        self.up, self.down = nn.Linear(D, 4 * D), nn.Linear(4 * D, D)

    def forward(self, x: Tensor) -> Tensor:
        B, T, _ = x.shape
        q, k, v = (y.view(B, T, HEADS, D // HEADS).transpose(1, 2) for y in self.qkv(self.norm1(x)).split(D, 2))
        x = x + self.out(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(B, T, D))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class Plain(nn.Module):
    """A GPT in as few lines as it takes: learned positions, tied head."""

    def __init__(self, length: int) -> None:
        super().__init__()
        self.tokens, self.positions = nn.Embedding(VOCAB, D), nn.Embedding(length, D)
        self.blocks, self.norm = nn.ModuleList(PlainBlock() for _ in range(LAYERS)), nn.LayerNorm(D)
        nn.init.normal_(self.tokens.weight, std=0.02)

    def forward(self, ids: Tensor) -> Tensor:
        x = self.tokens(ids) + self.positions.weight[: ids.shape[1]]
        for block in self.blocks:
            x = block(x)
        return F.linear(self.norm(x), self.tokens.weight)


def steps(rows: int, length: int) -> dict[str, Callable[[], object]]:
    """One training step of each, on the same ids."""
    torch.manual_seed(0)
    ids, at = torch.randint(0, VOCAB, (rows, length)), gn.Layout.dense(rows, length)

    def plainly(logits: Tensor) -> Tensor:
        return F.cross_entropy(logits[:, :-1].reshape(-1, VOCAB), ids[:, 1:].reshape(-1))

    def step(model: nn.Module, loss: Callable[[nn.Module], Tensor], ours: bool = False) -> Callable[[], object]:
        rate = {"lr": 1e-3}
        optimizer = adamw(model, **rate) if ours else torch.optim.AdamW(model.parameters(), **rate, fused=True)

        def run() -> None:
            loss(model).backward()
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)

        return run

    sizes = {"n_positions": length, "n_embd": D, "n_layer": LAYERS, "n_head": HEADS}
    gpt2 = GPT2LMHeadModel(
        GPT2Config(
            vocab_size=VOCAB,
            **sizes,
            bos_token_id=None,
            eos_token_id=None,
            resid_pdrop=0.0,
            embd_pdrop=0.0,
            attn_pdrop=0.0,
        )
    )
    layers = Decoder(dim=D, depth=LAYERS, heads=HEADS, attn_dim_head=D // HEADS, attn_flash=True)
    theirs = TransformerWrapper(num_tokens=VOCAB, max_seq_len=length, attn_layers=layers)
    names = ("learned", "rope", "alibi", "t5")
    own = {name: gn.DecoderOnly(VOCAB, D, LAYERS, HEADS, position=name, max_positions=length) for name in names}
    return {
        "plain PyTorch": step(Plain(length), lambda model: plainly(model(ids))),
        "transformers": step(gpt2, lambda model: model(ids, labels=ids).loss),
        "x-transformers": step(theirs, lambda model: plainly(model(ids))),
        **{
            f"gnomon, {name}": step(model, lambda model: next_token_loss(model(ids, at), ids, at).mean, ours=True)
            for name, model in own.items()
        },
    }


if __name__ == "__main__":
    torch.set_num_threads(1)
    print(machine())
    for rows, length in ((2, 16),) if SMOKE else ((4, 256), (1, 1024)):
        title = f"Training step of {rows} x {length} tokens, {LAYERS} layers of width {D}"
        race(title, steps(rows, length), rounds=7, warmup=1, clock=time.process_time)
