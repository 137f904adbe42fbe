"""The files of a report that people look at: a table, two pictures and a page."""

from gnomon.lab.figures import by_position, extrapolation, png
from gnomon.lab.page import page
from gnomon.lab.report import WRITERS, LabReport
from gnomon.lab.table import text_tables


def _table(report: LabReport, lang: str = "en", colour: bool = False) -> bytes:
    return (text_tables(report, colour, lang) + "\n").encode()


def _extrapolation(report: LabReport, lang: str = "en") -> bytes:
    return png(extrapolation(report, lang=lang))


def _by_position(report: LabReport, lang: str = "en") -> bytes:
    return png(by_position(report, lang=lang))


def _page(report: LabReport, lang: str = "en") -> bytes:
    return page(report, lang).encode()


WRITERS |= {
    "table.txt": _table,
    "extrapolation.png": _extrapolation,
    "by_position.png": _by_position,
    "report.html": _page,
}

__all__ = ["WRITERS"]
