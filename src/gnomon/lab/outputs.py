"""The files of a report: tables for people, programs and papers, pictures, and a page."""

import json
from collections.abc import Callable
from typing import TYPE_CHECKING

from gnomon.lab.figures import by_position, extrapolation, png, standalone_svg
from gnomon.lab.page import page
from gnomon.lab.records import records, to_csv, to_latex
from gnomon.lab.report import WRITERS, LabReport
from gnomon.lab.table import text_tables

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def _table(report: LabReport, lang: str = "en", colour: bool = False) -> bytes:
    return (text_tables(report, colour, lang) + "\n").encode()


def _extrapolation(report: LabReport, lang: str = "en") -> bytes:
    return png(extrapolation(report, lang=lang))


def _by_position(report: LabReport, lang: str = "en") -> bytes:
    return png(by_position(report, lang=lang))


def _page(report: LabReport, lang: str = "en") -> bytes:
    return page(report, lang).encode()


def _figure(drawn: "Callable[..., Figure]") -> Callable[..., bytes]:
    return lambda report, lang="en": standalone_svg(drawn(report, lang=lang))


def _latex(report: LabReport, lang: str = "en") -> bytes:
    return to_latex(report, lang).encode()


def _csv(report: LabReport, lang: str = "en") -> bytes:
    return to_csv(records(report))


def _records(report: LabReport, lang: str = "en") -> bytes:
    return json.dumps(records(report)).encode()


WRITERS |= {
    "records.json": _records,
    "results.csv": _csv,
    "table.tex": _latex,
    "extrapolation.svg": _figure(extrapolation),
    "by_position.svg": _figure(by_position),
    "table.txt": _table,
    "extrapolation.png": _extrapolation,
    "by_position.png": _by_position,
    "report.html": _page,
}

__all__ = ["WRITERS"]
