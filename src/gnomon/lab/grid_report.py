"""GridReport: several panels and a table of tasks, together on a page and in files."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gnomon.data import atomic
from gnomon.glossary import Words, words
from gnomon.lab.exact.report import TaskTable
from gnomon.lab.page import pages
from gnomon.lab.records import Record, records, to_csv
from gnomon.lab.report import LabReport
from gnomon.lab.summary import rank


@dataclass(frozen=True)
class GridReport:
    """The result of a grid: a report for each size and training length, and the rows of tasks with exact answers."""

    panels: tuple[LabReport, ...]
    tasks: TaskTable | None
    about: dict[str, Any]
    seed: int = 0
    left_out: tuple[tuple[str, dict[str, Any]], ...] = ()

    def __iter__(self) -> Iterator[Record]:
        """Plain rows of all panels, so that `pandas.DataFrame(report)` is a table; those of tasks are in `tasks`."""
        return (record for panel in self.panels for record in records(panel))

    def summary(self, lang: str = "en") -> list[str]:
        """The answer of each panel in a line."""
        w = words("grid", lang)
        return [
            w("panel_answer", panel=panel_name(p, w), longest=p.settings.lengths[-1], ranked=rank(p.ranking[-1]))
            for p in self.panels
        ]

    def table(self, colour: bool = False, lang: str = "en") -> str:
        """All of it as text for a terminal."""
        w = words("grid", lang)
        parts = ["\n".join(self.summary(lang))] if self.panels else []
        for panel in self.panels:
            name = panel_name(panel, w)
            parts += [f"{name}\n{'═' * len(name)}\n{panel.table(colour, lang)}"]
        if self.tasks is not None:
            parts.append(self.tasks.table(lang).rstrip())
        return "\n\n".join(parts)

    def to_dict(self) -> dict[str, Any]:
        """Everything as JSON-ready data."""
        tasks = None if self.tasks is None else self.tasks.to_dict()
        panels = [panel.to_dict() for panel in self.panels]
        return {"panels": panels, "tasks": tasks, "about": self.about, "left_out": [list(x) for x in self.left_out]}

    def save(self, folder: str | Path, lang: str = "en") -> list[Path]:
        """Write report.json, results.csv, tasks.csv, table.txt and report.html for all, and each panel's own files
        below `panels`."""
        files = {
            "report.json": (json.dumps(self.to_dict(), indent=2, ensure_ascii=False, allow_nan=False) + "\n").encode(),
            "table.txt": (self.table(lang=lang) + "\n").encode(),
            "report.html": pages(self.panels, self.tasks, self.summary(lang), lang).encode(),
        }
        if self.panels:
            files["results.csv"] = to_csv(list(self))
        if self.tasks is not None:
            files["tasks.csv"] = to_csv(list(self.tasks))
        for name, content in files.items():
            with atomic(Path(folder) / name) as file:
                file.write(content)
        below = [path for panel in self.panels for path in panel.save(Path(folder) / "panels" / short(panel), lang)]
        return [*(Path(folder) / name for name in files), *below]


def panel_name(panel: LabReport, w: Words) -> str:
    """Its size and training length in words."""
    s = panel.settings
    return w("panel", layers=s.model.n_layers, width=s.model.d_model, trained=s.train_length)


def short(panel: LabReport) -> str:
    """The same as the name of a folder: 2x128-64."""
    s = panel.settings
    return f"{s.model.n_layers}x{s.model.d_model}-{s.train_length}"


__all__ = ["GridReport", "panel_name"]
