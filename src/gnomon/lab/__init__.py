"""The lab: encodings measured beside each other, far past their training length.

report = gn.lab.extrapolation(["rope", "alibi"], folder="runs/mine")
print(report.table())
gn.lab.tasks("copy-unique", ["rope", "alibi"]), gn.lab.reproduce("alibi-table-2"), gn.lab.extension(model)
"""

from gnomon.lab import outputs as _outputs  # noqa: F401  how a report is written
from gnomon.lab.comparison import compare
from gnomon.lab.exact.report import tasks
from gnomon.lab.experiments import experiment, extrapolation, run_grid
from gnomon.lab.extending.advice import advise
from gnomon.lab.extending.table import extension
from gnomon.lab.grid_report import GridReport
from gnomon.lab.report import LabReport, TextSample
from gnomon.lab.reproductions.report import reproduce
from gnomon.lab.settings import LabSettings, Recipe, Size, standard_encodings

__all__ = [
    "GridReport",
    "LabReport",
    "LabSettings",
    "Recipe",
    "Size",
    "TextSample",
    "advise",
    "compare",
    "experiment",
    "extension",
    "extrapolation",
    "reproduce",
    "run_grid",
    "standard_encodings",
    "tasks",
]
