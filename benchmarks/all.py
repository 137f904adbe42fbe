"""Run every benchmark here and write what they print, with an explanation each, to docs/speed.md.

make bench            (about ten minutes on two idle cores)
"""

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
PAGE = HERE.parent / "docs" / "speed.md"

INTRODUCTION = """# Speed, measured

Written by `make bench`. Contestants take turns in one process; what counts is the ratio within a round:
its median, and in brackets its quartiles. Milliseconds are medians too, but they depend on what else the machine does.
"""

SECTIONS = {
    "encodings": "What an encoding costs in a training step of the same small model, against no position at all.",
    "attention": "Biases of distance, and ALiBi as a dense T x T bias, against plain causal attention.",
    "training": "A training step against the same model written with `torch.nn.TransformerEncoder`.",
    "writing": "Text written by SmolLM2-135M in each form of the weights, beside transformers and CTranslate2.",
    "parallel": "A Transformer reads all positions at once; writing goes one after another.",
    "loading": "A model of 135 M parameters from its folder: weights are mapped, or converted one by one.",
    "help": "The command line imports nothing that it does not need.",
}


def main() -> None:
    """Run, collect, write."""
    parts = [INTRODUCTION]
    for name, about in SECTIONS.items():
        print(f"benchmarks/{name}.py ...", file=sys.stderr, flush=True)
        run = subprocess.run([sys.executable, str(HERE / f"{name}.py")], check=True, capture_output=True, text=True)
        parts.append(f"## {name}.py\n\n{about}\n\n```text\n{run.stdout.strip()}\n```\n")
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text("\n".join(parts), encoding="utf-8")
    print(f"written: {PAGE}", file=sys.stderr)


if __name__ == "__main__":
    main()
