"""Training tokens per second against the same model written with torch.nn.TransformerEncoder."""

import torch
from bench import machine, race
from torch import nn
from torch.nn import functional as F

import gnomon as gn
from gnomon.train import next_token_loss

VOCAB, D, LAYERS, HEADS, LENGTH, ROWS = 512, 128, 4, 4, 64, 32


class Reference(nn.Module):
    """Pre-norm GPT of the same size from torch's own parts, learned positions, tied head."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens, self.positions = nn.Embedding(VOCAB, D), nn.Embedding(LENGTH, D)
        layer = nn.TransformerEncoderLayer(
            D, HEADS, 4 * D, dropout=0.0, activation="gelu", batch_first=True, norm_first=True
        )
        self.stack = nn.TransformerEncoder(layer, LAYERS, nn.LayerNorm(D), enable_nested_tensor=False)
        self.mask = nn.Transformer.generate_square_subsequent_mask(LENGTH)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        x = self.tokens(ids) + self.positions.weight[: ids.shape[1]]
        return F.linear(self.stack(x, mask=self.mask, is_causal=True), self.tokens.weight)


def steps() -> dict[str, object]:
    """One training step of each, on the same ids."""
    torch.manual_seed(0)
    ids = torch.randint(0, VOCAB, (ROWS, LENGTH))
    at = gn.Layout.dense(ROWS, LENGTH)
    reference = Reference()
    ours = gn.DecoderOnly(VOCAB, D, LAYERS, HEADS, position="learned", max_positions=LENGTH)
    rope = gn.DecoderOnly(VOCAB, D, LAYERS, HEADS, position="rope")
    optimizers = [torch.optim.AdamW(m.parameters(), lr=1e-3) for m in (reference, ours, rope)]

    def step(model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
        next_token_loss(model(ids), ids, at).mean.backward()
        optimizer.step()
        optimizer.zero_grad()

    return {
        "torch.nn.TransformerEncoder": lambda: step(reference, optimizers[0]),
        "gnomon, learned positions": lambda: step(ours, optimizers[1]),
        "gnomon, rope": lambda: step(rope, optimizers[2]),
    }


if __name__ == "__main__":
    torch.set_num_threads(1)
    print(machine())
    race(f"Training step of {ROWS * LENGTH} tokens, {LAYERS} layers of width {D}", steps())
