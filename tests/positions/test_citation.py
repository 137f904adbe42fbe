"""Every encoding says how to cite it: BibTeX that can be read, of the paper that the class names."""

import re

import pytest
import torch

import gnomon as gn
from gnomon.positions import PositionEncoding, encoding, names

OURS = [name for name in names() if encoding(name).__module__.startswith("gnomon.")]


def parsed(text):
    """[(type, key, {field: value})] of BibTeX entries; raises where braces, commas or quotes do not fit."""
    entries, rest = [], text.strip()
    while rest:
        kind, key = re.match(r"@(\w+)\{([\w-]+),", rest).groups()
        end, fields = closing(rest, rest.index("{")), {}
        inside = rest[rest.index(",") + 1 : end].strip()
        while inside:
            name = re.match(r"(\w+) = \{", inside)
            stop = closing(inside, name.end() - 1)
            fields[name[1]] = " ".join(inside[name.end() : stop].split())
            inside = inside[stop + 1 :].strip()
            assert inside.startswith(",")
            inside = inside[1:].strip()
        entries.append((kind, key, fields))
        rest = rest[end + 1 :].strip()
    return entries


def closing(text, start):
    """Where the brace that opens at `start` is closed."""
    depth = 0
    for i in range(start, len(text)):
        depth += (text[i] == "{") - (text[i] == "}")
        if depth == 0:
            return i
    raise ValueError("a brace stays open")


def test_the_parser_refuses_what_is_no_bibtex():
    for text in ("@misc{a, title = {b}", "@misc{a, title = {b} year = {1},}", "misc{a,}"):
        with pytest.raises((AssertionError, AttributeError, ValueError, TypeError)):
            parsed(text)


@pytest.mark.parametrize("name", OURS)
def test_its_entry_is_that_of_the_paper_its_class_names(name):
    cls = encoding(name)
    [(kind, key, fields)] = parsed(gn.cite(name))
    assert kind == "misc"
    surname, year = re.match(r"(\w[\w-]*) .*?(\d{4})", cls.paper).groups()
    assert fields["author"].startswith(f"{surname},")
    assert (surname.lower() in key, year in key, fields["year"]) == (True, True, year)
    assert fields["eprint"] == re.search(r"arXiv:(\S+)", cls.paper)[1]
    assert fields["url"].endswith(fields["eprint"])
    assert len(fields["title"]) > 10
    assert all("," in author for author in fields["author"].split(" and "))


def test_keys_are_told_apart():
    keys = [key for _, key, _ in parsed(gn.cite(OURS))]
    assert len(set(keys)) == len(keys) == len(OURS)


def test_a_model_cites_what_acts_in_it_once():
    model = gn.DecoderOnly(11, 16, 4, 2, position=["rope", "none", "rope", "alibi"])
    assert gn.cite(model) == f"{gn.cite('rope')}\n\n{gn.cite('alibi')}"
    at_input = gn.DecoderOnly(11, 16, 2, 2, position="sinusoidal")
    assert gn.cite(at_input) == gn.cite("sinusoidal")
    assert gn.cite(gn.DecoderOnly(11, 16, 1, 2, position="none")) == gn.cite("none")
    twice = gn.EncoderDecoder(11, 16, 1, 2, position="t5")
    assert gn.cite(twice) == gn.cite("t5")


def test_an_encoding_cites_itself_and_not_what_it_is_made_of():
    spec = gn.positions.get("xpos", scale_base=64.0)
    assert gn.cite(spec) == gn.cite(spec.build(d_head=8)) == gn.cite("xpos")


def test_one_of_your_own_is_cited_by_its_entry_or_by_its_paper():
    class Mine(PositionEncoding):
        name = "my way"
        paper = "A notebook, 2026"

    class Theirs(PositionEncoding):
        name = "theirs"
        cite = """@misc{them2026theirs,
          title = {Theirs},
        }"""

    [(_, key, fields)] = parsed(gn.cite(Mine))
    assert (key, fields["title"], fields["note"]) == ("my-way", "my way", "A notebook, 2026")
    assert gn.cite("theirs") == "@misc{them2026theirs,\n  title = {Theirs},\n}"


@pytest.mark.parametrize("what", [None, 3, torch.nn.Linear(2, 2), ["rope", 3]])
def test_what_holds_no_encoding_is_an_error(what):
    with pytest.raises(gn.BadValue, match="what must be a model with a position encoding"):
        gn.cite(what)
    with pytest.raises(gn.BadValue, match="did you mean 'rope'"):
        gn.cite("rop")
