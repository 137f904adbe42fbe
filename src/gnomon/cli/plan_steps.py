"""What `gnomon plan` says of a training step: its memory and operations, encodings beside each other, and hardware."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from gnomon.cli.sizes import row, size
from gnomon.glossary import Words

if TYPE_CHECKING:
    from gnomon.models.dry_step import Training
    from gnomon.models.plan import Plan

PARTS = ("weights", "gradients", "optimizer", "copies", "activations", "peak")
DAY = 86400
Step = tuple["Plan", "Training | None"]


def plan_steps(planned: "Plan", against: Sequence[str], batch: int, length: int | None, dtype: str) -> list[Step]:
    """The model's own plan and that with each other encoding, each with its step where there is a length."""
    import torch

    from gnomon.models.plan import plan

    kind = getattr(torch, dtype)
    plans = [planned, *(plan(planned.config, position=name) for name in against)]
    return [(p, None if length is None else p.training(batch, length, kind)) for p in plans]


def steps_report(steps: Sequence[Step]) -> dict[str, Any]:
    """The model's step under "training"; with other encodings, all of them under "against"."""
    report: dict[str, Any] = {}
    if steps[0][1] is not None:
        report["training"] = _step(steps[0][1])
    if len(steps) > 1:
        report["against"] = [
            {
                "position": ", ".join(spec.name for spec in planned.config.specs),
                "parameters": planned.total,
                "cache_numbers_per_token": planned.numbers_per_token,
                "training": None if step is None else _step(step),
            }
            for planned, step in steps
        ]
    return report


def _step(step: "Training") -> dict[str, Any]:
    counted = {**asdict(step), "peak": step.peak, "flops_per_token": step.flops_per_token}
    return {**counted, "dtype": str(step.dtype).removeprefix("torch.")}


def hardware_report(
    first: Step, line: str, devices: int | None, tokens: float | None, utilisation: float
) -> dict[str, Any]:
    """How many devices hold the states, how long a step takes on each, and all tokens on all of them."""
    from gnomon.models.hardware import Hardware

    device, step = Hardware.parse(line), first[1]
    assert step is not None
    needed = device.needed(step)
    devices = needed if devices is None else devices
    seconds = device.step_seconds(step, utilisation)
    report: dict[str, Any] = {"device": line, "needed": needed, "devices": devices, "utilisation": utilisation}
    report["step_seconds"] = seconds
    if device.link is not None:
        report["exchanged_bytes"] = round(device.exchanged(step, devices))
        report["exchange_seconds"] = device.exchange_seconds(step, devices)
    if tokens is not None:
        report["tokens"] = tokens
        report["days"] = tokens / (step.batch * step.length * devices) * seconds / DAY
    return report


def steps_text(report: Mapping[str, Any], w: Words) -> list[str]:
    """Lines for people; none where no step was planned and no encodings are compared."""
    lines: list[str] = []
    if (step := report.get("training")) is not None:
        lines += ["", w("step", batch=step["batch"], length=step["length"], dtype=step["dtype"])]
        lines += [row(w(part), size(step[part], w)) for part in PARTS if step[part]]
        lines += [row(w("flops_token"), f"{step['flops_per_token']:.3g}")]
    if "hardware" in report:
        lines += ["", *_hardware(report["hardware"], w)]
    if "against" in report:
        lines += ["", *_against(report["against"], w)]
    return lines


def _hardware(found: Mapping[str, Any], w: Words) -> list[str]:
    use, seconds = w.number(found["utilisation"], ".0%"), w.number(found["step_seconds"], ".3g")
    known = {name: found[name] for name in ("devices", "device", "needed")}
    lines = [w("on_devices", **known, seconds=seconds, use=use)]
    if "exchanged_bytes" in found:
        moved = size(found["exchanged_bytes"], w)
        lines.append(w("exchange", bytes=moved, seconds=w.number(found["exchange_seconds"], ".3g")))
    if "days" in found:
        lines.append(w("days", tokens=f"{found['tokens']:.3g}", days=w.number(found["days"], ".1f")))
    return lines


def _against(found: Sequence[Mapping[str, Any]], w: Words) -> list[str]:
    lines = []
    for one in found:
        cells = [f"{w.number(one['parameters'])} {w('parameters')}"]
        cells.append(f"{w('against_cache')} {w.number(one['cache_numbers_per_token'])}")
        if (step := one["training"]) is not None:
            cells.append(f"{w('peak')} {size(step['peak'], w)}, {w('flops_token')} {step['flops_per_token']:.3g}")
        lines.append(f"{one['position']:<18}" + ", ".join(cells))
    return lines


__all__ = ["hardware_report", "plan_steps", "steps_report", "steps_text"]
