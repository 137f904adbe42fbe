"""Pictures of what is added at the input."""

import numpy as np
import pytest
import torch

import gnomon as gn
from gnomon import plots
from gnomon.plots.tables import vectors_of

LABELS = {
    "es": ("Codificación Posicional Sinusoidal", "Posición", "Dimensión", "Valor"),
    "pt": ("Codificação Posicional Senoidal", "Posição", "Dimensão", "Valor"),
    "en": ("Sinusoidal Positional Encoding", "Position", "Dimension", "Value"),
}


@pytest.mark.parametrize("lang", LABELS)
def test_the_heat_map_has_the_labels_of_its_language(lang):
    """Position on x, dimension on y, a colour bar, a title; red to blue."""
    figure = plots.heat_map("sinusoidal", lang=lang).figure
    axes, bar = figure.axes
    assert (figure.get_suptitle(), axes.get_xlabel(), axes.get_ylabel(), bar.get_ylabel()) == LABELS[lang]
    assert axes.images[0].get_cmap().name.startswith("RdBu")


def test_the_heat_map_shows_the_table_itself_with_position_across():
    (image,) = plots.heat_map("sinusoidal", 50, 32).figure.axes[0].images
    np.testing.assert_allclose(image.get_array(), gn.positions.sinusoidal_table(50, 32).T, atol=1e-12)
    assert image.origin == "lower"  # dimension 0 at the bottom, as on a graph
    assert image.get_clim() == (-1.0, 1.0)


def test_a_trained_table_is_drawn_whole_and_as_it_is():
    trained = gn.DecoderOnly.from_preset("mini-gpt").input.position
    picture = plots.heat_map(trained)
    shown = picture.figure.axes[0].images[0].get_array()
    np.testing.assert_allclose(shown, trained.weight.detach().numpy().T, rtol=1e-6)
    assert "nothing has trained them yet" not in picture.alt


def test_a_table_that_nothing_trained_says_so():
    assert "nothing has trained them yet" in plots.heat_map("learned").alt
    assert "nada los ha entrenado todavía" in plots.similarity("learned", lang="es").alt
    assert "nothing has trained them yet" not in plots.heat_map("sinusoidal").alt


def test_more_positions_than_rows_is_the_tables_own_error():
    with pytest.raises(gn.BadValue, match="hold 64 rows"):
        plots.heat_map(gn.DecoderOnly.from_preset("mini-gpt").input.position, length=65)


def test_sinusoidal_similarity_depends_on_distance_alone_and_not_on_its_sign():
    """The dot product of PE(p) and PE(p + r) is a sum of cos(r w_i): even in r, and 1 for r = 0 once normalised."""
    figure = plots.similarity("sinusoidal", 64, 32).figure
    cosine = np.asarray(figure.axes[0].images[0].get_array())
    np.testing.assert_allclose(cosine, cosine.T, atol=1e-12)
    for r in (0, 1, 5, 40):
        w = 10000.0 ** (-2 * np.arange(16) / 32)
        np.testing.assert_allclose(np.diagonal(cosine, r), np.cos(r * w).mean(), atol=1e-12)
    (curve,) = (line for line in figure.axes[1].lines if len(line.get_xdata()) == 64)
    np.testing.assert_allclose(curve.get_ydata(), cosine[32])
    assert curve.get_xdata()[32] == 0


def test_vectors_are_those_of_the_module_in_whatever_dtype_it_is():
    module = gn.positions.get("learned").build(d_model=8, max_positions=6).to(torch.bfloat16)
    assert vectors_of(module, 6).dtype == np.float64
