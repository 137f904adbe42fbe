"""HTML by which objects show themselves in a notebook: a card of facts, a matrix as a small image, rows of cells.

Plain text made here, so that no object needs a plotting library to be looked at.
"""

import base64
import struct
import zlib
from collections.abc import Mapping, Sequence
from html import escape

import numpy as np
import numpy.typing as npt

_RED, _BLUE = np.array([178, 24, 43]), np.array([33, 102, 172])
_DOCUMENTS = ("#d7e3f4", "#fbe3cf", "#d9ead9", "#e9def2")  # background of a row's first, second, ... document


def card(title: str, facts: Mapping[str, object], image: str = "", caption: str = "") -> str:
    """A title, a table of facts and, under it, an image with its caption."""
    rows = "".join(
        f'<tr><td style="text-align:left;opacity:.65">{escape(name)}</td>'
        f'<td style="text-align:left">{escape(str(value))}</td></tr>'
        for name, value in facts.items()
    )
    note = f'<div style="opacity:.65;font-size:90%">{escape(caption)}</div>' if image else ""
    return f"<div><b>{escape(title)}</b><table>{rows}</table>{image}{note}</div>"


def matrix_image(values: npt.NDArray[np.float64], alt: str, height: int = 128, width: int = 384) -> str:
    """A matrix as an <img>, red above zero and blue below, white at zero; infinities are grey."""
    finite = np.isfinite(values)
    top = float(np.abs(values[finite]).max(initial=0.0)) or 1.0
    share = np.where(finite, values, 0.0)[..., None] / top
    pixels = 255 + np.maximum(share, 0) * (_RED - 255) + np.maximum(-share, 0) * (_BLUE - 255)
    pixels[~finite] = 200
    data = base64.b64encode(png(pixels.astype(np.uint8))).decode()
    style = f"width:{width}px;height:{height}px;image-rendering:pixelated"
    return f'<img alt="{escape(alt)}" style="{style}" src="data:image/png;base64,{data}">'


def png(pixels: npt.NDArray[np.uint8]) -> bytes:
    """(rows, columns, 3) colours as a PNG file (W3C PNG specification, section 11: IHDR, IDAT, IEND)."""
    rows, columns, _ = pixels.shape

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", columns, rows, 8, 2, 0, 0, 0)  # 8 bits a channel, RGB
    lines = b"".join(b"\0" + row.tobytes() for row in pixels)  # each line says that it is not filtered
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(lines)) + chunk(b"IEND", b"")


def cells(rows: Sequence[Sequence[object]], documents: Sequence[Sequence[int]], more: str = "") -> str:
    """Rows of small cells, coloured by document; document -1 is padding and is shown as a faint dot."""

    def cell(value: object, document: int) -> str:
        box = "padding:0 .45em;text-align:center"
        if document < 0:
            return f'<td style="{box};opacity:.35">·</td>'
        return f'<td style="{box};color:#1b2330;background:{_DOCUMENTS[document % 4]}">{escape(str(value))}</td>'

    body = "".join(
        f"<tr>{''.join(cell(v, d) for v, d in zip(row, doc, strict=True))}</tr>"
        for row, doc in zip(rows, documents, strict=True)
    )
    return f'<table style="font-family:monospace">{body}</table>' + (f"<div>{escape(more)}</div>" if more else "")


__all__ = ["card", "cells", "matrix_image", "png"]
