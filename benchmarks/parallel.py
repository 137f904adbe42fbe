"""A Transformer reads all positions at once; writing goes one after another."""

import torch
from bench import machine, race

import gnomon as gn

if __name__ == "__main__":
    torch.set_num_threads(1)
    print(machine())
    torch.manual_seed(0)
    model = gn.DecoderOnly(vocab_size=512, d_model=128, n_layers=4, n_heads=4, position="rope").eval()
    ids = torch.randint(0, 512, (1, 512))

    @torch.no_grad()
    def parallel() -> None:
        model(ids)

    @torch.no_grad()
    def sequential() -> None:
        cache = model.cache("preallocated", capacity=512)
        for t in range(512):
            model(ids[:, t : t + 1], cache=cache)

    @torch.no_grad()
    def without_cache() -> None:
        for t in range(0, 512, 8):  # every eighth prefix only: an eighth of the work
            model(ids[:, : t + 1])

    race(
        "512 tokens through 4 layers of width 128",
        {
            "all at once": parallel,
            "one at a time, with a cache": sequential,
            "one at a time, no cache (1/8 of it)": without_cache,
        },
        rounds=5,
        warmup=1,
    )
