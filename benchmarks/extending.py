"""SmolLM2 read to twice its trained length, as it is and with YaRN: loss by position on one long document.

    python benchmarks/extending.py           seven minutes on one idle core, 2 GB

It is what `gnomon extend smollm2-135m-instruct --to 16384 --method yarn` measures, for the first of its documents, and
in finer steps past the trained length.
"""

import torch
from bench import machine

import gnomon as gn
from gnomon.checkpoints.pull import pull
from gnomon.data import Corpus
from gnomon.lab.by_position import beginnings, stretches
from gnomon.lab.protocols import nats_per_token
from gnomon.models.refit import extend

TRAINED, TO, STEP = 8192, 16384, 1024

if __name__ == "__main__":
    torch.set_num_threads(1)
    model = gn.load(pull("smollm2-135m-instruct"))
    assert isinstance(model, gn.DecoderOnly)
    assert model.tokenizer is not None
    extended = extend(model, TO, "yarn").model
    assert isinstance(extended, gn.DecoderOnly)
    rows = beginnings(Corpus.open(["stdlib"]), model.tokenizer, TO, 2)[:1]
    before, after = (nats_per_token(each, rows, TO)[0] for each in (model, extended))
    print(f"{machine()}\n\n| tokens | before | after |\n|---|---:|---:|")
    for start, stop in [*stretches(TRAINED), *((n, n + STEP) for n in range(TRAINED, TO, STEP))]:
        print(f"| {start} to {stop} | {before[start:stop].mean():.3f} | {after[start:stop].mean():.3f} |")
