"""The result as one HTML page that needs nothing else: no other file, no other machine.

The answer comes first, then how sure it is, what it costs, and how it was measured.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from html import escape
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from gnomon.glossary import Words, translate, words
from gnomon.lab.analysis import FLAT, EncodingResult
from gnomon.lab.bootstrap import Interval
from gnomon.lab.evidence import claims, tables
from gnomon.lab.exact.report import TaskTable
from gnomon.lab.figures import NARROW, WIDE, by_position, colour_of, extrapolation, svg
from gnomon.lab.report import LabReport
from gnomon.lab.summary import comparison, facts, list_encodings, percents, summary, verdict, whole_percent
from gnomon.lab.table import costs

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def page(report: LabReport, lang: str = "en") -> str:
    """The page of one panel as text, in English, Spanish or Portuguese."""
    w, L, longest = words("lab", lang), report.settings.train_length, report.settings.lengths[-1]
    title = w("page_title", trained=L, longest=longest)
    lead = _tag("p", w("lead", count=len(report.rows), trained=L, longest=longest), "lead")
    return _document(title, [lead, *_panel(report, lang, ""), _tag("footer", w("footer"))], lang)


def pages(panels: Sequence[LabReport], tasks: TaskTable | None, answers: Sequence[str], lang: str = "en") -> str:
    """The page of several panels, one after another, and of tasks with exact answers."""
    w = words("grid", lang)
    title = w("grid_title", panels=len(panels) + (tasks is not None))
    parts = [_list(answers)]
    for n, report in enumerate(panels):
        s = report.settings
        name = w("panel", layers=s.model.n_layers, width=s.model.d_model, trained=s.train_length)
        parts += [_tag("h1", name, "panel"), *_panel(report, lang, f"panel{n}-")]
    if tasks is not None:
        parts += [_tag("h1", w("tasks"), "panel"), _tag("pre", tasks.table(lang).strip())]
    return _document(title, [*parts, _tag("footer", words("lab", lang)("footer"))], lang)


def _document(title: str, parts: Sequence[str], lang: str) -> str:
    css, script = (files("gnomon.lab").joinpath(f"page.{kind}").read_text(encoding="utf-8") for kind in ("css", "js"))
    return (
        f'<!doctype html>\n<html lang="{lang}">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>\n{css}</style>\n</head>\n<body>\n<main>\n"
        + "\n".join([_tag("h1", title), *parts])
        + f"\n</main>\n<script>\n{script}</script>\n</body>\n</html>\n"
    )


def _panel(report: LabReport, lang: str, prefix: str) -> list[str]:
    """The answer, how sure it is, what it costs, how it was measured."""
    w, grid = words("lab", lang), words("grid", lang)
    return [
        _tag("h2", grid("answer")),
        *_answer(report, w, prefix),
        _tag("h2", grid("sure")),
        _list(claims(report, grid)),
        *_evidence(report, grid),
        _tag("h3", w("h_each")),
        *(_about(report, row, w) for row in report.sorted_rows()),
        _tag("h2", grid("cost")),
        *_costs(report, w, grid),
        _tag("h2", grid("measured")),
        *(_tag("p", text) for text in _method(report, w)),
        _facts(report, w),
        *_sample(report, w),
    ]


def _answer(report: LabReport, w: Words, prefix: str) -> list[str]:
    L, longest = report.settings.train_length, report.settings.lengths[-1]
    return [
        _list(summary(report, w)),
        _live(
            report,
            _picture(f"{prefix}curves", lambda s: extrapolation(report, s, w.lang), w("curves_caption", trained=L)),
            w.lang,
        ),
        _tag("h3", w("h_numbers")),
        _tag("p", _numbers(report, w)),
        _bits_table(report, w),
        _tag("p", w("crop_note", trained=L), "note"),
        _tag("h3", w("h_positions")),
        _picture(
            f"{prefix}positions",
            lambda s: by_position(report, s, w.lang),
            w("positions_caption", longest=longest, trained=L),
        ),
    ]


def _evidence(report: LabReport, w: Words) -> Iterator[str]:
    for title, cells, notes in tables(report, w):
        yield from (_tag("h3", title), _table(cells), *(_tag("p", note, "note") for note in notes))


def _costs(report: LabReport, w: Words, grid: Words) -> list[str]:
    L, longest = report.settings.train_length, report.settings.lengths[-1]
    note = w("costs_note", trained=L, first=longest - L, last=longest - 1, flat=whole_percent(FLAT))
    return [_table(costs(report, w)), _tag("p", f"{note} {grid('memory_note')}", "note")]


def _live(report: LabReport, still: str, lang: str) -> str:
    """The curves as a plot that answers when it is pointed at; without scripts the picture `still` remains."""
    w = words("grid", lang)
    data = json.dumps(_curves(report, w), ensure_ascii=False).replace("<", "\\u003c")
    return (
        f"<figure class=live><div class=still>{still}</div><div class=tools><div class=names></div></div>"
        f"<div class=stage><div class=plot></div><div class=tip hidden></div></div>"
        f'{_tag("figcaption", w("explore"))}<script type="application/json">{data}</script></figure>'
    )


def _curves(report: LabReport, w: Words) -> dict[str, Any]:
    """What the script draws. With several seeds, medians and intervals over seeds; else those over documents."""
    names = ["fixed", *report.rows[0].others]

    def points(values: Sequence[Interval | None]) -> list[dict[str, float] | None]:
        return [None if x is None else {k: round(v, 4) for k, v in asdict(x).items()} for x in values]

    return {
        "lengths": report.settings.lengths,
        "written": [w.number(n) for n in report.settings.lengths],
        "trigram": report.trigram.value,
        "floor": words("lab", w.lang)("trigram"),
        "point": "." if w.lang == "en" else ",",
        "axis": words("lab", w.lang)("curves_x"),
        "choose": w("protocol"),
        "protocols": [{"key": name, "name": w(name)} for name in names],
        "lines": [
            {
                "label": row.label,
                "colour": colour_of(report, row),
                "fixed": points(row.median if report.settings.seeds > 1 else row.bits),
                **{name: points(row.others[name]) for name in names[1:]},
            }
            for row in report.sorted_rows()
        ],
    }


# ------------------------------------------------------------------ pieces of a page


def _tag(name: str, text: str, kind: str = "") -> str:
    return f"<{name}{f' class={kind}' if kind else ''}>{escape(text).replace(' %', '&nbsp;%')}</{name}>"


def _picture(name: str, drawn_in: "Callable[[tuple[float, float]], Figure]", caption: str) -> str:
    """A figure in two shapes, one for a desk and one for a phone."""
    shapes = {"desk": svg(drawn_in(WIDE), f"{name}-wide-"), "phone": svg(drawn_in(NARROW), f"{name}-narrow-")}
    drawn = "".join(
        f'<div class={kind} role=img aria-label="{escape(caption)}">{text}</div>' for kind, text in shapes.items()
    )
    return f"<figure>{drawn}{_tag('figcaption', caption)}</figure>"


def _list(lines: Sequence[str]) -> str:
    return f"<ul>{''.join(_tag('li', line) for line in lines)}</ul>" if lines else ""


def _table(cells: Sequence[Sequence[str]]) -> str:
    """Plain text in a table that scrolls sideways where it is too wide."""
    return _rows([[_tag("th", text) for text in cells[0]], *([_tag("td", text) for text in row] for row in cells[1:])])


def _rows(cells: Sequence[Sequence[str]]) -> str:
    return f"<div class=scroll><table>{''.join(f'<tr>{chr(10).join(row)}</tr>' for row in cells)}</table></div>"


def _dot(report: LabReport, row: EncodingResult) -> str:
    return f'<span class=dot style="background:{colour_of(report, row)}"></span>'


def _passed(row: EncodingResult) -> str:
    """Of several seeds, how many learned enough within training's lengths."""
    return "" if len(row.by_seed) == 1 else f" {_tag('small', f'{row.passed}/{len(row.by_seed)}')}"


def _kind(row: EncodingResult, w: Words) -> str:
    return f'<span class="kind {row.kind.replace("/", "")}">{w(row.kind)}</span>'


# ------------------------------------------------------------------ what it says


def _numbers(report: LabReport, w: Words) -> str:
    t = report.targets
    return w("numbers", tokens=t["tokens"], bytes=t["bytes"], documents=t["documents"], trigram=report.trigram.value)


def _bits_table(report: LabReport, w: Words) -> str:
    """Beside each encoding its kind of curve, which stays in sight where the numbers scroll."""
    best = [places[0].label if places else "" for places in report.ranking]
    heads = ("", *(w("given", n=n) for n in report.settings.lengths), w("against_cropping"))
    rows = [_bits(report, row, best, w) for row in report.sorted_rows()]
    return _rows([[_tag("th", text) for text in heads], *rows])


def _bits(report: LabReport, row: EncodingResult, best: Sequence[str], w: Words) -> list[str]:
    bits = [
        _tag("td", w("n/a")) if x is None else _tag("td", w.number(x.value, ".3f"), "best" if row.label == top else "")
        for x, top in zip(row.bits, best, strict=True)
    ]
    last = row.increase[-1]
    change = _tag("td", "" if last is None else percents(last, w))
    return [f"<td>{_dot(report, row)}{escape(row.label)} {_kind(row, w)}{_passed(row)}</td>", *bits, change]


def _about(report: LabReport, row: EncodingResult, w: Words) -> str:
    """What is to be said about one encoding."""
    text = " ".join([verdict(report, row, w), *facts(report, row, w), *comparison(report, row, w)])
    return f"<h4>{_dot(report, row)}{escape(row.label)} {_kind(row, w)}</h4>\n{_tag('p', text)}"


def _sample(report: LabReport, w: Words) -> list[str]:
    if report.sample is None:
        return []
    s = report.sample
    text = w("sample", prompt=s.prompt, label=list_encodings([s.label], w))
    return [_tag("h3", w("h_sample")), _tag("p", text), _tag("pre", s.prompt + s.text)]


def _method(report: LabReport, w: Words) -> list[str]:
    s, model, train, corpus = report.settings, report.settings.model, report.settings.train, report.about["corpus"]
    models = w(
        "method_models",
        count=len(report.rows),
        layers=model.n_layers,
        width=model.d_model,
        heads=model.n_heads,
        steps=train.steps,
        batch=train.batch_size,
        trained=s.train_length,
        tokens=train.steps * train.batch_size * s.train_length,
    )
    text = w(
        "method_text",
        name=corpus["name"],
        documents=corpus["documents"],
        megabytes=corpus["bytes"] / 1e6,
        kinds=corpus["tokens in the vocabulary"],
        bytes=corpus["bytes per token"],
        held=corpus["held out"]["documents"],
    )
    return [f"{models} {w('method_start')}" if report.same_start else models, text, w("method_given")]


def _facts(report: LabReport, w: Words) -> str:
    s = report.settings
    seeds = str(s.seed) if s.seeds == 1 else w("seeds", first=str(s.seed), last=str(s.seed + s.seeds - 1))
    rates = [w.number(s.train.lr, "g"), *(f"{name} {w.number(lr, 'g')}" for name, lr in s.train.lr_of.items())]
    seconds = {
        w("seconds_in_all") if name == "total" else w("seconds_to", what=translate(name, w.lang)): w.number(t, ".0f")
        for name, t in report.about["seconds"].items()
    }
    facts = {
        w("sha256"): report.about["corpus"]["sha256"],
        w("seed"): seeds,
        w("learning_rate"): "; ".join(rates),
        **{translate(name, w.lang): str(value) for name, value in report.about["machine"].items()},
        **seconds,
        w("tokens_per_second"): "; ".join(
            f"{row.label} {w.number(round(row.tokens_per_second))}" for row in report.rows
        ),
    }
    return "<dl>" + "".join(_tag("dt", key) + _tag("dd", value) for key, value in facts.items()) + "</dl>"


__all__ = ["page", "pages"]
