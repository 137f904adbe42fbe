"""SmolLM2 at 2048 tokens, ours and the transformers library's, against the same model in float64: who is nearer, why.

    python benchmarks/angles.py            print the table
    python benchmarks/angles.py --write    and put it at the end of docs/parity.md

That library multiplies positions and frequencies in float32; Gnomon in float64. In between stand its frequencies, which
it keeps in float32, multiplied in float64: they show which of the two roundings it is. Takes 5 minutes on one core.
"""

import sys
import sysconfig
from pathlib import Path

import torch
from bench import machine

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests" / "checkpoints"))

import transformers  # noqa: E402
from smollm2 import TEXT, exact_angles, in_float64, in_transformers  # noqa: E402

import gnomon as gn  # noqa: E402
from gnomon.checkpoints.pull import pull  # noqa: E402

PAGE, LONG = ROOT / "docs" / "parity.md", "## A real model at 2048 tokens"
LENGTH, MODEL = 2048, "smollm2-135m-instruct"
INTRODUCTION = f"""\
{LONG}

SmolLM2 on three texts in float32, against the same model computed in float64 from end to end: the largest difference
among the logits, where it is, the median over positions of each one's largest, and the largest difference to ours.

With angles from products in float64 the library's logits are ours, bit for bit. Its own angles are products of position
and frequency in float32, which moves its logits three to thirteen times as far from the exact model as all the rest of
float32 does; that its frequencies are kept in float32 matters little. So at this length 3e-4 is met with exact angles,
and nearness to its own angles is not to be had without their error.

"""
HEAD = """\
| text | angles | largest | at token | median | from ours |
|---|---|---:|---:|---:|---:|
"""


def texts() -> dict[str, str]:
    """The text of the tests over and over, a program, and prose."""
    library = Path(sysconfig.get_path("stdlib"))
    return {
        "the tests' text, repeated": TEXT * 40,
        "argparse.py": (library / "argparse.py").read_text(encoding="utf-8"),
        "pydoc_data/topics.py": (library / "pydoc_data" / "topics.py").read_text(encoding="utf-8"),
    }


@torch.no_grad()
def rows(ours: gn.DecoderOnly, theirs: transformers.LlamaForCausalLM, name: str, text: str) -> list[str]:
    """The lines of the table for one text."""
    assert ours.tokenizer is not None
    ids = torch.tensor([ours.tokenizer.encode(text)[:LENGTH]])
    found = {"ours": ours(ids)[0], "theirs, products in float32": theirs(ids).logits[0]}
    with exact_angles(theirs, torch.float32):
        found["theirs, frequencies in float32, products in float64"] = theirs(ids).logits[0]
    with exact_angles(theirs):
        found["theirs, all in float64"] = theirs(ids).logits[0]
    with in_float64(theirs):
        exact = theirs(ids).logits[0]
    lines = []
    for angles, logits in found.items():
        each = (logits - exact).abs().amax(-1)
        apart = (logits - found["ours"]).abs().max()
        lines.append(f"| {name} | {angles} | {each.max():.1e} | {each.argmax()} | {each.median():.1e} | {apart:.1e} |")
    return lines


if __name__ == "__main__":
    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()
    path = pull(MODEL)
    ours, theirs = gn.load(path), in_transformers(path)
    assert isinstance(ours, gn.DecoderOnly)
    lines = [line for name, text in texts().items() for line in rows(ours, theirs, name, text)]
    where = f"{machine()}, transformers {transformers.__version__}"
    section = INTRODUCTION + HEAD + "\n".join(lines) + f"\n\n{where}.\n"
    print(section)
    if "--write" in sys.argv[1:]:
        PAGE.write_text(PAGE.read_text(encoding="utf-8").partition(LONG)[0] + section, encoding="utf-8")
