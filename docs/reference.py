"""The generated part of the documentation: every public name, encoding, family and command, as the package has them.

Sphinx calls `write` before each build (conf.py); nothing that it writes is kept in the repository.
"""

import importlib
import inspect
from pathlib import Path

import click

import gnomon as gn
from gnomon.cli.encoding_page import page as encoding_page
from gnomon.cli.encoding_page import recipe_page
from gnomon.cli.main import COMMANDS, LazyGroup
from gnomon.glossary import words


def write(folder: Path) -> None:
    """All generated pages; a page that did not change keeps its time, so that Sphinx does not read it again."""
    pages = {**_names(), "encodings.md": _encodings(), "commands.md": _commands()}
    pages["index.md"] = _index(sorted(pages))
    folder.mkdir(exist_ok=True)
    for old in folder.glob("*.md"):
        if old.name not in pages:
            old.unlink()
    for name, text in pages.items():
        path = folder / name
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


def _names() -> dict[str, str]:
    """A page for the names of gnomon itself, and one for each of its packages."""
    packages = [name for name in gn.__all__ if inspect.ismodule(getattr(gn, name))]
    own = [name for name in gn.__all__ if name not in packages and not name.startswith("_")]
    pages = {"gnomon.md": _package("gnomon", own)}
    for name in packages:
        module = importlib.import_module(f"gnomon.{name}")
        pages[f"gnomon.{name}.md"] = _package(module.__name__, module.__all__)
    return pages


def _package(path: str, names: list[str]) -> str:
    module = importlib.import_module(path)
    entries = "\n".join(_entry(path, name, getattr(module, name)) for name in sorted(names, key=str.lower))
    return f"# {path}\n\n{_literal(inspect.getdoc(module) or '')}\n\n```{{eval-rst}}\n{entries}```\n"


def _entry(path: str, name: str, value: object) -> str:
    """The directive that documents a name in full where it is defined, and in a line where it is only offered again."""
    again = path != "gnomon" and name in gn.__all__
    if again:
        return f".. py:data:: {path}.{name}\n   :no-index:\n\n   The same as :py:obj:`gnomon.{name}`.\n"
    if inspect.isclass(value):
        return f".. autoclass:: {path}.{name}\n   :members:\n"
    if inspect.isroutine(value):
        return f".. autofunction:: {path}.{name}\n"
    return f".. py:data:: {path}.{name}\n\n   {type(value).__name__}\n"


def _encodings() -> str:
    """The page of `gnomon positions NAME` about each encoding and recipe."""
    w = words("positions", "en")
    about = [(name, encoding_page(gn.positions.encoding(name), w)) for name in gn.positions.names()]
    about += [(name, recipe_page(gn.positions.recipe(name), w)) for name in gn.positions.recipes()]
    return "# Position encodings\n\n" + "\n".join(f"## {name}\n\n{_literal(text)}\n" for name, text in about)


def _commands() -> str:
    """The help of each command."""
    group, parts = LazyGroup("gnomon"), ["# Commands\n"]
    for name in COMMANDS:
        command = group.get_command(click.Context(group), name)
        if command is not None:
            with click.Context(command, info_name=f"gnomon {name}", terminal_width=100) as context:
                parts.append(f"## {name}\n\n{_literal(command.get_help(context))}\n")
    return "\n".join(parts)


def _index(names: list[str]) -> str:
    lines = "\n".join(name.removesuffix(".md") for name in names)
    title = "# Reference\n\nWritten from the package when these pages are built.\n\n"
    return f"{title}```{{toctree}}\n:maxdepth: 1\n\n{lines}\n```\n"


def _literal(text: str) -> str:
    return f"````text\n{text.strip()}\n````"


def as_written(app, what, name, obj, options, lines: list[str]) -> None:
    """Show a docstring's first paragraph as prose, and the rest in its own lines, which are set by hand."""
    text = list(lines)
    first = next((i for i, line in enumerate(text) if not line.strip()), len(text))
    rest = text[first:]
    prose = [_plain(line) for line in text[:first]]
    while rest and not rest[0].strip():
        rest.pop(0)
    lines[:] = prose
    if any(line.strip() for line in rest):
        lines += ["", ".. code-block:: text", "", *("   " + line for line in rest), ""]


def _plain(line: str) -> str:
    """A line of prose with nothing in it that reStructuredText would take for a mark."""
    return "".join("\\" + c if c in "\\*`|_" else c for c in line)
