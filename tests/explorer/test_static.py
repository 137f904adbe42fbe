"""The built page: what is shipped, how large it is, and that it asks nobody else for anything."""

import gzip
import re

from gnomon.explorer.app import static

BUDGET = 300_000  # bytes of all of it, compressed


def test_the_page_is_small():
    sizes = {file.name: len(gzip.compress(file.read_bytes())) for file in static().iterdir() if file.is_file()}
    assert sum(sizes.values()) < BUDGET, sizes


def test_the_page_runs_from_a_file_and_names_no_other_place():
    page = (static() / "index.html").read_text(encoding="utf-8")
    assert "module" not in page  # a module script does not run from file://
    assert set(re.findall(r'(?:src|href)="([^"]+)"', page)) == {"./explorer.js", "./explorer.css", "./gnomon.svg"}


def test_nothing_in_it_is_fetched_from_elsewhere():
    namespaces = ("http://www.w3.org/", "https://svelte.dev/e/")  # names of XML, and of error messages
    for file in static().iterdir():
        for address in re.findall(r"https?://[^\s\"'`)<>]+", file.read_text(encoding="utf-8")):
            assert address.startswith(namespaces), (file.name, address)
