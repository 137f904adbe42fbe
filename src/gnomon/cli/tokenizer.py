"""`gnomon tokenizer`: train a tokenizer, and see what one does to a text."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gnomon.cli.options import json_option, lang_option
from gnomon.cli.output import print_json
from gnomon.errors import BadValue
from gnomon.glossary import localize, translate, words

if TYPE_CHECKING:
    from gnomon.data import Tokenizer

tokenizer_option = click.option(
    "--tokenizer",
    "-t",
    "source",
    default="bytes",
    show_default=True,
    help="A tokenizer.json, a folder with one (such as a run), GPT-2's two files in a folder, or the word bytes.",
)
special_option = click.option("--special", is_flag=True, help="Let <|endoftext|> and its like mean their control ids.")
text_argument = click.argument("text", default="-")


@click.group("tokenizer")
def command() -> None:
    """Train a tokenizer, or see what one does to a text. TEXT is the text itself, or - for standard input."""


@command.command("train")
@click.argument("sources", nargs=-1)
@click.option("--kind", type=click.Choice(["bpe", "characters", "bytes"]), default="bpe", show_default=True)
@click.option("--vocab-size", type=int, default=512, show_default=True, help="Tokens of a bpe vocabulary.")
@click.option("--text-key", default="text", show_default=True, help="Key of the text in JSONL files.")
@click.option("--out", "-o", type=click.Path(path_type=Path), required=True, help="Folder for tokenizer.json.")
@lang_option
@json_option
def train(
    sources: tuple[str, ...], kind: str, vocab_size: int, text_key: str, out: Path, lang: str, as_json: bool
) -> None:
    """Learn a vocabulary from SOURCES: files, folders, JSONL, - or stdlib, which is the default."""
    from gnomon.data import Corpus, Tokenizer

    corpus = Corpus.open(sources or "stdlib", text_key)
    learn: dict[str, Callable[[], Tokenizer]] = {
        "bpe": lambda: Tokenizer.bpe(corpus.texts, vocab_size),
        "characters": lambda: Tokenizer.characters(corpus.texts),
        "bytes": Tokenizer.bytes,
    }
    tokenizer = learn[kind]()
    file = tokenizer.save(out)
    sample = [document.text for document in corpus.documents[:50]]
    tokens = sum(map(len, tokenizer.encode_batch(sample)))
    report = {**_describe(tokenizer), "corpus": corpus.describe(), "file": file}
    report["bytes_per_token"] = round(sum(len(text.encode()) for text in sample) / tokens, 3)
    _print(report, lang, as_json)


@command.command("encode")
@text_argument
@tokenizer_option
@special_option
@json_option
def encode(text: str, source: str, special: bool, as_json: bool) -> None:
    """Print the token ids of TEXT."""
    ids = _load(source).encode(_text(text), special=special)
    if as_json:
        print_json({"ids": ids})
    else:
        click.echo(" ".join(map(str, ids)))


@command.command("decode")
@click.argument("ids", nargs=-1, required=True)
@tokenizer_option
@special_option
@json_option
def decode(ids: tuple[str, ...], source: str, special: bool, as_json: bool) -> None:
    """Print the text of IDS, which stand apart by spaces or commas."""
    text = _load(source).decode(_numbers(" ".join(ids)), special=special)
    if as_json:
        print_json({"text": text})
    else:
        click.echo(text)


@command.command("show")
@click.argument("text", required=False)
@tokenizer_option
@special_option
@lang_option
@json_option
def show(text: str | None, source: str, special: bool, lang: str, as_json: bool) -> None:
    """Describe a tokenizer; with TEXT, list its tokens, ids and bytes."""
    tokenizer = _load(source)
    if text is None:
        _print(_describe(tokenizer), lang, as_json)
        return
    ids = tokenizer.encode(_text(text), special=special)
    lengths = tokenizer.byte_lengths()
    rows: list[dict[str, Any]] = [
        {"token": token, "id": i, "bytes": int(lengths[i])} for token, i in zip(tokenizer.tokens(ids), ids, strict=True)
    ]
    if as_json:
        print_json({"tokens": rows})
        return
    for place, row in enumerate(rows):
        click.echo(f"{place:5} {row['id']:7} {row['bytes']:3} B  {row['token']}")
    click.echo(words("write", lang)("tokens_bytes", tokens=len(rows), bytes=sum(row["bytes"] for row in rows)))


def _load(source: str) -> "Tokenizer":
    from gnomon.data import Tokenizer

    return Tokenizer.bytes() if source == "bytes" else Tokenizer.load(source)


def _text(text: str) -> str:
    from gnomon.data import Corpus

    return Corpus.open("-").texts[0] if text == "-" else text


def _numbers(text: str) -> list[int]:
    """Read ids as people paste them: ``1 2``, ``1,2`` or ``[1, 2]``."""
    words = re.split(r"[\s,\[\]]+", text)
    for word in words:
        if word and not word.isdecimal():
            raise BadValue(f"{word!r} is no token id: give whole numbers, such as 104 105")
    return [int(word) for word in words if word]


def _describe(tokenizer: "Tokenizer") -> dict[str, Any]:
    return {
        "kind": tokenizer.kind,
        "vocab_size": tokenizer.vocab_size,
        "end_of_text_id": tokenizer.eos_id,
        "sha256": tokenizer.sha256,
    }


def _print(report: dict[str, Any], lang: str, as_json: bool) -> None:
    if as_json:
        print_json(report)
        return
    for key, value in report.items():
        shown = translate(value, lang) if isinstance(value, str) else localize(str(value), lang)
        click.echo(f"{translate(key.replace('_', ' '), lang):16} {shown}")


__all__ = ["command"]
