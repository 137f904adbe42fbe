"""The tables of docs/audit.md: every law, and the usual errors of a tutorial with the law that names each.

python benchmarks/laws.py            print them
python benchmarks/laws.py --write    and put them into docs/audit.md, and how many there are into README.md
"""

import re
import sys
from pathlib import Path

from gnomon.audit import LAWS

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests" / "audit"))  # where the faults are

from faults import FAULTS  # noqa: E402
from faults.students import TWINS  # noqa: E402

PAGE, README = ROOT / "docs" / "audit.md", ROOT / "README.md"


def laws() -> str:
    """Each law with its sentence and what is behind it: about models, position modules and Gnomon's own parts."""
    lines = ["| law | what holds | behind it |", "|---|---|---|"]
    lines += [f"| {name} | {cell(LAWS[name].sentence)} | {cell(LAWS[name].source)} |" for name in LAWS]
    return "\n".join(lines)


def errors() -> str:
    """Each usual error with its file and its law."""
    lines = ["| error | file in `examples/audit/` | law | the report says |", "|---|---|---|---|"]
    for twin in TWINS:
        file = f"{twin.name.replace(' ', '_')}.py"
        link = f"[`{file}`](../examples/audit/{file})"
        lines.append(f"| {cell(twin.story)} | {link} | {twin.law.name} | ... {twin.says} ... |")
    return "\n".join(lines)


def cell(text: str) -> str:
    """Text that a cell of a table can hold."""
    return text.replace("|", "\\|")


def written(page: str) -> str:
    """The page with its tables made anew."""
    for name, table in (("laws", laws()), ("errors", errors())):
        begin, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->"
        before, rest = page.split(begin)
        page = f"{before}{begin}{table}\n{end}{rest.split(end)[1]}"
    return page


def counted(readme: str) -> str:
    """The README with the numbers of laws and of seeded faults counted anew."""
    readme = re.sub(r"\d+ laws, such as", f"{len(LAWS)} laws, such as", readme)
    return re.sub(r"\d+ seeded faults", f"{len(FAULTS)} seeded faults", readme)


if __name__ == "__main__":
    print(errors(), laws(), sep="\n\n")
    if "--write" in sys.argv[1:]:
        for file, renewed in ((PAGE, written), (README, counted)):
            file.write_text(renewed(file.read_text(encoding="utf-8")), encoding="utf-8")
