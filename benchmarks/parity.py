"""How far our logits are from the transformers library's: family x case x largest difference, printed and published.

    python benchmarks/parity.py            print the table
    python benchmarks/parity.py --write    and put it into docs/parity.md

The cases and checks are those of tests/checkpoints/hf: tiny random models, float32, up to 64 tokens.
"""

import sys
from pathlib import Path

import torch
from bench import machine

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests" / "checkpoints" / "hf"))

import transformers  # noqa: E402
from angles import LONG  # noqa: E402
from cases import ALL  # noqa: E402
from parity import Difference, differences  # noqa: E402

PAGE = ROOT / "docs" / "parity.md"
INTRODUCTION = """\
# Parity with the transformers library

Every family of Hugging Face checkpoints that Gnomon loads is compared with the transformers library on tiny random
models with the same weights. The table has the largest |ours - theirs| among the logits of each check, as a share of
what is allowed, 1e-5 max(1, max |logit|) in float32; the last column is the largest difference itself.

    whole         one forward over 64 tokens (16 for LongRoPE, whose table changes there)
    left, right   rows of 1, 5, 16 and 64 tokens, padded on either side
    cache         our cache, in pieces of 9, 1, 1, 5 tokens and the rest; "left, cache": with padding on the left
    their cache   the transformers library's own cache, in two halves
    types         two segments (BERT)
    beams         the same tokens of a beam search, 8 long and 3 wide: 0 where all are alike

Where the two part, ours keeps a law that theirs does not; each has its test in `tests/checkpoints/hf/test_parity.py`:

- GPT-2 padded on the left without position ids, and sources of BART, mBART, M2M-100, Marian and PEGASUS too, count
  padding as positions there. In Gnomon, padding does not change a row.
- Past the trained length, dynamic NTK and LongRoPE with a cache leave older keys turned by the table that was in force
  before. Here a cached result equals the uncached one.

`python benchmarks/parity.py --write` makes this page, `python benchmarks/angles.py --write` its last section.
"""


def rows() -> list[tuple[str, str, list[Difference]]]:
    """Family, case and its checks."""
    return [(case.family, case.what, differences(case)) for case in ALL]


def table(found: list[tuple[str, str, list[Difference]]]) -> list[str]:
    """As lines of Markdown."""
    checks = list(dict.fromkeys(d.check for _, _, row in found for d in row))
    lines = [f"| family | case | {' | '.join(checks)} | largest |", f"|---|---|{'---:|' * (len(checks) + 1)}"]
    for family, what, row in found:
        shares = {d.check: d.largest if d.check == "beams" else d.largest / d.allowed for d in row}
        cells = [f"{shares[check]:.2f}" if check in shares else "" for check in checks]
        lines.append(f"| {family} | {what} | {' | '.join(cells)} | {max(d.largest for d in row):.1e} |")
    return lines


if __name__ == "__main__":
    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    found = rows()
    where = f"{machine()}, transformers {transformers.__version__}"
    text = "\n".join([INTRODUCTION, where + ".", "", *table(found)]) + "\n"
    print(text)
    if "--write" in sys.argv[1:]:
        _, heading, long = PAGE.read_text(encoding="utf-8").partition(LONG)
        PAGE.write_text(text + (f"\n{heading}{long}" if heading else ""), encoding="utf-8")
    over = [f"{family}: {what}: {d.check}" for family, what, row in found for d in row if d.largest > d.allowed]
    sys.exit(f"past what is allowed: {'; '.join(over)}" if over else 0)
