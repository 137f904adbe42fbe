"""Whether llama.cpp loads the GGUF files that Gnomon writes, and writes the same greedy text with them.

    python -m venv .llama && .llama/bin/python -m pip install llama-cpp-python      # compiles for about 15 minutes
    .venv/bin/python benchmarks/llama_cpp.py --python .llama/bin/python

For each family a small random model is written as float32, float16 and q8_0 by the first process; llama.cpp, in the
other environment, reads it and continues the same prompt. A token may differ only where our own two best logits are
closer than the tolerance: llama.cpp multiplies in another order, and its GELU is a table in half precision.
"""

import argparse
import json
import subprocess
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import torch

import gnomon as gn
from gnomon.checkpoints import gguf
from gnomon.checkpoints.pull import find
from gnomon.positions.scaling import Linear, Llama3, LongRoPE, YaRN

LLAMA = {"norm": "rmsnorm", "activation": "silu", "gated": True, "bias": False, "d_ff": 192}
GPT = {"norm": "layernorm", "activation": "gelu_tanh"}
LONG = LongRoPE(16.0, 16, tuple(1 + 0.02 * i for i in range(16)), tuple(1 + 0.5 * i for i in range(16)))
rope = partial(gn.positions.get, "rope")
MODELS: dict[str, dict[str, Any]] = {
    "llama": {**LLAMA, "n_kv_heads": 2},
    "llama, untied": {**LLAMA, "tied": False},
    "llama, llama3": {**LLAMA, "position": rope(base=5e5, scaling=Llama3(8.0, 8192))},
    "llama, linear": {**LLAMA, "position": rope(scaling=Linear(2.0))},
    "llama, yarn": {**LLAMA, "position": rope(scaling=YaRN(4.0, 64)), "max_positions": 256},
    "qwen2": {**LLAMA, "n_kv_heads": 2, "qkv_bias": True},
    "qwen3": {**LLAMA, "n_kv_heads": 2, "qk_norm": True, "d_head": 64},
    "gemma3": {
        **LLAMA,
        "n_layers": 6,
        "norm": "rmsnorm_plus_one",
        "activation": "gelu_tanh",
        "placement": "sandwich",
        "qk_norm": True,
        "embed_scale": "sqrt",
        "window": [8] * 5 + [None],
        "position": [rope()] * 5 + [rope(base=1e6)],
    },
    "phi3": {**LLAMA, "position": rope(scaling=LONG)},
    "gpt2": {**GPT, "position": "learned", "max_positions": 256},
    "gptneox": {**GPT, "activation": "gelu", "residual": "parallel", "position": rope(fraction=0.5), "tied": False},
    "bloom": {**GPT, "position": "alibi", "input_norm": "layernorm"},
    "mpt": {**GPT, "activation": "gelu", "position": "alibi", "norm": "layernorm_no_bias", "bias": False},
}
PROMPT, NEW = "It was a bright cold day in April, and the clocks were striking thirteen.", 24
TOLERANCE = {"float32": 0.05, "float16": 0.05, "q8_0": 0.3}  # of two logits that may change places

READER = """
import json, sys
from llama_cpp import Llama
out = {}
for path, ids in json.load(sys.stdin):
    try:
        model = Llama(path, n_ctx=256, n_threads=1, verbose=False)
        new = []
        for token in model.generate(ids, temp=0.0, repeat_penalty=1.0):
            new.append(int(token))
            if len(new) == int(sys.argv[2]):
                break
        out[path] = {"new": new, "prompt": model.tokenize(sys.argv[1].encode(), add_bos=False, special=False)}
    except Exception as error:
        out[path] = {"error": f"{type(error).__name__}: {error}"}
json.dump(out, sys.stdout)
"""


def model_of(name: str) -> gn.DecoderOnly:
    """A random model of a family whose logits are far enough apart."""
    torch.manual_seed(3)
    sizes = {"vocab_size": 320, "d_model": 128, "n_layers": 2, "n_heads": 4, "init_std": 0.12}
    model = gn.DecoderOnly(**{**sizes, **MODELS[name]}).eval()
    model.tokenizer = gn.Tokenizer.bpe([PROMPT * 3], 320)
    model.resize(model.tokenizer.vocab_size)
    return model


def agreed(model: gn.DecoderOnly, ids: list[int], new: list[int], tolerance: float) -> int:
    """How many of the new tokens are our greedy choice, or within the tolerance of it."""
    with torch.no_grad():
        logits = model(torch.tensor([ids + new]))[0, len(ids) - 1 : -1]
    lost = logits.amax(-1) - logits[torch.arange(len(new)), torch.tensor(new)]
    return int((lost <= tolerance).sum())


def main() -> None:
    """Write, let llama.cpp read, compare, print a table; exits with 1 where anything differs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--python", required=True, help="a Python that has llama-cpp-python")
    python = parser.parse_args().python
    with tempfile.TemporaryDirectory() as folder:
        cases: list[tuple[str, str, Path, gn.DecoderOnly, list[int]]] = []
        for name in MODELS:
            for dtype in TOLERANCE:
                path = Path(folder) / f"{name.replace(', ', '-')}-{dtype}.gguf"
                model = model_of(name)
                gguf.save(model, path, dtype)  # type: ignore[arg-type]
                assert model.tokenizer is not None
                cases.append((name, dtype, path, gguf.load(path), model.tokenizer.encode(PROMPT)))  # type: ignore[arg-type]
        if (smol := find("smollm2-135m-instruct")) is not None:
            model = gguf.load(smol)
            assert model.tokenizer is not None
            ids = model.tokenizer.encode(PROMPT)
            cases.append(("SmolLM2, as published", "float32", smol, model, ids))  # type: ignore[arg-type]
            again = gguf.save(model, Path(folder) / "smol.gguf", "q8_0")
            cases.append(("SmolLM2, written by us", "q8_0", again, gguf.load(again), ids))  # type: ignore[arg-type]
        asked = json.dumps([(str(path), ids) for _, _, path, _, ids in cases])
        done = subprocess.run(
            [python, "-c", READER, PROMPT, str(NEW)], input=asked, capture_output=True, text=True, check=True
        )
        found = json.loads(done.stdout)
    failed = False
    for name, dtype, path, model, ids in cases:
        answer = found[str(path)]
        n = 0 if "error" in answer else agreed(model, ids, answer["new"], TOLERANCE[dtype])
        same = answer.get("prompt") == ids
        failed |= n < NEW or not same
        told = answer.get("error") or f"{n} of {NEW} greedy tokens, prompt {'equal' if same else answer['prompt']}"
        print(f"{name:<24} {dtype:<8} {told}")
    raise SystemExit(int(failed))


if __name__ == "__main__":
    main()
