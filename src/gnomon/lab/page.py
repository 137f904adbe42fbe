"""The result as one HTML page that needs nothing else: no other file, no script, no other machine."""

from collections.abc import Sequence
from html import escape
from importlib.resources import files
from typing import TYPE_CHECKING

from gnomon.glossary import grouped
from gnomon.lab.analysis import FLAT, Row
from gnomon.lab.figures import NARROW, WIDE, by_position, extrapolation, look, svg
from gnomon.lab.reading import comparison, facts, percents, summary, verdict
from gnomon.lab.report import Report
from gnomon.lab.table import costs

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def page(report: Report) -> str:
    """The page as text."""
    L, lengths = report.settings.train_length, report.settings.lengths
    title = f"How far does a sense of position carry? Trained on {L} tokens, given up to {grouped(lengths[-1])}"
    css = files("gnomon.lab").joinpath("page.css").read_text(encoding="utf-8")
    parts = [
        _tag("h1", title),
        _tag("p", _lead(report), "lead"),
        f"<ul>{''.join(_tag('li', line) for line in summary(report))}</ul>",
        _picture("curves", extrapolation(report, WIDE), extrapolation(report, NARROW), _curves_caption(report)),
        _tag("h2", "The numbers"),
        _tag("p", _numbers(report)),
        _bits_table(report),
        _tag("p", _crop_note(report), "note"),
        _tag("h2", "One by one"),
        *(_about(report, row) for row in report.sorted_rows()),
        _tag("h2", "Loss by position"),
        _picture("positions", by_position(report, WIDE), by_position(report, NARROW), _positions_caption(report)),
        _tag("h2", "What position costs, and what else tells encodings apart"),
        _table(costs(report)),
        _tag("p", _costs_note(report), "note"),
        *_sample(report),
        _tag("h2", "What was done"),
        *(_tag("p", text) for text in _method(report)),
        _facts(report),
        _tag(
            "footer",
            "Made by Gnomon from the numbers of this run alone; all of them are in report.json beside this page.",
        ),
    ]
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>\n{css}</style>\n</head>\n<body>\n<main>\n"
        + "\n".join(parts)
        + "\n</main>\n</body>\n</html>\n"
    )


# ------------------------------------------------------------------ pieces of a page


def _tag(name: str, text: str, kind: str = "") -> str:
    return f"<{name}{f' class={kind}' if kind else ''}>{escape(text).replace(' %', '&nbsp;%')}</{name}>"


def _picture(name: str, wide: "Figure", narrow: "Figure", caption: str) -> str:
    """A figure in two shapes, one for a desk and one for a phone."""
    shapes = {"desk": svg(wide, f"{name}-wide-"), "phone": svg(narrow, f"{name}-narrow-")}
    drawn = "".join(
        f'<div class={kind} role=img aria-label="{escape(caption)}">{text}</div>' for kind, text in shapes.items()
    )
    return f"<figure>{drawn}{_tag('figcaption', caption)}</figure>"


def _table(cells: Sequence[Sequence[str]]) -> str:
    """Plain text in a table that scrolls sideways where it is too wide."""
    return _rows([[_tag("th", text) for text in cells[0]], *([_tag("td", text) for text in row] for row in cells[1:])])


def _rows(cells: Sequence[Sequence[str]]) -> str:
    return f"<div class=scroll><table>{''.join(f'<tr>{chr(10).join(row)}</tr>' for row in cells)}</table></div>"


def _dot(report: Report, row: Row) -> str:
    return f'<span class=dot style="background:{look(report, row)[0]}"></span>'


def _kind(row: Row) -> str:
    return f'<span class="kind {row.kind.replace("/", "")}">{row.kind}</span>'


# ------------------------------------------------------------------ what it says


def _lead(report: Report) -> str:
    L, longest = report.settings.train_length, report.settings.lengths[-1]
    return (
        "A Transformer reads all tokens at once; a position encoding is what tells it where each one stands. Here the "
        f"same small model was trained {len(report.rows)} times, each time with another encoding, on windows of {L} "
        "tokens. Then it was given more and more text in front of the same held-out tokens, up to "
        f"{grouped(longest)}: does it make use of lengths it never met in training, ignore them, or break?"
    )


def _numbers(report: Report) -> str:
    t = report.targets
    return (
        f"Bits per byte of the same {grouped(t['tokens'])} tokens ({grouped(t['bytes'])} bytes) at the end of "
        f"{t['documents']} held-out documents, given only the last n tokens in front of each. The best of each column "
        f"is set in bold. A byte trigram fitted on the whole training text pays {report.trigram.value:.3f}."
    )


def _bits_table(report: Report) -> str:
    best = [places[0].label if places else "" for places in report.ranking]
    head = [_tag("th", text) for text in ("", *(f"n = {n}" for n in report.settings.lengths), "against cropping", "")]
    return _rows([head, *(_bits(report, row, best) for row in report.sorted_rows())])


def _bits(report: Report, row: Row, best: Sequence[str]) -> list[str]:
    bits = [
        _tag("td", "n/a") if x is None else _tag("td", f"{x.value:.3f}", "best" if row.label == top else "")
        for x, top in zip(row.bits, best, strict=True)
    ]
    last = row.increase[-1]
    change = _tag("td", "" if last is None else percents(last))
    return [f"<td>{_dot(report, row)}{escape(row.label)}</td>", *bits, change, f"<td>{_kind(row)}</td>"]


def _crop_note(report: Report) -> str:
    L = report.settings.train_length
    return (
        f"The column n = {L} is also what cropping gives at any length: a model that sees the last {L} tokens only. "
        "The change is from there to the longest context; its interval holds 95 % of the draws of a paired bootstrap "
        "over documents."
    )


def _about(report: Report, row: Row) -> str:
    """What is to be said about one encoding."""
    said = " ".join([verdict(report, row), *facts(report, row), *comparison(report, row)])
    return f"<h3>{_dot(report, row)}{escape(row.label)} {_kind(row)}</h3>\n{_tag('p', said)}"


def _curves_caption(report: Report) -> str:
    return (
        "The same targets at every length; only the context in front of them grows. Dotted: each model cropped to its "
        f"last {report.settings.train_length} tokens. Dashed: the byte trigram. Grey: what training reached."
    )


def _positions_caption(report: Report) -> str:
    L, longest = report.settings.train_length, report.settings.lengths[-1]
    return (
        f"Windows of {grouped(longest)} tokens read in one piece: what each place in the window costs, against what "
        f"the trigram pays for the same text. Training reached place {L} (grey); where a curve turns up behind it, "
        "the encoding gives way."
    )


def _costs_note(report: Report) -> str:
    L, longest = report.settings.train_length, report.settings.lengths[-1]
    return (
        "Parameters: those that exist because of position. Time: of the processor for a step of training, over the "
        "fastest. On a trigram: bits at the training length against the byte trigram's. Moved: the change when the "
        f"same {L} tokens stand at positions {longest - L} to {longest - 1}. Beyond: the share of attention that goes "
        f"farther back than {L} tokens when the context is longest. Holds to: up to which position the loss "
        f"stays within {FLAT:.0%} of that at position {L}."
    )


def _sample(report: Report) -> list[str]:
    if report.sample is None:
        return []
    s = report.sample
    told = f"After reading “{s.prompt}”, the model with {s.label} went on:"
    return [_tag("h2", "What a model writes"), _tag("p", told), _tag("pre", s.prompt + s.text)]


def _method(report: Report) -> list[str]:
    s, model, train, corpus = report.settings, report.settings.model, report.settings.train, report.about["corpus"]
    tokens = train.steps * train.batch_size * s.train_length
    return [
        f"{len(report.rows)} models with {model.n_layers} layers of width {model.d_model} and {model.n_heads} heads "
        f"were trained for {grouped(train.steps)} steps of {train.batch_size} windows of {s.train_length} tokens, "
        f"{grouped(tokens)} tokens each. They differ in position and nothing else: "
        + ("they began with the same weights (checked), " if report.same_start else "")
        + "saw the same batches in the same order and took as many steps.",
        f"The text: {corpus['name']}, {corpus['documents']} documents, {corpus['bytes'] / 1e6:.2f} MB, cut into "
        f"{corpus['tokens in the vocabulary']} kinds of tokens of {corpus['bytes per token']:.2f} bytes on average. "
        f"{corpus['held out']['documents']} documents were held out whole; the models never saw them.",
        "Given n tokens means: the model reads a window of n tokens and is asked for the last of them only, at most a "
        "quarter of the window, so that each target has at least three quarters of the window in front of it. The "
        "targets are the same at every n, so what changes is what the model makes of the longer context.",
    ]


def _facts(report: Report) -> str:
    s, seconds = report.settings, report.about["seconds"]
    seeds = str(s.seed) if s.seeds == 1 else f"{s.seed} to {s.seed + s.seeds - 1}"
    facts = {
        "text, SHA-256": report.about["corpus"]["sha256"],
        "seed": seeds,
        "learning rate": ", ".join([f"{s.train.lr:g}", *(f"{name} {lr:g}" for name, lr in s.train.lr_of.items())]),
        **{name: str(value) for name, value in report.about["machine"].items()},
        **{f"seconds to {name}" if name != "total" else "seconds in all": f"{t:.0f}" for name, t in seconds.items()},
        "tokens per second": ", ".join(f"{row.label} {grouped(round(row.tokens_per_second))}" for row in report.rows),
    }
    return "<dl>" + "".join(_tag("dt", key) + _tag("dd", value) for key, value in facts.items()) + "</dl>"


__all__ = ["page"]
