"""The README is run: every `>>>` in it gives what stands below it, and its table and its numbers are the registry's."""

import doctest
import re
from pathlib import Path
from pkgutil import iter_modules

import pytest
from click.testing import CliRunner

import gnomon as gn
from gnomon.checkpoints.gguf import families as gguf_families
from gnomon.checkpoints.hf import families as hf_families
from gnomon.cli.main import cli

README = Path(__file__).parents[1] / "README.md"
PAGES = [README, *sorted((README.parent / "docs").glob("*.md"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_example_gives_what_stands_below_it(page: Path) -> None:
    text = "\n".join(re.findall(r"^```pycon\n(.*?)^```", page.read_text(encoding="utf-8"), re.M | re.S))
    test = doctest.DocTestParser().get_doctest(text, {}, page.name, str(page), 0)
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    assert doctest.DocTestRunner(optionflags=flags).run(test).failed == 0
    if page == README:
        assert len(test.examples) >= 10


def test_the_table_of_encodings_is_the_registrys() -> None:
    """It may leave some out, so that a new encoding is one file and no line here."""
    result = CliRunner().invoke(cli, ["positions", "--markdown"])
    assert result.exit_code == 0
    rows = re.findall(r"^\| `[\w-]+` \| .* \|$", README.read_text(encoding="utf-8"), re.M)
    found = [row for row in result.output.splitlines() if row in rows]
    assert [row for row in rows if "arXiv" in row] == found
    assert len(found) >= 10


def test_what_it_counts_is_counted() -> None:
    text = README.read_text(encoding="utf-8")
    hf, gguf = (len([*iter_modules(package.__path__)]) for package in (hf_families, gguf_families))
    said = re.search(r"More than (\d+) families of Hugging Face checkpoints and (\d+) of GGUF", text)
    assert said is not None  # a new family needs no other number
    assert int(said[1]) < hf < int(said[1]) + 20
    assert int(said[2]) < gguf < int(said[2]) + 20
    assert f"{len(gn.audit.LAWS)} laws, such as" in text


def test_every_file_it_links_to_exists() -> None:
    for page in PAGES:
        prose = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", prose):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"
