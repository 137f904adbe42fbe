"""`gn.lab.extension(model)`: methods beside each other, as rows that come as they are measured."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gnomon.checkpoints import load
from gnomon.errors import BadValue
from gnomon.glossary import Words, words
from gnomon.lab.exact.report import aligned
from gnomon.lab.extending.measure import (
    AS_TRAINED,
    METHODS,
    Row,
    Texts,
    contexts_up_to,
    extended,
    paired,
    reader,
    stepwise,
    texts,
    tuned,
)
from gnomon.lab.extending.passkeys import DEPTHS, GATE, rate
from gnomon.lab.protocols import Floats
from gnomon.models import DecoderOnly, Model

Hear = Callable[[Row], object]


class ExtensionTable(list[Row]):
    """One row for each measurement; `pandas.DataFrame` takes it as it is.

    method    "none" is the model as trained; the last one of its rows within `trained` is the crop baseline
    factor    of the training length; to: the length the method was made for
    measure   "loss" (nats per token of the same targets), "passkey" (share found), "stepwise" (difference, see below)
    context   tokens given; depth: of a passkey
    value     with least and most: the loss less that of cropping, of single texts
    steps     of training after the change, 0 for none

    stepwise  largest difference of log-probabilities between reading with a cache and at once
    """

    def __init__(self, trained: int, rows: Sequence[Row] = ()) -> None:
        super().__init__(rows)
        self.trained = trained

    def losses(self, method: str, factor: float, steps: int = 0) -> dict[int, Row]:
        """Rows of losses by context."""
        return {
            row["context"]: row
            for row in self
            if (row["measure"], row["method"], row["steps"]) == ("loss", method, steps)
            and (method == AS_TRAINED or row["factor"] == factor)
        }

    @property
    def crop(self) -> float | None:
        """Nats per token of the model as trained, given its training length."""
        found = self.losses(AS_TRAINED, 1).get(self.trained)
        return None if found is None else float(found["value"])

    @property
    def gate(self) -> float | None:
        """The share of passkeys that the model finds at half its training length."""
        values = [r["value"] for r in self if r["measure"] == "passkey" and r["context"] == self.trained // 2]
        return sum(values) / len(values) if values else None

    def table(self, lang: str = "en") -> str:
        """As text for a terminal."""
        return "\n".join(_written(self, words("extension", lang)))

    def to_dict(self) -> dict[str, Any]:
        """As plain data for JSON."""
        return {"trained": self.trained, "crop": self.crop, "gate": self.gate, "rows": list(self)}


@dataclass
class Bench:
    """One model with its texts; every measurement is told to `hear` as it is made, and kept in `table`."""

    model: DecoderOnly
    trained: int
    texts: Texts
    hear: Hear = lambda row: None
    table: ExtensionTable = field(init=False)
    _crop: Floats | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        self.table = ExtensionTable(self.trained)

    def keep(self, method: str, to: int, measure: str, context: int, value: float, **more: Any) -> Row:
        """A new row; what it does not say is empty."""
        row: Row = {"method": method, "factor": to / self.trained, "to": to, "measure": measure, "context": context}
        row |= {"depth": None, "value": value, "against_crop": None, "least": None, "most": None, "steps": 0, **more}
        self.table.append(row)
        self.hear(row)
        return row

    def loss(self, model: DecoderOnly, method: str, to: int, context: int, steps: int = 0) -> Row:
        """Measure the loss, beside cropping."""
        values = self.texts.loss(model, context)
        if method == AS_TRAINED and context == self.trained:
            self._crop = values
        change = (None, None, None) if self._crop is None else paired(values, self._crop)
        beside = dict(zip(("against_crop", "least", "most"), change, strict=True))
        return self.keep(method, to, "loss", context, float(values.mean()), steps=steps, **beside)

    def passkeys(self, model: DecoderOnly, method: str, to: int, context: int, trials: int) -> None:
        """Hide keys at every depth."""
        filler = self.texts.rows.reshape(-1)
        for depth in DEPTHS:
            share = rate(model, filler, context, depth, trials)
            if share is not None:
                self.keep(method, to, "passkey", context, share, depth=depth)

    def stepwise(self, model: DecoderOnly, method: str, to: int, context: int) -> None:
        """Read with a cache beside at once."""
        self.keep(method, to, "stepwise", context, stepwise(model, self.texts.rows[0], context))


def extension(
    model: Model | str | Path,
    *,
    factors: Sequence[float] = (2, 4),
    methods: Sequence[str] = METHODS,
    trained: int | None = None,
    text: Any = "stdlib",
    documents: int = 8,
    trials: int = 2,
    tune: int = 0,
    hear: Hear = lambda row: None,
) -> ExtensionTable:
    """Measure ways to let a RoPE model read further, without training it and, with `tune`, after a few steps.

    model      a model with its tokenizer, or what `gn.load` takes
    factors    of the training length `trained`, by default what the model's files say
    text       a Corpus or what `Corpus.open` takes; documents: how many of its held-out texts are read
    trials     passkeys at each length and depth, 0: none; tune: steps of training at the new length
    hear       called with every row as it is measured

    Raises BadValue where there is no RoPE to scale. Ctrl-C in `hear` or anywhere keeps nothing: catch it around
    `hear`, as `gnomon lab extension` does.
    """
    loaded = model if isinstance(model, Model) else load(model)
    known, length = reader(loaded, trained)
    if not factors or min(factors) <= 1:
        raise BadValue(f"factors are multiples of the training length, each above 1; got {tuple(factors)}")
    lengths = [round(length * factor) for factor in factors]
    rows, rest = texts(known, text, length, max(lengths), documents)
    bench = Bench(known, length, rows, hear)
    for method in methods:
        extended(known, length, max(lengths), method)  # a name that is wrong is found before anything is measured
    measure(bench, lengths, methods, trials)
    if tune:
        for to in lengths:
            for method in methods:
                longer = tuned(extended(known, length, to, method), rest, to, tune)
                bench.loss(longer, method, to, to, tune)
    return bench.table


def measure(bench: Bench, lengths: Sequence[int], methods: Sequence[str], trials: int) -> None:
    """All rows without training, the cheapest first: the model as trained, then every method at every length."""
    known, trained = bench.model, bench.trained
    for context in sorted({trained, *contexts_up_to(trained, max(lengths)), *lengths}, key=lambda n: (n != trained, n)):
        bench.loss(known, AS_TRAINED, context, context)
    if trials:
        bench.passkeys(known, AS_TRAINED, trained, trained // 2, max(trials, 4))
    asked = trials and (bench.table.gate or 0.0) >= GATE
    for to in lengths:
        for method in methods:
            longer = extended(known, trained, to, method)
            for context in contexts_up_to(trained, to):
                bench.loss(longer, method, to, context)
            bench.stepwise(longer, method, to, to)
            if asked:
                bench.passkeys(longer, method, to, to, trials)


# ------------------------------------------------------------------ as text


def _written(table: ExtensionTable, w: Words) -> Iterator[str]:
    yield w("title", trained=table.trained)
    contexts = sorted({row["context"] for row in table if row["measure"] == "loss"})
    lines = [["", *(w.number(n) for n in contexts), w("against_crop"), w("short")]]
    for method, factor, steps in dict.fromkeys(_key(row) for row in table if row["measure"] == "loss"):
        found = table.losses(method, factor, steps)
        losses = ["" if n not in found else w.number(found[n]["value"], ".3f") for n in contexts]
        far, near = found[max(found)], found.get(table.trained)
        short = "" if near is None or near["against_crop"] is None else w.number(near["against_crop"], "+.3f")
        change = "" if far["against_crop"] is None else w.number(far["against_crop"], "+.3f")
        lines.append([named(method, factor, steps, w), *losses, change, short])
    yield from aligned(lines)
    keys = [row for row in table if row["measure"] == "passkey"]
    if keys:
        yield ""
        yield w("passkeys", trained=table.trained // 2)
        yield from aligned(_grid(keys, w))
    gate = table.gate
    if gate is not None and gate < GATE:
        yield w("gate_fails", share=w.number(gate, ".0%"), half=table.trained // 2)
    worst = max((row["value"] for row in table if row["measure"] == "stepwise"), default=None)
    if worst is not None:
        yield ""
        yield w("stepwise", difference=w.number(worst, ".1e"))


def _key(row: Row) -> tuple[str, float, int]:
    return row["method"], 1 if row["method"] == AS_TRAINED else row["factor"], row["steps"]


def named(method: str, factor: float, steps: int, w: Words) -> str:
    """A method with its factor, for people."""
    if method == AS_TRAINED:
        return w("as_trained")
    text = f"{method} {w.number(factor, 'g')}×"
    return text if not steps else w("tuned", method=text, steps=steps)


def _grid(rows: Sequence[Row], w: Words) -> list[list[str]]:
    lines = [["", "", *(w.number(depth, ".0%") for depth in DEPTHS)]]
    for method, factor, context in dict.fromkeys((r["method"], r["factor"], r["context"]) for r in rows):
        same = {
            r["depth"]: r["value"]
            for r in rows
            if (r["method"], r["context"], r["factor"]) == (method, context, factor)
        }
        cells = [w.number(same[depth], ".0%") if depth in same else "" for depth in DEPTHS]
        lines.append([named(method, factor, 0, w), w.number(context), *cells])
    return lines


__all__ = ["Bench", "ExtensionTable", "extension", "measure", "named"]
