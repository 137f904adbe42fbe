"""A report as plain rows: for `pandas.DataFrame`, a CSV file and a LaTeX table."""

import csv
import io
from collections.abc import Iterator
from typing import Any

from gnomon.glossary import words
from gnomon.lab.analysis import EncodingResult
from gnomon.lab.report import LabReport

Record = dict[str, Any]


def records(report: LabReport) -> list[Record]:
    """One row for each encoding, seed, protocol and length; all have the same keys.

    position, seed, layers, width, train_length   which model
    protocol       fixed, sliding, windows; or trained there: the same targets, asked of a model trained at `length`
    length         tokens given
    bits           per byte; None where the encoding has no meaning
    learned        whether the seed's bits at its training length are 10 % or more below the byte trigram's
    trigram        bits of the byte trigram, for the targets of `fixed`
    parameters, position_parameters, step_cpu_seconds, step_bytes   what it costs
    """
    return [record for row in report.sorted_rows() for record in _of(report, row)]


def _of(report: LabReport, row: EncodingResult) -> Iterator[Record]:
    s = report.settings
    for i, bits in enumerate(row.by_seed):
        which = {
            "position": row.label,
            "seed": s.seed + i,
            "layers": s.model.n_layers,
            "width": s.model.d_model,
            "train_length": s.train_length,
        }
        costs = {
            "learned": row.learned[i],
            "trigram": report.trigram.value,
            "parameters": row.parameters,
            "position_parameters": row.position_parameters,
            "step_cpu_seconds": row.step_cpu_seconds,
            "step_bytes": row.step_bytes,
        }
        curves = {"fixed": bits, **{name: seeds[i] for name, seeds in row.others_by_seed.items()}}
        for protocol, values in curves.items():
            for length, value in zip(s.lengths, values, strict=True):
                yield {**which, "protocol": protocol, "length": length, "bits": value, **costs}
        for length, value in zip(s.lengths, row.trained_at_by_seed[i], strict=True):
            if value is not None:
                yield {**which, "protocol": "trained there", "length": length, "bits": value, **costs}


def to_csv(rows: list[Record]) -> bytes:
    """As a CSV file with a line of names; what has no meaning is empty."""
    out = io.StringIO()
    writer = csv.DictWriter(out, list(rows[0]) if rows else [], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue().encode()


def to_latex(report: LabReport, lang: str = "en") -> str:
    r"""A table for a paper that loads booktabs: medians over seeds, the best of each column in bold."""
    w, s = words("grid", lang), report.settings
    best = [places[0].label if places else "" for places in report.ranking]
    lines = [
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{_tex(w('caption', trained=s.train_length, seeds=s.seeds))}.}}",
        rf"\begin{{tabular}}{{l{'r' * len(s.lengths)}}}",
        r"\toprule",
        " & ".join([_tex(w("encoding")), *(f"{n}" for n in s.lengths)]) + r" \\",
        r"\midrule",
    ]
    for row in report.sorted_rows():
        cells = []
        for x, top in zip(row.median, best, strict=True):
            text = "--" if x is None else w.number(x.value, ".3f")
            cells.append(rf"\textbf{{{text}}}" if top == row.label and x is not None else text)
        lines.append(" & ".join([_tex(row.label), *cells]) + r" \\")
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", r"\end{table}", ""])


def _tex(text: str) -> str:
    """Text with what TeX reads as commands written out."""
    special = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
    return "".join(special.get(c, "\\" + c if c in "&%$#_{}" else c) for c in text)


__all__ = ["Record", "records", "to_csv", "to_latex"]
