"""`gnomon settings`: what a model may be given, as the parts of a model state it."""

import inspect
import textwrap
from functools import partial
from typing import Any

import click

from gnomon.cli.options import json_option, lang_option
from gnomon.cli.output import print_json
from gnomon.errors import unknown
from gnomon.glossary import Words, translate, words

COLUMNS = ("setting", "is", "default", "meaning", "source")
WIDTH = 100  # of the list
COMMANDS = {
    "classes": "`gn.DecoderOnly`, `gn.EncoderOnly`, `gn.EncoderDecoder`",
    "plan": "`gnomon plan mini-gpt --set d_ff=512`",
    "train": "`gnomon train my_texts/ --set model.d_ff=512`",
    "explain": "`gnomon settings softcap window`",
}


@click.command("settings")
@click.argument("names", nargs=-1, metavar="[SETTING]...")
@click.option("--markdown", is_flag=True, help="Print the page docs/settings.md, or the tables of some settings.")
@lang_option
@json_option
def command(names: tuple[str, ...], markdown: bool, lang: str, as_json: bool) -> None:
    """List the settings of a model, or explain some of them: what each is, its range and its default.

    They are the keywords of gn.DecoderOnly, gn.EncoderOnly and gn.EncoderDecoder, what gnomon plan takes as --set
    d_model=256, and gnomon train as --set model.d_model=256.
    """
    found = listing("en" if as_json else lang)
    for name in names:
        if name not in (known := {row["name"] for row in found}):
            raise unknown("setting of a model", name, known)
    chosen = [row for row in found if row["name"] in names or not names]
    if as_json:
        print_json({"settings": chosen})
        return
    w = words("settings", lang)
    by_group = {row["group"]: [other for other in chosen if other["group"] == row["group"]] for row in chosen}
    parts = [_markdown(*group, w) if markdown else _lines(*group) for group in by_group.items()]
    click.echo("\n\n".join([_head(w), *parts] if markdown and not names else parts))


def listing(lang: str = "en") -> list[dict[str, Any]]:
    """One entry per setting, in the order of help."""
    from gnomon.kinds import in_words
    from gnomon.models import ModelConfig
    from gnomon.settings import default_of, groups, kinds_of, setting_of

    kinds, say = kinds_of(ModelConfig), partial(translate, lang=lang)
    return [
        {
            "name": field.name,
            "group": say(group),
            "is": in_words(kinds[field.name], say=say),
            "required": default_of(field) is inspect.Parameter.empty,
            "default": None if default_of(field) is inspect.Parameter.empty else default_of(field),
            "meaning": say(setting_of(ModelConfig, field.name).meaning),
            "source": say(setting_of(ModelConfig, field.name).source),
        }
        for group, fields in groups(ModelConfig)
        for field in fields
    ]


def _default(row: dict[str, Any]) -> str:
    """The default as --set takes it, in every language."""
    value = row["default"]
    typed = {None: "none", True: "true", False: "false"}
    return "" if row["required"] else typed[value] if value is None or isinstance(value, bool) else str(value)


def _lines(group: str, rows: list[dict[str, Any]]) -> str:
    """Each setting with its default, and below it what it means."""
    lines = [group]
    for row in rows:
        lines.append(f"  {row['name']}" + ("" if row["required"] else f" = {_default(row)}") + f"    {row['is']}")
        text = row["meaning"] + (f" ({row['source']})" if row["source"] else "")
        lines += textwrap.wrap(text, WIDTH, initial_indent=" " * 6, subsequent_indent=" " * 6, break_long_words=False)
    return "\n".join(lines)


def _head(w: Words) -> str:
    """What stands above the tables of the page."""
    page = f"`gnomon settings --markdown --lang {w.lang} > docs/settings.md`"
    return f"# {w('title')}\n\n{w('page', page=page, **COMMANDS)}"


def _markdown(group: str, rows: list[dict[str, Any]], w: Words) -> str:
    cells = [[f"`{row['name']}`", row["is"], _default(row), row["meaning"], row["source"]] for row in rows]
    lines = [[w(column) for column in COLUMNS], ["---"] * len(COLUMNS), *cells]
    table = "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines)
    return f"## {group}\n\n{table}"


__all__ = ["command", "listing"]
