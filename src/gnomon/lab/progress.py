"""One bar over the tokens of all models, on standard error: how far, how fast, and the loss of those under way."""

import sys
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Self

from tqdm import tqdm

from gnomon.lab.trial import Job
from gnomon.lab.worker import Event


class Progress:
    """What the jobs tell, shown to a person; silent when `quiet`."""

    def __init__(self, jobs: Sequence[Job], quiet: bool) -> None:
        """jobs: those that will run."""
        self.quiet = quiet
        self._steps: dict[str, int] = {}
        self._losses: dict[str, float] = {}
        steps = sum(job.settings.train.steps for job in jobs)
        per_step = jobs[0].settings.train.batch_size * jobs[0].settings.train_length if jobs else 0
        self._per_step = per_step
        self._bar = tqdm(
            total=steps * per_step, unit=" tokens", unit_scale=True, disable=quiet or not jobs or None, leave=False,
            dynamic_ncols=True, mininterval=0.2, smoothing=0.1,
        )  # fmt: skip

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.close()

    def take(self, job: Job, event: Event) -> None:
        """Show an event of a job."""
        name = job.trial.folder
        if event["event"] == "step":
            self._bar.update((event["step"] - self._steps.get(name, 0)) * self._per_step)
            self._steps[name], self._losses[name] = event["step"], event["loss"]
            if event["step"] == job.settings.train.steps:
                self._losses.pop(name)
                self._losses[f"measuring {name}"] = event["loss"]
        else:
            self._losses.pop(f"measuring {name}", None)
        shown = "  ".join(f"{name} {loss:.2f}" for name, loss in self._losses.items())
        self._bar.set_postfix_str(shown, refresh=False)

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
