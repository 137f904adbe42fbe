"""`gnomon neighbors MODEL WORD...`: what a trained model keeps close together, and a map of it."""

import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gnomon.cli.options import TakesModel, import_option, json_option, lang_option, threads_option
from gnomon.cli.output import print_json
from gnomon.errors import BadInput, BadValue
from gnomon.glossary import numeral
from gnomon.glossary import words as texts

if TYPE_CHECKING:
    from gnomon.models import Model
    from gnomon.models.similarity import Neighbor
    from gnomon.plots.picture import Picture

WIDTH = 76  # characters of a sentence that are printed
Near = Mapping[str, Sequence["Neighbor"]]


@click.command("neighbors", cls=TakesModel)
@click.argument("run", metavar="MODEL", type=click.Path(path_type=Path))
@click.argument("words", nargs=-1, metavar="[WORD]...")
@click.option("--top", type=click.IntRange(min=1), default=8, show_default=True, help="Neighbours of each.")
@click.option("--sentences", type=click.Path(path_type=Path), help="Look among the lines of this file; - is stdin.")
@click.option("--map", "drawn", type=click.Path(path_type=Path), help="Draw a map into this .png or .svg file.")
@threads_option
@import_option
@lang_option
@json_option
def command(
    run: Path,
    words: tuple[str, ...],
    top: int,
    sentences: Path | None,
    drawn: Path | None,
    threads: int | None,
    lang: str,
    as_json: bool,
) -> None:
    """Show the tokens that MODEL keeps nearest to each WORD, by the cosine of their vectors.

    A word of several tokens is the mean of their vectors, and the output says so.

    With --sentences each WORD is a sentence in quotes, and the nearest lines of the file are shown. --map draws words
    and neighbours, or without words the whole table or file, on the plane of largest variance.
    """
    from gnomon.checkpoints import load
    from gnomon.device import set_threads
    from gnomon.models.similarity import neighbors
    from gnomon.plots.picture import picture_format

    if not words and drawn is None:
        raise BadValue("give one or more words, or --map FILE for a map of the whole table")
    if drawn is not None:
        picture_format(drawn)
    set_threads(threads)
    lines = None if sentences is None else _lines(sentences)
    model = load(run)
    if lines is None:
        found: Near = {word: neighbors(model, word, top) for word in words}
        picture = None if drawn is None else _map_of_tokens(model, found, lang)
    else:
        found = _nearest_lines(model, words, lines, top)
        picture = None if drawn is None else _map_of_sentences(model, found, lines, lang)
    if picture is not None and drawn is not None:
        picture.save(drawn)
    if as_json:
        plain = [
            {"query": query, **_tokens(model, query, lines), "neighbors": [n._asdict() for n in near]}
            for query, near in found.items()
        ]
        print_json({"run": run, "found": plain, "file": drawn})
        return
    parts = ["\n".join([_head(model, q, lines, lang), *(_line(n, lang) for n in near)]) for q, near in found.items()]
    click.echo("\n\n".join([*parts, *([] if drawn is None else [str(drawn)])]))


def _tokens(model: "Model", word: str, lines: list[str] | None) -> dict[str, list[str]]:
    """The tokens whose vectors were compared; nothing of a sentence."""
    from gnomon.models.similarity import require_tokenizer, word_ids

    return {} if lines is not None else {"tokens": require_tokenizer(model).tokens(word_ids(model, word))}


def _head(model: "Model", query: str, lines: list[str] | None, lang: str) -> str:
    """What the lines below it are near to."""
    if lines is not None:
        return query
    tokens = _tokens(model, query, lines)["tokens"]
    if len(tokens) == 1:
        return tokens[0]
    return texts("map", lang)("pooled", word=query, count=len(tokens), tokens=" | ".join(tokens))


def _line(near: "Neighbor", lang: str) -> str:
    text = near.text if len(near.text) <= WIDTH else near.text[: WIDTH - 1] + "\N{HORIZONTAL ELLIPSIS}"
    return f"  {numeral(near.cosine, '.3f', lang):>6}  {text}"


def _lines(path: Path) -> list[str]:
    """The different lines of a file that are not blank."""
    try:
        text = sys.stdin.buffer.read().decode() if str(path) == "-" else path.read_text(encoding="utf-8")
    except OSError as error:
        raise BadInput(f"cannot read {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise BadInput(f"{path} is not UTF-8: {error.reason} at byte {error.start}") from error
    lines = list(dict.fromkeys(line.strip() for line in text.splitlines() if line.strip()))
    if not lines:
        raise BadInput(f"{path} holds no sentences: give one on each line")
    return lines


def _nearest_lines(model: "Model", queries: Sequence[str], lines: Sequence[str], top: int) -> Near:
    """The lines nearest to each query, without itself."""
    from gnomon.models.similarity import Neighbor, nearest, sentence_vectors

    if blank := [query for query in queries if not query.strip()]:
        raise BadValue(f"{blank[0]!r} is no sentence")
    vectors = sentence_vectors(model, lines)
    found = {}
    for query, vector in zip(queries, sentence_vectors(model, queries) if queries else [], strict=True):
        order = [(i, cosine) for i, cosine in nearest(vector, vectors, top + 1) if lines[i] != query.strip()][:top]
        found[query] = [Neighbor(lines[i], i, cosine) for i, cosine in order]
    return found


def _map_of_tokens(model: "Model", found: Near, lang: str) -> "Picture":
    """The words with their neighbours; without words every token of the table, named where it is a word."""
    import torch

    from gnomon.models.similarity import printable_tokens, require_tokenizer, token_vectors, word_ids, word_vector
    from gnomon.plots.vector_map import vector_map

    tokenizer, table = require_tokenizer(model), token_vectors(model)
    if not found:
        ids = printable_tokens(tokenizer)
        words = [i for i in ids if tokenizer.decode([i]).strip().isalpha()]
        ids = sorted(words, key=lambda i: -len(tokenizer.decode([i]).strip())) + sorted(set(ids) - set(words))
        return vector_map(table[ids], tokenizer.tokens(ids), [None] * len(ids), "tokens", lang)
    own = [word_ids(model, word) for word in found]
    pooled = {-1 - n: ids for n, ids in enumerate(own) if len(ids) > 1}  # places of what has no row of its own
    heads = [ids[0] if len(ids) == 1 else -1 - n for n, ids in enumerate(own)]
    places, groups = _group_nearby(
        (head, [n.place for n in near]) for head, near in zip(heads, found.values(), strict=True)
    )
    vectors = torch.stack([word_vector(table, pooled.get(place, [place])) for place in places])
    names = [list(found)[-1 - place] if place < 0 else tokenizer.tokens([place])[0] for place in places]
    return vector_map(vectors, names, groups, "tokens", lang)


def _map_of_sentences(model: "Model", found: Near, lines: Sequence[str], lang: str) -> "Picture":
    """The queries with their neighbours among all lines."""
    from gnomon.models.similarity import sentence_vectors
    from gnomon.plots.vector_map import vector_map

    near = _group_nearby((-1 - n, [m.place for m in near]) for n, near in enumerate(found.values()))
    group_of = dict(zip(*near, strict=True))
    places = [*(-1 - n for n in range(len(found))), *range(len(lines))]
    texts = [*found, *lines]
    groups = [group_of.get(place) for place in places]
    return vector_map(sentence_vectors(model, texts), texts, groups, "sentences", lang)


def _group_nearby(found: Iterable[tuple[int, Sequence[int]]]) -> tuple[list[int], list[int | None]]:
    """Places and the number of the group of each: a head and those near it. What is in two groups counts for the first,
    and a head is in its own."""
    parts = [(head, list(near)) for head, near in found]
    group_of = {head: n for n, (head, _) in enumerate(parts)}
    for n, (_, near) in enumerate(parts):
        for place in near:
            group_of.setdefault(place, n)
    return list(group_of), list(group_of.values())


__all__ = ["command"]
