"""The result in words. Every sentence is made from the numbers of the report at hand; none is known beforehand."""

from collections.abc import Iterable

from gnomon.glossary import Words, numeral, translate, words
from gnomon.lab.analysis import BREAKS, FLAT, WORTH, EncodingResult, Kind, holds_until, published_kind
from gnomon.lab.bootstrap import Interval
from gnomon.lab.published import CURVES
from gnomon.lab.report import LabReport, Place

KINDS: tuple[Kind, ...] = ("flat", "rises", "breaks", "n/a")  # the mildest first
ENGLISH = words("lab")


def percent(share: float, w: Words = ENGLISH) -> str:
    """A signed share as people write it: +4.2 %, −0.3 %, 0.0 %."""
    text = w.number(share, "+.1%").replace("-", "−")
    return text[1:] if text[1:] == w.number(0.0, ".1%") else text


def percents(interval: Interval, w: Words = ENGLISH) -> str:
    """The same with its interval, where there is one: a single document has none."""
    if interval.low == interval.high:
        return percent(interval.value, w)
    between = ", " if w.lang == "en" else "; "  # where a comma is the decimal sign
    return f"{percent(interval.value, w)} [{_signed(interval.low, w)}{between}{_signed(interval.high, w)}]"


def _signed(share: float, w: Words) -> str:
    return w.number(100 * share, "+.1f").replace("-", "−")


def whole_percent(share: float) -> str:
    """A share in whole percent: 5 %."""
    return numeral(share, ".0%")


def rank(places: tuple[Place, ...]) -> str:
    """An order as text: `alibi < t5 ≈ rope`, where ≈ joins neighbours whose order the documents do not settle."""
    parts = [place.label + (" < " if place.sure else " ≈ ") for place in places[:-1]]
    return "".join(parts) + (places[-1].label if places else "")


def list_encodings(labels: Iterable[str], w: Words = ENGLISH) -> str:
    """Encodings in a sentence, in which the one that is called none must not read as nothing."""
    return ", ".join(w("none") if label == "none" else label for label in labels)


# ------------------------------------------------------------------ about one encoding


def verdict(report: LabReport, row: EncodingResult, w: Words = ENGLISH) -> str:
    """What became of this encoding on the way to the longest context."""
    L, lengths = report.settings.train_length, report.settings.lengths
    last = row.increase[-1]
    if last is None:
        return w("no_meaning", reach=max(n for n, bits in zip(lengths, row.bits, strict=True) if bits is not None))
    if len(lengths) == 1:
        return w("only_trained")
    key = {"flat": "stays_flat", "rises": "it_rises", "breaks": "it_breaks"}[row.kind]
    return w(key, change=percents(last, w), times=lengths[-1] / L)


def facts(report: LabReport, row: EncodingResult, w: Words = ENGLISH) -> list[str]:
    """What else was measured of it that bears on the curve."""
    L, longest = report.settings.train_length, report.settings.lengths[-1]
    found = []
    if longest > L and row.increase[-1] is not None:
        found.append(_holds(report, row, w))
    if longest > L and row.shifted is not None:
        where = {"trained": L, "first": longest - L, "last": longest - 1}
        same = abs(row.shifted.value) < 5e-4
        found.append(w("moved_same", **where) if same else w("moved", **where, change=percents(row.shifted, w)))
    if row.far is not None and longest > L:
        found.append(w("far", longest=longest, share=whole_percent(row.far), trained=L))
    if len(row.by_seed) > 1:
        found.append(w("by_seed", pairs="; ".join(_ends(bits, w) for bits in row.by_seed)))
    return found


def _holds(report: LabReport, row: EncodingResult, w: Words) -> str:
    """How far its loss by position stays what it was."""
    L, longest = report.settings.train_length, report.settings.lengths[-1]
    until = holds_until(row, report.edges, L)
    start = {"flat": whole_percent(FLAT), "trained": L}
    if until is None:
        return w("holds_to_the_end", **start, longest=longest)
    if until == L:
        return w("holds_no_farther", **start)
    return w("holds_up_to", **start, until=until, times=until / L)


def _ends(bits: list[float | None], w: Words) -> str:
    first, last = (w("n/a") if b is None else w.number(b, ".3f") for b in (bits[0], bits[-1]))
    return w("pair", first=first, last=last)


def comparison(report: LabReport, row: EncodingResult, w: Words = ENGLISH) -> list[str]:
    """How the curve compares with what is published about the encoding, and what may explain a difference."""
    factor = report.settings.lengths[-1] / report.settings.train_length
    theirs = published_kind(row.name, factor)
    sentences = [w("expected", extrapolation=translate(row.extrapolation, w.lang))] if row.extrapolation else []
    if row.name in CURVES:
        near, increase = CURVES[row.name].nearest(factor)
        source = translate(CURVES[row.name].source, w.lang)
        sentences.append(w("published", increase=percent(increase, w), times=near, source=source))
    if theirs is None or factor == 1:
        return sentences
    if row.kind == theirs:
        return [*sentences, w("agrees")]
    return [*sentences, w("differs", here=w(row.kind), there=w(theirs)), *reasons(report, row, theirs, w)]


def reasons(report: LabReport, row: EncodingResult, theirs: Kind, w: Words = ENGLISH) -> list[str]:
    """What was measured that may explain why a curve is of another kind than the published one."""
    margin, gain = report.margins[row.label].value, gain_from_context(report, row)
    size = {"millions": row.parameters / 1e6, "steps": report.settings.train.steps}
    if margin > WORTH:
        return [w("too_little", margin=percent(margin, w))]
    milder = row.increase[-1] is not None and KINDS.index(row.kind) < KINDS.index(theirs)
    if milder and gain is not None and gain < 0.1:
        return [w("little_context", gain=whole_percent(gain), **size) if gain >= 0.005 else w("no_context", **size)]
    return [w("small", **size)]


def gain_from_context(report: LabReport, row: EncodingResult) -> float | None:
    """By how much the loss, over the trigram's, falls from an eighth of the training length to all of it."""
    L = report.settings.train_length
    near = [c for c, end in zip(row.curve, report.edges[1:], strict=True) if c is not None and end <= max(1, L // 8)]
    far = [c for c, end in zip(row.curve, report.edges[1:], strict=True) if c is not None and end <= L]
    return 1 - far[-1] / near[-1] if near and far else None


# ------------------------------------------------------------------ about all of them


def disagreements(report: LabReport) -> list[EncodingResult]:
    """The encodings whose curve is of another kind than the published one."""
    factor = report.settings.lengths[-1] / report.settings.train_length
    known = [(row, published_kind(row.name, factor)) for row in report.sorted_rows()]
    return [row for row, theirs in known if factor > 1 and theirs is not None and row.kind != theirs]


def summary(report: LabReport, w: Words = ENGLISH) -> list[str]:
    """The whole in a few sentences, one to a line."""
    L, longest = report.settings.train_length, report.settings.lengths[-1]
    lines = [w("best_trained", trained=L, ranked=rank(report.ranking[0]))]
    if longest > L:
        lines.append(w("best_longest", longest=longest, ranked=rank(report.ranking[-1])))
        for kind in KINDS:
            labels = [row.label for row in report.sorted_rows() if row.kind == kind]
            if labels:
                lines.append(
                    w(
                        f"those_{kind}",
                        flat=whole_percent(FLAT),
                        breaks=whole_percent(BREAKS),
                        names=list_encodings(labels, w),
                    )
                )
        lines += _agreement(report, w)
    lines.append(_worth(report, w))
    if report.few:
        lines.append(w("few"))
    if not report.same_start:
        lines.append(w("other_start"))
    return lines


def _agreement(report: LabReport, w: Words) -> list[str]:
    factor = report.settings.lengths[-1] / report.settings.train_length
    odd = disagreements(report)
    if odd:
        return [w("other_than_published", names=list_encodings((row.label for row in odd), w))]
    known = [row.label for row in report.sorted_rows() if published_kind(row.name, factor) is not None]
    return [w("as_published", names=list_encodings(known, w))] if known else []


def _worth(report: LabReport, w: Words) -> str:
    above = [row.label for row in report.sorted_rows() if report.margins[row.label].value > WORTH]
    if not above:
        return w("worth", least=whole_percent(-max(report.margins[row.label].value for row in report.rows)))
    return w("not_worth", worth=whole_percent(-WORTH), names=list_encodings(above, w))


__all__ = [
    "ENGLISH",
    "KINDS",
    "comparison",
    "disagreements",
    "facts",
    "gain_from_context",
    "list_encodings",
    "percent",
    "percents",
    "rank",
    "reasons",
    "summary",
    "verdict",
    "whole_percent",
]
