"""The result in words. Every sentence is made from the numbers of the report at hand; none is known beforehand."""

from gnomon.lab.analysis import BREAKS, FLAT, Kind, Row, holds_until, published_kind
from gnomon.lab.bootstrap import Interval
from gnomon.lab.published import CURVES
from gnomon.lab.report import Place, Report

WORTH = -0.1  # over the trigram's bits: a model above it has learned too little to compare encodings by


def percent(share: float) -> str:
    """A signed share as people write it: +4.2 %, −0.3 %, 0.0 %."""
    text = f"{100 * share:+.1f} %".replace("-", "−")
    return "0.0 %" if text[1:] == "0.0 %" else text


def percents(interval: Interval) -> str:
    """The same with its interval, where there is one: a single document has none."""
    if interval.low == interval.high:
        return percent(interval.value)
    low, high = (f"{100 * x:+.1f}".replace("-", "−") for x in (interval.low, interval.high))
    return f"{percent(interval.value)} [{low}, {high}]"


def whole(share: float) -> str:
    """A share in whole percent: 5 %."""
    return f"{100 * share:.0f} %"


KINDS: dict[Kind, str] = {
    "flat": f"at most {whole(FLAT)} more than at the training length",
    "rises": f"between {whole(FLAT)} and {whole(BREAKS)} more",
    "breaks": f"{whole(BREAKS)} more, or worse",
    "n/a": "no meaning past the training length",
}


def ranked(places: tuple[Place, ...]) -> str:
    """An order as text: `alibi < t5 ≈ rope`, where ≈ joins neighbours whose order the documents do not settle."""
    parts = [place.label + (" < " if place.sure else " ≈ ") for place in places[:-1]]
    return "".join(parts) + (places[-1].label if places else "")


# ------------------------------------------------------------------ about one encoding


def verdict(report: Report, row: Row) -> str:
    """What became of this encoding on the way to the longest context."""
    L, lengths = report.settings.train_length, report.settings.lengths
    last = row.increase[-1]
    if last is None:
        reach = max(n for n, bits in zip(lengths, row.bits, strict=True) if bits is not None)
        return f"It has no meaning past position {reach}, so there is nothing to measure there."
    if len(lengths) == 1:
        return "It was measured at the training length only."
    verb = {"flat": "stays flat", "rises": "rises", "breaks": "breaks", "n/a": ""}[row.kind]
    return f"It {verb}: {percents(last)} bits per byte at {lengths[-1] / L:g} times the training length."


def facts(report: Report, row: Row) -> list[str]:
    """What else was measured of it that bears on the curve."""
    L, longest = report.settings.train_length, report.settings.lengths[-1]
    found = []
    if longest > L and row.increase[-1] is not None:
        until = holds_until(row, report.edges, L)
        start = f"Read in one piece, its loss stays within {whole(FLAT)} of that at position {L}"
        if until is None:
            found.append(f"{start} all the way to {longest}.")
        elif until == L:
            found.append(f"{start} no farther than that.")
        else:
            found.append(f"{start} up to position {until}, {until / L:.2g} times as far.")
    if longest > L and row.shifted is not None:
        start = f"The same {L} tokens at positions {longest - L} to {longest - 1} cost"
        found.append(f"{start} just as much." if abs(row.shifted.value) < 5e-4 else f"{start} {percents(row.shifted)}.")
    if row.far is not None and longest > L:
        found.append(f"Given {longest} tokens, it spends {whole(row.far)} of its attention farther back than {L}.")
    if len(row.by_seed) > 1:
        found.append(f"Bits per byte by seed, first and last column: {'; '.join(map(_ends, row.by_seed))}.")
    return found


def _ends(bits: list[float | None]) -> str:
    return " and ".join("n/a" if b is None else f"{b:.3f}" for b in (bits[0], bits[-1]))


def comparison(report: Report, row: Row) -> list[str]:
    """How the curve compares with what is published about the encoding, and what may explain a difference."""
    factor = report.settings.lengths[-1] / report.settings.train_length
    theirs = published_kind(row.name, factor)
    said = [f"Expected past the training length: {row.beyond}."] if row.beyond else []
    if row.name in CURVES:
        near, increase = CURVES[row.name].nearest(factor)
        said.append(f"Published: {percent(increase)} loss at {near:.3g} times ({CURVES[row.name].source}).")
    if theirs is None or factor == 1:
        return said
    if row.kind == theirs:
        return [*said, "This run agrees."]
    return [*said, f"This run differs: {row.kind} here, {theirs} there.", *reasons(report, row, theirs)]


def reasons(report: Report, row: Row, theirs: Kind) -> list[str]:
    """What was measured that may explain why a curve is of another kind than the published one."""
    margin, gain = report.margins[row.label].value, gain_from_context(report, row)
    size = f"with {row.parameters / 1e6:.2g} million parameters and {report.settings.train.steps} steps of training"
    if margin > WORTH:
        return [f"The model pays {percent(margin)} against a byte trigram, too little to draw conclusions from."]
    milder = row.increase[-1] is not None and list(KINDS).index(row.kind) < list(KINDS).index(theirs)
    if milder and gain is not None and gain < 0.1:
        lower = f"only {whole(gain)} below" if gain >= 0.005 else "no lower than"
        return [
            f"Far inside its training windows its loss is {lower} that near their start: {size} it "
            "draws little on context, and has little to lose."
        ]
    return [f"The models are not alike: this one is small, {size}."]


def gain_from_context(report: Report, row: Row) -> float | None:
    """By how much the loss, over the trigram's, falls from an eighth of the training length to all of it."""
    L = report.settings.train_length
    near = [c for c, end in zip(row.curve, report.edges[1:], strict=True) if c is not None and end <= max(1, L // 8)]
    far = [c for c, end in zip(row.curve, report.edges[1:], strict=True) if c is not None and end <= L]
    return 1 - far[-1] / near[-1] if near and far else None


# ------------------------------------------------------------------ about all of them


def disagreements(report: Report) -> list[Row]:
    """The encodings whose curve is of another kind than the published one."""
    factor = report.settings.lengths[-1] / report.settings.train_length
    known = [(row, published_kind(row.name, factor)) for row in report.sorted_rows()]
    return [row for row, theirs in known if factor > 1 and theirs is not None and row.kind != theirs]


def summary(report: Report) -> list[str]:
    """The whole in a few sentences, one to a line."""
    L, longest = report.settings.train_length, report.settings.lengths[-1]
    lines = [f"Best to worst given {L} tokens, as in training: {ranked(report.ranking[0])}."]
    if longest > L:
        lines.append(f"Best to worst given {longest}: {ranked(report.ranking[-1])}.")
        for kind, meaning in KINDS.items():
            labels = [row.label for row in report.sorted_rows() if row.kind == kind]
            if labels:
                lines.append(f"{kind[0].upper()}{kind[1:]}, {meaning}: {', '.join(labels)}.")
        lines += _agreement(report)
    lines.append(_worth(report))
    if report.few:
        lines.append("So few held-out documents are long enough that they settle no order. Give more text.")
    if not report.same_start:
        lines.append("The models did NOT begin with the same weights, so position is not all that differs.")
    return lines


def _agreement(report: Report) -> list[str]:
    factor = report.settings.lengths[-1] / report.settings.train_length
    odd = disagreements(report)
    if odd:
        return [f"Other than published: {', '.join(row.label for row in odd)}."]
    known = [row.label for row in report.sorted_rows() if published_kind(row.name, factor) is not None]
    return [f"Of the kind that is published: {', '.join(known)}."] if known else []


def _worth(report: Report) -> str:
    above = [row.label for row in report.sorted_rows() if report.margins[row.label].value > WORTH]
    if not above:
        least = max(report.margins[row.label].value for row in report.rows)
        return f"The models are worth comparing: all are at least {whole(-least)} below a byte trigram."
    return (
        f"Hardly worth comparing, being less than {whole(-WORTH)} below a byte trigram: {', '.join(above)}. "
        "They need more training."
    )


__all__ = [
    "KINDS", "comparison", "disagreements", "facts", "gain_from_context", "percent", "percents", "ranked", "reasons",
    "summary", "verdict", "whole",
]  # fmt: skip
