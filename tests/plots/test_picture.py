"""What holds for every picture: it saves itself whole, reads well in three languages, and leaves nothing behind."""

import itertools
import re
import subprocess
import sys
from functools import cache

import numpy as np
import pytest
import torch
from matplotlib.colors import to_hex

import gnomon as gn
from gnomon import plots
from gnomon.data import Tokenizer
from gnomon.errors import BadInput, BadValue
from gnomon.glossary import LANGUAGES
from gnomon.lab.by_position import Stretch, stretches
from gnomon.plots.by_position import losses_by_position
from gnomon.plots.style import drawable, gnomon_style, spread
from gnomon.plots.vector_map import vector_map
from gnomon.train.measure import Measure


def _model(**changes):
    torch.manual_seed(0)
    model = gn.DecoderOnly.from_preset("mini-llama", n_layers=2, **changes)
    model.tokenizer = Tokenizer.bytes()
    return model


def _encoder():
    torch.manual_seed(0)
    model = gn.EncoderOnly(
        257, 16, 2, 2, position="learned", max_positions=8, input_norm="layernorm", head="labels", n_classes=3
    ).eval()
    model.tokenizer, model.labels = gn.Tokenizer.bytes(), ("name", "word", "number")
    return model


def _translator():
    torch.manual_seed(0)
    model = gn.EncoderDecoder(257, 16, 2, 2, position="sinusoidal").eval()
    model.tokenizer = gn.Tokenizer.bytes()
    return model


def _by_position(lang, edges=(0, 8, 16, 32, 64), short=5):
    nats = [Measure(3 - n / 4, 2.9 - n / 4, 3.1 - n / 4, 8) for n in range(len(edges))]
    stretches = [Stretch(a, b, nats[n]) for n, (a, b) in enumerate(itertools.pairwise(edges))]
    cut = [s if n < short else Stretch(s.start, s.stop, None) for n, s in enumerate(stretches)]
    return losses_by_position({"one": stretches, "other": cut}, 32, lang)


def _map(lang):
    torch.manual_seed(0)
    return vector_map(torch.randn(9, 4), list("abcdefghi"), [n % 3 for n in range(9)], "sentences", lang)


PICTURES = {
    "sinusoidal": lambda lang: plots.heat_map(lang=lang),
    "learned": lambda lang: plots.heat_map("learned", 64, lang=lang),
    "similarity": lambda lang: plots.similarity(lang=lang),
    "wavelengths": lambda lang: plots.wavelengths(lang=lang),
    "scores": lambda lang: plots.scores(trained=512, draws=16, lang=lang),
    "alibi": lambda lang: plots.bias(lang=lang),
    "alibi, both sides, 12 heads": lambda lang: plots.bias(n_heads=12, causal=False, lang=lang),
    "t5": lambda lang: plots.bias("t5", lang=lang),
    "buckets": lambda lang: plots.buckets(lang=lang),
    "buckets, both sides": lambda lang: plots.buckets(causal=False, lang=lang),
    "scaling": lambda lang: plots.scaling(draws=500, lang=lang),
    "inspect rope": lambda lang: plots.inspect(_model(), "dog").picture(lang),
    "inspect sinusoidal": lambda lang: plots.inspect(_model(position="sinusoidal"), "mordió $5").picture(lang),
    "inspect none": lambda lang: plots.inspect(_model(position="none"), "dog" * 20).picture(lang),
    "inspect an encoder": lambda lang: plots.inspect(_encoder(), "dog").picture(lang),
    "inspect a translator": lambda lang: plots.inspect(_translator(), "dog", target="perro").picture(lang),
    "order": lambda lang: plots.order(lang, ("rope",)).picture(),
    "masks": lambda lang: plots.mask(lang=lang),
    "mask": lambda lang: plots.mask("packed", lang=lang),
    "curves": lambda lang: plots.curves(lang=lang),
    "clock": lambda lang: plots.clock("rope", lang=lang),
    "gradient": lambda lang: plots.gradient(layers=4, d_model=16, lang=lang),
    "batch": lambda lang: plots.batch(lang=lang),
    "by position": _by_position,
    "by position, one ends early": lambda lang: _by_position(lang, (0, 64, 128, 256, 512, 1024, 2048), 4),
    "map": _map,
}


SLOW = {"inspect an encoder", "inspect a translator", "masks", "mask", "curves", "clock", "gradient", "batch"}
NAMES = [pytest.param(name, marks=pytest.mark.slow) if name in SLOW else name for name in PICTURES]
BY_LANGUAGE = ["es", *(pytest.param(lang, marks=pytest.mark.slow) for lang in ("en", "pt"))]  # its words are longest


@cache
def picture(name, lang):
    """One of PICTURES in a language, drawn once."""
    return PICTURES[name](lang)


def texts(figure):
    """Every text that is seen, with the box it takes, in pixels."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.text import Text

    with gnomon_style():
        renderer = FigureCanvasAgg(figure).get_renderer()
        figure.draw(renderer)
        found = [text for text in figure.findobj(Text) if text.get_visible() and text.get_text().strip()]
        return [(text, text.get_window_extent(renderer)) for text in found]


@pytest.mark.parametrize("lang", BY_LANGUAGE)
@pytest.mark.parametrize("name", NAMES)
def test_no_text_leaves_the_page_and_no_two_labels_overlap(name, lang):
    """Tick labels outside an axis' limits are not drawn, and are left out here too."""
    figure = picture(name, lang).figure
    page = figure.bbox
    ticks = {label for axes in figure.axes for axis in (axes.xaxis, axes.yaxis) for label in axis.get_ticklabels()}
    shown = [(text, box) for text, box in texts(figure) if text not in ticks]
    for text, box in shown:
        assert box.x0 >= page.x0 - 1, text.get_text()
        assert box.x1 <= page.x1 + 1, text.get_text()
        assert box.y0 >= page.y0 - 1, text.get_text()
        assert box.y1 <= page.y1 + 1, text.get_text()
    for (text, box), (other, its) in itertools.combinations(shown, 2):
        assert not box.padded(-2).overlaps(its.padded(-2)), f"{text.get_text()!r} lies over {other.get_text()!r}"


@pytest.mark.parametrize("lang", BY_LANGUAGE)
@pytest.mark.parametrize("name", NAMES)
def test_numbers_in_a_picture_are_those_of_its_language(name, lang):
    """A decimal comma in Spanish and Portuguese, a point in English; four digits and more in groups of three."""
    shown = [text.get_text() for text, _ in texts(picture(name, lang).figure)] + [picture(name, lang).alt]
    wrong = r"\d,\d" if lang == "en" else r"\d\.\d"
    assert not [text for text in shown if re.search(wrong, text) or re.search(r"(?<![.,\d])\d{4}", text)]


@pytest.mark.slow  # each in three languages
@pytest.mark.parametrize("name", NAMES)
def test_a_picture_says_in_words_what_it_shows(name):
    alts = {picture(name, lang).alt for lang in LANGUAGES}
    assert len(alts) == len(LANGUAGES)
    assert all(len(alt) > 40 for alt in alts)


@pytest.mark.parametrize("kind", ["png", "svg"])
def test_a_saved_file_is_what_its_suffix_says_and_carries_its_description(tmp_path, kind):
    table = plots.heat_map(length=8, d_model=8, lang="es")
    file = table.save(tmp_path / "new" / f"table.{kind}")
    content = file.read_bytes()
    assert content.startswith(b"\x89PNG" if kind == "png" else b"<?xml")
    assert table.alt.partition(".")[0].encode() in content or b"Codificaci\xf3n" in content
    assert [f.name for f in file.parent.iterdir()] == [file.name]  # nothing unfinished is left beside it


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["png", "svg"])
def test_the_same_picture_gives_the_same_bytes(kind):
    first, second = (plots.bias(n_heads=2, length=8).render(kind) for _ in range(2))
    assert first == second


@pytest.mark.parametrize("name", ["a.pdf", "a.jpeg", "a"])
def test_another_suffix_is_refused_by_name(tmp_path, name):
    with pytest.raises(BadValue, match=r"\.png or \.svg"):
        plots.heat_map(length=4, d_model=4).save(tmp_path / name)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_a_write_that_fails_leaves_the_older_file(tmp_path, monkeypatch):
    file = plots.heat_map(length=4, d_model=4).save(tmp_path / "a.png")
    before = file.read_bytes()

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.replace", full)
    with pytest.raises(BadInput, match="No space left"):
        plots.heat_map(length=5, d_model=4).save(file)
    assert file.read_bytes() == before
    assert list(tmp_path.iterdir()) == [file]


def test_a_notebook_shows_a_picture_as_png():
    assert plots.bias(n_heads=2, length=4)._repr_png_().startswith(b"\x89PNG")


def test_drawing_leaves_the_users_matplotlib_settings_alone():
    import matplotlib

    before = dict(matplotlib.rcParams)
    plots.bias(n_heads=2, length=4).render()
    assert dict(matplotlib.rcParams) == before


@pytest.mark.slow
def test_matplotlib_waits_for_the_first_picture_and_pyplot_for_ever():
    code = (
        "import sys, gnomon.plots as plots; early = 'matplotlib' in sys.modules;"
        "plots.bias(n_heads=2, length=4).render(); print(early, 'matplotlib.pyplot' in sys.modules)"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert shown.split() == ["False", "False"]


def test_a_token_that_the_font_lacks_or_that_looks_like_a_formula_is_drawn_as_text():
    assert drawable("a$b") == r"a\$b"
    assert drawable("\N{SYMBOL FOR FORM FEED}") == r"\x0c"
    assert drawable("語") == r"\u8a9e"
    assert drawable("mordió␣") == "mordió␣"


def test_a_picture_of_the_wrong_kind_of_encoding_is_refused():
    for draw, name in ((plots.heat_map, "rope"), (plots.bias, "sinusoidal"), (plots.scores, "alibi")):
        with pytest.raises(BadValue, match=f"{name} acts at"):
            draw(name)
    with pytest.raises(BadValue, match="alibi has no buckets"):
        plots.buckets("alibi")
    with pytest.raises(BadValue, match="learned has no wavelengths"):
        plots.wavelengths(gn.positions.get("learned", max_positions=8))


@pytest.mark.parametrize("name", ["alibi", "alibi, both sides, 12 heads", "t5"])
def test_a_line_leads_from_the_end_of_each_curve_to_its_name(name):
    """Every name has a leader of its own colour, which begins where the curve of that colour ends."""
    figure = picture(name, "en").figure
    texts(figure)
    for axes in figure.axes:
        ends = {line.get_color(): (line.get_xdata()[-1], line.get_ydata()[-1]) for line in axes.get_lines()}
        names = {text.get_color(): text.get_window_extent() for text in axes.texts if text.get_text()}
        leaders = {text.arrow_patch.get_edgecolor(): text for text in axes.texts if text.arrow_patch is not None}
        assert len(names) == len(leaders) == len(ends) > 2
        for (colour, end), leader in zip(sorted(ends.items()), sorted(leaders.items()), strict=True):
            assert to_hex(leader[0]) == colour
            path = leader[1].arrow_patch.get_transform().transform_path(leader[1].arrow_patch.get_path()).vertices
            points = [tuple(path[0]), tuple(path[-1])]
            there = axes.transData.transform(end)
            nearest = min(points, key=lambda point: np.hypot(*(np.array(point) - there)))
            furthest = max(points, key=lambda point: np.hypot(*(np.array(point) - there)))
            np.testing.assert_allclose(nearest, there, atol=0.5)
            assert names[colour].padded(6).contains(*furthest)


@pytest.mark.parametrize("seed", range(5))
def test_label_places_keep_order_and_distance_and_move_no_further_than_needed(seed):
    rng = np.random.default_rng(seed)
    wanted = sorted(rng.choice([0.0, 0.5, 1.0], 6) + rng.normal(0, 0.01, 6))
    places = spread(wanted, 0.1, -1.0, 2.0)
    assert all(b - a >= 0.1 - 1e-9 for a, b in itertools.pairwise(places))
    assert spread([0.0, 0.4, 0.9], 0.1, -1.0, 2.0) == [0.0, 0.4, 0.9]
    middle = spread([0.5, 0.5, 0.5], 0.1, -1.0, 2.0)
    np.testing.assert_allclose(middle, [0.4, 0.5, 0.6])
    squeezed = spread([0.95, 0.99, 1.0], 0.1, 0.0, 1.0)
    np.testing.assert_allclose(squeezed, [0.8, 0.9, 1.0])


def test_loss_by_position_of_a_short_text_is_a_curve():
    for length in (16, 64, 100, 512):
        assert len(stretches(length)) >= 4
    axes = _by_position("en").figure.axes[0]
    assert all(len(line.get_xdata()) >= 4 for line in axes.get_lines() if line.get_marker() == "o")
