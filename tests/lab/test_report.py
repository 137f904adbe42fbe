"""What a report says follows from its numbers, and its files stand alone."""

import json
import re
from dataclasses import replace
from html import escape

import numpy as np
import pytest

from gnomon.data import NGramBaseline
from gnomon.errors import BadInput
from gnomon.glossary import LANGUAGES, glossary, words
from gnomon.lab import TextSample
from gnomon.lab.analysis import published_kind
from gnomon.lab.bootstrap import Interval
from gnomon.lab.figures import COLOURS, NARROW, WIDE, by_position, extrapolation, png, style_of, svg
from gnomon.lab.page import page
from gnomon.lab.prepare import prepare
from gnomon.lab.published import CURVES
from gnomon.lab.report import Place, _places
from gnomon.lab.summary import comparison, percents, rank, reasons, summary, verdict
from gnomon.positions import encoding, names


def with_increase(report, **increases):
    """The report as if encodings had come out with these increases at the longest length, all well trained."""
    rows = [
        replace(row, increase=[*row.increase[:-1], Interval(by, by - 0.01, by + 0.01)])
        if (by := increases.get(row.label)) is not None
        else row
        for row in report.rows
    ]
    return replace(report, rows=tuple(rows), margins={row.label: Interval(-0.2, -0.3, -0.1) for row in rows})


# ------------------------------------------------------------------ numbers


def test_bits_are_nats_over_bytes_of_the_same_targets(report, folder):
    """Recomputed by hand from what the trials left on the disk."""
    n_bytes = report.targets["bytes"]
    for row in report.rows:
        nats = json.loads((folder / row.label / "measured.json").read_text())["result"]["measurements"]["nats"]
        for bits, paid in zip(row.bits, nats, strict=True):
            assert (bits is None) == (paid is None)
            if bits is not None:
                assert bits.value == pytest.approx(sum(paid) / n_bytes / np.log(2))


def test_the_trigram_pays_for_the_same_bytes(report, settings, corpus, tmp_path):
    """Its price for the targets, and by position, is that of whole documents at the bytes in question."""
    lab = prepare(settings, corpus, tmp_path / "lab", quiet=True)
    training, held_out = corpus.split(settings.held_out)
    trigram = NGramBaseline(training)
    total = 0.0
    for number, index in enumerate(lab.targets.chosen.tolist()):
        bits = trigram.bits(held_out.documents[index].data)
        mine = lab.targets.document == number
        total += bits[-int(lab.targets.n_bytes[mine][:, -lab.targets.n :].sum()) :].sum()
        last = np.flatnonzero(mine)[0]  # the block at the very end
        assert lab.trigram[last].sum() == pytest.approx(bits[-int(lab.targets.n_bytes[last].sum()) :].sum() * np.log(2))
    assert report.trigram.value == pytest.approx(total / report.targets["bytes"])


def test_the_first_column_is_no_increase_and_the_crop(report):
    for row, data in zip(report.rows, report.to_dict()["rows"], strict=True):
        assert row.increase[0] == Interval(0, 0, 0)
        assert data["cropped"] == row.bits[0].value


def test_all_models_began_alike(report):
    assert report.same_start


def test_orders_go_from_the_best_to_the_worst(report):
    for at, places in enumerate(report.ranking):
        values = [report.row(place.label).bits[at].value for place in places]
        assert values == sorted(values)
    assert {place.label for place in report.ranking[-1]} == {row.label for row in report.rows} - {"learned"}


def test_an_order_shows_what_the_documents_do_not_settle():
    assert rank((Place("a", True), Place("b", False), Place("c", True))) == "a < b ≈ c"


# ------------------------------------------------------------------ words


@pytest.mark.parametrize(
    ("increase", "kind", "agrees"), [(0.01, "flat", True), (0.12, "rises", False), (0.5, "breaks", False)]
)
def test_words_follow_the_numbers(report, increase, kind, agrees):
    """ALiBi is published as flat. Whatever it does here is what the report says, and whether that agrees."""
    changed = with_increase(report, alibi=increase)
    row = changed.row("alibi")
    assert row.kind == kind
    assert percents(row.increase[-1]) in verdict(changed, row)
    text = " ".join(comparison(changed, row))
    assert ("This run agrees" in text) == agrees
    if not agrees:
        assert f"differs: {kind} here, flat there" in text
    lines = " ".join(summary(changed))
    assert re.search(rf"{kind.capitalize()}, [^:]*: [^.]*alibi", lines)
    assert ("alibi" in lines.partition("Other than published: ")[2].partition(".")[0]) != agrees


def test_an_expected_outcome_of_all_is_said_to_be_one(report):
    examples = {"flat": 0.0, "rises": 0.1, "breaks": 0.5}
    changed = with_increase(report, **{label: examples[published_kind(label, 4)] for label in CURVES})
    assert "Of the kind that is published:" in " ".join(summary(changed))
    assert "worth comparing" in " ".join(summary(changed))


@pytest.mark.slow
def test_models_that_learned_too_little_are_named(report):
    weak = replace(report, margins={**report.margins, "rope": Interval(-0.05, -0.06, -0.04)})
    strong = {label: Interval(-0.2, -0.3, -0.1) for label in report.margins}
    others = replace(weak, margins=strong | {"rope": weak.margins["rope"]})
    assert "less than 10 % below a byte trigram: rope." in " ".join(summary(others))
    assert "too little to draw conclusions from" in reasons(others, others.row("rope"), "breaks")[0]


def test_a_milder_curve_is_put_down_to_context_only_where_context_does_little(report):
    changed = with_increase(report, none=0.01)
    rows = {
        gain: replace(changed.row("none"), curve=[1.0 if end <= 1 else 1 - gain for end in report.edges[1:]])
        for gain in (0.02, 0.4)
    }
    assert "little on context" in reasons(changed, rows[0.02], "breaks")[0]
    assert "little on context" not in reasons(changed, rows[0.4], "breaks")[0]


def test_a_different_beginning_is_said_aloud(report):
    assert "did NOT begin with the same weights" in summary(replace(report, same_start=False))[-1]
    assert "NOT" not in " ".join(summary(report))


# ------------------------------------------------------------------ files


@pytest.fixture(scope="module")
def saved(report, tmp_path_factory):
    folder = tmp_path_factory.mktemp("saved")
    changed = replace(report, sample=TextSample("rope", "def <x>", "():\n    pass"))
    changed.save(folder)
    return folder


def test_a_report_is_files_for_people_programs_and_papers(saved):
    pictures = {f"{name}.{kind}" for name in ("extrapolation", "by_position") for kind in ("png", "svg")}
    names = {"report.json", "results.csv", "table.txt", "table.tex", "report.html", *pictures}
    assert {path.name for path in saved.iterdir()} == names
    for name in ("extrapolation.png", "by_position.png"):
        assert (saved / name).read_bytes().startswith(b"\x89PNG")


def test_the_table_shows_each_number_once_rounded(report, saved):
    text = (saved / "table.txt").read_text()
    assert text == report.table() + "\n"
    assert "\033" not in text
    assert "\033[" in report.table(colour=True)
    assert re.sub(r"\033\[\d+m", "", report.table(colour=True)) == report.table()
    for row in report.rows:
        [line] = [line for line in text.splitlines() if line.startswith(row.label + " ")][:1]
        cells = line.split()[1 : 1 + len(row.bits)]
        assert cells == ["n/a" if bits is None else f"{bits.value:.3f}" for bits in row.bits]


def test_the_json_holds_everything_as_plain_data(report, saved):
    data = json.loads((saved / "report.json").read_text())
    assert data["lengths"] == [8, 16, 32]
    assert data["about"]["corpus"]["sha256"]
    assert {"processor", "python", "torch", "gnomon", "workers", "threads per worker"} <= data["about"][
        "machine"
    ].keys()
    assert data["settings"]["seed"] == 0
    by_label = {row["label"]: row for row in data["rows"]}
    assert by_label["learned"]["bits"][1:] == [None, None]
    assert by_label["alibi"]["published_kind"] == "flat"
    assert by_label["rope"]["increase"][-1].keys() == {"value", "low", "high"}
    assert json.loads(report.to_json()) == report.to_dict()


def test_the_page_needs_nothing_but_itself(saved):
    html = (saved / "report.html").read_text()
    assert re.findall(r"<script[^>]*>", html) == [
        '<script type="application/json">',
        "<script>",
    ]  # data, and what draws
    for call in ("fetch(", "XMLHttpRequest", "import(", "http://", "https://", "eval("):
        assert call not in script(html)
    assert not re.search(r'(src|href)="(?!#)', html.replace("xlink:href", "href"))
    assert not re.search(r"url\((?!#)", html)
    assert "@import" not in html
    ids = re.findall(r'\bid="([^"]+)"', html)
    assert len(ids) == len(set(ids))
    assert set(re.findall(r"url\(#([^)]+)\)", html)) <= set(ids)
    assert set(re.findall(r'href="#([^"]+)"', html)) <= set(ids)
    assert html.count("<svg") == 4  # two pictures, each for a desk and for a phone
    assert 'name="viewport"' in html


def script(html):
    """What the page runs, but for the name of SVG, which is no address that anybody asks."""
    return re.search(r"<script>(.*?)</script>", html, re.S)[1].replace("http://www.w3.org/2000/svg", "")


def test_the_curves_that_answer_are_those_of_the_report(report, saved):
    html = (saved / "report.html").read_text()
    data = json.loads(re.search(r'<script type="application/json">(.*?)</script>', html, re.S)[1])
    assert data["lengths"] == report.settings.lengths
    for line in data["lines"]:
        bits = report.row(line["label"]).bits
        assert [p and p["value"] for p in line["fixed"]] == [b and pytest.approx(b.value, abs=1e-4) for b in bits]


def test_the_page_says_what_the_report_found(report, saved):
    html = (saved / "report.html").read_text()
    for row in report.rows:
        assert f"{row.fit.value:.3f}" in html
        assert html.count(f"</span>{row.label}") == 2  # in the table and by itself
    for fact in (report.about["corpus"]["sha256"], report.about["machine"]["torch"], "def &lt;x&gt;"):
        assert str(fact) in html


def test_names_cannot_break_the_page(report):
    odd = replace(report.rows[0], label="<b>&")
    html = page(replace(report, rows=(odd, *report.rows[1:]), margins={**report.margins, odd.label: report.trigram}))
    assert "<b>" not in html
    assert "&lt;b&gt;&amp;" in html


def test_the_same_report_gives_the_same_files(report, saved):
    changed = replace(report, sample=TextSample("rope", "def <x>", "():\n    pass"))
    assert page(changed) == (saved / "report.html").read_text()


@pytest.mark.slow
def test_a_save_that_fails_leaves_the_old_files(report, saved, monkeypatch, tmp_path):
    report.save(tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    monkeypatch.setattr("os.replace", lambda *paths: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    with pytest.raises(BadInput, match="No space left"):
        replace(report, sample=None, about={**report.about, "reused": ["rope"]}).save(tmp_path)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


# ------------------------------------------------------------------ pictures


def test_every_line_has_a_look_of_its_own(report):
    looks = [style_of(report, row) for row in report.rows]
    assert len(set(looks)) == len(looks)
    assert {colour for colour, _ in looks} <= set(COLOURS)


def test_well_known_encodings_keep_their_look_among_others(report):
    mine = replace(report.rows[0], label="mine")
    alone = replace(report, rows=(mine, report.row("rope")))
    assert style_of(alone, report.row("rope")) == style_of(report, report.row("rope"))
    assert style_of(alone, mine) != style_of(alone, report.row("rope"))


@pytest.mark.parametrize("size", [(8.0, 4.9), (4.3, 4.9)])
def test_pictures_show_the_numbers(report, size):
    """The drawn points are the report's, and every encoding is named beside its line."""
    axes = extrapolation(report, size).axes[0]
    drawn = [line.get_ydata() for line in axes.get_lines()]
    for row in report.rows:
        values = [bits.value for bits in row.bits if bits is not None]
        assert any(np.array_equal(y, values) for y in drawn)
        if len(values) > 1:
            assert any(np.array_equal(y, [values[0]] * 3) for y in drawn)  # cropped
    assert {row.label for row in report.rows} <= {text.get_text() for text in axes.texts}
    assert png(by_position(report, size)).startswith(b"\x89PNG")


def test_ids_of_a_picture_carry_its_prefix(report):
    text = svg(extrapolation(report), "first-")
    assert text.startswith("<svg")
    assert all(name.startswith("first-") for name in re.findall(r'\bid="([^"]+)"', text))
    assert "width=" not in text[: text.index(">")]


@pytest.mark.parametrize("size", [WIDE, NARROW])
def test_a_long_name_leaves_room_for_the_curves(report, size):
    """And two that differ at their ends only still do."""
    labels = [f"rope(base=200, pairing='interleaved', rotary_dim={n})" for n in (8, 16)]
    rows = [replace(row, label=label) for row, label in zip(report.rows[3:5], labels, strict=True)]
    for draw in (extrapolation, by_position):
        figure = draw(replace(report, rows=tuple(rows)), size)
        figure.canvas.draw()
        axes = figure.axes[0]
        assert axes.get_position().width > 0.35
        named = {text.get_text() for text in axes.texts if "…" in text.get_text()}
        assert len(named) == 2
        assert all(text.get_window_extent().x1 <= figure.bbox.x1 + 1 for text in axes.texts)


# ------------------------------------------------------------------ in three languages


@pytest.mark.parametrize("lang", LANGUAGES)
def test_the_page_and_the_table_speak_the_language_asked_for(report, lang):
    """Every text that a page shows by itself is the language's, and no number has another language's point."""
    changed = replace(report, sample=TextSample("rope", "def ", "():\n    pass"))
    html, text, w = page(changed, lang), changed.table(lang=lang), words("lab", lang)
    assert f'<html lang="{lang}">' in html
    for key in ("h_numbers", "h_each", "h_positions", "h_sample", "footer", "curves_x"):
        assert escape(w(key)) in html
    parts = [html.index(f"<h2>{words('grid', lang)(key)}</h2>") for key in ("answer", "sure", "cost", "measured")]
    assert parts == sorted(parts)
    for line in summary(changed, w):
        assert escape(line).replace(" %", "&nbsp;%") in html
        assert " ".join(line.split()) in " ".join(text.split())
    for row in report.rows:
        assert w.number(row.fit.value, ".3f") in html
        assert w.number(row.fit.value, ".3f") in text
        assert f">{w(row.kind)}<" in html
    wrong = r"\d,\d" if lang == "en" else r"\d\.\d"
    assert not re.search(wrong, text)
    shown = [found.get_text() for size in (WIDE, NARROW) for found in texts_of(extrapolation(changed, size, lang))]
    assert not [x for x in shown if re.search(wrong, x)]


def texts_of(figure):
    from matplotlib.text import Text

    figure.canvas.draw()
    return figure.findobj(Text)


def test_numbers_are_grouped_in_one_way(report):
    """1 024 stands nowhere beside 1024: what is a number of four digits or more is grouped wherever it is shown."""
    far = replace(report, settings=replace(report.settings, train_length=64, factors=(1, 4, 16)))
    shown = [
        far.table(),
        re.sub(r"<svg.*?</svg>|<script.*?</script>|<dl>.*?</dl>|<style>.*?</style>|<[^>]*>", "", page(far), flags=re.S),
    ]
    for text in shown:
        text = re.sub(r"\barXiv:\S+|et al\. \d{4}", "", text)
        assert "1\u202f024" in text
        assert not re.findall(r"\d{4,}", text)


@pytest.mark.slow
def test_what_programs_read_is_the_same_in_every_language(report, tmp_path):
    for lang in ("en", "es"):
        report.save(tmp_path / lang, lang)
    english, spanish = tmp_path / "en", tmp_path / "es"
    assert (english / "report.json").read_bytes() == (spanish / "report.json").read_bytes()
    assert (english / "table.txt").read_bytes() != (spanish / "table.txt").read_bytes()


def test_what_encodings_are_expected_to_do_is_said_in_every_language():
    phrases = [encoding(name).extrapolation for name in names()] + [curve.source for curve in CURVES.values()]
    missing = [text for text in phrases if text not in glossary()["phrases"]]
    assert not missing


def test_the_encoding_called_none_does_not_read_as_nothing(report):
    changed = with_increase(report, none=0.1, t5=0.1)
    [rises] = [line for line in summary(changed) if line.startswith("Rises")]
    assert "“none” (no position)" in rises
    assert not re.search(r"[ :]none[,.]", rises)


# ------------------------------------------------------------------ on a dark ground, and on a phone


def test_the_page_has_every_colour_for_a_light_and_a_dark_ground(report):
    html = page(report)
    drawn = "".join(re.findall(r"<svg.*?</svg>", html, re.S))
    assert not re.findall(r"#[0-9a-fA-F]{6}", drawn)
    light, dark = re.findall(r":root \{(.*?)\}", html, re.S)
    used = set(re.findall(r"var\((--[\w-]+)\)", html))
    assert used <= set(re.findall(r"(--[\w-]+):", light)) == set(re.findall(r"(--[\w-]+):", dark))
    assert "prefers-color-scheme: dark" in html


def test_a_verdict_stands_beside_its_encoding_however_narrow_the_page(report):
    """In the column that stays in sight while the numbers scroll."""
    table = page(report).partition("<table>")[2].partition("</table>")[0]
    first = [row.partition("</td>")[0] for row in table.split("<tr>")[2:]]
    for cell, row in zip(first, report.sorted_rows(), strict=True):
        assert row.label in cell
        assert f">{row.kind}<" in cell


@pytest.mark.parametrize(
    ("size", "lang"),
    [
        (WIDE, "en"),
        (NARROW, "es"),
        *(pytest.param(*case, marks=pytest.mark.slow) for case in ((WIDE, "pt"), (NARROW, "en"))),
    ],
)
def test_no_name_lies_on_a_curve(report, size, lang):
    """Neither that of an encoding which ends early nor that of the trigram."""
    names = {"learned", *(words("lab", lang)(key) for key in ("trigram", "trigram_short"))}
    curves = [[0.96 - 0.02 * n + 0.03 * k for n in range(len(row.curve))] for k, row in enumerate(report.rows)]
    ends = [None if bits is None else n for n, bits in enumerate(report.row("learned").curve)]
    rows = [replace(row, curve=curve) for row, curve in zip(report.rows, curves, strict=True)]
    rows[2] = replace(rows[2], curve=[None if n is None else curves[2][n] for n in ends])
    assert rows[2].label == "learned"
    level = replace(report, rows=tuple(rows))
    for figure in (extrapolation(report, size, lang), by_position(report, size, lang), by_position(level, size, lang)):
        figure.canvas.draw()
        axes = figure.axes[0]
        for name in (text for text in axes.texts if text.get_text() in names):
            box = name.get_window_extent().padded(-1)
            for line in axes.get_lines():
                x, y = axes.transData.transform(np.column_stack(line.get_data())).T
                steps = np.linspace(0, len(x) - 1, 60 * len(x))
                over = np.interp(steps, range(len(x)), x), np.interp(steps, range(len(x)), y)
                flat = len(set(line.get_ydata())) == 1  # cropped models and the trigram: no name keeps off those
                assert flat or not any(box.contains(*at) for at in zip(*over, strict=True)), name.get_text()


def test_a_length_that_no_encoding_reaches_has_no_places():
    """As past the table of learned positions, when they are the only ones."""
    assert _places([], 0, None) == ()
