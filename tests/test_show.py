"""Objects show themselves in a notebook, as HTML that needs no plotting library."""

import base64
import io
import re

import numpy as np
import pytest
import torch
from PIL import Image

import gnomon as gn
from gnomon.show import card, matrix_image, png

SIZES = {"d_model": 16, "d_head": 8, "n_heads": 4, "causal": True, "max_positions": 64}


def pixels(html):
    data = re.search(r"base64,([^\"]+)", html)[1]
    return np.asarray(Image.open(io.BytesIO(base64.b64decode(data))))


def test_a_png_holds_the_pixels_it_was_given():
    given = np.random.default_rng(0).integers(0, 256, (5, 7, 3), dtype=np.uint8)
    assert np.array_equal(np.asarray(Image.open(io.BytesIO(png(given)))), given)


def test_a_matrix_is_red_above_zero_blue_below_and_grey_where_infinite():
    red, blue, white, grey = pixels(matrix_image(np.array([[2.0, -2.0, 0.0, -np.inf]]), "x"))[0].astype(int)
    assert red[0] > red[2] + 50
    assert blue[2] > blue[0] + 50
    assert set(white) == {255}
    assert len(set(grey)) == 1
    assert grey[0] < 255


def test_text_in_a_card_is_text():
    assert "<b>&lt;script&gt;</b>" in card("<script>", {})
    assert "&lt;i&gt;" in card("x", {"paper": "<i>"})


def test_an_encoding_shows_its_paper_its_parameters_and_what_it_does():
    for name in [n for n in gn.positions.names() if n != "none"]:
        encoding = gn.positions.get(name).build(**SIZES)
        html = encoding._repr_html_()
        assert encoding.paper in html, name
        assert f"{sum(p.numel() for p in encoding.parameters()):,}" in html, name
        heads = SIZES["n_heads"]
        pairs = len(encoding.frequencies())  # of channels; they need not be half a head's width
        rows = {"input": SIZES["d_model"], "rotation": pairs or 1, "score": heads, "attention": heads}
        assert pixels(html).shape == (rows[encoding.acts], 64, 3), name
        assert ("cosines" in html) == (pairs > 0 and encoding.acts == "rotation"), name


def test_no_position_has_nothing_to_draw_but_shows_itself():
    html = gn.positions.get("none").build()._repr_html_()
    assert "Kazemnejad" in html
    assert "<img" not in html


def test_a_learned_table_shorter_than_the_picture_is_shown_in_words():
    assert "<img" not in gn.positions.get("learned").build(d_model=16, max_positions=8)._repr_html_()


def test_a_choice_shows_its_options():
    assert "rope(base=1000000.0)" in gn.positions.get("rope", base=1e6)._repr_html_()


def test_a_layout_shows_positions_and_padding():
    html = gn.Layout.packed([[3, 2], [4]])._repr_html_()
    rows = [re.findall(r"<td[^>]*>([^<]*)</td>", row) for row in re.findall(r"<tr>(.*?)</tr>", html)]
    assert rows == [["0", "1", "2", "0", "1"], ["0", "1", "2", "3", "·"]]
    first, _ = (re.findall(r"background:(#\w+)", row) for row in re.findall(r"<tr>(.*?)</tr>", html))
    assert len(set(first[:3])) == len(set(first[3:])) == 1
    assert first[0] != first[3]  # the second document has another colour
    assert "packed" in html


def test_a_large_layout_is_cut_off_and_says_so():
    html = gn.Layout.dense(100, 5000)._repr_html_()
    assert "cut off" in html
    assert "100 x 5000" in html
    assert html.count("<tr>") == 8


def test_what_is_shown_is_what_the_module_holds():
    encoding = gn.positions.get("learned").build(d_model=3, max_positions=64)
    with torch.no_grad():
        encoding.weight.zero_()
        encoding.weight[5, 2] = 1.0
    shown = pixels(encoding._repr_html_()).astype(int)
    assert [tuple(int(i) for i in where) for where in np.argwhere(shown.sum(-1) < 765)] == [(2, 5)]


@pytest.mark.parametrize("build", [gn.DecoderOnly, gn.EncoderOnly, gn.EncoderDecoder])
def test_a_model_is_a_card_of_its_sizes_parameters_encoding_and_tie(build):
    model = build(1234, 16, 2, 4, position=gn.positions.get("rope", base=5.0))
    html = model._repr_html_()
    n = sum(p.numel() for p in model.parameters())
    for fact in (build.__name__, model.architecture, "1,234 tokens", f"{n:,}", "rope(base=5.0)", ", tied to the token"):
        assert fact in html
    untied = build(9, 16, 2, 4, n_kv_heads=2, tied=False, position="learned", max_positions=32)._repr_html_()
    for fact in (", untied", "4 (2 of keys and values) heads", "32 positions", "learned"):
        assert fact in untied


def test_what_a_model_is_called_is_text():
    class Named(gn.positions.PositionEncoding):
        name = "<b>mine</b>"

    kind = type("<script>", (gn.DecoderOnly,), {})
    html = kind(9, 16, 1, 2, position=gn.positions.Spec(Named))._repr_html_()
    assert "<script>" not in html
    assert "&lt;b&gt;mine" in html
