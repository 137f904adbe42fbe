"""The table of tasks: `gn.lab.tasks(...)` and what it says in words."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from gnomon.data import lock_folder
from gnomon.errors import BadValue
from gnomon.glossary import Words, words
from gnomon.lab.cell import Result
from gnomon.lab.exact.cell import ExactCell
from gnomon.lab.exact.settings import ExactRecipe, ExactSize
from gnomon.lab.exact.tasks import exact_tasks
from gnomon.lab.executor_choice import executor_for
from gnomon.lab.executors import Watch, run_cells
from gnomon.lab.seeds import median
from gnomon.lab.store import Store

Row = dict[str, Any]
MEASURES = ("exact", "stopped", "tokens")
LEARNED = 0.9  # of fresh questions of training's lengths, from which on a model has learned a task
ENCODINGS = ("rope", "alibi", "t5", "none", "sinusoidal")


class TaskTable(list[Row]):
    """One row for each task, encoding, seed and stretch of lengths; `pandas.DataFrame` takes it as it is.

    task, position, seed   which model
    train_length           the longest question it was trained on
    first, last            the lengths asked; the first stretch lies within training's
    tokens, exact, stopped shares of right tokens and answers, see `exact.answers`; None where the encoding ends
    learned                whether 90 % of the first stretch are right: without it the others say nothing
    """

    def __init__(self, rows: Sequence[Row], depths: Sequence[Row] = ()) -> None:
        super().__init__(rows)
        self.depths = list(depths)  #: of tasks with depths: a row for each length and depth

    def table(self, lang: str = "en") -> str:
        """As text for a terminal."""
        return "\n".join(written(self, words("exact", lang)))

    def to_dict(self) -> dict[str, Any]:
        """As plain data for JSON."""
        return {"rows": list(self), "depths": self.depths}


def tasks(
    task: str | Sequence[str] = "copy-unique",
    positions: Sequence[str] = ENCODINGS,
    *,
    train_length: int = 10,
    factors: Sequence[float] = (1, 1.5, 2, 3),
    steps: int | None = None,
    seeds: int = 1,
    seed: int = 0,
    eos: bool = True,
    count: int = 100,
    model: ExactSize | None = None,
    train: ExactRecipe | None = None,
    folder: str | Path | None = None,
    workers: int | None = None,
    executor: str = "processes",
    imports: Sequence[str] = (),
    watch: Watch | None = None,
) -> TaskTable:
    """Train a small model under each encoding on each task's short questions, and ask it longer ones.

    task          one or more names of `exact_tasks()`, or "all"
    train_length  the longest question of training; factors: multiples of it up to which longer ones are asked
    eos           whether models learn to end their answers; without it only forced length is measured
    count         questions asked in each stretch of lengths
    folder        keeps the results: what is there is not computed again

    >>> rows = tasks("sort", ["none"], steps=2, train_length=4, factors=(1, 2), count=4, workers=1)
    >>> [(row["first"], row["last"]) for row in rows]
    [(3, 4), (5, 8)]
    """
    names = list(exact_tasks()) if task == "all" else [task] if isinstance(task, str) else list(task)
    recipe = train or ExactRecipe()
    if steps is not None:
        recipe = ExactRecipe(**{**vars(recipe), "steps": steps})
    if seeds < 1:
        raise BadValue(f"seeds must be at least 1, got {seeds}")
    cells = [
        ExactCell(
            name,
            position,
            n,
            train_length,
            tuple(map(float, factors)),
            count,
            eos,
            model or ExactSize(),
            recipe,
            tuple(imports),
        )
        for name, position, n in product(names, positions, range(seed, seed + seeds))
    ]
    results = computed(cells, folder, workers, executor, watch)
    return TaskTable(*gathered([(cell, results[cell.key]) for cell in cells]))


def computed(
    cells: Sequence[Any], folder: str | Path | None, workers: int | None, executor: str, watch: Watch | None
) -> dict[str, Result]:
    """The results of cells by key, kept in a folder if there is one."""
    with ExitStack() as stack:
        root = Path(stack.enter_context(TemporaryDirectory(prefix="gnomon-lab-")) if folder is None else folder)
        stack.enter_context(lock_folder(root))
        done = run_cells(cells, Store(root), executor_for(executor, workers=workers), watch)
        return {end.cell.key: end.result for end in done}


def gathered(found: Sequence[tuple[ExactCell, Result]]) -> tuple[list[Row], list[Row]]:
    """Rows of stretches, and of depths."""
    rows, depths = [], []
    for cell, result in found:
        which = {
            "task": cell.task,
            "position": cell.position,
            "seed": cell.seed,
            "train_length": cell.train_length,
        }
        costs = {key: result[key] for key in ("steps", "parameters", "cpu_seconds")}
        rows += [{**which, **stretch, "learned": learned(result), **costs} for stretch in result["stretches"]]
        depths += [{**which, **cell_of_grid} for cell_of_grid in result["depths"]]
    return rows, depths


def learned(result: Result) -> bool:
    """Whether the model answers fresh questions of training's lengths."""
    rate = result["stretches"][0]["exact"]
    return rate is not None and rate >= LEARNED


# ------------------------------------------------------------------ as text


def written(table: TaskTable, w: Words) -> Iterator[str]:
    """A block for each task, in it one for each measure."""
    for name in dict.fromkeys(row["task"] for row in table):
        rows = [row for row in table if row["task"] == name]
        n = len({row["seed"] for row in rows})
        yield w("title", task=name, trained=rows[0]["train_length"], seeds=n)
        for measure in MEASURES:
            if any(row[measure] is not None for row in rows):
                yield ""
                yield w(measure)
                yield from block(rows, measure, w)
        if n > 1:
            yield ""
            yield from every_seed(rows, w)
        grid = [row for row in table.depths if row["task"] == name]
        if grid:
            yield ""
            yield w("by_depth")
            yield from depth_block(grid, w)
        yield from conclusions(rows, w)
        yield ""


def block(rows: Sequence[Row], measure: str, w: Words) -> list[str]:
    """Encodings by stretches: medians over seeds, every seed, and how many learned the task."""
    spans = list(dict.fromkeys((row["first"], row["last"]) for row in rows))
    lines = [["", *(w("span", first=a, last=b) for a, b in spans), w("learned")]]
    for position in dict.fromkeys(row["position"] for row in rows):
        mine = [row for row in rows if row["position"] == position]
        first = [row for row in mine if (row["first"], row["last"]) == spans[0]]
        cells = [
            share([row[measure] for row in mine if (row["first"], row["last"]) == span and row[measure] is not None], w)
            for span in spans
        ]
        lines.append([position, *cells, f"{sum(row['learned'] for row in first)}/{len(first)}"])
    return aligned(lines)


def every_seed(rows: Sequence[Row], w: Words) -> Iterator[str]:
    """Exact answers of each seed, in every stretch."""
    yield w("every_seed")
    for position in dict.fromkeys(row["position"] for row in rows):
        spans = dict.fromkeys((row["first"], row["last"]) for row in rows)
        parts = []
        for first, last in spans:
            mine = [r["exact"] for r in rows if (r["position"], r["first"], r["last"]) == (position, first, last)]
            shown = " ".join(w("n/a") if x is None else w.number(x, ".2f") for x in mine)
            parts.append(f"{w('span', first=first, last=last)}: {shown}")
        yield f"  {position}  " + "   ".join(parts)


def share(values: Sequence[float], w: Words) -> str:
    """A median with its interval and, of few seeds, all values."""
    if not values:
        return w("n/a")
    if len(values) == 1:
        return w.number(values[0], ".2f")
    found = median(values)
    comma = ", " if w.lang == "en" else "; "
    return f"{w.number(found.value, '.2f')} [{w.number(found.low, '.2f')}{comma}{w.number(found.high, '.2f')}]"


def depth_block(rows: Sequence[Row], w: Words) -> list[str]:
    """Lengths by depths, the median over seeds of exact answers, for each encoding."""
    depths = list(dict.fromkeys(row["depth"] for row in rows))
    lines = [["", "", *(w.number(depth, ".0%") for depth in depths)]]
    for position, length in dict.fromkeys((row["position"], row["length"]) for row in rows):
        cells = []
        for depth in depths:
            same = [r for r in rows if (r["position"], r["length"], r["depth"]) == (position, length, depth)]
            values = [row["exact"] for row in same if row["exact"] is not None]
            cells.append(w.number(median(values).value, ".2f") if values else w("n/a"))
        lines.append([position, w.number(length), *cells])
    return aligned(lines)


def conclusions(rows: Sequence[Row], w: Words) -> Iterator[str]:
    """What may be concluded: nothing of a model that did not learn the task."""
    for position in dict.fromkeys(row["position"] for row in rows):
        first = [row for row in rows if row["position"] == position and row["first"] <= row["train_length"]]
        failed = sum(not row["learned"] for row in first)
        if failed:
            yield w("not_learned", position=position, failed=failed, seeds=len(first))


def aligned(lines: Sequence[Sequence[str]]) -> list[str]:
    """Columns: the first to the left, the others to the right."""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return [
        "  "
        + "  ".join(
            f"{cell:<{n}}" if i == 0 else f"{cell:>{n}}" for i, (cell, n) in enumerate(zip(line, widths, strict=True))
        )
        for line in lines
    ]


__all__ = ["ENCODINGS", "LEARNED", "MEASURES", "TaskTable", "aligned", "computed", "share", "tasks"]
