"""Hardware in a line, such as "80GB,400TFLOPS,link=50GB/s", and how long and how many of it a training needs."""

import re
from dataclasses import dataclass
from math import ceil, inf

from gnomon.errors import BadValue
from gnomon.models.dry_step import Training

_PREFIX = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "P": 10**15}
_ITEM = re.compile(r"(?:(link)=)?(\d+(?:\.\d+)?)\s*([kMGTP]?)(B/s|B|FLOPS)")
USABLE = 0.9  # share of a device's memory; the rest is the runtime's, and lost between blocks
EXCHANGES = 3  # of all weights in a step: gathered forward and backward, gradients scattered (arXiv:2304.11277)


@dataclass(frozen=True)
class Hardware:
    """One device.

    memory   bytes
    flops    operations a second at best, of the products' dtype
    link     bytes a second that it exchanges with the others; None where it was not said
    """

    name: str
    memory: float
    flops: float
    link: float | None = None

    @classmethod
    def parse(cls, line: str) -> "Hardware":
        """Read "80GB,400TFLOPS", or with ",link=50GB/s"; BadValue for another line.

        >>> Hardware.parse("80GB,400TFLOPS").memory
        80000000000.0
        """
        found: dict[str, float] = {}
        for item in line.split(","):
            match = _ITEM.fullmatch(item.strip())
            kind = {"B": "memory", "FLOPS": "flops", "B/s": "link"}[match[4]] if match else ""
            if not match or kind in found or bool(match[1]) != (kind == "link") or not float(match[2]):
                raise _bad(line, f"{item.strip()!r} is not an item of it")
            found[kind] = float(match[2]) * _PREFIX[match[3]]
        if missing := {"memory", "flops"} - found.keys():
            raise _bad(line, f"it lacks {' and '.join(sorted(missing))}")
        return cls(line, **found)

    def needed(self, step: Training) -> int:
        """Devices that hold a step when FSDP2 shares the states among them and each computes this batch itself.
        BadValue where its activations alone do not fit."""
        room = USABLE * self.memory - step.activations
        if room <= 0:
            raise BadValue(
                f"the activations of {step.batch} rows of {step.length} tokens take {step.activations / 1e9:.1f} GB, "
                f"more than {self.name} has: choose a smaller batch or length"
            )
        return ceil(step.states / room)

    def step_seconds(self, step: Training, utilisation: float) -> float:
        """Seconds of the products of a step, at this share of the peak."""
        return step.flops / (self.flops * utilisation)

    def exchanged(self, step: Training, devices: int) -> float:
        """Bytes that FSDP2 moves over each device's link in a step; weights and gradients travel in float32."""
        return EXCHANGES * step.weights * (devices - 1) / devices

    def exchange_seconds(self, step: Training, devices: int) -> float:
        """Seconds of that; infinite where the link was not said."""
        return inf if self.link is None else self.exchanged(step, devices) / self.link


def _bad(line: str, why: str) -> BadValue:
    return BadValue(f"a device is a line such as '80GB,400TFLOPS' or '80GB,400TFLOPS,link=50GB/s', got {line!r}: {why}")


__all__ = ["Hardware"]
