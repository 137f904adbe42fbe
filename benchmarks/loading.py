"""Loading: seconds and private memory for a model of 135 M parameters in each kind of file, after the imports.

The files are made first (SmolLM2's sizes, random weights, float32; q8_0 in GGUF) and are in the page cache. Each load
is a process of its own; private memory is what `Anonymous` in /proc/self/smaps_rollup grows by, as a share of the
model's own size.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

from bench import machine

SIZES = {"vocab_size": 49152, "d_model": 576, "n_layers": 30, "n_heads": 9, "n_kv_heads": 3, "d_ff": 1536}
KIND = {"gated": True, "activation": "silu", "norm": "rmsnorm", "bias": False}
ONE_LOAD = """
import sys, time, torch
from pathlib import Path
from gnomon.checkpoints import load

def private():
    lines = Path("/proc/self/smaps_rollup").read_text().splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith("Anonymous:")) * 1024

before, start = private(), time.perf_counter()
model = load(sys.argv[1], dtype=sys.argv[2])
seconds = time.perf_counter() - start
size = sum(weight.numel() * weight.element_size() for weight in model.parameters())
print(f"{seconds:6.2f} s   private memory {(private() - before) / size:5.2f} x the model")
"""


if __name__ == "__main__":
    import gnomon as gn
    from gnomon.checkpoints import gguf

    print(machine())
    with tempfile.TemporaryDirectory() as folder:
        model = gn.DecoderOnly(**SIZES, **KIND)
        made = {
            "Hugging Face folder": gn.save_hf(model, Path(folder, "hf")),
            "run folder": gn.save_model(model, Path(folder, "run")),
            "GGUF file": gguf.save(model, Path(folder, "m.gguf"), "q8_0"),
        }
        print(f"\n{sum(w.numel() for w in model.parameters()):,} parameters")
        for name, path in made.items():
            for dtype in ("float32", "bfloat16"):
                script = [sys.executable, "-c", ONE_LOAD, str(path), dtype]
                told = subprocess.run(script, check=True, capture_output=True, text=True).stdout
                print(f"  {name:20s} {dtype:9s} {told}", end="")
