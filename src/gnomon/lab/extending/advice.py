"""`gn.lab.advise(model, to=N)`: whether and how to let a RoPE model read N tokens, the evidence, and the price.

What decides, in this order (docs/lab.md says why):

    a method must beat cropping to the training length on every text, or its longer context is not used
    of those, the one with the lowest loss; within half a percent of it, the one that costs least at short length
    where none beats cropping, crop: it is as good, costs nothing, and needs no other model
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from gnomon.checkpoints import load
from gnomon.errors import BadValue
from gnomon.glossary import Words, words
from gnomon.lab.extending.measure import AS_TRAINED, METHODS, Row, extended, operations, reader, texts
from gnomon.lab.extending.passkeys import DEPTHS, GATE
from gnomon.lab.extending.table import Bench, ExtensionTable, Hear
from gnomon.models import DecoderOnly, Model

CROP = "crop"
CLOSE = 0.005  # of a loss: nearer ones count as the same
SHORT = 2048  # tokens of the window that the cost at short length is measured in, or the training length
TRIALS = 2  # passkeys at each depth

Kind = str  # "beats", "close", "no_better" or "nothing"


@dataclass(frozen=True)
class Advice:
    """A recommendation.

    choice     a method, or "crop": give the model its training length and no more
    kind       why: "beats" cropping, is "no_better" than it, or "nothing" was measured in time
    evidence   the rows that were measured; left_out: what there was no time for
    price      bytes of cache and operations at `to` tokens and at the training length; short_nats: at short length
    """

    model: str
    trained: int
    to: int
    choice: str
    kind: Kind
    table: ExtensionTable
    left_out: tuple[str, ...]
    price: dict[str, float]
    short_nats: float | None

    def text(self, lang: str = "en") -> str:
        """The answer, how sure it is, what it costs, and how it was measured."""
        return "\n".join(_written(self, words("extension", lang)))

    def to_dict(self) -> dict[str, Any]:
        """As plain data for JSON."""
        return {
            "model": self.model,
            "trained": self.trained,
            "to": self.to,
            "choice": self.choice,
            "kind": self.kind,
            "price": {**self.price, "short_nats": self.short_nats},
            "left_out": list(self.left_out),
            "evidence": self.table.to_dict(),
        }


def advise(
    model: Model | str | Path,
    to: int,
    *,
    trained: int | None = None,
    text: Any = "stdlib",
    documents: int = 2,
    minutes: float = 10.0,
    hear: Hear = lambda row: None,
    name: str | None = None,
) -> Advice:
    """Measure what lets a RoPE model read `to` tokens, and recommend it or advise against it.

    minutes    to be spent here, about: what does not fit is left out and listed, except cropping and one method
    documents  texts that are read; with two the answer is quick and rough
    hear       called with every row as it is measured; name: what the model is called in the text
    """
    loaded = model if isinstance(model, Model) else load(model)
    known, length = reader(loaded, trained)
    if to <= length:
        raise BadValue(f"the model was trained to {length} tokens, so it reads {to} as it is: give more")
    if not minutes > 0:
        raise BadValue(f"minutes must be above 0, got {minutes:g}")
    bench = Bench(known, length, texts(known, text, length, to, documents)[0], hear)
    left_out: list[str] = []
    try:
        left_out += _measure(bench, to, minutes)
    except KeyboardInterrupt:
        left_out.append("interrupted")
    return judge(name or ("" if isinstance(model, Model) else str(model)), bench, to, tuple(left_out))


def _measure(bench: Bench, to: int, minutes: float) -> list[str]:
    """What fits into the time, the most telling first; returns what did not."""
    known, trained = bench.model, bench.trained
    short, count = min(SHORT, trained), len(bench.texts.rows)
    began, done, left_out = time.perf_counter(), 0.0, []

    def attempt(name: str, work: float, task: Callable[[], object], always: bool = False) -> None:
        nonlocal done
        spent = time.perf_counter() - began
        if not always and done and spent + spent * work / done > 60 * minutes:
            left_out.append(name)
            return
        task()
        done += work

    def loss(method: str, made_for: int, context: int) -> Callable[[], object]:
        return lambda: bench.loss(extended(known, trained, made_for, method), method, made_for, context)

    attempt(CROP, count * operations(known, trained), loss(AS_TRAINED, trained, trained), always=True)
    if short < trained:
        attempt(CROP, count * operations(known, short), loss(AS_TRAINED, trained, short), always=True)
    for i, method in enumerate(METHODS):
        attempt(method, count * operations(known, to), loss(method, to, to), always=i == 0)
        if method not in left_out:
            attempt(f"{method} ({short})", count * operations(known, short), loss(method, to, short))
    attempt(AS_TRAINED, count * operations(known, to), loss(AS_TRAINED, to, to))
    keys = TRIALS * len(DEPTHS)
    attempt(
        "passkeys",
        keys * operations(known, trained // 2),
        lambda: bench.passkeys(known, AS_TRAINED, trained, trained // 2, TRIALS),
    )
    best = _best(bench.table, trained, to)
    if best is not None and (bench.table.gate or 0) >= GATE:
        attempt(
            f"passkeys ({to})",
            keys * operations(known, to),
            lambda: bench.passkeys(extended(known, trained, to, best["method"]), best["method"], to, to, TRIALS),
        )
    return left_out


def judge(name: str, bench: Bench, to: int, left_out: tuple[str, ...]) -> Advice:
    """The recommendation that the rows support."""
    table, trained = bench.table, bench.trained
    best = _best(table, trained, to)
    kind = "nothing" if best is None or table.crop is None else "beats" if best["most"] < 0 else "no_better"
    choice = best["method"] if best is not None and kind == "beats" else CROP
    each = _cache_bytes(bench.model)
    price = {
        "cache_bytes": each * to,
        "cache_bytes_cropped": each * trained,
        "operations": operations(bench.model, to),
        "operations_cropped": operations(bench.model, trained),
    }
    short = None if choice == CROP else _short(table, choice, trained)
    return Advice(name, trained, to, choice, kind, table, left_out, price, short)


def _best(table: ExtensionTable, trained: int, to: int) -> Row | None:
    """The method of the lowest loss at `to`; of those that are as good, the one that costs least at short length."""
    rows = [row for row in table if row["measure"] == "loss" and row["context"] == to and row["method"] != AS_TRAINED]
    rows = [row for row in rows if row["against_crop"] is not None]
    if not rows:
        return None
    least = min(row["value"] for row in rows)
    close = [row for row in rows if row["value"] <= least * (1 + CLOSE)]
    return min(close, key=lambda row: (_short(table, row["method"], trained) or 0.0, row["value"]))


def _short(table: ExtensionTable, method: str, trained: int) -> float | None:
    """Nats that a method costs in windows within the training length."""
    short = min(SHORT, trained)
    at = {r["method"]: r["value"] for r in table if r["measure"] == "loss" and r["context"] == short and not r["steps"]}
    return at[method] - at[AS_TRAINED] if method in at and AS_TRAINED in at else None


@torch.no_grad()
def _cache_bytes(model: DecoderOnly) -> int:
    """Bytes that the cache keeps of a token."""
    cache = model.cache()
    model.hidden(torch.zeros(1, 1, dtype=torch.long, device=next(model.parameters()).device), cache=cache)
    return sum(t.numel() * t.element_size() for kept in (cache.k, cache.v) for t in kept.values())


# ------------------------------------------------------------------ as text


def _written(a: Advice, w: Words) -> Iterator[str]:
    best = _best(a.table, a.trained, a.to)
    yield w(f"advice_{a.kind}", method=a.choice, to=a.to, trained=a.trained)
    if best is not None and a.table.crop is not None:
        yield w(
            "evidence",
            method=best["method"],
            loss=w.number(best["value"], ".3f"),
            to=a.to,
            trained=a.trained,
            crop=w.number(a.table.crop, ".3f"),
            change=w.number(best["against_crop"], "+.3f"),
            least=w.number(best["least"], "+.3f"),
            most=w.number(best["most"], "+.3f"),
        )
    yield w(
        "price",
        to=a.to,
        cache=w.number(a.price["cache_bytes"] / 1e6, ".0f"),
        cropped=w.number(a.price["cache_bytes_cropped"] / 1e6, ".0f"),
        times=w.number(a.price["operations"] / a.price["operations_cropped"], ".1f"),
    )
    short = a.short_nats
    if short is not None:
        yield w("price_short", nats=w.number(short, "+.3f"), short=min(SHORT, a.trained))
    if a.choice == "dynamic":
        yield w("price_dynamic")
    if a.left_out:
        yield w("left_out", items=", ".join(w("interrupted") if x == "interrupted" else x for x in a.left_out))
    yield ""
    yield a.table.table(w.lang)
    if a.choice != CROP:
        yield ""
        yield w("next", model=a.model or "MODEL", to=str(a.to), method=a.choice)  # digits that can be typed


__all__ = ["CROP", "Advice", "advise", "judge"]
