"""One bar over all cells of a grid, on standard error: how far, how long still, and what those under way tell."""

import sys
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Self

from tqdm import tqdm

from gnomon.lab.cell import Cell
from gnomon.lab.worker import Event

BAR = "{percentage:3.0f}%|{bar}| {elapsed}<{remaining} {postfix}"


class Progress:
    """What cells tell, shown to a person; silent when `quiet`."""

    def __init__(self, quiet: bool) -> None:
        self.quiet = quiet
        self._shares: dict[str, float] = {}
        self._texts: dict[str, str] = {}
        self._bar: tqdm[None] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.close()

    def begin(self, cells: Sequence[Cell]) -> None:
        """These are left to run; the bar counts their work, by which tqdm tells the time left."""
        self._bar = tqdm(
            total=sum(cell.work for cell in cells),
            disable=self.quiet or not cells or None,
            leave=False,
            dynamic_ncols=True,
            mininterval=0.2,
            smoothing=0.05,
            bar_format=BAR,
        )

    def take(self, cell: Cell, event: Event) -> None:
        """Show what a cell tells."""
        key, name = cell.key, cell.folder_name
        share = {"step": event.get("share", 0.0), "done": 1.0}.get(event["event"], 0.0)
        if self._bar is not None:
            self._bar.update((share - self._shares.get(key, 0.0)) * cell.work)
        self._shares[key] = share
        self._texts.pop(key, None)
        if event["event"] != "done":
            self._texts[key] = f"{name} {event.get('text', '')}".strip()
        if self._bar is not None:
            self._bar.set_postfix_str("  ".join(self._texts.values()), refresh=False)

    def say(self, text: str) -> None:
        """A line above the bar."""
        if not self.quiet:
            tqdm.write(text, file=sys.stderr)


def counter(text: str, quiet: bool) -> Callable[[int, int], None]:
    """A function of (done, total) that shows how far something is, once it takes longer than a second."""
    bar = tqdm(total=0, desc=text, unit="B", unit_scale=True, leave=False, disable=quiet or None, delay=1)

    def show(done: int, total: int) -> None:
        bar.total = total
        bar.update(done - bar.n)
        if done == total:
            bar.close()

    return show


__all__ = ["Progress", "counter"]
