"""Whether a step may change the weights: its loss and gradient are numbers, and no spike among those before it.

A spike is a loss, or a norm of the gradient, that is more than `spike` standard deviations above the mean of the last
WINDOW steps. What to do about it is a policy: stop, with the last good save named, or skip the batch and go on. A step
that is skipped leaves weights and optimizer as they were. Of MOST skipped steps in a row the last one stops the run.
"""

from dataclasses import dataclass
from math import isfinite
from statistics import fmean, pstdev
from typing import Annotated, Literal

from gnomon.errors import BadValue
from gnomon.kinds import Setting
from gnomon.train.precision import next_scale

WINDOW, ENOUGH, MOST = 128, 32, 10  # steps


@dataclass(frozen=True, kw_only=True)
class HealthSettings:
    """Steps that go wrong"""

    on_bad_step: Annotated[
        Literal["stop", "skip"],
        Setting(f"what happens where a loss is no number or a spike; {MOST} skipped steps in a row stop the run"),
    ] = "stop"
    spike: Annotated[
        float | None,
        Setting(f"standard deviations above the mean of the last {WINDOW} steps that make a spike", above=0),
    ] = None


class NotFinite(BadValue):
    """The loss or its gradient overflowed; the weights are as they were before the step."""


class Spike(BadValue):
    """The loss or its gradient is far above those of the steps before; the weights are as they were."""


@dataclass(frozen=True)
class Health:
    """What the steps so far were like; part of a run's state, for a resumed run must judge as the whole one would."""

    skipped: int = 0  #: steps that changed nothing
    in_a_row: int = 0  #: of them, the last ones
    scale: float = 1.0  #: of a loss in float16
    good_steps: int = 0  #: since the scale changed
    losses: tuple[float, ...] = ()  #: of the last steps, nats per target
    norms: tuple[float, ...] = ()  #: of their gradients

    def check(self, loss: float, norm: float, lr: float, settings: HealthSettings) -> None:
        """Raise NotFinite or Spike where a step with this loss and this norm must not change the weights."""
        if not (isfinite(loss) and isfinite(norm)):
            raise NotFinite(f"the loss is {loss:g} and the norm of its gradient {norm:g}, at a learning rate of {lr:g}")
        if settings.spike is None:
            return
        for name, value, before in (("loss", loss, self.losses), ("norm of the gradient", norm, self.norms)):
            if len(before) >= ENOUGH and value > fmean(before) + settings.spike * pstdev(before):
                raise Spike(
                    f"the {name} is {value:g}, after {fmean(before):g} ± {pstdev(before):g} in the steps before, "
                    f"at a learning rate of {lr:g}"
                )

    def after(self, loss: float, norm: float, settings: HealthSettings, scaled: bool) -> "Health":
        """With one more good step."""
        seen = settings.spike is not None
        scale, good = next_scale(self.scale, self.good_steps, False) if scaled else (self.scale, 0)
        losses = (*self.losses, loss)[-WINDOW:] if seen else ()
        norms = (*self.norms, norm)[-WINDOW:] if seen else ()
        return Health(self.skipped, 0, scale, good, losses, norms)

    def after_skipping(self, overflowed: bool) -> "Health":
        """With one more step that changed nothing; `overflowed`: because the scale of the loss was too large."""
        scale, good = next_scale(self.scale, self.good_steps, True) if overflowed else (self.scale, self.good_steps)
        return Health(self.skipped + 1, self.in_a_row + 1, scale, good, self.losses, self.norms)


__all__ = ["Health", "HealthSettings", "NotFinite", "Spike"]
