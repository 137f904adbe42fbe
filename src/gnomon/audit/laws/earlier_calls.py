"""What position modules keep of earlier calls: each call before the one that is compared goes to a fresh module."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager

import torch

from gnomon.audit.adapters.positions import Bare
from gnomon.audit.answers import one_line
from gnomon.audit.compare import difference
from gnomon.audit.law import Evidence
from gnomon.audit.target import NotApplicable
from gnomon.shapes import Float

Call = Callable[[], Float]


def forgets(t: Bare, ask: Call, calls: Mapping[str, Call], tolerance: float) -> Evidence:
    """What a module that was never called answers, and what it does after each of these calls. Where it answered and
    then raises, it gives nothing; what it refuses to be called with has other laws."""
    with t.undo_afterwards():
        right = ask()
    found, cause = [], ""
    for said, call in calls.items():
        with t.undo_afterwards():
            try:
                call()
            except Exception:
                continue
            raised = ""
            try:
                found.append(ask())
            except Exception as broken:
                found.append(torch.full_like(right, torch.nan))
                raised = f", and raises {type(broken).__name__}: {one_line(str(broken))}"
        if not cause and not difference(found[-1], right) <= tolerance:
            cause = f"it is another one after a call {said}{raised}"
    if not found:
        raise NotApplicable(f"{t.name} takes no other call than the one it is asked about")
    return Evidence(torch.cat(found), torch.cat([right] * len(found)), None, None, tolerance, cause)


def modes(call: Call) -> dict[str, Call]:
    """The same call in each mode that torch can be in, under words for it."""

    def under(mode: Callable[[], AbstractContextManager[object]]) -> Call:
        def asked() -> Float:
            with mode():
                return call()

        return asked

    return {
        "under autocast": under(lambda: torch.autocast("cpu", torch.bfloat16)),
        "in inference mode": under(torch.inference_mode),
        "that records gradients": under(torch.enable_grad),
    }


def with_gradient(x: Float, ask: Callable[[Float], Float]) -> Float:
    """What comes of x, and the gradient that x gets if it gets one, side by side: tables that were made where no
    gradients are recorded must not stop them."""
    with torch.enable_grad():
        leaf = x.clone().requires_grad_()
        out = ask(leaf)
        grad = torch.autograd.grad(out.sum(), leaf)[0] if out.requires_grad else torch.zeros_like(x)
    return torch.cat([out.detach(), grad])


def accelerators() -> list[str]:
    """Devices beside the CPU."""
    found = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    return [name for name, there in found.items() if there]


__all__ = ["Call", "accelerators", "forgets", "modes", "with_gradient"]
