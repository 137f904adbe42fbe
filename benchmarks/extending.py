"""SmolLM2 read to twice its trained length, as it is and with YaRN: loss by position on a few long documents.

    python benchmarks/extending.py [DOCUMENTS]       seven minutes for each of them (default 3) on one idle core, 2 GB

It is what `gnomon extend smollm2-135m-instruct --to 16384 --method yarn` measures, in finer steps past its length.
"""

import sys

import torch
from bench import machine

import gnomon as gn
from gnomon.checkpoints.pull import pull
from gnomon.data import Corpus
from gnomon.lab.by_position import beginnings, stretches
from gnomon.lab.protocols import nats_per_token
from gnomon.models.context_extension import extend

TRAINED, TO, STEP = 8192, 16384, 1024

if __name__ == "__main__":
    documents = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    torch.set_num_threads(1)
    model = gn.load(pull("smollm2-135m-instruct"))
    assert isinstance(model, gn.DecoderOnly)
    assert model.tokenizer is not None
    extended = extend(model, TO, "yarn").model
    assert isinstance(extended, gn.DecoderOnly)
    rows = beginnings(Corpus.open(["stdlib"]), model.tokenizer, TO, documents)
    losses = [*nats_per_token(model, rows, TO), *nats_per_token(extended, rows, TO)]
    names = [f"{which}, text {n + 1}" for which in ("before", "after") for n in range(len(rows))]
    print(f"{machine()}\n\n| tokens | {' | '.join(names)} |\n|---{'|---:' * len(losses)}|")
    for start, stop in [*stretches(TRAINED), *((n, n + STEP) for n in range(TRAINED, TO, STEP))]:
        found = [row[start:stop].mean() for row in losses]
        print(f"| {start} to {stop} | {' | '.join(f'{nats:.3f}' for nats in found)} |")
