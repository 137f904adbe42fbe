"""Pictures of position: what encodings add, turn and subtract, and what a model does with it.

Every function returns a `Picture`, which shows itself in a notebook and saves itself as PNG or SVG:

    gn.plots.heat_map("sinusoidal", lang="es").save("sinusoidal.png")

matplotlib is imported when the first one is drawn.
"""

from gnomon.plots import flow as _flow  # noqa: F401  how objects are drawn
from gnomon.plots import order_picture as _order_picture  # noqa: F401
from gnomon.plots.added import added
from gnomon.plots.alignment import alignment
from gnomon.plots.biases import bias, buckets
from gnomon.plots.frequencies import scores, wavelengths
from gnomon.plots.inspection import Inspection, inspect
from gnomon.plots.masks import mask
from gnomon.plots.norms import batch, batch_mates, gradient, gradient_norms
from gnomon.plots.picture import Picture
from gnomon.plots.prefill import parallel_and_sequential
from gnomon.plots.scaling import saturation, scaling
from gnomon.plots.sin_cos import clock, curves
from gnomon.plots.tables import heat_map, similarity
from gnomon.plots.word_order import Order, order

__all__ = [
    "Inspection",
    "Order",
    "Picture",
    "added",
    "alignment",
    "batch",
    "batch_mates",
    "bias",
    "buckets",
    "clock",
    "curves",
    "gradient",
    "gradient_norms",
    "heat_map",
    "inspect",
    "mask",
    "order",
    "parallel_and_sequential",
    "saturation",
    "scaling",
    "scores",
    "similarity",
    "wavelengths",
]
