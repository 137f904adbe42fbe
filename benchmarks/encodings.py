"""What each encoding costs in one training step of the same small model, against no position at all."""

import time

import torch
from bench import machine, race

import gnomon as gn
from gnomon.positions.registry import encoding
from gnomon.train import adamw, next_token_loss


def training_step(position: str, length: int) -> object:
    """A function that does one step: forward, loss, backward, update."""
    torch.manual_seed(0)
    model = gn.DecoderOnly(vocab_size=512, d_model=128, n_layers=2, n_heads=4, position=position, max_positions=length)
    optimizer = adamw(model, lr=1e-3)
    ids = torch.randint(0, 512, (max(1, 2048 // length), length))
    at = gn.Layout.dense(*ids.shape)

    def step() -> None:
        next_token_loss(model(ids, at), ids, at).mean.backward()
        optimizer.step()
        optimizer.zero_grad()

    return step


if __name__ == "__main__":
    torch.set_num_threads(1)
    print(machine())
    light = [name for name in gn.positions.names() if encoding(name).for_text and encoding(name).acts != "attention"]
    for length in (64, 1024, 4096):
        names = light if length > 64 else gn.positions.names()
        race(
            f"Training step, 2 layers of width 128, {max(2048, length)} tokens, length {length}",
            {name: training_step(name, length) for name in ("none", *names)},
            rounds=15 if length == 64 else 7,
            warmup=1,
            clock=time.process_time,
        )
